//! A given matrix of numbers between samples: a precomputed kernel or a distance.

use crate::error::{Error, Result};
use crate::observe::{self, Observer};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// A matrix is symmetric if |K−Kᵀ| is at most this times max|K|.
const SYMMETRY_TOLERANCE: f32 = 1e-4;
/// Side of the tiles in which a matrix is compared with its transpose. The kernel maps 64 KiB around a page
/// that is touched, so a pair of tiles of a mapped file makes at most 64 MiB resident.
const TILE: usize = 512;
/// Side of the pieces of a tile that fit into the first cache together with their mirror image.
const PIECE: usize = 32;

/// One number for each pair (row sample, reference sample). For training data the references are the samples
/// themselves and the matrix is square and symmetric; for new data they are the training samples.
///
/// The values are shared, so that clones and views of it cost nothing. They are in memory, or in a file that is
/// mapped into memory; such a file must not be changed while it is in use.
#[derive(Debug, Clone)]
pub struct Pairwise {
    rows: usize,
    cols: usize,
    values: Values,
}

#[derive(Debug, Clone)]
enum Values {
    Memory(Arc<Vec<f32>>),
    /// `rows · cols` little-endian f32 from byte `offset`, which is a multiple of four.
    Mapped {
        map: Arc<dyn Mapped>,
        offset: usize,
    },
}

/// The bytes of a file that is mapped into memory. They must not change while they are in use.
pub trait Mapped: std::fmt::Debug + Send + Sync {
    /// All of them, the same every time.
    fn bytes(&self) -> &[u8];

    /// Lets the memory go that holds these bytes; they are read again when they are asked for.
    fn release(&self, range: Range<usize>);
}

/// How far a matrix is from its transpose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Asymmetry {
    pub(super) difference: f32,
    pub(super) row: usize,
    pub(super) col: usize,
    pub(super) largest: f32,
}

