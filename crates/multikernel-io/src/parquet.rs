//! Parquet: columns of numbers become features; columns of text ids, labels or strings.

use super::budget::Budget;
use super::parquet_bytes::{Chunks, chunks};
use super::parquet_pages::PageSizes;
use super::source::Source;
use super::table::{FileSamples, Growing, Names, Plan, TableJob, text_columns};
use half::f16;
use multikernel::error::{Error, Result, some_of};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rows converted at a time.
const BATCH: usize = 1 << 13;
/// Bytes that the decoder takes for a value of a dictionary.
const DICTIONARY_VALUE: u64 = 40;

/// The names of the columns.
pub(super) fn columns(source: &Source<'_>) -> Result<Vec<String>> {
    guarded(source, || Ok(names(&open(source)?)))
}

/// Reads what the job asks for.
pub(super) fn read(
    source: &Source<'_>,
    job: &TableJob<'_>,
    budget: &mut Budget,
) -> Result<FileSamples> {
    guarded(source, || {
        let file = open(source)?;
        let names = names(&file);
        let plan = job.plan(&source.name, &names)?;
        Reading {
            source,
            file,
            chunks: chunks(source)?,
            names,
            budget,
        }
        .run(plan)
    })
}

/// The decoder of damaged pages may panic (slices out of range inside of the crate); for the user that is a
/// damaged file like any other. Nothing that outlives the panic was half-changed: all results are dropped.
fn guarded<T>(source: &Source<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(damaged(source, "its pages cannot be decoded")))
}

fn damaged(source: &Source<'_>, why: &str) -> Error {
    Error::input(
        &source.name,
        format!("this is not a complete Parquet file ({why})"),
        "the file is truncated or damaged: copy or write it again",
    )
}

fn failed<'s>(source: &'s Source<'_>) -> impl Fn(ParquetError) -> Error + 's {
    |e| damaged(source, &e.to_string())
}

fn open(source: &Source<'_>) -> Result<SerializedFileReader<Chunks>> {
    SerializedFileReader::new(chunks(source)?).map_err(failed(source))
}

fn names(file: &SerializedFileReader<Chunks>) -> Vec<String> {
    let schema = file.metadata().file_metadata().schema_descr();
    schema.columns().iter().map(|c| c.path().string()).collect()
}

/// One cell.
enum Cell<'c> {
    Number(f64),
    /// Spelled as a label, 0.1 in single precision is 0.1 and not the nearest double.
    Single(f32),
    Whole(i128),
    Truth(bool),
    Text(&'c [u8]),
}

impl Cell<'_> {
    fn number(&self) -> Option<f64> {
        match *self {
            Cell::Number(v) => Some(v),
            Cell::Single(v) => Some(f64::from(v)),
            Cell::Whole(v) => Some(v as f64),
            Cell::Truth(v) => Some(f64::from(v)),
            Cell::Text(_) => None,
        }
    }

    /// As a label or an id is written.
    fn text(&self) -> Option<String> {
        match self {
            Cell::Number(v) => Some(v.to_string()),
            Cell::Single(v) => Some(v.to_string()),
            Cell::Whole(v) => Some(v.to_string()),
            Cell::Truth(v) => Some(v.to_string()),
            Cell::Text(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        }
    }
}

/// A number of 16 bits.
fn half(bytes: &[u8]) -> Cell<'_> {
    Cell::Number(match bytes {
        &[a, b] => f64::from(f16::from_le_bytes([a, b])),
        _ => f64::NAN,
    })
}

/// What the whole numbers of a column mean.
struct Wholes {
    unsigned: bool,
    /// Decimals are stored multiplied by this.
    scale: Option<f64>,
}

