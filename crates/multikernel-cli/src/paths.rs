//! What a command reads and what it writes, looked at before its work: nothing that was read is overwritten, no two results go
//! to one file, and what cannot be written is said at once.

use crate::args::{CommonArgs, FileArgs, KernelArgs};
use multikernel::files::check_writable;
use multikernel::norm::NormSpec;
use multikernel::{Error, Result};
use std::path::{Path, PathBuf};

/// The files of a command.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    inputs: Vec<PathBuf>,
    outputs: Vec<Output>,
}

#[derive(Debug)]
struct Output {
    option: &'static str,
    path: PathBuf,
    /// Whether this is a file, and not what the writer of arrays makes: that looks for itself, and may be a folder.
    is_file: bool,
}

impl Paths {
    /// What every command may write.
    pub(crate) fn of(common: &CommonArgs) -> Paths {
        let mut paths = Paths::default();
        if let Some(json) = &common.json {
            paths.writes_or_prints("json", json);
        }
        paths
    }

    pub(crate) fn reads(&mut self, file: impl AsRef<Path>) -> &mut Self {
        let file = file.as_ref();
        self.inputs.push(match picked(file) {
            Some(archive) if !file.exists() => archive,
            _ => file.to_path_buf(),
        });
        self
    }

    pub(crate) fn reads_all(
        &mut self,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> &mut Self {
        for file in files {
            self.reads(file);
        }
        self
    }

    pub(crate) fn reads_data(&mut self, files: &FileArgs) -> &mut Self {
        self.reads_all(&files.features)
            .reads_all(&files.gram)
            .reads_all(&files.labels)
    }

    pub(crate) fn reads_kernels(&mut self, kernels: &KernelArgs) -> &mut Self {
        self.reads_all(&kernels.kernels)
    }

    pub(crate) fn reads_norm(&mut self, norm: &NormSpec) -> &mut Self {
        match norm {
            NormSpec::NonIsotropic(file) => self.reads(file),
            _ => self,
        }
    }

    pub(crate) fn writes(&mut self, option: &'static str, path: impl AsRef<Path>) -> &mut Self {
        self.output(option, path.as_ref(), true)
    }

    /// As [`Paths::writes`], with - for stdout.
    pub(crate) fn writes_or_prints(
        &mut self,
        option: &'static str,
        path: impl AsRef<Path>,
    ) -> &mut Self {
        match path.as_ref() == Path::new("-") {
            true => self,
            false => self.writes(option, path),
        }
    }

    /// What the writer of arrays makes.
    pub(crate) fn writes_arrays(
        &mut self,
        option: &'static str,
        path: impl AsRef<Path>,
    ) -> &mut Self {
        self.output(option, path.as_ref(), false)
    }

    fn output(&mut self, option: &'static str, path: &Path, is_file: bool) -> &mut Self {
        self.outputs.push(Output {
            option,
            path: path.to_path_buf(),
            is_file,
        });
        self
    }

    /// Says what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        let mut known: Vec<(&Output, PathBuf)> = Vec::new();
        for output in &self.outputs {
            let wrong = |found: String, remedy: &str| {
                let place = format!("{} {}", output.option, output.path.display());
                Err(Error::input(place, found, remedy))
            };
            if output.path == Path::new("-") {
                return wrong(
                    "this cannot be written to stdout".into(),
                    "give the name of a file (./- for one of that name)",
                );
            }
            let Some(identity) = identity(&output.path) else {
                continue;
            };
            if let Some(input) = self.inputs.iter().find(|input| holds(input, &identity)) {
                return wrong(
                    format!(
                        "the data in {} is read by this command and would be overwritten",
                        input.display()
                    ),
                    "write elsewhere",
                );
            }
            if let Some((other, _)) = known.iter().find(|(_, other)| *other == identity) {
                return wrong(
                    format!("{} names the same file", other.option),
                    "write them to two files",
                );
            }
            known.push((output, identity));
        }
        self.outputs
            .iter()
            .filter(|output| output.is_file)
            .try_for_each(|output| check_writable(&output.path))
    }
}

/// The archive of `archive.npz:array`.
fn picked(file: &Path) -> Option<PathBuf> {
    let text = file.to_str()?;
    let end = text.to_ascii_lowercase().rfind(".npz:")? + ".npz".len();
    Some(text[..end].into())
}

/// What tells a file from others, however it is named, whether it exists or not; none for pipes and devices, of which nothing
/// is lost.
fn identity(path: &Path) -> Option<PathBuf> {
    match std::fs::metadata(path) {
        Ok(facts) if !facts.is_file() && !facts.is_dir() => None,
        Ok(_) => path.canonicalize().ok(),
        Err(_) => {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        }
    }
}

/// Whether what is read is this file, or a folder with this file in it.
fn holds(input: &Path, file: &Path) -> bool {
    let Some(input) = identity(input) else {
        return false;
    };
    let inside = input.is_dir() && file.is_file() && file.parent() == Some(&input);
    input == *file || inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_part_of_its_archive() {
        assert_eq!(picked(Path::new("a.npz:x,y")), Some("a.npz".into()));
        assert_eq!(picked(Path::new("A.NPZ:x")), Some("A.NPZ".into()));
        assert_eq!(picked(Path::new("a.npz")), None);
        assert_eq!(picked(Path::new("a:b.csv")), None);
    }
}