impl Pairwise {
    /// Takes `rows × cols` finite values, row after row.
    pub fn new(rows: usize, cols: usize, values: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(Error::input(
                "",
                format!("{} values do not make {rows} rows of {cols}", values.len()),
                "",
            ));
        }
        if let Some(bad) = first_not_finite(&values) {
            return Err(not_finite("", bad / cols, bad % cols, values[bad]));
        }
        Ok(Pairwise {
            rows,
            cols,
            values: Values::Memory(Arc::new(values)),
        })
    }

    /// A matrix inside a mapped file. `None` if the place does not suit: outside of the file, not at a multiple
    /// of four bytes, or a machine that stores numbers the other way round. The values are not looked at.
    pub fn mapped(rows: usize, cols: usize, map: Arc<dyn Mapped>, offset: usize) -> Option<Self> {
        let bytes = rows.checked_mul(cols)?.checked_mul(size_of::<f32>())?;
        let data = map.bytes().get(offset..offset.checked_add(bytes)?)?;
        let suits =
            cfg!(target_endian = "little") && bytemuck::try_cast_slice::<u8, f32>(data).is_ok();
        suits.then_some(Pairwise {
            rows,
            cols,
            values: Values::Mapped { map, offset },
        })
    }

    /// Number of row samples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of reference samples.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        let range = i * self.cols..(i + 1) * self.cols;
        match &self.values {
            Values::Memory(values) => &values[range],
            Values::Mapped { map, offset } => {
                bytemuck::cast_slice(&map.bytes()[self.bytes(*offset, range)])
            }
        }
    }

    fn bytes(&self, offset: usize, values: Range<usize>) -> Range<usize> {
        offset + values.start * size_of::<f32>()..offset + values.end * size_of::<f32>()
    }

    /// Whether the values are read from a mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.values, Values::Mapped { .. })
    }

    /// Bytes that the values take for good; a mapped file takes none.
    pub fn bytes_in_memory(&self) -> u64 {
        match &self.values {
            Values::Memory(values) => (values.len() * size_of::<f32>()) as u64,
            Values::Mapped { .. } => 0,
        }
    }

    /// `f` of every row, in order, by several threads. What was read of a mapped file is let go block by block: all of
    /// it at once would count as memory of this process.
    pub(crate) fn map_rows<T: Send>(&self, f: impl Fn(usize, &[f32]) -> T + Sync) -> Vec<T> {
        const BLOCK: usize = 64;
        (0..self.rows.div_ceil(BLOCK))
            .into_par_iter()
            .flat_map_iter(|b| {
                let rows = b * BLOCK..(b * BLOCK + BLOCK).min(self.rows);
                let found: Vec<T> = rows.clone().map(|i| f(i, self.row(i))).collect();
                self.release_rows(rows);
                found
            })
            .collect()
    }

    /// Lets the memory go that holds parts of a mapped file; they are read again when they are asked for.
    pub fn release(&self) {
        self.release_rows(0..self.rows);
    }

    /// [`Pairwise::release`] for some rows.
    pub fn release_rows(&self, rows: Range<usize>) {
        if let Values::Mapped { map, offset } = &self.values
            && rows.start < rows.end
            && rows.end <= self.rows
        {
            map.release(self.bytes(*offset, rows.start * self.cols..rows.end * self.cols));
        }
    }

    /// Checks that all values are finite; for matrices that were mapped, not read.
    pub fn check_finite(&self, place: &str, observer: &dyn Observer) -> Result<()> {
        let blocks = self.rows.div_ceil(TILE);
        let threads = rayon::current_num_threads();
        let stage = format!("checking {place}");
        for first in (0..blocks).step_by(threads) {
            let bad = (first..blocks.min(first + threads))
                .into_par_iter()
                .filter_map(|block| {
                    let rows = block * TILE..self.rows.min((block + 1) * TILE);
                    let found = rows.clone().find_map(|i| {
                        let j = self.row(i).iter().position(|v| !v.is_finite())?;
                        Some((i, j))
                    });
                    self.release_rows(rows);
                    found
                })
                .min();
            if let Some((i, j)) = bad {
                return Err(not_finite(place, i, j, self.row(i)[j]));
            }
            observe::work(observer, &stage, first, blocks)?;
        }
        Ok(())
    }

    /// Compares a square matrix with its transpose: `None` if they are equal, else how far they are apart, if that
    /// is within the tolerance. Entries that are not finite or too different are errors.
    ///
    /// Mirror images are read together, tile by tile, so that a mapped file is read once.
    pub(super) fn check_symmetric(
        &self,
        place: &str,
        observer: &dyn Observer,
    ) -> Result<Option<Asymmetry>> {
        let blocks = self.rows.div_ceil(TILE);
        let pairs: Vec<(usize, usize)> = (0..blocks)
            .flat_map(|a| (a..blocks).map(move |b| (a, b)))
            .collect();
        let batch = rayon::current_num_threads();
        let mut worst = Scan::default();
        let stage = format!("checking {place}");
        for (k, some) in pairs.chunks(batch).enumerate() {
            let scans: Vec<Scan> = some.par_iter().map(|&(a, b)| self.scan(a, b)).collect();
            for scan in scans {
                worst.merge(scan);
            }
            self.release();
            observe::work(observer, &stage, k * batch, pairs.len())?;
        }
        if let Some((i, j)) = worst.bad {
            return Err(not_finite(place, i, j, self.row(i)[j]));
        }
        if worst.difference == 0.0 {
            return Ok(None);
        }
        let (i, j) = worst.at;
        if worst.difference > SYMMETRY_TOLERANCE * worst.largest {
            return Err(Error::input(
                place,
                format!(
                    "the matrix is not symmetric: row {}, column {} is {} but row {}, column {} is {}",
                    i + 1,
                    j + 1,
                    self.row(i)[j],
                    j + 1,
                    i + 1,
                    self.row(j)[i]
                ),
                "a kernel between training samples must be symmetric (differences up to 1e-4 of the largest entry are \
                 evened out)",
            ));
        }
        Ok(Some(Asymmetry {
            difference: worst.difference,
            row: i,
            col: j,
            largest: worst.largest,
        }))
    }

    fn scan(&self, a: usize, b: usize) -> Scan {
        let mut out = Scan::default();
        let rows = a * TILE..self.rows.min((a + 1) * TILE);
        let cols = b * TILE..self.rows.min((b + 1) * TILE);
        for i0 in rows.clone().step_by(PIECE) {
            for j0 in cols.clone().step_by(PIECE) {
                let last = cols.end.min(j0 + PIECE);
                let below = i0..rows.end.min(i0 + PIECE);
                // A column for each i, so that mirror images stand side by side.
                let mut mirrors = [[0.0f32; PIECE]; PIECE];
                for (j, place) in (j0..last).zip(0..) {
                    for (mirror, v) in mirrors.iter_mut().zip(&self.row(j)[below.clone()]) {
                        mirror[place] = *v;
                    }
                }
                for (i, mirror) in below.zip(&mirrors) {
                    let row = &self.row(i)[j0..last];
                    out.see_row(i, j0, row, &mirror[..row.len()]);
                }
            }
        }
        out
    }

    /// A square matrix that is symmetric: this one, or its average with its transpose where they differ a little, which a
    /// sentence then says. More than a little is an error, and so are values that are not finite.
    pub fn into_symmetric(
        self,
        name: &str,
        place: &str,
        observer: &dyn Observer,
    ) -> Result<(Self, Option<String>)> {
        let Some(found) = self.check_symmetric(place, observer)? else {
            return Ok((self, None));
        };
        // A mapped file is not ours to change and too large to copy: its rows are used as they stand, and the
        // difference to the average is at most half of the tolerance.
        let done = match self.is_mapped() {
            true => "its rows are used as they are stored",
            false => "it was replaced by the average with its transpose",
        };
        let note = format!(
            "matrix '{name}' is slightly asymmetric (by {:e} at row {}, column {}; largest entry {:e}): {done}",
            found.difference,
            found.row + 1,
            found.col + 1,
            found.largest
        );
        Ok((self.symmetrised(), Some(note)))
    }

    /// Replaces a square matrix in memory by its average with its transpose; a mapped one stays as it is.
    pub(super) fn symmetrised(self) -> Self {
        let n = self.rows;
        let values = match self.values {
            Values::Memory(shared) => {
                let mut values = Arc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone());
                for i in 0..n {
                    for j in 0..i {
                        let mean = f64::midpoint(
                            f64::from(values[i * n + j]),
                            f64::from(values[j * n + i]),
                        );
                        values[i * n + j] = mean as f32;
                        values[j * n + i] = mean as f32;
                    }
                }
                Values::Memory(Arc::new(values))
            }
            mapped @ Values::Mapped { .. } => mapped,
        };
        Pairwise { values, ..self }
    }
}

