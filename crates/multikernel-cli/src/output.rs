//! Where results go: text to stdout (to stderr if stdout holds the JSON), warnings to stderr, JSON to its file.

use anyhow::{Context, Result};
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
    /// Text for the reader.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        if self.stdout_is_taken {
            io::stderr().write_all(text.as_bytes())?;
        } else {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }

    /// What was chosen automatically.
    pub(crate) fn notes(&self, notes: &[String]) -> Result<()> {
        notes
            .iter()
            .try_for_each(|note| self.text(&format!("note: {note}\n")))
    }

    /// What the user should look at; shown even when quiet.
    pub(crate) fn warnings(&self, warnings: &[String]) -> Result<()> {
        for warning in warnings {
            writeln!(io::stderr(), "warning: {warning}")?;
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
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
            return Ok(());
        }
        write_whole(path, |out| out.write_all(text.as_bytes()))
            .with_context(|| path.display().to_string())
    }
}

/// Writes under a temporary name in the same folder, then renames: the file is there whole or not at all.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Temporary files are for their owner only; a result is for whom the user's mask allows.
    #[cfg(unix)]
    let builder = builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = io::BufWriter::new(builder.tempfile_in(folder)?);
    write(&mut file)?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.persist(path)?;
    Ok(())
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
    fn numbers_are_short() {
        let shown: Vec<String> = [0.0, 1.0, -0.25, 123.456, 1e-9, 2.5e7].map(number).into();
        assert_eq!(
            shown,
            ["0", "1.0000", "-0.2500", "123.5", "1.00e-9", "2.50e7"]
        );
    }
}
