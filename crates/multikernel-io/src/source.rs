//! Where bytes come from (a file, or memory), how much memory they may become, and which format a name means.

use super::budget::Budget;
use flate2::read::MultiGzDecoder;
use multikernel::error::{Error, Result};
use multikernel::observe::{Observer, Progress};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

/// Progress is told about this often.
const REPORT_EVERY: u64 = 4 << 20;
/// The files of a job: the file system, or a table of names and contents.
#[derive(Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) memory: Option<&'a BTreeMap<String, Vec<u8>>>,
    pub(super) observer: &'a dyn Observer,
}

impl<'a> Files<'a> {
    pub(super) fn source(&self, name: &str) -> Result<Source<'a>> {
        let bytes = match self.memory {
            Some(files) => Some(
                files
                    .get(name)
                    .map(Vec::as_slice)
                    .ok_or_else(|| Error::io(name, io::Error::from(io::ErrorKind::NotFound)))?,
            ),
            None => None,
        };
        let length = match bytes {
            Some(bytes) => bytes.len() as u64,
            None => {
                let facts = std::fs::metadata(name).map_err(|e| Error::io(name, e))?;
                if facts.is_dir() {
                    return Err(Error::input(
                        name,
                        "this is a folder",
                        "give a file (a folder of .npy files is understood for given matrices only)",
                    ));
                }
                if !facts.is_file() {
                    // It has no length, and several readers go through a file twice.
                    return Err(Error::input(
                        name,
                        "this is a pipe or a device",
                        "save the data to a file and name that",
                    ));
                }
                facts.len()
            }
        };
        if length == 0 {
            return Err(Error::input(
                name,
                "the file is empty",
                "give a file with data",
            ));
        }
        Ok(Source {
            name: name.to_owned(),
            length,
            bytes,
            observer: self.observer,
        })
    }
}

/// One file, not yet opened.
pub(super) struct Source<'a> {
    pub(super) name: String,
    pub(super) length: u64,
    pub(super) bytes: Option<&'a [u8]>,
    observer: &'a dyn Observer,
}

impl<'a> Source<'a> {
    pub(super) fn open(&self) -> Result<Input<'a>> {
        let from = match self.bytes {
            Some(bytes) => From::Memory(Cursor::new(bytes)),
            None => From::File(File::open(&self.name).map_err(|e| Error::io(&self.name, e))?),
        };
        Ok(Input {
            from,
            stage: format!("reading {}", self.name),
            read: 0,
            reported: 0,
            length: self.length,
            observer: self.observer,
        })
    }

    /// The text of the file, decompressed if its name ends in `.gz`.
    pub(super) fn text(&self) -> Result<Box<dyn BufRead + 'a>> {
        let input = BufReader::with_capacity(1 << 16, self.open()?);
        Ok(if self.is_gz() {
            Box::new(BufReader::with_capacity(
                1 << 16,
                MultiGzDecoder::new(input),
            ))
        } else {
            Box::new(input)
        })
    }

    fn is_gz(&self) -> bool {
        self.name.to_ascii_lowercase().ends_with(".gz")
    }

    /// The error of a failed read, as a sentence about this file.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match error.kind() {
            InvalidData | InvalidInput | UnexpectedEof if self.is_gz() => Error::input(
                &self.name,
                format!("the compressed data is damaged or ends early ({error})"),
                "copy or compress the file again",
            ),
            UnexpectedEof => Error::input(
                &self.name,
                "the file ends early",
                "copy or write the file again",
            ),
            _ => read_failed(&self.name, error),
        }
    }
}

/// The error of a failed read; tells a wish to stop from a failure.
pub(super) fn read_failed(place: &str, error: io::Error) -> Error {
    if error.get_ref().is_some_and(|e| e.is::<StopAsked>()) {
        return Error::Stopped;
    }
    Error::io(place, error)
}

