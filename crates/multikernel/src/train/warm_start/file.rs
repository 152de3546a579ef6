//! A warm start in a file, for a training that is to go on later.

use super::WarmStart;
use crate::error::{Error, Result};
use crate::files::replace_file;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FORMAT: &str = "multikernel start";
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Written<'a> {
    format: &'a str,
    version: u64,
    kernels: &'a [String],
    start: &'a WarmStart,
}

#[derive(Deserialize)]
struct Read {
    format: String,
    version: u64,
    kernels: Vec<String>,
    start: WarmStart,
}

impl WarmStart {
    /// Keeps it in a file, with the names of the kernels; an older file is replaced by a complete new one only.
    pub fn save(&self, path: impl AsRef<Path>, kernels: &[String]) -> Result<()> {
        let path = path.as_ref();
        let written = Written {
            format: FORMAT,
            version: VERSION,
            kernels,
            start: self,
        };
        let bytes = serde_json::to_vec(&written).map_err(|e| Error::io(path, e.into()))?;
        replace_file(path, &bytes)
    }

    /// Reads what [`WarmStart::save`] wrote; it must belong to so many samples and to these kernels.
    pub fn load(path: impl AsRef<Path>, samples: usize, kernels: &[String]) -> Result<WarmStart> {
        let path = path.as_ref();
        let wrong = |found: String, remedy: &str| {
            Err(Error::input(path.display().to_string(), found, remedy))
        };
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let read: Read = match serde_json::from_slice(&bytes) {
            Ok(read) => read,
            Err(e) => {
                return wrong(
                    format!("this is no checkpoint of a training ({e})"),
                    "give the file that an earlier training wrote",
                );
            }
        };
        if read.format != FORMAT || read.version != VERSION {
            return wrong(
                format!("this is '{}' of version {}", read.format, read.version),
                "give the checkpoint of a training by this version",
            );
        }
        let other =
            "give the data, kernels and options of the earlier training, or train without resuming";
        if read.start.samples != samples {
            let own = read.start.samples;
            return wrong(
                format!("it belongs to {own} training samples, but there are {samples}"),
                other,
            );
        }
        if read.kernels != kernels {
            return wrong("it belongs to other kernels".into(), other);
        }
        match read.start.is_sound() {
            true => Ok(read.start),
            false => wrong(
                "its numbers do not fit together".into(),
                "train without resuming",
            ),
        }
    }

    /// Whether the parts fit together: a file may hold anything.
    fn is_sound(&self) -> bool {
        let mut numbers = self.values.iter().chain(self.weights.iter().flatten());
        self.c > 0.0
            && self.c.is_finite()
            && self.outputs > 0
            && self.rows.len().checked_mul(self.outputs) == Some(self.values.len())
            && self.rows.iter().all(|&row| row < self.samples)
            && numbers.all(|v| v.is_finite())
            && self.weights.iter().flatten().all(|w| *w >= 0.0)
            // No more scores than there are numbers for some sample, unless nothing was learned.
            && (self.rows.is_empty() || self.outputs <= self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_nothing_else_does() {
        let start = WarmStart {
            c: 0.1,
            norm: "lp:4/3".parse().unwrap(),
            samples: 4,
            outputs: 2,
            rows: vec![1, 3],
            values: vec![0.1, -0.1, 1.0 / 3.0, -1.0 / 3.0],
            weights: vec![vec![0.5, 0.0]],
        };
        let names = ["a".to_owned(), "b".to_owned()];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("start");
        start.save(&path, &names).unwrap();
        let again = WarmStart::load(&path, 4, &names).unwrap();
        assert_eq!(format!("{again:?}"), format!("{start:?}"));
        let said = |samples: usize, names: &[String]| {
            let error = WarmStart::load(&path, samples, names).unwrap_err();
            error.to_string()
        };
        assert!(said(5, &names).contains("belongs to 4 training samples, but there are 5"));
        assert!(said(4, &names[..1]).contains("belongs to other kernels"));
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to, part) in [
            ("[1,3]", "[1,4]", "do not fit together"),
            ("[1,3]", "[1]", "do not fit together"),
            ("\"outputs\":2", "\"outputs\":0", "do not fit together"),
            ("\"version\":1", "\"version\":9", "version 9"),
            ("{", "", "no checkpoint of a training"),
        ] {
            assert!(text.contains(from));
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let said = said(4, &names);
            assert!(said.contains(part), "{said}");
        }
    }
}
