//! FASTA: `>id description`, then the sequence on one or more lines. Labels stand in headers as `label=…`.

use super::budget::Budget;
use super::source::{Lines, Source};
use super::table::{FileSamples, some_labels};
use multikernel::data::{LabelBuilder, View, ViewData};
use multikernel::error::{Error, Result, some_of};

/// The key of labels in headers, if no other is named.
pub(super) const LABEL_KEY: &str = "label";

/// Reads a view of strings, ids and, if the headers hold them, labels under `key`; `required` makes their absence an error.
pub(super) fn read(
    source: &Source<'_>,
    view: &str,
    key: &str,
    required: bool,
    budget: &mut Budget,
) -> Result<FileSamples> {
    let name = &source.name;
    let mut lines = Lines::new(source, budget)?;
    let mut line = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let mut labels = LabelBuilder::default();
    let mut sequences: Vec<Vec<u8>> = Vec::new();
    while lines.next(source, &mut line)? {
        let place = || format!("{name} line {}", lines.number);
        let text = line.trim_ascii();
        // Lines that begin with a semicolon are comments of the oldest FASTA files.
        if text.is_empty() || text[0] == b';' {
            continue;
        }
        if let Some(header) = text.strip_prefix(b">") {
            check_last(name, &ids, &sequences)?;
            let (header, id) = parse_header(header).map_err(|e| e.within(&place()))?;
            let cost = match label_of(header, key) {
                Some(label) if labels.len() == ids.len() => labels.push(label),
                None if labels.is_empty() && !required => 0,
                found => {
                    return Err(Error::input(
                        place(),
                        match found {
                            Some(_) => format!("the header has '{key}=' but earlier ones have not"),
                            None => format!("the header of {} has no '{key}='", some_of([id])),
                        },
                        format!("give every header {key}=…, or none"),
                    ));
                }
            };
            budget.charge(name, cost + 4 + id.len() as u64)?;
            budget.reserve(&mut ids, 1, name)?;
            budget.reserve(&mut sequences, 1, name)?;
            ids.push(id.to_owned());
            sequences.push(Vec::new());
            continue;
        }
        let Some(sequence) = sequences.last_mut() else {
            return Err(Error::input(
                place(),
                "there is text before the first header",
                "a FASTA file begins with >name",
            ));
        };
        check_letters(text).map_err(|e| e.within(&place()))?;
        budget.reserve(sequence, text.len(), name)?;
        sequence.extend(text.iter().filter(|&&b| b != b' '));
    }
    check_last(name, &ids, &sequences)?;
    if ids.is_empty() {
        return Err(Error::input(
            name,
            "there is no sequence in the file",
            "a FASTA file begins with >name",
        ));
    }
    for sequence in &mut sequences {
        budget.settle(sequence);
    }
    Ok(FileSamples {
        place: name.clone(),
        rows: ids.len(),
        views: vec![View {
            name: view.to_owned(),
            columns: Vec::new(),
            data: ViewData::Strings(sequences),
        }],
        ids: Some(ids),
        labels: some_labels(labels, name)?,
    })
}

/// The text of a header, and the name of its sequence.
fn parse_header(header: &[u8]) -> Result<(&str, &str)> {
    let header = std::str::from_utf8(header)
        .map_err(|_| Error::input("", "the header is not UTF-8", "save the file as UTF-8"))?;
    match header.split_ascii_whitespace().next() {
        Some(id) => Ok((header, id)),
        None => Err(Error::input(
            "",
            "the header names no sequence",
            "write >name",
        )),
    }
}

fn check_letters(text: &[u8]) -> Result<()> {
    match text.iter().find(|b| !b.is_ascii_graphic() && **b != b' ') {
        None => Ok(()),
        Some(odd) => Err(Error::input(
            "",
            format!("the sequence holds the byte {odd:#04x}"),
            "give letters only",
        )),
    }
}

fn check_last(name: &str, ids: &[String], sequences: &[Vec<u8>]) -> Result<()> {
    match (ids.last(), sequences.last()) {
        (Some(id), Some(sequence)) if sequence.is_empty() => Err(Error::input(
            name,
            format!("sequence {} is empty", some_of([id])),
            "give it at least one letter, or remove it",
        )),
        _ => Ok(()),
    }
}

/// The value of `key=value` among the words of a header, which blanks, bars or semicolons separate.
fn label_of<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    header
        .split(|c: char| c.is_ascii_whitespace() || c == '|' || c == ';')
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}
