//! Given matrices: one or many n×n arrays from `.npz`, `.npy` or a folder of `.npy` files.

use super::budget::Budget;
use super::gram_layout::Layout;
use super::load::Purpose;
use super::npy::{self, Element, Header};
use super::npz::Archive;
use super::source::{Files, Format, Source, format_of, split_pick, stem};
use memmap2::Mmap;
use multikernel::data::{Mapped, Pairwise, View, ViewData};
use multikernel::error::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Everything the reading of given matrices needs and changes.
pub(super) struct GivenReader<'r, 'a> {
    pub(super) files: Files<'a>,
    pub(super) purpose: Purpose,
    /// Matrices of more bytes are mapped where the file allows.
    pub(super) map_above: Option<u64>,
    pub(super) budget: &'r mut Budget,
    pub(super) notes: &'r mut Vec<String>,
    pub(super) views: Vec<View>,
}

impl GivenReader<'_, '_> {
    /// Reads what `--gram` names: a file, some arrays of an archive, or a folder.
    pub(super) fn read(&mut self, name: &str) -> Result<()> {
        let (path, picks) = split_pick(name);
        if self.files.memory.is_none() && Path::new(&path).is_dir() {
            return self.folder(&path);
        }
        match format_of(&path)? {
            Format::Npy => self.npy(&path),
            Format::Npz => self.npz(&path, picks),
            _ => Err(Error::input(
                path,
                "given matrices are not read from this kind of file",
                "give .npz, .npy or a folder of .npy files",
            )),
        }
    }

    fn folder(&mut self, path: &str) -> Result<()> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|e| Error::io(path, e))? {
            let entry = entry.map_err(|e| Error::io(path, e))?.path();
            let is_array = entry
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("npy"));
            let hidden = entry
                .file_name()
                .is_some_and(|f| f.to_string_lossy().starts_with('.'));
            if !is_array || hidden {
                continue;
            }
            match entry.to_str() {
                Some(name) => names.push(name.to_owned()),
                None => {
                    return Err(Error::input(
                        entry.display().to_string(),
                        "the name of the file is not Unicode",
                        "rename it",
                    ));
                }
            }
        }
        if names.is_empty() {
            return Err(Error::input(
                path,
                "the folder holds no .npy file",
                "give a folder with one .npy file for each kernel",
            ));
        }
        names.sort_by_key(|name| natural(name));
        names.iter().try_for_each(|name| self.npy(name))
    }

    fn npy(&mut self, path: &str) -> Result<()> {
        let source = self.files.source(path)?;
        let (header, mut input) = npy::open(&source)?;
        let offset = header.offset;
        self.array(
            &source,
            path,
            &stem(path),
            &header,
            &mut input,
            Some(offset),
        )
    }

    fn npz(&mut self, path: &str, picks: Vec<String>) -> Result<()> {
        let source = self.files.source(path)?;
        let mut archive = Archive::open(&source)?;
        let names = match picks.is_empty() {
            true => archive.names(),
            false => picks,
        };
        for name in names {
            let mut member = archive.member(&name)?;
            self.array(
                &source,
                &member.place,
                &name,
                &member.header,
                &mut member.input,
                member.stored_at,
            )?;
        }
        Ok(())
    }

    /// One array: a matrix, or a stack of them.
    fn array(
        &mut self,
        source: &Source<'_>,
        place: &str,
        name: &str,
        header: &Header,
        input: &mut impl Read,
        stored_at: Option<u64>,
    ) -> Result<()> {
        if header.element.is_text() {
            return Err(Error::input(
                place,
                "the array holds text, where numbers are needed",
                "give a matrix of numbers (pick arrays by file.npz:a,b)",
            ));
        }
        let (layout, note) = Layout::of(header, self.purpose, place)?;
        self.notes.extend(note);
        let matrices = match self.map(source, header, &layout, stored_at)? {
            Some(matrices) => {
                for k in matrices
                    .iter()
                    .filter(|_| self.purpose != Purpose::Training)
                {
                    k.check_finite(place, self.files.observer)?;
                }
                matrices
            }
            None => self.read_stack(place, header, &layout, input)?,
        };
        let many = matrices.len() > 1 || header.shape.len() == 3;
        for (m, matrix) in matrices.into_iter().enumerate() {
            let (name, place) = match many {
                true => (format!("{name}_{m}"), format!("{place} matrix {}", m + 1)),
                false => (name.to_owned(), place.to_owned()),
            };
            let matrix = match self.purpose {
                Purpose::Training => self.symmetric(&name, &place, matrix)?,
                Purpose::Prediction { .. } => matrix,
            };
            self.views.push(View {
                name,
                columns: Vec::new(),
                data: ViewData::Pairwise(matrix),
            });
        }
        Ok(())
    }

    fn symmetric(&mut self, name: &str, place: &str, matrix: Pairwise) -> Result<Pairwise> {
        let (matrix, note) = matrix.into_symmetric(name, place, self.files.observer)?;
        self.notes.extend(note);
        Ok(matrix)
    }

    /// The matrices in the mapped file, if that is wanted and possible.
    fn map(
        &mut self,
        source: &Source<'_>,
        header: &Header,
        layout: &Layout,
        stored_at: Option<u64>,
    ) -> Result<Option<Vec<Pairwise>>> {
        let bytes = (header.elements() as u64).saturating_mul(4);
        let wanted = self.map_above.is_some_and(|limit| bytes > limit);
        let single = header.element == Element::Float(4) && !header.big_endian;
        let (true, true, true, None, Some(start)) =
            (wanted, single, layout.contiguous, source.bytes, stored_at)
        else {
            return Ok(None);
        };
        let failed = |e| Error::io(&source.name, e);
        let file = File::open(&source.name).map_err(failed)?;
        // SAFETY: a map is sound as long as nobody changes or cuts the file; that is the documented condition of
        // mapped matrices, and no program can check it for another one. The map is shared and read-only, we write
        // nothing to it, and every bit pattern is a valid f32.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let map = Arc::new(MappedFile(map));
        let size = layout.rows * layout.cols * size_of::<f32>();
        let matrices = (0..layout.kernels)
            .map(|m| {
                let offset = usize::try_from(start).ok()?.checked_add(m * size)?;
                Pairwise::mapped(layout.rows, layout.cols, map.clone(), offset)
            })
            .collect();
        Ok(matrices)
    }

    fn read_stack(
        &mut self,
        place: &str,
        header: &Header,
        layout: &Layout,
        input: &mut impl Read,
    ) -> Result<Vec<Pairwise>> {
        let cells = layout.rows * layout.cols;
        // Refuse the whole stack before the first matrix is allocated.
        let all = (cells as u64)
            .saturating_mul(layout.kernels as u64)
            .saturating_mul(4);
        self.budget.charge(place, all).map_err(|error| match error {
            Error::Memory {
                what,
                needed,
                available,
                ..
            } => Error::Memory {
                what,
                needed,
                available,
                remedy: "allow more memory, or store the matrices as float32 .npy files in C order, which are read in place"
                    .into(),
            },
            other => other,
        })?;
        self.budget.refund(all);
        let mut stack = Vec::with_capacity(layout.kernels);
        for _ in 0..layout.kernels {
            let mut matrix: Vec<f32> = Vec::new();
            self.budget.reserve_exact(&mut matrix, cells, place)?;
            matrix.resize(cells, 0.0);
            stack.push(matrix);
        }
        if layout.contiguous {
            header.singles(input, place, |mut at, mut values| {
                while !values.is_empty() {
                    let (m, cell) = (at / cells, at % cells);
                    let (now, rest) = values.split_at(values.len().min(cells - cell));
                    stack[m][cell..cell + now.len()].copy_from_slice(now);
                    at += now.len();
                    values = rest;
                }
                Ok(())
            })?;
        } else {
            let mut cells = layout.walk();
            header.singles(input, place, |_, values| {
                for (&v, (m, cell)) in values.iter().zip(&mut cells) {
                    stack[m][cell] = v;
                }
                Ok(())
            })?;
        }
        stack
            .into_iter()
            .map(|values| Pairwise::new(layout.rows, layout.cols, values))
            .collect()
    }
}

