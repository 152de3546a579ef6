//! Streams of examples, one per line: JSON lines, CSV with a header, LIBSVM text.
//!
//! Lines are read one at a time, from anything that gives bytes, and never more than one is held. A line that is wrong is an
//! error with its number, and the stream goes on behind it.

mod csv;
mod json;
mod libsvm;
mod lines;

pub use lines::{LineReader, StreamLine};

use super::table::{Plan, ViewCut};
use multikernel::data::{Csr, Dense, View, ViewData, Views};
use multikernel::error::{Error, Result, some_of};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamFormat {
    /// `{"id": …, "<view>": […], "label": …}`; a line with id and label only teaches an example that came before.
    Jsonl,
    /// A header, then rows; a row is one line. An empty label cell: no label; all feature cells empty: a late label.
    Csv,
    /// `label index:value …`, or without the label.
    Libsvm,
}

impl FromStr for StreamFormat {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "jsonl" | "json" => Ok(StreamFormat::Jsonl),
            "csv" => Ok(StreamFormat::Csv),
            "libsvm" => Ok(StreamFormat::Libsvm),
            _ => Err(Error::input(
                "format",
                format!("{} is not known", some_of([text])),
                "give jsonl, csv or libsvm",
            )),
        }
    }
}

impl StreamFormat {
    /// By the first line that holds something.
    fn guess(line: &[u8]) -> Self {
        let text = line.trim_ascii();
        if text.starts_with(b"{") {
            return StreamFormat::Jsonl;
        }
        let mut words = text
            .split(u8::is_ascii_whitespace)
            .skip(1)
            .take(3)
            .peekable();
        let pairs = words.peek().is_some() && words.all(|w| w.contains(&b':') || w.is_empty());
        match pairs && !text.contains(&b',') {
            true => StreamFormat::Libsvm,
            false => StreamFormat::Csv,
        }
    }
}

/// What is to be read from lines.
#[derive(Debug, Clone, Default)]
pub struct StreamOptions {
    /// What the source is called in messages.
    pub name: String,
    /// How lines are written; none: as the first line looks.
    pub format: Option<StreamFormat>,
    /// Column or key of the label; `label` if none is named.
    pub label_column: Option<String>,
    /// Column or key of the id; `id` if none is named.
    pub id_column: Option<String>,
    /// Views cut out of the columns of CSV; none: all are one view.
    pub views: Vec<ViewCut>,
    /// The name of the view where lines do not name it.
    pub whole: String,
}

/// A row of a view.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamRow {
    /// A number for each column.
    Dense(Vec<f32>),
    /// Columns, ascending from 0, and their numbers.
    Sparse(Vec<u32>, Vec<f32>),
}

/// An example of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamExample {
    /// Its name.
    pub id: Option<String>,
    /// Its class; none where it is not known.
    pub label: Option<String>,
    /// One row for each view, in the order of the parser.
    pub rows: Vec<StreamRow>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// An example, with or without its label.
    Example(StreamExample),
    /// The label of an example that came before.
    Label {
        /// The example.
        id: String,
        /// Its class.
        label: String,
    },
}

/// Understands the lines of one source: the first ones tell it what views there are, and all others must have the same.
#[derive(Debug, Clone)]
pub struct StreamParser {
    options: StreamOptions,
    format: Option<StreamFormat>,
    /// Header of CSV.
    header: Vec<String>,
    plan: Option<Plan>,
    /// Names of the views and their columns; none for sparse views.
    views: Vec<(String, Option<usize>)>,
}

/// What a parser learned from the first lines, to go on elsewhere.
#[derive(Serialize, Deserialize)]
struct Learned {
    format: Option<StreamFormat>,
    header: Vec<String>,
    views: Vec<(String, Option<usize>)>,
}

impl StreamParser {
    /// A parser that has seen nothing.
    pub fn new(options: StreamOptions) -> Self {
        StreamParser {
            format: options.format,
            options,
            header: Vec::new(),
            plan: None,
            views: Vec::new(),
        }
    }

