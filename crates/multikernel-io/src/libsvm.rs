//! LIBSVM text: `label index:value index:value …`, one sample per line, indices counted from 1.

use super::budget::Budget;
use super::source::{Lines, Source};
use super::table::{FileSamples, Names, some_labels};
use multikernel::data::{Csr, View, ViewData};
use multikernel::error::{Error, Result, some_of};

/// LIBSVM stores indices as C's int.
const LARGEST_INDEX: u32 = i32::MAX as u32;

/// Reads a sparse view and, if the lines begin with them, labels. `# …` is a comment, `qid:…` is passed over.
pub(super) fn read(source: &Source<'_>, view: &str, budget: &mut Budget) -> Result<FileSamples> {
    let name = &source.name;
    let mut lines = Lines::new(source, budget)?;
    let mut line = Vec::new();
    let mut starts = vec![0];
    let mut indices: Vec<u32> = Vec::new();
    let mut values: Vec<f32> = Vec::new();
    let mut cols = 0;
    let mut collected = Names::default();
    while lines.next(source, &mut line)? {
        let place = || format!("{name} line {}", lines.number);
        let Some(read) = parse(&line).map_err(|e| e.within(&place()))? else {
            continue;
        };
        match read.label {
            Some(label) if collected.labels.len() == starts.len() - 1 => {
                collected.label(name, label, budget)?;
            }
            None if collected.labels.is_empty() => {}
            label => {
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
        let mut entries = read.entries;
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
    Ok(FileSamples {
        place: name.clone(),
        rows,
        views: vec![View {
            name: view.to_owned(),
            columns: Vec::new(),
            data: ViewData::Sparse(Csr::new(cols, starts, indices, values)?),
        }],
        ids: None,
        labels: some_labels(collected.labels, name)?,
    })
}

/// A line with a sample.
pub(super) struct LibsvmLine<'l> {
    pub(super) label: Option<&'l str>,
    /// Columns, ascending from 0, and their values, among which there may be 0.
    pub(super) entries: Vec<(u32, f32)>,
}

/// What a line says; none for empty lines and comments.
pub(super) fn parse(line: &[u8]) -> Result<Option<LibsvmLine<'_>>> {
    let wrong = |found: String, remedy: &str| Error::input("", found, remedy);
    let text = std::str::from_utf8(line).map_err(|_| {
        wrong(
            "the line is not UTF-8".into(),
            "give LIBSVM text: label index:value …",
        )
    })?;
    let text = text.split('#').next().unwrap_or("").trim();
    if text.is_empty() {
        return Ok(None);
    }
    let mut words = text.split_ascii_whitespace().peekable();
    let label = words.next_if(|word| !word.contains(':'));
    let mut entries = words
        .filter(|word| !word.starts_with("qid:"))
        .map(|word| entry(word).map_err(|(found, remedy)| wrong(found, remedy)))
        .collect::<Result<Vec<_>>>()?;
    entries.sort_by_key(|e| e.0);
    match entries.windows(2).find(|w| w[0].0 == w[1].0) {
        Some(twice) => Err(wrong(
            format!("index {} occurs twice", twice[0].0 + 1),
            "give every index at most once in a line",
        )),
        None => Ok(Some(LibsvmLine { label, entries })),
    }
}

/// `index:value`, the index made to count from 0.
fn entry(word: &str) -> Result<(u32, f32), (String, &'static str)> {
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
