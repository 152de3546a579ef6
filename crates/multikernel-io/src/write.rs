//! Writing arrays: one `.npy`, an `.npz` archive, or a folder of `.npy` files.
//!
//! Nothing half-written is ever found under the name the user gave.

use super::npy_header::header_of_singles;
use multikernel::error::{Error, Result};
use multikernel::files::{WholeFile, followed, remove, temporary_name};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Elements in an archive begin at a multiple of this, so that the archive can be memory-mapped.
const ALIGNMENT: u16 = 64;

/// Writes named f32 arrays one after another, a piece at a time.
///
/// The name decides the form: `.npz` is an archive (stored uncompressed), `.npy` a single array, anything
/// else a new folder with one `.npy` for each array.
#[derive(Debug)]
pub struct ArrayWriter {
    goal: PathBuf,
    /// `None` once everything is in place.
    form: Option<Form>,
    names: Vec<String>,
}

enum Form {
    Npz(Box<ZipWriter<WholeFile>>),
    Npy(WholeFile),
    /// A new folder under a temporary name, which takes the place of `goal`.
    Folder {
        temporary: PathBuf,
        goal: PathBuf,
    },
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Form::Npz(_) => "Npz",
            Form::Npy(_) => "Npy",
            Form::Folder { .. } => "Folder",
        })
    }
}

/// Takes the values of an array, row after row.
pub struct ArraySink<'a> {
    out: &'a mut dyn Write,
    place: &'a Path,
    left: u64,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for ArraySink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArraySink")
            .field("left", &self.left)
            .finish()
    }
}

impl ArraySink<'_> {
    /// The next values.
    pub fn write(&mut self, values: &[f32]) -> Result<()> {
        self.left = self
            .left
            .checked_sub(values.len() as u64)
            .ok_or_else(|| wrong_count(self.place))?;
        for chunk in values.chunks(1 << 14) {
            self.buffer.clear();
            self.buffer
                .extend(chunk.iter().flat_map(|v| v.to_le_bytes()));
            self.out
                .write_all(&self.buffer)
                .map_err(|e| Error::io(self.place, e))?;
        }
        Ok(())
    }
}

fn wrong_count(place: &Path) -> Error {
    Error::input(
        place.display().to_string(),
        "the number of values written is not what the shape says",
        "write exactly one value for each entry",
    )
}

impl ArrayWriter {
    /// Begins to write; the folder of `path` must exist.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref().to_path_buf();
        let extension = given.extension().and_then(|e| e.to_str()).unwrap_or("");
        let form = match extension.to_ascii_lowercase().as_str() {
            "npz" => {
                let file = WholeFile::create(&given)?;
                if file.is_special() {
                    return Err(Error::input(
                        given.display().to_string(),
                        "this is a pipe or a device, and an archive is not written from front to back",
                        "give a file, or one .npy array",
                    ));
                }
                Form::Npz(Box::new(ZipWriter::new(file)))
            }
            "npy" => Form::Npy(WholeFile::create(&given)?),
            _ => {
                let goal = followed(&given);
                refuse_full_folder(&goal)?;
                let temporary = temporary_name(&goal)?;
                std::fs::create_dir(&temporary).map_err(|e| Error::io(&given, e))?;
                Form::Folder { temporary, goal }
            }
        };
        Ok(ArrayWriter {
            goal: given,
            form: Some(form),
            names: Vec::new(),
        })
    }

    /// Writes an array: `fill` hands over exactly the values that the shape says, row after row.
    pub fn array(
        &mut self,
        name: &str,
        shape: &[usize],
        fill: impl FnOnce(&mut ArraySink<'_>) -> Result<()>,
    ) -> Result<()> {
        let place = self.goal.clone();
        let said = |found: String, remedy: &str| {
            Err(Error::input(place.display().to_string(), found, remedy))
        };
        if self.names.iter().any(|n| n == name) {
            return said(format!("there are two arrays named '{name}'"), "rename one");
        }
        let Some(left) = shape
            .iter()
            .try_fold(1u64, |size, &d| size.checked_mul(d as u64))
        else {
            return said("the array is larger than a file can be".into(), "");
        };
        let header = header_of_singles(shape);
        match &mut self.form {
            None => return said("the file is already complete".into(), ""),
            Some(Form::Npy(_)) if !self.names.is_empty() => {
                return said(
                    "a .npy file holds one array but there are several".into(),
                    "write an .npz archive or a folder",
                );
            }
            Some(Form::Npy(out)) => fill_array(out, &place, &header, left, fill)?,
            Some(Form::Npz(zip)) => {
                let options = SimpleFileOptions::default()
                    .compression_method(CompressionMethod::Stored)
                    .large_file(true)
                    .with_alignment(ALIGNMENT);
                zip.start_file(format!("{name}.npy"), options)
                    .map_err(|e| Error::io(&place, e.into()))?;
                fill_array(zip, &place, &header, left, fill)?;
            }
            Some(Form::Folder { temporary, .. }) => {
                if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':', '\0'])
                {
                    return said(
                        format!("an array named '{name}' cannot become a file of a folder"),
                        "rename it, or write an .npz archive",
                    );
                }
                // The temporary folder is not what the user knows.
                let named = |e| match e {
                    Error::Io { source, .. } => Error::io(&place, source),
                    other => other,
                };
                let path = temporary.join(format!("{name}.npy"));
                let mut out = WholeFile::create(path).map_err(named)?;
                fill_array(&mut out, &place, &header, left, fill)?;
                out.finish().map_err(named)?;
            }
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Completes the file and gives it its name; an older file of that name is replaced.
    pub fn finish(mut self) -> Result<()> {
        match self.form.take() {
            Some(Form::Npz(zip)) => zip
                .finish()
                .map_err(|e| Error::io(&self.goal, io::Error::from(e)))?
                .finish(),
            Some(Form::Npy(out)) => out.finish(),
            Some(Form::Folder { temporary, goal }) => {
                // An empty folder may stand where the new one goes.
                let _ = std::fs::remove_dir(&goal);
                std::fs::rename(&temporary, &goal)
                    .map_err(|e| Error::io(&self.goal, e))
                    .inspect_err(|_| remove(&temporary))
            }
            None => Ok(()),
        }
    }
}