impl Wholes {
    fn of(column: &ColumnDescriptor) -> Self {
        use ConvertedType::{DECIMAL, UINT_8, UINT_16, UINT_32, UINT_64};
        let kind = column.converted_type();
        Wholes {
            unsigned: matches!(kind, UINT_8 | UINT_16 | UINT_32 | UINT_64),
            scale: (kind == DECIMAL).then(|| 10f64.powi(column.type_scale().clamp(0, 400))),
        }
    }

    /// The cell of a number whose bits are one or the other.
    fn cell(&self, signed: i128, unsigned: i128) -> Cell<'static> {
        let value = if self.unsigned { unsigned } else { signed };
        match self.scale {
            Some(scale) => Cell::Number(value as f64 / scale),
            None => Cell::Whole(value),
        }
    }
}

struct Reading<'r, 'a> {
    source: &'r Source<'a>,
    file: SerializedFileReader<Chunks>,
    /// For a look at the pages beside the reader.
    chunks: Chunks,
    names: Vec<String>,
    budget: &'r mut Budget,
}

impl Reading<'_, '_> {
    fn run(mut self, plan: Plan) -> Result<FileSamples> {
        self.check_times(&plan)?;
        let mut growing: Vec<Growing> = plan
            .views
            .iter()
            .map(|(_, columns)| self.start(columns))
            .collect::<Result<_>>()?;
        let mut collected = Names::default();
        let mut rows = 0;
        for group in 0..self.file.num_row_groups() {
            // The first column that is read tells how many rows the group really has; the header may lie.
            let mut here: Option<usize> = None;
            for ((_, columns), view) in plan.views.iter().zip(&mut growing) {
                for (k, &c) in columns.iter().enumerate() {
                    let read = self.feature(group, c, view, (k, columns.len()), rows)?;
                    self.same_count(c, &mut here, read)?;
                }
            }
            for (column, is_id) in [(plan.id, true), (plan.label, false)] {
                let Some(c) = column else { continue };
                let read = self.name(group, c, &mut collected, is_id, rows)?;
                self.same_count(c, &mut here, read)?;
            }
            rows += here.unwrap_or(0);
        }
        if rows == 0 {
            return Err(Error::input(
                &self.source.name,
                "there is no row in the file",
                "give at least one sample",
            ));
        }
        let place = &self.source.name;
        plan.samples(place, &self.names, growing, collected, rows, self.budget)
    }

