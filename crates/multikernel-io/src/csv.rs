//! CSV and TSV: a header, then rows, read as a stream.

use super::budget::Budget;
use super::source::{Guarded, Source};
use super::table::{FileSamples, Growing, Names, Plan, TableJob, text_columns};
use csv::{ByteRecord, ReaderBuilder};
use multikernel::error::{Error, Result, some_of};

/// A table whose header is read.
struct Open<'a> {
    reader: csv::Reader<Guarded<Box<dyn std::io::BufRead + 'a>>>,
    guard: super::source::RecordGuard,
    names: Vec<String>,
}

fn open<'a>(source: &Source<'a>, delimiter: u8, budget: &Budget) -> Result<Open<'a>> {
    let (text, guard) = Guarded::new(source.text()?, budget);
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        // Rows of other lengths get a sentence of ours.
        .flexible(true)
        .from_reader(text);
    let mut header = ByteRecord::new();
    let there = reader
        .read_byte_record(&mut header)
        .map_err(|e| failed(source, e))?;
    if !there {
        return Err(Error::input(
            &source.name,
            "the file holds no header",
            "the first line must name the columns",
        ));
    }
    let mut names = Vec::with_capacity(header.len());
    for (c, name) in header.iter().enumerate() {
        let name = match c {
            0 => name.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(name),
            _ => name,
        };
        let name = std::str::from_utf8(name).map_err(|_| {
            Error::input(
                format!("{} header, column {}", source.name, c + 1),
                "the name is not UTF-8",
                "save the file as UTF-8",
            )
        })?;
        names.push(name.trim().to_owned());
    }
    if names.iter().all(|n| n.parse::<f64>().is_ok()) {
        return Err(Error::input(
            &source.name,
            format!("the first line holds numbers only ({})", some_of(&names)),
            "the first line must name the columns",
        ));
    }
    Ok(Open {
        reader,
        guard,
        names,
    })
}

/// The names of the columns.
pub(super) fn columns(source: &Source<'_>, delimiter: u8, budget: &Budget) -> Result<Vec<String>> {
    Ok(open(source, delimiter, budget)?.names)
}

/// Reads what the job asks for.
pub(super) fn read(
    source: &Source<'_>,
    delimiter: u8,
    job: &TableJob<'_>,
    budget: &mut Budget,
) -> Result<FileSamples> {
    let Open {
        mut reader,
        guard,
        names,
    } = open(source, delimiter, budget)?;
    let plan = job.plan(&source.name, &names)?;
    let mut growing: Vec<Growing> = plan
        .views
        .iter()
        .map(|(_, columns)| Growing::new(columns.len()))
        .collect();
    let mut collected = Names::default();
    let mut record = ByteRecord::new();
    let mut rows = 0;
    loop {
        guard.reset();
        let there = reader
            .read_byte_record(&mut record)
            .map_err(|e| failed(source, e))?;
        if !there {
            break;
        }
        let row = Row {
            source,
            names: &names,
            record: &record,
            number: rows + 1,
        };
        if record.len() != names.len() {
            return Err(Error::input(
                row.place(None),
                format!(
                    "the row has {} cells but the header names {} columns",
                    record.len(),
                    names.len()
                ),
                "give every row one cell for each column",
            ));
        }
        if rows == 0 {
            row.check_types(&plan)?;
        }
        for ((_, columns), view) in plan.views.iter().zip(&mut growing) {
            row.take(columns, view, budget)?;
        }
        if let Some(c) = plan.id {
            collected.id(&source.name, row.text(c)?, budget)?;
        }
        if let Some(c) = plan.label {
            collected.label(&source.name, row.text(c)?, budget)?;
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(Error::input(
            &source.name,
            "there is a header but no row",
            "give at least one sample",
        ));
    }
    plan.samples(&source.name, &names, growing, collected, rows, budget)
}

struct Row<'r, 'a> {
    source: &'r Source<'a>,
    names: &'r [String],
    record: &'r ByteRecord,
    number: usize,
}

impl Row<'_, '_> {
    fn place(&self, column: Option<usize>) -> String {
        let line = self.record.position().map_or(0, |p| p.line());
        let column = column.map_or(String::new(), |c| format!(", column '{}'", self.names[c]));
        format!(
            "{} row {} (line {line}){column}",
            self.source.name, self.number
        )
    }

    fn text(&self, c: usize) -> Result<&str> {
        std::str::from_utf8(&self.record[c]).map_err(|_| {
            Error::input(
                self.place(Some(c)),
                "the cell is not UTF-8",
                "save the file as UTF-8",
            )
        })
    }

    /// A view of several columns needs numbers; the first row tells columns of text at once.
    fn check_types(&self, plan: &Plan) -> Result<()> {
        for (_, columns) in plan.views.iter().filter(|(_, columns)| columns.len() > 1) {
            for &c in columns {
                self.text(c)?;
            }
            let text: Vec<&String> = columns
                .iter()
                .filter(|&&c| !self.record[c].is_empty() && looks_like_text(&self.record[c]))
                .map(|&c| &self.names[c])
                .collect();
            if !text.is_empty() {
                return Err(text_columns(&self.place(None), &text));
            }
        }
        Ok(())
    }

    fn take(&self, columns: &[usize], view: &mut Growing, budget: &mut Budget) -> Result<()> {
        let place = &self.source.name;
        if matches!(view, Growing::Undecided) {
            *view = match looks_like_text(&self.record[columns[0]]) {
                true => Growing::Texts(Vec::new()),
                false => Growing::Numbers(Vec::new()),
            };
        }
        match view {
            Growing::Texts(texts) => {
                let c = columns[0];
                let text = self.record[c].trim_ascii();
                if text.is_empty() {
                    return Err(self.missing(c));
                }
                budget.reserve(texts, 1, place)?;
                budget.charge(place, text.len() as u64)?;
                texts.push(text.to_vec());
            }
            Growing::Numbers(values) => {
                budget.reserve(values, columns.len(), place)?;
                for &c in columns {
                    values.push(self.value(c)?);
                }
            }
            Growing::Undecided => {}
        }
        Ok(())
    }

    fn missing(&self, c: usize) -> Error {
        Error::input(
            self.place(Some(c)),
            "the cell is empty",
            "fill in the missing value, or remove the row or the column",
        )
    }

    fn value(&self, c: usize) -> Result<f32> {
        let cell = self.record[c].trim_ascii();
        if cell.is_empty() {
            return Err(self.missing(c));
        }
        let text = self.text(c)?.trim_ascii();
        let value: f32 = text.parse().map_err(|_| {
            Error::input(
                self.place(Some(c)),
                format!("{} is not a number", some_of([text])),
                "give a number with a point for decimals, or cut views out of the other columns",
            )
        })?;
        if !value.is_finite() {
            return Err(Error::input(
                self.place(Some(c)),
                format!("the value is {text}"),
                "give a finite number below 3.4e38 (remove the row, or fill in the missing value)",
            ));
        }
        Ok(value)
    }
}

/// Whether a cell is text. Words in capitals are, even NAN and INF: they are letters of proteins.
fn looks_like_text(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    let word = cell.iter().all(u8::is_ascii_uppercase) && !cell.is_empty();
    word || std::str::from_utf8(cell).map_or(true, |text| text.parse::<f32>().is_err())
}

fn failed(source: &Source<'_>, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(e) => source.failed(e),
        other => Error::input(
            &source.name,
            format!("the table cannot be read ({other:?})"),
            "",
        ),
    }
}