/// What a look at some pairs has found.
#[derive(Debug, Default)]
struct Scan {
    difference: f32,
    at: (usize, usize),
    largest: f32,
    bad: Option<(usize, usize)>,
}

impl Scan {
    /// Entries of row i from column `first` on, and their mirror images.
    fn see_row(&mut self, i: usize, first: usize, row: &[f32], mirror: &[f32]) {
        const LANES: usize = 8;
        let larger = |a: f32, b: f32| if b > a { b } else { a };
        // Mostly nothing new: that is found out without a branch for each entry.
        let (mut difference, mut largest, mut finite) = ([0.0; LANES], [0.0; LANES], true);
        let ((v, v_rest), (m, m_rest)) = (row.as_chunks::<LANES>(), mirror.as_chunks::<LANES>());
        for (v, m) in v.iter().zip(m) {
            difference = std::array::from_fn(|l| larger(difference[l], (v[l] - m[l]).abs()));
            largest = std::array::from_fn(|l| larger(larger(largest[l], v[l].abs()), m[l].abs()));
            finite &= (0..LANES).fold(true, |fine, l| fine & v[l].is_finite() & m[l].is_finite());
        }
        for (v, m) in v_rest.iter().zip(m_rest) {
            difference[0] = larger(difference[0], (v - m).abs());
            largest[0] = larger(larger(largest[0], v.abs()), m.abs());
            finite &= v.is_finite() & m.is_finite();
        }
        let difference = difference.into_iter().fold(0.0, larger);
        if finite && (difference == 0.0 || difference < self.difference) {
            self.largest = largest.into_iter().fold(self.largest, larger);
            return;
        }
        for (j, (&v, &m)) in row.iter().zip(mirror).enumerate() {
            self.see(i, first + j, v, m);
        }
    }

