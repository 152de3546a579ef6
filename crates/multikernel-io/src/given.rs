//! Given matrices: one or many n×n arrays from `.npz`, `.npy` or a folder of `.npy` files.

use super::load::Purpose;
use super::npy::{Element, Header};
use super::npz::Archive;
use super::source::{Budget, Files, Format, Source, format_of, split_pick, stem};
use memmap2::Mmap;
use multikernel::data::{Mapped, Pairwise, View, ViewData};
use multikernel::error::{Error, Result};
use std::fs::File;
use std::io::{BufReader, Read};
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

/// How the kernels lie in an array, counted in the order of the file.
struct Layout {
    kernels: usize,
    rows: usize,
    cols: usize,
    /// For each axis of the file, slowest first: how far a step goes among the kernels and inside of a matrix.
    steps: Vec<(usize, usize, usize)>,
    /// Each matrix is contiguous, row after row (for a symmetric one: or column after column).
    contiguous: bool,
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
        let mut input = BufReader::with_capacity(1 << 16, source.open()?);
        let header = Header::read(&mut input, path, source.length)?;
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
        let layout = self.layout(place, header)?;
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

    /// Which axis counts kernels.
    fn layout(&mut self, place: &str, header: &Header) -> Result<Layout> {
        let shape = &header.shape;
        let training = self.purpose == Purpose::Training;
        let wrong = |remedy: &str| {
            Err(Error::input(
                place,
                format!("the array has the shape {}", header.shape_text()),
                remedy,
            ))
        };
        if shape.contains(&0) {
            return wrong("give matrices with at least one entry");
        }
        let kernel_axis = match (shape[..].len(), self.purpose) {
            (2, Purpose::Training) if shape[0] != shape[1] => {
                return wrong("a kernel between training samples must be square (n, n)");
            }
            (
                2,
                Purpose::Prediction {
                    references: Some(n),
                    ..
                },
            ) if shape[1] != n => {
                return wrong(&format!(
                    "give one column for each of the {n} training samples"
                ));
            }
            (2, _) => None,
            (3, Purpose::Training) => {
                let (first, last) = (shape[1] == shape[2], shape[0] == shape[1]);
                if first && last {
                    self.notes.push(format!(
                        "{place} has the shape {}: taken as (kernels, n, n)",
                        header.shape_text()
                    ));
                }
                match (first, last) {
                    (true, _) => Some(0),
                    (false, true) => Some(2),
                    (false, false) => {
                        return wrong(
                            "give square matrices stacked as (kernels, n, n) or (n, n, kernels)",
                        );
                    }
                }
            }
            (
                3,
                Purpose::Prediction {
                    references,
                    kernels,
                },
            ) => {
                let fits = |wanted: Option<usize>, size: usize| wanted.is_none_or(|w| w == size);
                let first = fits(references, shape[2]) && fits(kernels, shape[0]);
                let last = fits(references, shape[1]) && fits(kernels, shape[2]);
                if first && last {
                    self.notes.push(format!(
                        "{place} has the shape {}: taken as (kernels, new samples, training samples)",
                        header.shape_text()
                    ));
                }
                match (first, last) {
                    (true, _) => Some(0),
                    (false, true) => Some(2),
                    (false, false) => {
                        let count =
                            |c: Option<usize>| c.map_or("any number of".into(), |c| c.to_string());
                        return wrong(&format!(
                            "give (kernels, new samples, training samples) with {} kernels and {} training samples",
                            count(kernels),
                            count(references)
                        ));
                    }
                }
            }
            _ => {
                return wrong(
                    "give a matrix (n, n), or a stack (kernels, n, n) or (n, n, kernels)",
                );
            }
        };
        let (rows, cols) = match kernel_axis {
            None => (shape[0], shape[1]),
            Some(0) => (shape[1], shape[2]),
            Some(_) => (shape[0], shape[1]),
        };
        let mut steps: Vec<(usize, usize, usize)> = match kernel_axis {
            None => vec![(rows, 0, cols), (cols, 0, 1)],
            Some(0) => vec![(shape[0], 1, 0), (rows, 0, cols), (cols, 0, 1)],
            Some(_) => vec![(rows, 0, cols), (cols, 0, 1), (shape[2], 1, 0)],
        };
        if header.fortran {
            steps.reverse();
        }
        let kernels_outside = steps.iter().position(|s| s.1 == 1).is_none_or(|p| p == 0);
        Ok(Layout {
            kernels: kernel_axis.map_or(1, |a| shape[a]),
            rows,
            cols,
            contiguous: kernels_outside && (!header.fortran || training),
            steps,
        })
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
            let mut index = vec![0; layout.steps.len()];
            let (mut m, mut cell) = (0, 0);
            header.singles(input, place, |_, values| {
                for &v in values {
                    stack[m][cell] = v;
                    // Count on like an odometer.
                    for (position, &(size, kernel_step, cell_step)) in
                        index.iter_mut().zip(&layout.steps).rev()
                    {
                        *position += 1;
                        m += kernel_step;
                        cell += cell_step;
                        if *position < size {
                            break;
                        }
                        *position = 0;
                        m -= kernel_step * size;
                        cell -= cell_step * size;
                    }
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
