//! Streams of examples, one per line: JSON lines, CSV with a header, LIBSVM text.
//!
//! Lines are read one at a time, from anything that gives bytes, and never more than one is held. A line that is wrong is an
//! error with its number, and the stream goes on behind it.

use super::libsvm;
use super::source::some_of;
use super::stream_json::{self, Keys};
use super::table::{LabelWish, Plan, TableJob, ViewCut};
use super::{Csr, Dense, View, ViewData, Views};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};
use std::str::FromStr;

/// Bytes of a line, at most: a longer one is no example.
const LONGEST_LINE: usize = 64 << 20;

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
        let read = match format {
            StreamFormat::Jsonl => self.json(line).map(Some),
            StreamFormat::Csv => self.csv(line),
            StreamFormat::Libsvm => self.libsvm(line),
        };
        read.map_err(|e| e.within(&self.place(number)))
    }

    /// CSV whose header could not be read: no line can be understood.
    pub fn is_lost(&self) -> bool {
        self.format == Some(StreamFormat::Csv) && self.plan.is_none()
    }

    /// Whether a line is the header that was read before.
    pub fn is_header(&self, line: &[u8]) -> bool {
        self.plan.is_some() && cells(line).is_ok_and(|cells| trimmed(&cells) == self.header)
    }

    fn json(&mut self, line: &[u8]) -> Result<StreamEvent> {
        let keys = Keys {
            id: self.id_key(),
            label: self.label_key(),
        };
        let read = stream_json::parse(line, keys).map_err(|found| {
            let remedy = r#"write {"id": …, "<view>": [numbers], "label": …}"#;
            Error::input("", found, remedy)
        })?;
        if read.views.is_empty() {
            return self.label_only(read.id, read.label);
        }
        if self.views.is_empty() {
            if let Some((name, _)) = read.views.iter().find(|(_, values)| values.is_empty()) {
                return Err(Error::input(
                    format!("view {}", some_of([name])),
                    "it is empty",
                    "give at least one number",
                ));
            }
            let views = read.views.iter();
            self.views = views
                .map(|(name, v)| (name.clone(), Some(v.len())))
                .collect();
        }
        let mut given = read.views;
        let mut rows = Vec::with_capacity(self.views.len());
        for (name, width) in &self.views {
            let place = || format!("view {}", some_of([name]));
            let Some(at) = given.iter().position(|(n, _)| n == name) else {
                return Err(Error::input(
                    place(),
                    "it is missing",
                    "give every example all views",
                ));
            };
            let (_, values) = given.swap_remove(at);
            if Some(values.len()) != *width {
                return Err(Error::input(
                    place(),
                    format!(
                        "it has {} numbers, in the first example it had {}",
                        values.len(),
                        width.unwrap_or(0)
                    ),
                    "give every example the same columns",
                ));
            }
            rows.push(StreamRow::Dense(values));
        }
        if let Some((name, _)) = given.first() {
            return Err(Error::input(
                format!("view {}", some_of([name])),
                "the first example did not have it",
                "give every example the same views",
            ));
        }
        Ok(StreamEvent::Example(StreamExample {
            id: some_text(read.id),
            label: some_text(read.label),
            rows,
        }))
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

    fn csv(&mut self, line: &[u8]) -> Result<Option<StreamEvent>> {
        let cells = cells(line)?;
        if self.plan.is_none() {
            let names = trimmed(&cells);
            if names.iter().all(|n| n.parse::<f64>().is_ok()) {
                return Err(Error::input(
                    "",
                    format!("the first line holds numbers only ({})", some_of(&names)),
                    "the first line must name the columns",
                ));
            }
            self.read_header(names)?;
            return Ok(None);
        }
        let Some(plan) = &self.plan else {
            return Ok(None);
        };
        if cells.len() != self.header.len() {
            return Err(Error::input(
                "",
                format!(
                    "the row has {} cells but the header names {} columns",
                    cells.len(),
                    self.header.len()
                ),
                "give every row one cell for each column, on one line",
            ));
        }
        let text = |c: Option<usize>| some_text(c.map(|c| cells[c].trim().to_owned()));
        let (id, label) = (text(plan.id), text(plan.label));
        let columns = || plan.views.iter().flat_map(|(_, columns)| columns);
        if columns().all(|&c| cells[c].trim().is_empty()) {
            return self.label_only(id, label).map(Some);
        }
        let number = |c: usize| -> Result<f32> {
            let cell = cells[c].trim();
            let wrong = |found: String, remedy: &str| {
                let place = format!("column {}", some_of([&self.header[c]]));
                Err(Error::input(place, found, remedy))
            };
            match cell.parse::<f32>() {
                Ok(value) if value.is_finite() => Ok(value),
                Ok(_) => wrong(
                    format!("the value is {cell}"),
                    "give a finite number below 3.4e38",
                ),
                Err(_) if cell.is_empty() => wrong("the cell is empty".into(), "fill in the value"),
                Err(_) => wrong(
                    format!("{} is not a number", some_of([cell])),
                    "give a number",
                ),
            }
        };
        let rows = plan
            .views
            .iter()
            .map(|(_, columns)| {
                let values = columns.iter().map(|&c| number(c)).collect::<Result<_>>()?;
                Ok(StreamRow::Dense(values))
            })
            .collect::<Result<_>>()?;
        Ok(Some(StreamEvent::Example(StreamExample {
            id,
            label,
            rows,
        })))
    }

    fn read_header(&mut self, names: Vec<String>) -> Result<()> {
        let job = TableJob {
            features: true,
            cuts: self.options.views.iter().collect(),
            whole: self.options.whole.clone(),
            label: match &self.options.label_column {
                Some(name) => LabelWish::Column(name),
                None => LabelWish::IfThere("label"),
            },
            id_column: Some(self.id_key()),
            needs_ids: self.options.id_column.is_some(),
            not_features: Vec::new(),
        };
        let plan = job.plan("", &names)?;
        let views = plan.views.iter();
        self.views = views
            .map(|(name, columns)| (name.clone(), Some(columns.len())))
            .collect();
        self.plan = Some(plan);
        self.header = names;
        Ok(())
    }

    fn libsvm(&mut self, line: &[u8]) -> Result<Option<StreamEvent>> {
        let text = std::str::from_utf8(line).map_err(|_| {
            Error::input(
                "",
                "the line is not UTF-8",
                "give LIBSVM text: label index:value …",
            )
        })?;
        let text = text.split('#').next().unwrap_or("").trim();
        if text.is_empty() {
            return Ok(None);
        }
        let mut words = text.split_ascii_whitespace().peekable();
        let label = words.next_if(|word| !word.contains(':')).map(str::to_owned);
        let mut entries = words
            .filter(|word| !word.starts_with("qid:"))
            .map(|word| {
                libsvm::entry(word).map_err(|(found, remedy)| Error::input("", found, remedy))
            })
            .collect::<Result<Vec<(u32, f32)>>>()?;
        entries.sort_by_key(|e| e.0);
        if let Some(twice) = entries.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(Error::input(
                "",
                format!("index {} occurs twice", twice[0].0 + 1),
                "give every index at most once in a line",
            ));
        }
        if self.views.is_empty() {
            self.views.push((self.options.whole.clone(), None));
        }
        entries.retain(|e| e.1 != 0.0);
        let (columns, values) = entries.into_iter().unzip();
        Ok(Some(StreamEvent::Example(StreamExample {
            id: None,
            label,
            rows: vec![StreamRow::Sparse(columns, values)],
        })))
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

fn trimmed(cells: &[String]) -> Vec<String> {
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The cells of a line of CSV.
fn cells(line: &[u8]) -> Result<Vec<String>> {
    let wrong = |found: &str, remedy: &str| Error::input("", found, remedy);
    let text = std::str::from_utf8(line)
        .map_err(|_| wrong("the line is not UTF-8", "save the file as UTF-8"))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if !text.contains('"') {
        return Ok(text.split(',').map(str::to_owned).collect());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => Ok(record.iter().map(str::to_owned).collect()),
        _ => Err(wrong(
            "the line is no row of CSV",
            "give one row on each line",
        )),
    }
}

/// Lines of anything that gives bytes, each with its number; never more than one is held.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    number: u64,
}

/// What [`LineReader::read`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamLine {
    /// A line, of this number from 1.
    Line(u64),
    /// A line of this number that is too long for an example; it was passed over.
    TooLong(u64),
    /// There is no more.
    End,
}

