//! Labels (and ids) from a file of their own.

use super::budget::Budget;
use super::npy::{self, Element, Header};
use super::npz::Archive;
use super::source::{Files, Format, Lines, Source, format_of, split_pick};
use super::table::{FileSamples, LabelWish, TableJob};
use super::{csv, fasta, libsvm};
use multikernel::data::{LabelBuilder, Labels};
use multikernel::error::{Error, Result, some_of};
use std::io::Read;

/// Where in the file labels and ids stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where<'j> {
    pub(super) label_column: Option<&'j str>,
    pub(super) label_key: Option<&'j str>,
    pub(super) id_column: Option<&'j str>,
}

/// Reads the labels, and ids where the file has them.
pub(super) fn read(
    files: &Files<'_>,
    name: &str,
    place: Where<'_>,
    budget: &mut Budget,
) -> Result<FileSamples> {
    let (path, picks) = split_pick(name);
    let format = format_of(&path)?;
    let source = files.source(&path)?;
    let job = TableJob {
        label: match place.label_column {
            Some(column) => LabelWish::Column(column),
            None => LabelWish::TheOnlyColumn,
        },
        id_column: place.id_column,
        ..TableJob::default()
    };
    let mut part = match format {
        Format::Npy => {
            let (header, mut input) = npy::open(&source)?;
            labels_only(&path, array(&header, &mut input, &path, budget)?)
        }
        Format::Npz => npz(&source, picks, place, budget)?,
        Format::Table { delimiter } => csv::read(&source, delimiter, &job, budget)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => super::parquet::read(&source, &job, budget)?,
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => return Err(super::load::no_parquet(&path)),
        Format::Fasta => fasta::read(
            &source,
            "",
            place.label_key.unwrap_or(fasta::LABEL_KEY),
            true,
            budget,
        )?,
        Format::Libsvm => libsvm::read(&source, "", budget)?,
        Format::Text => labels_only(&path, text(&source, budget)?),
    };
    // Sequences or features that stood beside the labels are not wanted here.
    part.views.clear();
    match part.labels {
        Some(_) => Ok(part),
        None => Err(Error::input(
            path,
            "there are no labels in the file",
            "give one label for each sample",
        )),
    }
}

fn labels_only(place: &str, labels: Labels) -> FileSamples {
    FileSamples {
        place: place.to_owned(),
        rows: labels.len(),
        labels: Some(labels),
        ..FileSamples::default()
    }
}

fn npz(
    source: &Source<'_>,
    picks: Vec<String>,
    place: Where<'_>,
    budget: &mut Budget,
) -> Result<FileSamples> {
    let mut archive = Archive::open(source)?;
    let names = archive.names();
    let label = match (&picks[..], place.label_column, &names[..]) {
        ([one], _, _) => one.clone(),
        ([], Some(column), _) => column.to_owned(),
        ([], None, [one]) => one.clone(),
        _ => {
            return Err(Error::input(
                &source.name,
                format!("the archive holds {}", some_of(&names)),
                "name one array as labels: file.npz:array",
            ));
        }
    };
    let mut member = archive.member(&label)?;
    let labels = array(&member.header, &mut member.input, &member.place, budget)?;
    drop(member);
    let mut part = labels_only(&source.name, labels);
    if let Some(column) = place.id_column
        && names.iter().any(|n| n == column)
    {
        part.ids = Some(ids(&mut archive, column, budget)?);
    }
    part.check_counts()?;
    Ok(part)
}

/// An array of an archive as ids.
pub(super) fn ids(
    archive: &mut Archive<'_, '_>,
    name: &str,
    budget: &mut Budget,
) -> Result<Vec<String>> {
    let mut member = archive.member(name)?;
    let labels = array(&member.header, &mut member.input, &member.place, budget)?;
    Ok((0..labels.len())
        .map(|i| labels.spelling(i).to_owned())
        .collect())
}

/// A one-dimensional array of numbers or text as labels.
pub(super) fn array(
    header: &Header,
    input: &mut impl Read,
    place: &str,
    budget: &mut Budget,
) -> Result<Labels> {
    if !matches!(header.shape[..], [_] | [_, 1]) {
        return Err(Error::input(
            place,
            format!("the array has the shape {}", header.shape_text()),
            "labels are an array of shape (n,), one for each sample",
        ));
    }
    let mut labels = LabelBuilder::default();
    let mut cost = 0;
    if header.element.is_text() {
        for (row, text) in header.texts(input, place, budget)?.into_iter().enumerate() {
            let text = std::str::from_utf8(&text).map_err(|_| {
                Error::input(
                    format!("{place} row {}", row + 1),
                    "the text is not UTF-8",
                    "write the labels as text of type '<U'",
                )
            })?;
            cost += labels.push(text) + 4;
        }
    } else if matches!(header.element, Element::Signed(8) | Element::Unsigned(8)) {
        header.wholes(input, place, |v| {
            budget.charge(place, 4 + labels.push(&v.to_string()))
        })?;
    } else {
        header.numbers(input, place, |_, numbers| {
            let before = cost;
            for &v in numbers {
                cost += 4 + match header.element {
                    Element::Bool => labels.push(if v == 0.0 { "false" } else { "true" }),
                    // The shortest text that gives the number back at its own precision.
                    Element::Float(2 | 4) => labels.push(&(v as f32).to_string()),
                    _ => labels.push(&v.to_string()),
                };
            }
            budget.charge(place, cost - before)
        })?;
        cost = 0;
    }
    budget.charge(place, cost)?;
    labels.finish(place)
}

/// One label per line; empty lines at the end do not count.
fn text(source: &Source<'_>, budget: &mut Budget) -> Result<Labels> {
    let mut lines = Lines::new(source, budget)?;
    let mut line = Vec::new();
    let mut labels = LabelBuilder::default();
    let mut empty = 0;
    while lines.next(source, &mut line)? {
        let text = std::str::from_utf8(&line).map_err(|_| {
            Error::input(
                format!("{} line {}", source.name, lines.number),
                "the line is not UTF-8",
                "give labels as text, one per line",
            )
        })?;
        if text.trim().is_empty() {
            empty += 1;
            continue;
        }
        if empty > 0 {
            return Err(Error::input(
                format!("{} line {}", source.name, lines.number - empty),
                "the label is missing",
                "give one label per line",
            ));
        }
        let cost = labels.push(text);
        budget.charge(&source.name, cost + 4)?;
    }
    labels.finish(&source.name)
}