    /// What it learned, to be kept with a state.
    pub fn learned(&self) -> serde_json::Value {
        let learned = Learned {
            format: self.format,
            header: self.header.clone(),
            views: self.views.clone(),
        };
        serde_json::to_value(learned).unwrap_or_default()
    }

    /// A parser that knows what another one learned.
    ///
    /// # Errors
    /// If that does not fit the options.
    pub fn resume(options: StreamOptions, learned: &serde_json::Value) -> Result<Self> {
        let learned: Learned = serde_json::from_value(learned.clone()).map_err(|e| {
            Error::input(
                "state",
                format!("what it says of the stream: {e}"),
                "start anew",
            )
        })?;
        let mut parser = StreamParser::new(options);
        if parser
            .format
            .is_some_and(|format| Some(format) != learned.format)
        {
            return Err(Error::input(
                &parser.options.name,
                "the stream was of another format before",
                "give the same options as at first",
            ));
        }
        parser.format = learned.format;
        if !learned.header.is_empty() {
            parser.read_header(learned.header)?;
        }
        if !parser.views.is_empty() && parser.views != learned.views {
            return Err(Error::input(
                &parser.options.name,
                "the views were cut otherwise before",
                "give the same options as at first",
            ));
        }
        parser.views = learned.views;
        Ok(parser)
    }

    /// How lines are written, once that is known.
    pub fn format(&self) -> Option<StreamFormat> {
        self.format
    }

    /// Names of the views, once they are known.
    pub fn view_names(&self) -> impl Iterator<Item = &str> {
        self.views.iter().map(|(name, _)| name.as_str())
    }

    fn label_key(&self) -> &str {
        self.options.label_column.as_deref().unwrap_or("label")
    }

    fn id_key(&self) -> &str {
        self.options.id_column.as_deref().unwrap_or("id")
    }

    fn place(&self, number: u64) -> String {
        format!("{} line {number}", self.options.name)
    }

    /// What line `number` (from 1) says; none for the header, empty lines and comments.
    ///
    /// # Errors
    /// If the line is wrong; the parser can be asked for the next one. A wrong header is wrong for good:
    /// [`StreamParser::is_lost`].
    pub fn line(&mut self, line: &[u8], number: u64) -> Result<Option<StreamEvent>> {
        let line = match number {
            1 => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
            _ => line,
        };
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let format = *self.format.get_or_insert_with(|| StreamFormat::guess(line));
        if let (Some(cut), false) = (self.options.views.first(), format == StreamFormat::Csv) {
            let error = Error::input(
                format!("view {}", some_of([&cut.name])),
                "there are no columns with names to cut it from",
                match format {
                    StreamFormat::Jsonl => {
                        "leave it out: lines of JSON name their views; views are cut out of the columns of CSV"
                    }
                    _ => "leave it out: views are cut out of the columns of CSV",
                },
            );
            return Err(error.within(&self.place(number)));
        }
        let read = match format {
            StreamFormat::Jsonl => self.json(line).map(Some),
            StreamFormat::Csv => self.csv(line),
            StreamFormat::Libsvm => self.libsvm(line),
        };
        read.map_err(|e| e.within(&self.place(number)))
    }

    /// CSV whose header could not be read, or views to be cut out of lines that are no CSV: no line can be understood.
    pub fn is_lost(&self) -> bool {
        match self.format {
            Some(StreamFormat::Csv) => self.plan.is_none(),
            Some(_) => !self.options.views.is_empty(),
            None => false,
        }
    }

    /// Whether a line is the header that was read before.
    pub fn is_header(&self, line: &[u8]) -> bool {
        self.plan.is_some()
            && csv::cells(line).is_ok_and(|cells| csv::trimmed(&cells) == self.header)
    }

    fn label_only(&self, id: Option<String>, label: Option<String>) -> Result<StreamEvent> {
        match (some_text(id), some_text(label)) {
            (Some(id), Some(label)) => Ok(StreamEvent::Label { id, label }),
            _ => Err(Error::input(
                "",
                "there are no features, and not both an id and a label",
                "give an example, or the id and the label of one that came before",
            )),
        }
    }