impl<R: BufRead> LineReader<R> {
    /// Lines from the start of `source`, the first being number `before` + 1.
    pub fn new(source: R, before: u64) -> Self {
        LineReader {
            source,
            number: before,
        }
    }

    /// The next line into `line`, without its end.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn read(&mut self, line: &mut Vec<u8>) -> io::Result<StreamLine> {
        line.clear();
        let (mut any, mut long) = (false, false);
        loop {
            let piece = match self.source.fill_buf() {
                Ok(piece) => piece,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if piece.is_empty() {
                break;
            }
            any = true;
            let end = piece.iter().position(|b| *b == b'\n');
            let taken = end.map_or(piece.len(), |end| end + 1);
            let text = &piece[..end.unwrap_or(taken)];
            if line.len() + text.len() > LONGEST_LINE {
                long = true;
                line.clear();
            }
            if !long {
                line.extend_from_slice(text);
            }
            self.source.consume(taken);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(StreamLine::End);
        }
        self.number += 1;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(match long {
            true => StreamLine::TooLong(self.number),
            false => StreamLine::Line(self.number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parser(format: Option<StreamFormat>) -> StreamParser {
        StreamParser::new(StreamOptions {
            name: "s".into(),
            format,
            whole: "x".into(),
            ..StreamOptions::default()
        })
    }

    fn example(event: Option<StreamEvent>) -> StreamExample {
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
    fn csv_lines_are_examples_labels_or_wrong() {
        let mut parser = parser(None);
        assert_eq!(parser.line(b"id,a,b,label\r", 1).unwrap(), None);
        let read = example(parser.line(b"7,1,2.5,cat", 2).unwrap());
        assert_eq!(read.id.as_deref(), Some("7"));
        assert_eq!(read.label.as_deref(), Some("cat"));
        assert_eq!(read.rows, [StreamRow::Dense(vec![1.0, 2.5])]);
        assert_eq!(example(parser.line(b"8,1,2,", 3).unwrap()).label, None);
        let late = StreamEvent::Label {
            id: "8".into(),
            label: "dog, big".into(),
        };
        assert_eq!(parser.line(b"8,,,\"dog, big\"", 4).unwrap(), Some(late));
        for bad in [
            "1,2,3",
            "1,x,2,cat",
            "1,,2,cat",
            ",,,cat",
            "1,nan,2,a",
            "1,1e99,2,a",
            "9,,,",
        ] {
            let said = parser.line(bad.as_bytes(), 5).unwrap_err().to_string();
            assert!(said.starts_with("s line 5"), "{said}");
        }
        let mut again = StreamParser::resume(
            StreamOptions {
                name: "s".into(),
                whole: "x".into(),
                ..StreamOptions::default()
            },
            &parser.learned(),
        )
        .unwrap();
        assert!(again.is_header(b"id,a,b,label"));
        assert_eq!(
            example(again.line(b"7,1,2.5,cat", 2).unwrap()).rows.len(),
            1
        );
        let views = again.views(&[&read, &read]).unwrap();
        assert_eq!(views.get("x").unwrap().columns, ["a", "b"]);
        assert_eq!(views.ids().unwrap(), ["7", "7"]);
    }

    #[test]
    fn json_lines_must_have_the_views_of_the_first() {
        let mut parser = parser(None);
        let first = example(
            parser
                .line(br#"{"a": [1, 2], "b": [3], "label": 1}"#, 1)
                .unwrap(),
        );
        assert_eq!(first.label.as_deref(), Some("1"));
        let other = example(parser.line(br#"{"b": [4], "a": [5, 6]}"#, 2).unwrap());
        assert_eq!(other.rows[0], StreamRow::Dense(vec![5.0, 6.0]));
        for bad in [
            r#"{"a": [1, 2]}"#,
            r#"{"a": [1], "b": [3]}"#,
            r#"{"a": [1, 2], "b": [3], "c": [4]}"#,
            r#"{"label": 1}"#,
            r#"{"id": 1}"#,
            "{}",
        ] {
            assert!(parser.line(bad.as_bytes(), 3).is_err(), "{bad}");
        }
        assert!(matches!(
            parser.line(br#"{"id": 1, "label": 2}"#, 4),
            Ok(Some(StreamEvent::Label { .. }))
        ));
    }

    #[test]
    fn libsvm_lines_are_sparse_examples() {
        let mut parser = parser(None);
        let read = example(parser.line(b"+1 3:0.5 1:2 7:0 # text", 1).unwrap());
        assert_eq!(read.label.as_deref(), Some("+1"));
        assert_eq!(read.rows, [StreamRow::Sparse(vec![0, 2], vec![2.0, 0.5])]);
        assert_eq!(example(parser.line(b"2:1", 2).unwrap()).label, None);
        assert_eq!(parser.line(b"# only", 3).unwrap(), None);
        for bad in [
            "1 0:1",
            "1 1:1 1:2",
            "1 x:1",
            "1 1:x",
            "1 1:inf",
            "1 99999999999:1",
        ] {
            assert!(parser.line(bad.as_bytes(), 4).is_err(), "{bad}");
        }
    }

    #[test]
    fn lines_are_counted_and_may_end_anyhow() {
        let mut reader = LineReader::new(&b"a\r\n\nlast"[..], 4);
        let mut line = Vec::new();
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::Line(5));
        assert_eq!(line, b"a");
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::Line(6));
        assert!(line.is_empty());
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::Line(7));
        assert_eq!(line, b"last");
        assert_eq!(reader.read(&mut line).unwrap(), StreamLine::End);
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