    fn see(&mut self, i: usize, j: usize, v: f32, mirror: f32) {
        if !(v.is_finite() & mirror.is_finite()) {
            let at = if v.is_finite() { (j, i) } else { (i, j) };
            self.bad = Some(self.bad.map_or(at, |other| other.min(at)));
            return;
        }
        self.largest = self.largest.max(v.abs()).max(mirror.abs());
        let difference = (v - mirror).abs();
        if difference > self.difference || (difference == self.difference && (i, j) < self.at) {
            self.difference = difference;
            self.at = (i, j);
        }
    }

    fn merge(&mut self, other: Scan) {
        self.largest = self.largest.max(other.largest);
        if other.difference > self.difference
            || (other.difference == self.difference && other.at < self.at)
        {
            self.difference = other.difference;
            self.at = other.at;
        }
        self.bad = match (self.bad, other.bad) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Where the first value is that is not finite.
pub(super) fn first_not_finite(values: &[f32]) -> Option<usize> {
    const PART: usize = 1024;
    let is_bad = |part: &[f32]| !part.iter().fold(true, |fine, v| fine & v.is_finite());
    let part = values.chunks(PART).position(is_bad)?;
    let inside = values[part * PART..].iter().position(|v| !v.is_finite())?;
    Some(part * PART + inside)
}

fn not_finite(place: &str, i: usize, j: usize, value: f32) -> Error {
    let space = if place.is_empty() { "" } else { " " };
    Error::input(
        format!("{place}{space}row {}, column {}", i + 1, j + 1),
        format!("the value is {value}"),
        "give a finite number",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(n: usize, f: impl Fn(usize, usize) -> f32) -> Pairwise {
        let values = (0..n * n).map(|k| f(k / n, k % n)).collect();
        Pairwise::new(n, n, values).unwrap()
    }

    #[test]
    fn the_worst_pair_is_found_across_tiles() {
        let n = 2 * TILE + 77;
        let symmetric = |i: usize, j: usize| 1.0 / (1.0 + i.abs_diff(j) as f32);
        assert_eq!(
            square(n, symmetric).check_symmetric("k", &()).unwrap(),
            None
        );
        let (row, col) = (3, n - 2);
        let nearly = square(n, |i, j| {
            symmetric(i, j) + if (i, j) == (row, col) { 2e-5 } else { 0.0 }
        });
        let found = nearly.check_symmetric("k", &()).unwrap().unwrap();
        assert_eq!((found.row, found.col, found.largest), (row, col, 1.0));
        assert!((found.difference - 2e-5).abs() < 1e-6);
        let even = nearly.symmetrised();
        assert_eq!(even.check_symmetric("k", &()).unwrap(), None);
        assert!((even.row(row)[col] - symmetric(row, col) - 1e-5).abs() < 1e-6);
        let wrong = square(n, |i, j| if (i, j) == (col, row) { 7.0 } else { 1.0 });
        let error = wrong.check_symmetric("k.npy", &()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "k.npy: the matrix is not symmetric: row 4, column {} is 1 but row {}, column 4 is 7; ",
                n - 1,
                n - 1
            )),
            "{error}"
        );
    }

    #[test]
    fn bad_numbers_are_found() {
        let mut values = vec![1.0; 9];
        values[5] = f32::INFINITY;
        let error = Pairwise::new(3, 3, values).unwrap_err().to_string();
        assert_eq!(
            error,
            "row 2, column 3: the value is inf; give a finite number"
        );
    }
}