/// Sorts k2 before k10: pieces of text and numbers in turn.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut out = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for c in name.chars() {
        let Some((text, number)) = out.last_mut() else {
            break;
        };
        match c.to_digit(10) {
            Some(digit) => {
                *number = number.saturating_mul(10).saturating_add(u64::from(digit));
                in_number = true;
            }
            None if in_number => {
                out.push((c.to_string(), 0));
                in_number = false;
            }
            None => text.push(c),
        }
    }
    out
}

/// A file that is mapped into memory, shared and read-only.
#[derive(Debug)]
struct MappedFile(Mmap);

impl Mapped for MappedFile {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if range.end <= self.0.len() {
            // SAFETY: `DontNeed` drops the pages of the mapping, and later reads of them must see the same bytes
            // for the slices that others may hold. The map was made by `Mmap::map`: shared, read-only and backed by
            // a file. Pages of such a map hold no changes of their own, so dropping them loses nothing, and the next
            // access faults the same file contents in again. (For a private or anonymous map it would give zeros.)
            // The range lies inside the map. A failure is harmless: the pages then simply stay.
            #[allow(unsafe_code)]
            let _ = unsafe {
                self.0.unchecked_advise_range(
                    memmap2::UncheckedAdvice::DontNeed,
                    range.start,
                    range.len(),
                )
            };
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_matrix_reads_the_same_after_its_memory_was_released() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m");
        let values: Vec<f32> = (0..300 * 200).map(|v| v as f32).collect();
        let mut bytes = vec![0; 64];
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        std::fs::write(&path, bytes).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        // SAFETY: the file is this test's own and is not changed.
        #[allow(unsafe_code)]
        let map = Arc::new(MappedFile(unsafe { Mmap::map(&file) }.unwrap()));
        let mapped = Pairwise::mapped(300, 200, map.clone(), 64).unwrap();
        assert!(mapped.is_mapped());
        assert_eq!(mapped.bytes_in_memory(), 0);
        assert_eq!(mapped.row(299), &values[299 * 200..]);
        mapped.release();
        mapped.release_rows(10..20);
        assert_eq!(mapped.row(15), &values[15 * 200..16 * 200]);
        mapped.check_finite("m", &()).unwrap();
        assert!(
            Pairwise::mapped(300, 200, map.clone(), 66).is_none(),
            "not aligned"
        );
        assert!(
            Pairwise::mapped(301, 200, map.clone(), 64).is_none(),
            "past the end"
        );
        assert!(Pairwise::mapped(usize::MAX, 200, map, 64).is_none());
    }

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["k10.npy", "k9.npy", "a.npy", "k1b.npy", "k1a.npy"];
        names.sort_by_key(|n| natural(n));
        assert_eq!(names, ["a.npy", "k1a.npy", "k1b.npy", "k9.npy", "k10.npy"]);
    }
}
