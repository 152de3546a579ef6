//! What can go wrong, in sentences a user can act on: where, what was found, what would be right.

use std::fmt;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The call was wrong, the data was wrong, or the system said no.
///
/// "Not converged" is never an error: it is a status of the result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data, a kernel description or a value is wrong.
    #[error("{0}")]
    Input(InputError),
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The job does not fit into the memory it was given.
    #[error("{what} needs {} but {} may be used; {remedy}", Bytes(*needed), Bytes(*available))]
    Memory {
        /// What was to be stored.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes that may be used.
        available: u64,
        /// What would help.
        remedy: String,
    },
    /// The observer asked to stop before there was anything to return.
    #[error("stopped before there was a result")]
    Stopped,
}

/// One sentence: `place: found; remedy`, or where it is about one of the samples that were given
/// `place, row N, part: found; remedy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// File, view, kernel or option; may be empty.
    pub place: String,
    /// The sample, counted from 0 among those that the call was given (people read it counted from 1).
    pub row: Option<usize>,
    /// What of that sample, its column for example; may be empty.
    pub part: String,
    /// What was found there.
    pub found: String,
    /// What would be right; may be empty.
    pub remedy: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position();
        if !position.is_empty() {
            write!(f, "{position}: ")?;
        }
        f.write_str(&self.found)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl InputError {
    /// Where it was found, as it stands in the sentence.
    pub fn position(&self) -> String {
        let row = self.row.map(|row| format!("row {}", row + 1));
        let parts = [
            self.place.clone(),
            row.unwrap_or_default(),
            self.part.clone(),
        ];
        let named: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        named.join(", ")
    }
}

impl Error {
    /// An input error; `place` and `remedy` may be empty.
    pub fn input(
        place: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Input(InputError {
            place: place.into(),
            row: None,
            part: String::new(),
            found: found.into(),
            remedy: remedy.into(),
        })
    }

    /// The same error about one of the samples that were given, counted from 0: its place is a part of that sample.
    pub fn of_row(self, row: usize) -> Self {
        match self {
            Error::Input(e) => Error::Input(InputError {
                place: String::new(),
                row: Some(row),
                part: e.position(),
                ..e
            }),
            other => other,
        }
    }

    /// The sample that it is about, counted from 0 among those that the call was given.
    pub fn row(&self) -> Option<usize> {
        match self {
            Error::Input(e) => e.row,
            _ => None,
        }
    }

    /// The same error without the number of the sample, for callers whose users do not know it.
    pub fn without_row(self) -> Self {
        match self {
            Error::Input(e) => Error::Input(InputError { row: None, ..e }),
            other => other,
        }
    }

    /// The same error, with a wider place put before its own.
    pub fn within(self, wider: &str) -> Self {
        match self {
            Error::Input(mut e) => {
                e.place = if e.place.is_empty() {
                    wider.to_owned()
                } else {
                    format!("{wider}, {}", e.place)
                };
                Error::Input(e)
            }
            other => other,
        }
    }

    /// An I/O error with the file it belongs to.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::Io {
            path: path.into(),
            source,
        }
    }
}

/// Refuses what is no positive finite number.
///
/// # Errors
/// A sentence that names `place`.
pub fn check_positive(place: &str, value: f64) -> Result<()> {
    match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(Error::input(
            place,
            format!("it is {value}"),
            "give a positive finite number",
        )),
    }
}

/// Shows a number of bytes the way people read it.
#[derive(Debug, Clone, Copy)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 {
            write!(f, "{} bytes", self.0)
        } else {
            write!(f, "{value:.1} {}", UNITS[unit])
        }
    }
}

/// At most five things of a long list, as `'a', 'b', …`.
pub fn some_of<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut out = String::new();
    for (k, name) in names.into_iter().enumerate() {
        if k == 5 {
            out.push_str(", …");
            break;
        }
        if k > 0 {
            out.push_str(", ");
        }
        out.push('\'');
        out.extend(name.as_ref().chars().take(60));
        out.push('\'');
    }
    out
}

/// "a, b or c": what may be given instead.
pub(crate) fn one_of(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<String> = names.into_iter().collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_leaves_out_what_is_empty() {
        assert_eq!(Error::input("", "no rows", "").to_string(), "no rows");
        assert_eq!(
            Error::input("x.csv row 3", "found 4 columns", "give 5").to_string(),
            "x.csv row 3: found 4 columns; give 5"
        );
    }

    #[test]
    fn the_sample_is_told_and_can_be_left_out() {
        let column = || Error::input("column 2", "it is -1", "").of_row(4);
        assert_eq!(column().row(), Some(4));
        let error = column().within("view 'x'").within("s line 9");
        assert_eq!(
            error.to_string(),
            "s line 9, view 'x', row 5, column 2: it is -1"
        );
        assert_eq!(error.row(), Some(4));
        let error = error.without_row();
        assert_eq!(error.to_string(), "s line 9, view 'x', column 2: it is -1");
        assert_eq!(error.row(), None);
        assert_eq!(
            Error::input("", "bad", "").of_row(0).to_string(),
            "row 1: bad"
        );
        assert_eq!(Error::Stopped.of_row(0).row(), None);
    }

    #[test]
    fn bytes_are_readable() {
        assert_eq!(Bytes(12).to_string(), "12 bytes");
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
    }
}