impl Drop for ArrayWriter {
    fn drop(&mut self) {
        // Files remove themselves.
        if let Some(Form::Folder { temporary, .. }) = &self.form {
            remove(temporary);
        }
    }
}

fn fill_array(
    out: &mut dyn Write,
    place: &Path,
    header: &[u8],
    left: u64,
    fill: impl FnOnce(&mut ArraySink<'_>) -> Result<()>,
) -> Result<()> {
    out.write_all(header).map_err(|e| Error::io(place, e))?;
    let mut sink = ArraySink {
        out,
        place,
        left,
        buffer: Vec::new(),
    };
    fill(&mut sink)?;
    if sink.left == 0 {
        Ok(())
    } else {
        Err(wrong_count(place))
    }
}

fn refuse_full_folder(goal: &Path) -> Result<()> {
    let mut entries = match std::fs::read_dir(goal) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(goal, e)),
    };
    match entries.next() {
        None => Ok(()),
        // Files of an earlier run would be taken for kernels of this one.
        Some(_) => Err(Error::input(
            goal.display().to_string(),
            "the folder exists and is not empty",
            "remove it, or give another name",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadOptions, load};
    use multikernel::data::ViewData;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["k.npz", "folder", "k.npy"] {
            let path = dir.path().join(name);
            let mut writer = ArrayWriter::create(&path).unwrap();
            let arrays = if name == "k.npy" { 1 } else { 2 };
            for k in 0..arrays {
                writer
                    .array(&format!("a{k}"), &[2, 2], |sink| {
                        sink.write(&[1.0 + k as f32, 0.5])?;
                        sink.write(&[0.5, 3.0])
                    })
                    .unwrap();
            }
            writer.finish().unwrap();
            let options = LoadOptions {
                gram: vec![path.to_str().unwrap().into()],
                ..LoadOptions::default()
            };
            let data = load(&options, &()).unwrap();
            assert_eq!(data.views.iter().count(), arrays);
            let last = data.views.iter().next_back().unwrap();
            let ViewData::Pairwise(k) = &last.data else {
                panic!("a given matrix expected");
            };
            assert_eq!(k.row(0), [arrays as f32, 0.5]);
            assert_eq!(k.row(1), [0.5, 3.0]);
        }
        assert_eq!(entries(dir.path()), ["folder", "k.npy", "k.npz"]);
    }

    #[test]
    fn nothing_is_left_after_an_error() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["k.npz", "folder", "k.npy"] {
            let mut writer = ArrayWriter::create(dir.path().join(name)).unwrap();
            let error = writer
                .array("a", &[2, 2], |sink| sink.write(&[1.0]))
                .unwrap_err();
            assert!(
                error.to_string().contains("is not what the shape says"),
                "{error}"
            );
            drop(writer);
            let mut writer = ArrayWriter::create(dir.path().join(name)).unwrap();
            assert!(
                writer
                    .array("a", &[1, 1], |s| s.write(&[1.0, 2.0]))
                    .is_err()
            );
            drop(writer);
            assert_eq!(entries(dir.path()), [""; 0]);
        }
    }

    #[test]
    fn a_folder_with_files_is_not_mixed_up() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("old.npy"), b"x").unwrap();
        let error = ArrayWriter::create(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("the folder exists and is not empty; remove it"),
            "{error}"
        );
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = ArrayWriter::create(dir.path().join("f")).unwrap();
        let error = writer.array("../x", &[0, 0], |_| Ok(())).unwrap_err();
        assert!(
            error.to_string().contains("cannot become a file"),
            "{error}"
        );
    }
}