    /// Dates and times are stored as whole numbers since 1970, which are no features; as ids they tell rows apart.
    fn check_times(&self, plan: &Plan) -> Result<()> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let features = plan.views.iter().flat_map(|(_, columns)| columns);
        let times: Vec<&String> = features
            .chain(&plan.label)
            .filter(|&&c| is_time(&schema.column(c)))
            .map(|&c| &self.names[c])
            .collect();
        if times.is_empty() {
            return Ok(());
        }
        Err(Error::input(
            &self.source.name,
            format!(
                "columns {} hold dates or times, where numbers are needed",
                some_of(times)
            ),
            "write them as numbers that mean something (age, hour, month), or cut views out of the other columns (view name=col1,col2)",
        ))
    }

    /// A single column of text is a view of strings; several columns must be numbers.
    fn start(&self, columns: &[usize]) -> Result<Growing> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let text: Vec<&String> = columns
            .iter()
            .filter(|&&c| is_text(&schema.column(c)))
            .map(|&c| &self.names[c])
            .collect();
        match (text.len(), columns.len()) {
            (0, _) => Ok(Growing::Numbers(Vec::new())),
            (1, 1) => Ok(Growing::Texts(Vec::new())),
            _ => Err(text_columns(&self.source.name, &text)),
        }
    }

    fn same_count(&self, c: usize, here: &mut Option<usize>, read: usize) -> Result<()> {
        match *here {
            Some(before) if before != read => Err(damaged(
                self.source,
                &format!(
                    "column '{}' has {read} rows where others have {before}",
                    self.names[c]
                ),
            )),
            _ => {
                *here = Some(read);
                Ok(())
            }
        }
    }

    fn place(&self, row: usize, c: usize) -> String {
        format!(
            "{} row {}, column '{}'",
            self.source.name,
            row + 1,
            self.names[c]
        )
    }

    /// Column `c`, the `k`-th of `cols` of its view; the first column makes the room for all.
    fn feature(
        &mut self,
        group: usize,
        c: usize,
        view: &mut Growing,
        (k, cols): (usize, usize),
        first: usize,
    ) -> Result<usize> {
        self.cells(group, c, |this, row, cell| {
            let at = first + row;
            match view {
                Growing::Texts(texts) => {
                    let Cell::Text(text) = cell else { return Ok(()) };
                    this.budget.reserve(texts, 1, &this.source.name)?;
                    this.budget.charge(&this.source.name, text.len() as u64)?;
                    texts.push(text.to_vec());
                }
                Growing::Numbers(values) => {
                    let value = cell.number().unwrap_or(f64::NAN);
                    if !(value as f32).is_finite() {
                        return Err(Error::input(
                            this.place(at, c),
                            format!("the value is {value}"),
                            "give a finite number below 3.4e38 (remove the row, or fill in the missing value)",
                        ));
                    }
                    if k == 0 {
                        this.budget.reserve(values, cols, &this.source.name)?;
                        values.resize((at + 1) * cols, 0.0);
                    }
                    match values.get_mut(at * cols + k) {
                        Some(slot) => *slot = value as f32,
                        None => return Err(damaged(this.source, "columns of different lengths")),
                    }
                }
                Growing::Undecided => {}
            }
            Ok(())
        })
    }

    fn name(
        &mut self,
        group: usize,
        c: usize,
        collected: &mut Names,
        is_id: bool,
        first: usize,
    ) -> Result<usize> {
        self.cells(group, c, |this, row, cell| {
            let Some(text) = cell.text() else {
                return Err(Error::input(
                    this.place(first + row, c),
                    "the text is not UTF-8",
                    "write the column as UTF-8",
                ));
            };
            match is_id {
                true => collected.id(&this.source.name, &text, this.budget),
                false => collected.label(&this.source.name, &text, this.budget),
            }
        })
    }

    /// Every cell of a column of a row group, in order; returns how many there are.
    fn cells(
        &mut self,
        group: usize,
        c: usize,
        mut take: impl FnMut(&mut Self, usize, Cell<'_>) -> Result<()>,
    ) -> Result<usize> {
        let schema = self.file.metadata().file_metadata().schema_descr_ptr();
        let column = schema.column(c);
        self.check_pages(group, c)?;
        let place = format!("{} column '{}'", self.source.name, self.names[c]);
        let unsupported = |what: String| {
            Error::input(
                place,
                format!("{what} are not understood"),
                "give a flat column of numbers, booleans or text",
            )
        };
        if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
            return Err(unsupported("nested columns".into()));
        }
        let reader = {
            let group = self.file.get_row_group(group);
            let group = group.map_err(failed(self.source))?;
            group.get_column_reader(c).map_err(failed(self.source))?
        };
        let whole = Wholes::of(&column);
        let column = &*column;
        let half_width = column.logical_type_ref() == Some(&LogicalType::Float16);
        match reader {
            ColumnReader::BoolColumnReader(r) => {
                self.typed(r, column, c, |v| Cell::Truth(*v), &mut take)
            }
            ColumnReader::Int32ColumnReader(r) => {
                let cell = |v: i32| whole.cell(i128::from(v), i128::from(v as u32));
                self.typed(r, column, c, |&v| cell(v), &mut take)
            }
            ColumnReader::Int64ColumnReader(r) => {
                let cell = |v: i64| whole.cell(i128::from(v), i128::from(v as u64));
                self.typed(r, column, c, |&v| cell(v), &mut take)
            }
            ColumnReader::FloatColumnReader(r) => {
                self.typed(r, column, c, |&v| Cell::Single(v), &mut take)
            }
            ColumnReader::DoubleColumnReader(r) => {
                self.typed(r, column, c, |&v| Cell::Number(v), &mut take)
            }
            ColumnReader::ByteArrayColumnReader(r) => {
                self.typed(r, column, c, |v| Cell::Text(v.data()), &mut take)
            }
            ColumnReader::FixedLenByteArrayColumnReader(r) if half_width => {
                self.typed(r, column, c, |v| half(v.data()), &mut take)
            }
            _ => Err(unsupported(format!(
                "values of type {}",
                column.physical_type()
            ))),
        }
    }

    /// Compares the sizes that the pages of a column claim with the file and with the memory that may be used.
    fn check_pages(&mut self, group: usize, c: usize) -> Result<()> {
        let chunk = self.file.metadata().row_group(group).column(c);
        let unknown = match chunk.compression() {
            Compression::BROTLI(_) => Some("Brotli"),
            Compression::LZO => Some("LZO"),
            _ => None,
        };
        if let Some(packing) = unknown {
            return Err(Error::input(
                &self.source.name,
                format!("its columns are compressed with {packing}, which is not read"),
                "write the file with snappy (the usual one), zstd, gzip or lz4",
            ));
        }
        let wrong = || {
            damaged(
                self.source,
                &format!("the pages of column '{}' have wrong sizes", self.names[c]),
            )
        };
        let (mut at, length) = chunk.byte_range();
        let end = at
            .checked_add(length)
            .filter(|&end| end <= self.chunks.length)
            .ok_or_else(wrong)?;
        while at < end {
            let piece = self.chunks.get_read(at).map_err(failed(self.source))?;
            let sizes = PageSizes::read(piece.take(end - at)).map_err(|_| wrong())?;
            let packed = u64::try_from(sizes.packed).map_err(|_| wrong())?;
            let unpacked = u64::try_from(sizes.unpacked).map_err(|_| wrong())?;
            let values = u64::try_from(sizes.dictionary).map_err(|_| wrong())?;
            // A value of a dictionary takes at least a byte.
            if values > unpacked {
                return Err(wrong());
            }
            at = at + sizes.header + packed;
            if at > end {
                return Err(wrong());
            }
            let needed = unpacked + values * DICTIONARY_VALUE;
            self.budget.charge(&self.source.name, needed)?;
            self.budget.refund(needed);
        }
        Ok(())
    }

    fn typed<T: DataType>(
        &mut self,
        mut reader: ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        c: usize,
        cell: impl Fn(&T::T) -> Cell<'_>,
        take: &mut impl FnMut(&mut Self, usize, Cell<'_>) -> Result<()>,
    ) -> Result<usize> {
        let mut values: Vec<T::T> = Vec::new();
        let mut levels: Vec<i16> = Vec::new();
        let mut row = 0;
        loop {
            values.clear();
            levels.clear();
            let (records, _, _) = reader
                .read_records(BATCH, Some(&mut levels), None, &mut values)
                .map_err(failed(self.source))?;
            if records == 0 {
                return Ok(row);
            }
            if values.len() < records {
                let missing = levels.iter().position(|&l| l < column.max_def_level());
                return Err(Error::input(
                    self.place(row + missing.unwrap_or(0), c),
                    "the cell is empty",
                    "fill in the missing value, or remove the row or the column",
                ));
            }
            for value in &values {
                take(self, row, cell(value))?;
                row += 1;
            }
        }
    }
}

fn is_time(column: &ColumnDescriptor) -> bool {
    let logical = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Date | LogicalType::Time { .. } | LogicalType::Timestamp { .. })
    );
    let converted = matches!(
        column.converted_type(),
        ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
            | ConvertedType::INTERVAL
    );
    logical || converted || column.physical_type() == Type::INT96
}

fn is_text(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Type::BYTE_ARRAY
}