/// Reads lines, whatever their end, and counts them.
pub(super) struct Lines<'a> {
    text: Box<dyn BufRead + 'a>,
    longest: u64,
    pub(super) number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: &Source<'a>, budget: &Budget) -> Result<Self> {
        Ok(Lines {
            text: source.text()?,
            longest: budget.longest_record(),
            number: 0,
        })
    }

    /// Puts the next line into `line`, without its end; false at the end of the file.
    pub(super) fn next(&mut self, source: &Source<'_>, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let read = (&mut self.text)
            .take(self.longest + 1)
            .read_until(b'\n', line)
            .map_err(|e| source.failed(e))?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if read as u64 > self.longest {
            return Err(too_long(&source.name, self.number, self.longest));
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        if self.number == 1 && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        Ok(true)
    }
}

fn too_long(name: &str, line: u64, longest: u64) -> Error {
    Error::input(
        format!("{name} line {line}"),
        format!("the line is longer than {longest} bytes"),
        "check that this is the right file, and that every quote is closed",
    )
}

/// Lets at most so many bytes through between two calls of [`RecordGuard::reset`]: an unclosed quote would
/// otherwise make a parser swallow the whole file.
pub(super) struct Guarded<R> {
    inner: R,
    guard: RecordGuard,
}

/// The counter of a [`Guarded`] reader.
#[derive(Clone)]
pub(super) struct RecordGuard {
    seen: Rc<Cell<u64>>,
    longest: u64,
}

impl RecordGuard {
    pub(super) fn reset(&self) {
        self.seen.set(0);
    }
}

impl<R: Read> Guarded<R> {
    pub(super) fn new(inner: R, budget: &Budget) -> (Self, RecordGuard) {
        let guard = RecordGuard {
            seen: Rc::new(Cell::new(0)),
            longest: budget.longest_record(),
        };
        let reader = Guarded {
            inner,
            guard: guard.clone(),
        };
        (reader, guard)
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let seen = self.guard.seen.get();
        if seen > self.guard.longest {
            return Err(io::Error::other(format!(
                "a record is longer than {} bytes: is every quote closed?",
                self.guard.longest
            )));
        }
        let read = self.inner.read(buffer)?;
        self.guard.seen.set(seen + read as u64);
        Ok(read)
    }
}

/// An open file that tells the observer how far it is read.
pub(super) struct Input<'a> {
    from: From<'a>,
    stage: String,
    read: u64,
    reported: u64,
    length: u64,
    observer: &'a dyn Observer,
}

enum From<'a> {
    File(File),
    Memory(Cursor<&'a [u8]>),
}

/// Carried through readers that only know I/O errors.
#[derive(Debug)]
struct StopAsked;

impl std::fmt::Display for StopAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for StopAsked {}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.from {
            From::File(file) => file.read(buffer)?,
            From::Memory(bytes) => bytes.read(buffer)?,
        };
        self.read += read as u64;
        if self.read - self.reported >= REPORT_EVERY {
            self.reported = self.read;
            let progress = Progress::Work {
                stage: &self.stage,
                done: self.read.min(self.length),
                total: self.length,
            };
            if self.observer.progress(&progress).is_break() {
                return Err(io::Error::other(StopAsked));
            }
        }
        Ok(read)
    }
}

impl Seek for Input<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.from {
            From::File(file) => file.seek(to),
            From::Memory(bytes) => bytes.seek(to),
        }
    }
}

/// The formats, told apart by the end of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Npz,
    Table { delimiter: u8 },
    Libsvm,
    Fasta,
    Parquet,
    Text,
}

/// The format that the name promises.
pub(super) fn format_of(name: &str) -> Result<Format> {
    let lower = name.to_ascii_lowercase();
    let (plain, gz) = match lower.strip_suffix(".gz") {
        Some(plain) => (plain, true),
        None => (lower.as_str(), false),
    };
    let extension = Path::new(plain)
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or("");
    let known = FORMATS
        .iter()
        .find(|info| info.endings.contains(&extension));
    let Some(info) = known else {
        return Err(Error::input(
            name,
            format!("files ending in '.{extension}' are not understood"),
            format!(
                "give {}, or .txt for labels; text may be compressed as .gz",
                readable()
            ),
        ));
    };
    if gz && !info.compressed {
        return Err(Error::input(
            name,
            format!("a compressed '.{extension}.gz' is not read"),
            "decompress it first",
        ));
    }
    Ok(info.format)
}

