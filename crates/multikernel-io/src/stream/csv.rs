//! A line of CSV: the header, or an example.

use super::super::table::{LabelWish, TableJob};
use super::{StreamEvent, StreamExample, StreamParser, StreamRow, some_text};
use multikernel::error::{Error, Result, some_of};

impl StreamParser {
    pub(super) fn csv(&mut self, line: &[u8]) -> Result<Option<StreamEvent>> {
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

    pub(super) fn read_header(&mut self, names: Vec<String>) -> Result<()> {
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
}

pub(super) fn trimmed(cells: &[String]) -> Vec<String> {
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The cells of a line of CSV.
pub(super) fn cells(line: &[u8]) -> Result<Vec<String>> {
    let wrong = |found: &str, remedy: &str| Error::input("", found, remedy);
    let text = std::str::from_utf8(line)
        .map_err(|_| wrong("the line is not UTF-8", "save the file as UTF-8"))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if !text.contains('"') {
        return Ok(text.split(',').map(str::to_owned).collect());
    }
    let mut cells = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (cell, after) = match text.strip_prefix('"') {
            Some(text) => quoted(text)?,
            None => match text.split_once(',') {
                Some((cell, after)) => (cell.to_owned(), Some(after)),
                None => (text.to_owned(), None),
            },
        };
        cells.push(cell);
        rest = after;
    }
    Ok(cells)
}

/// A cell behind its opening quote, and what comes behind its comma. What is doubtful is wrong: half a row would be learned.
fn quoted(mut text: &str) -> Result<(String, Option<&str>)> {
    let mut cell = String::new();
    loop {
        let Some((part, after)) = text.split_once('"') else {
            return Err(Error::input(
                "",
                format!(
                    "the quote before {} is not closed",
                    some_of([cell.as_str().to_owned() + text])
                ),
                "close it in the same line: a row of a stream is one line",
            ));
        };
        cell.push_str(part);
        if let Some(after) = after.strip_prefix('"') {
            cell.push('"');
            text = after;
            continue;
        }
        match after.trim_start() {
            "" => return Ok((cell, None)),
            after => {
                let after = after.strip_prefix(',').ok_or_else(|| {
                    Error::input(
                        "",
                        format!(
                            "there is text behind the closing quote of {}",
                            some_of([&cell])
                        ),
                        "write a quote within a quoted cell twice, and a comma between cells",
                    )
                })?;
                return Ok((cell, Some(after)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example, parser};
    use super::super::{StreamOptions, StreamParser};
    use super::*;

    #[test]
    fn quotes_are_closed_in_their_line_or_wrong() {
        let read = |text: &str| cells(text.as_bytes()).map_err(|e| e.to_string());
        for (line, expected) in [
            ("\"a\",b", vec!["a", "b"]),
            ("\"a, \"\"b\"\"\",\"\"", vec!["a, \"b\"", ""]),
            (",\"\"\"\",", vec!["", "\"", ""]),
            ("\"a\" ,\"b\" ", vec!["a", "b"]),
            ("5\" pipe,\"x\"", vec!["5\" pipe", "x"]),
        ] {
            assert_eq!(read(line).unwrap(), expected, "{line}");
        }
        let said = read("1,\"multi").unwrap_err();
        assert!(said.contains("before 'multi' is not closed"), "{said}");
        let said = read("\"x\"junk,2").unwrap_err();
        assert!(said.contains("closing quote of 'x'"), "{said}");
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
            "1,2,3,\"cat",
            "1,2,3,\"cat, 4",
            "1,2,3,\"cat\"s",
            "\"1\"2,2,3,cat",
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
}
