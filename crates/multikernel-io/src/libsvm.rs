//! LIBSVM text: `label index:value index:value …`, one sample per line, indices counted from 1.

use super::source::{Budget, Lines, Source};
use super::table::{Names, Part};
use multikernel::data::{Csr, View, ViewData};
use multikernel::error::{Error, Result, some_of};

/// LIBSVM stores indices as C's int.
const LARGEST_INDEX: u32 = i32::MAX as u32;

/// Reads a sparse view and, if the lines begin with them, labels. `# …` is a comment, `qid:…` is passed over.
pub(super) fn read(source: &Source<'_>, view: &str, budget: &mut Budget) -> Result<Part> {
    let name = &source.name;
    let mut lines = Lines::new(source, budget)?;
    let mut line = Vec::new();
    let mut starts = vec![0];
    let mut indices: Vec<u32> = Vec::new();
    let mut values: Vec<f32> = Vec::new();
    let mut cols = 0;
    let mut collected = Names::default();
    let mut entries: Vec<(u32, f32)> = Vec::new();
    while lines.next(source, &mut line)? {
        let place = || format!("{name} line {}", lines.number);
        let text = std::str::from_utf8(&line).map_err(|_| {
            Error::input(
                place(),
                "the line is not UTF-8",
                "give LIBSVM text: label index:value …",
            )
        })?;
        let text = text.split('#').next().unwrap_or("").trim();
        if text.is_empty() {
            continue;
        }
        let mut words = text.split_ascii_whitespace().peekable();
        let samples = starts.len() - 1;
        let label = words.next_if(|word| !word.contains(':'));
        match label {
            Some(label) if collected.labels.len() == samples => {
                collected.label(name, label, budget)?;
            }
            None if collected.labels.is_empty() => {}
            _ => {
                return Err(Error::input(
                    place(),
                    match label {
                        Some(_) => "the line has a label but earlier ones have none",
                        None => "the line has no label but earlier ones have one",
                    },
                    "give every line a label, or none",
                ));
            }
        }
        entries.clear();
        for word in words.filter(|word| !word.starts_with("qid:")) {
            let (index, value) =
                entry(word).map_err(|(found, remedy)| Error::input(place(), found, remedy))?;
            entries.push((index, value));
        }
        entries.sort_by_key(|e| e.0);
        if let Some(twice) = entries.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(Error::input(
                place(),
                format!("index {} occurs twice", twice[0].0 + 1),
                "give every index at most once in a line",
            ));
        }
        if let Some(last) = entries.last() {
            cols = cols.max(last.0 as usize + 1);
        }
        entries.retain(|e| e.1 != 0.0);
        budget.reserve(&mut indices, entries.len(), name)?;
        budget.reserve(&mut values, entries.len(), name)?;
        budget.reserve(&mut starts, 1, name)?;
        indices.extend(entries.iter().map(|e| e.0));
        values.extend(entries.iter().map(|e| e.1));
        starts.push(values.len());
    }
    let rows = starts.len() - 1;
    if rows == 0 || cols == 0 {
        return Err(Error::input(
            name,
            match rows {
                0 => "there is no sample in the file",
                _ => "no sample has any feature",
            },
            "give lines of LIBSVM text: label index:value …",
        ));
    }
    budget.settle(&mut starts);
    budget.settle(&mut indices);
    budget.settle(&mut values);
    let labels = match collected.labels.len() {
        0 => None,
        _ => Some(collected.labels.finish(name)?),
    };
    Ok(Part {
        place: name.clone(),
        rows,
        views: vec![View {
            name: view.to_owned(),
            columns: Vec::new(),
            data: ViewData::Sparse(Csr::new(cols, starts, indices, values)?),
        }],
        ids: None,
        labels,
    })
}

/// `index:value`, the index made to count from 0.
pub(super) fn entry(word: &str) -> Result<(u32, f32), (String, &'static str)> {
    let wrong = |found: String| {
        (
            found,
            "write index:value with the index a whole number from 1",
        )
    };
    let shown = some_of([word]);
    let (index, value) = word
        .split_once(':')
        .ok_or_else(|| wrong(format!("{shown} is not index:value")))?;
    let number: u64 = index
        .parse()
        .map_err(|_| wrong(format!("{shown} has no index that is a whole number")))?;
    let index = match u32::try_from(number) {
        Ok(0) => return Err(wrong(format!("{shown} has the index 0"))),
        Ok(index) if index <= LARGEST_INDEX => index - 1,
        _ => {
            return Err((
                format!("{shown} has an index above {LARGEST_INDEX}"),
                "number the features from 1 without large gaps",
            ));
        }
    };
    let value: f32 = value
        .parse()
        .map_err(|_| wrong(format!("{shown} has no value that is a number")))?;
    match value.is_finite() {
        true => Ok((index, value)),
        false => Err((
            format!("{shown} has a value that is not finite"),
            "give a finite number below 3.4e38",
        )),
    }
}