/// What is known of a format of files.
struct FormatInfo {
    format: Format,
    /// How names of such files end, without the dot; the usual ending first.
    endings: &'static [&'static str],
    /// Whether such files may be compressed as .gz.
    compressed: bool,
}

/// The formats that are read. Plain text, which holds labels only, is the last.
const FORMATS: &[FormatInfo] = &[
    format(Format::Npy, &["npy"], false),
    format(Format::Npz, &["npz"], false),
    format(Format::Table { delimiter: b',' }, &["csv"], true),
    format(Format::Table { delimiter: b'\t' }, &["tsv"], true),
    format(Format::Libsvm, &["libsvm", "svm", "svmlight"], true),
    format(Format::Fasta, &["fasta", "fa", "fna", "faa", "ffn"], true),
    format(Format::Parquet, &["parquet", "pq"], false),
    format(Format::Text, &["txt", "labels", ""], true),
];

const fn format(format: Format, endings: &'static [&'static str], compressed: bool) -> FormatInfo {
    FormatInfo {
        format,
        endings,
        compressed,
    }
}

/// The endings of files that may hold features: ".npy, .npz, …, .parquet (.pq)".
pub(super) fn readable() -> String {
    let features = FORMATS.iter().filter(|info| info.format != Format::Text);
    let endings = features.map(|info| {
        let all: Vec<String> = info.endings.iter().map(|end| format!(".{end}")).collect();
        match &all[..] {
            [usual, others @ ..] if !others.is_empty() => {
                format!("{usual} ({})", others.join(", "))
            }
            _ => all.concat(),
        }
    });
    endings.collect::<Vec<_>>().join(", ")
}

/// The file's name without folders, `.gz` and extension: the name of the view made from it.
pub(super) fn stem(name: &str) -> String {
    let file = Path::new(name)
        .file_name()
        .and_then(|f| f.to_str())
        .unwrap_or(name);
    let plain = match file.len().checked_sub(3) {
        Some(cut) if file.is_char_boundary(cut) && file[cut..].eq_ignore_ascii_case(".gz") => {
            &file[..cut]
        }
        _ => file,
    };
    match plain.rfind('.') {
        Some(dot) if dot > 0 => plain[..dot].to_owned(),
        _ => plain.to_owned(),
    }
}

/// Splits `F.npz:a,b` into the file and the arrays picked; anything else is a file.
pub(super) fn split_pick(name: &str) -> (String, Vec<String>) {
    if let Some(colon) = name.rfind(':')
        && name[..colon].to_ascii_lowercase().ends_with(".npz")
    {
        let picks = name[colon + 1..]
            .split(',')
            .map(|p| p.trim().to_owned())
            .filter(|p| !p.is_empty())
            .collect();
        return (name[..colon].to_owned(), picks);
    }
    (name.to_owned(), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_format_and_view() {
        assert_eq!(
            format_of("a/b.CSV.gz").unwrap(),
            Format::Table { delimiter: b',' }
        );
        assert_eq!(format_of("x.fa").unwrap(), Format::Fasta);
        assert!(
            format_of("x.npy.gz")
                .unwrap_err()
                .to_string()
                .contains("decompress it first")
        );
        let error = format_of("x.docx").unwrap_err().to_string();
        assert!(
            error.starts_with("x.docx: files ending in '.docx' are not understood; give .npy"),
            "{error}"
        );
        assert_eq!(stem("dir/a.b.csv.gz"), "a.b");
        assert_eq!(stem("dir/.hidden"), ".hidden");
        assert_eq!(
            split_pick("C:\\x.npz:a, b"),
            ("C:\\x.npz".into(), vec!["a".into(), "b".into()])
        );
        assert_eq!(split_pick("C:\\x.npy"), ("C:\\x.npy".into(), vec![]));
    }
}