    /// Examples as views, with their ids if any has one.
    ///
    /// # Errors
    /// If there is no example.
    pub fn views(&self, examples: &[&StreamExample]) -> Result<Views> {
        let mut views = Vec::with_capacity(self.views.len());
        for (v, (name, width)) in self.views.iter().enumerate() {
            let columns = match (&self.plan, width) {
                (Some(plan), Some(_)) => {
                    let columns = &plan.views[v].1;
                    columns.iter().map(|&c| self.header[c].clone()).collect()
                }
                _ => Vec::new(),
            };
            views.push(View {
                name: name.clone(),
                columns,
                data: together(examples, v, *width)?,
            });
        }
        let mut views = Views::new(views)?;
        if examples.iter().any(|example| example.id.is_some()) {
            let ids = examples.iter().map(|e| e.id.clone().unwrap_or_default());
            views.set_ids(ids.collect())?;
        }
        Ok(views)
    }
}

/// Rows of one view put together.
fn together(examples: &[&StreamExample], v: usize, width: Option<usize>) -> Result<ViewData> {
    if let Some(width) = width {
        let mut all = Vec::with_capacity(examples.len() * width);
        for example in examples {
            if let StreamRow::Dense(values) = &example.rows[v] {
                all.extend_from_slice(values);
            }
        }
        return Ok(ViewData::Dense(Dense::new(examples.len(), width, all)?));
    }
    let (mut starts, mut indices, mut all) = (vec![0], Vec::new(), Vec::new());
    for example in examples {
        if let StreamRow::Sparse(columns, values) = &example.rows[v] {
            indices.extend_from_slice(columns);
            all.extend_from_slice(values);
        }
        starts.push(all.len());
    }
    let cols = indices.iter().max().map_or(1, |c: &u32| *c as usize + 1);
    Ok(ViewData::Sparse(Csr::new(cols, starts, indices, all)?))
}

fn some_text(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn parser(format: Option<StreamFormat>) -> StreamParser {
        StreamParser::new(StreamOptions {
            name: "s".into(),
            format,
            whole: "x".into(),
            ..StreamOptions::default()
        })
    }

    pub(crate) fn example(event: Option<StreamEvent>) -> StreamExample {
        match event {
            Some(StreamEvent::Example(example)) => example,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn formats_are_told_from_the_first_line() {
        for (line, format) in [
            (r#"{"x": [1]}"#, StreamFormat::Jsonl),
            ("a,b,label", StreamFormat::Csv),
            ("1 1:0.5 2:3", StreamFormat::Libsvm),
            ("+1 3:0.5", StreamFormat::Libsvm),
            ("label", StreamFormat::Csv),
            ("a b,c:d", StreamFormat::Csv),
        ] {
            assert_eq!(StreamFormat::guess(line.as_bytes()), format, "{line}");
        }
    }

    #[test]
    fn views_are_cut_out_of_csv_only() {
        for line in [r#"{"a": [1, 2], "label": 1}"#, "1 1:2 2:3"] {
            let mut parser = parser(None);
            parser.options.views = vec!["left=a".parse().unwrap()];
            let said = parser.line(line.as_bytes(), 1).unwrap_err().to_string();
            assert!(said.starts_with("s line 1, view 'left': "), "{said}");
            assert!(parser.is_lost());
        }
    }

    proptest! {
        #[test]
        fn any_lines_are_read_or_refused(
            lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..6),
            format in 0..4usize,
        ) {
            let formats = [None, Some(StreamFormat::Jsonl), Some(StreamFormat::Csv), Some(StreamFormat::Libsvm)];
            let mut parser = parser(formats[format]);
            for (i, line) in lines.iter().enumerate() {
                if let Ok(Some(StreamEvent::Example(example))) = parser.line(line, i as u64 + 1) {
                    let views = parser.views(&[&example]).unwrap();
                    prop_assert_eq!(views.len(), 1);
                }
            }
        }
    }
}
