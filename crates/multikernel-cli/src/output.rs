//! Where results go: text to stdout (to stderr if stdout holds the JSON), warnings to stderr, JSON to its file.

use anyhow::Result;
use multikernel::Error;
use multikernel::files::WholeFile;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the user wants to see, and where.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) quiet: bool,
    /// Stdout holds a result: text goes to stderr.
    pub(crate) stdout_is_taken: bool,
    /// `-` is stdout.
    pub(crate) json: Option<PathBuf>,
}

impl Output {
    /// Stdout is for the result of `--out -`.
    pub(crate) fn take_stdout(&mut self) -> multikernel::Result<()> {
        if self.stdout_is_taken {
            return Err(Error::input(
                "out and json",
                "both are -, but there is one stdout",
                "write one of them to a file",
            ));
        }
        self.stdout_is_taken = true;
        Ok(())
    }

    /// Text for the reader.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        if self.stdout_is_taken {
            io::stderr().write_all(text.as_bytes())?;
        } else {
            print(text.as_bytes())?;
        }
        Ok(())
    }

    /// What was chosen automatically.
    pub(crate) fn notes(&self, notes: &[String]) -> Result<()> {
        notes
            .iter()
            .try_for_each(|note| self.text(&format!("note: {}\n", with_flags(note))))
    }

    /// What the user should look at; shown even when quiet.
    pub(crate) fn warnings(&self, warnings: &[String]) -> Result<()> {
        for warning in warnings {
            writeln!(io::stderr(), "warning: {}", with_flags(warning))?;
        }
        Ok(())
    }

    /// The result object, if one was asked for.
    pub(crate) fn json(&self, result: &impl Serialize) -> Result<()> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        let mut text = serde_json::to_string_pretty(result)?;
        text.push('\n');
        if path == Path::new("-") {
            return print(text.as_bytes());
        }
        write_whole(path, text.as_bytes())
    }
}

/// A sentence of the library, which names settings as `this_one`, with the options of this program: `--this-one`.
pub(crate) fn with_flags(sentence: &str) -> String {
    let mut parts = sentence.split('`');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(inner) = parts.next() {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        match parts.next() {
            Some(after) if !inner.is_empty() && inner.chars().all(is_name) => {
                out.push_str(&format!("--{}{after}", inner.replace('_', "-")));
            }
            Some(after) => out.push_str(&format!("`{inner}`{after}")),
            None => out.push_str(&format!("`{inner}")),
        }
    }
    out
}

/// Writes to stdout, now.
pub(crate) fn print(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes a file that is there whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    let written = file.write_all(bytes);
    written.map_err(|e| Error::io(path, e))?;
    Ok(file.finish()?)
}

/// Rows of cells as lines of aligned columns: the first column to the left, the others to the right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |c: usize| {
        let cells = rows.iter().filter_map(|row| row.get(c));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(header[c].chars().count())
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::from(" ");
        for (c, cell) in cells.enumerate() {
            let width = widths.get(c).copied().unwrap_or(0);
            let padded = if c == 0 {
                format!(" {cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            };
            line.push_str(&padded);
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    };
    let mut out = line(&mut header.iter().copied());
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    out
}

/// As [`table`], but columns from `first` on stand to the left, too.
pub(crate) fn table_left_from(first: usize, header: &[&str], mut rows: Vec<Vec<String>>) -> String {
    let mut header: Vec<String> = header.iter().map(|h| (*h).to_owned()).collect();
    for (c, title) in header.iter_mut().enumerate().skip(first) {
        let cells = rows.iter().filter_map(|row| row.get(c));
        let width = cells.chain([&*title]).map(|cell| cell.chars().count());
        let width = width.max().unwrap_or(0);
        let padded = |cell: &mut String| *cell = format!("{cell:<width$}");
        padded(title);
        rows.iter_mut()
            .filter_map(|row| row.get_mut(c))
            .for_each(padded);
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(&header, &rows)
}

/// A number that the user gave, with all its digits but without hundreds of zeros.
pub(crate) fn setting(value: f64) -> String {
    match (1e-5..1e10).contains(&value.abs()) || value == 0.0 {
        true => value.to_string(),
        false => format!("{value:e}"),
    }
}

/// A number in at most about eight characters.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !value.is_finite() {
        "-".into()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.2e}")
    } else if size >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_options() {
        assert_eq!(
            with_flags("give `max_seconds` or `indefinite` clip; `X` and a ` stay"),
            "give --max-seconds or --indefinite clip; `X` and a ` stay"
        );
    }

    #[test]
    fn tables_align_whatever_the_width_of_their_letters() {
        let rows = vec![
            vec!["χ²".into(), "1".into()],
            vec!["rbf".into(), "10".into()],
        ];
        assert_eq!(
            table(&["name", "n"], &rows),
            "  name   n\n  χ²     1\n  rbf   10\n"
        );
    }

    #[test]
    fn columns_may_stand_to_the_left() {
        let rows = vec![vec!["a".into(), "long".into()], vec!["b".into()]];
        assert_eq!(
            table_left_from(1, &["n", "x"], rows),
            "  n  x\n  a  long\n  b\n"
        );
    }

    #[test]
    fn settings_keep_their_digits() {
        let shown = [1.0, 0.125, 1e300, 1.5e-300, 12345.678].map(setting);
        assert_eq!(shown, ["1", "0.125", "1e300", "1.5e-300", "12345.678"]);
    }

    #[test]
    fn numbers_are_short() {
        let shown: Vec<String> = [0.0, 1.0, -0.25, 123.456, 1e-9, 2.5e7].map(number).into();
        assert_eq!(
            shown,
            ["0", "1.0000", "-0.2500", "123.5", "1.00e-9", "2.50e7"]
        );
    }
}
