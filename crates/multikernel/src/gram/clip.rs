//! The positive semidefinite matrix next to a symmetric one, and what that means for new samples.
//!
//! With K = VΛVᵀ and V₋ the eigenvectors of negative eigenvalues, K − V₋Λ₋V₋ᵀ is the positive semidefinite matrix
//! nearest to K in the Frobenius norm. It equals K·P with P = I − V₋V₋ᵀ, so a row k of new samples becomes kP: rows of
//! training samples then give what training saw.

use crate::data::Pairwise;
use crate::eigen::{spectrum, spectrum_bytes};
use crate::error::{Error, Result};
use crate::math::{Matrix, multiply};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows that are projected together; fixed, so that sums do not depend on the threads.
const ROWS: usize = 64;
/// Directions that are taken off together.
const PANEL: usize = 64;

/// Takes the negative directions of a training matrix off the rows of new samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    directions: usize,
    /// Orthonormal, one after the other. They stand apart from the descriptions of kernels in files.
    #[serde(skip)]
    vectors: Arc<Vec<f32>>,
}

impl Projection {
    /// Number of directions that are taken off.
    pub fn directions(&self) -> usize {
        self.directions
    }

    /// The directions, one after the other, each with a number per training sample.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// The same with other vectors, as they are read from a file.
    pub(crate) fn with_vectors(self, vectors: Vec<f32>) -> Self {
        Projection {
            vectors: Arc::new(vectors),
            ..self
        }
    }

    /// Whether this can be a projection for `n` training samples: as many numbers as it says, and none that a unit
    /// vector cannot have.
    pub(crate) fn fits(&self, n: usize) -> bool {
        self.directions >= 1
            && self.directions <= n
            && self.directions.checked_mul(n) == Some(self.vectors.len())
            && self.vectors.iter().all(|v| v.abs() <= 1.0001)
    }

    /// Bytes of the vectors.
    pub(super) fn bytes(&self) -> u64 {
        (self.vectors.len() * size_of::<f32>()) as u64
    }

    /// The rows without their parts along the directions.
    pub(super) fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let n = self.vectors.len() / self.directions;
        let mut x: Vec<f64> = rows.iter().map(|&v| f64::from(v)).collect();
        for some in self.vectors.chunks(PANEL * n) {
            let panel: Vec<f64> = some.iter().map(|&v| f64::from(v)).collect();
            let v = Matrix::of_rows(&panel, n);
            let count = panel.len() / n;
            x.par_chunks_mut(ROWS * n).for_each(|x| {
                let mut along = vec![0.0; x.len() / n * count];
                let rows = Matrix::of_rows(x, n);
                multiply(rows, v.transposed(), 1.0, 0.0, &mut along, count);
                multiply(Matrix::of_rows(&along, count), v, -1.0, 1.0, x, n);
            });
        }
        x.iter().map(|&v| v as f32).collect()
    }
}

/// What clipping found and made.
pub(super) struct Clipped {
    pub(super) matrix: Pairwise,
    pub(super) projection: Projection,
    /// ‖change‖/‖matrix‖ in the Frobenius norm.
    pub(super) change: f64,
}

/// Bytes that clipping n samples needs at a time. What is made of the eigenvectors needs less than making them.
pub(super) fn bytes(n: usize) -> u64 {
    spectrum_bytes(n)
}

/// The nearest positive semidefinite matrix; none if there are no negative eigenvalues. Row i is `row(i)`, the largest
/// entry `largest`.
///
/// Eigenvalues that may be the rounding of 0 to f32 stay: the result is rounded the same way.
///
/// Cost: about 9n³ operations.
pub(super) fn clip<R: AsRef<[f32]>>(
    n: usize,
    row: impl Fn(usize) -> R + Sync,
    largest: f64,
) -> Result<Option<Clipped>> {
    let mut k: Vec<f64> = Vec::with_capacity(n * n);
    for i in 0..n {
        k.extend(row(i).as_ref().iter().map(|&v| f64::from(v)));
    }
    // A symmetric matrix of rounding errors ε·max|K| has eigenvalues of about this size.
    let rounding = f64::from(f32::EPSILON) * (n as f64).sqrt() * largest;
    let Some(found) = spectrum(k, n, -rounding) else {
        let why = "its eigenvalues cannot be found: the iteration does not converge";
        return Err(Error::input("", why, ""));
    };
    let (values, mut vectors) = (found.values, found.vectors);
    let directions = vectors.len() / n;
    if directions == 0 {
        return Ok(None);
    }
    let projection = Projection {
        directions,
        vectors: Arc::new(vectors.iter().map(|&v| v as f32).collect()),
    };
    for (vector, value) in vectors.chunks_mut(n).zip(&values) {
        let root = (-value).sqrt();
        vector.iter_mut().for_each(|v| *v *= root);
    }
    let matrix = match directions == n {
        // Nothing is left but rounding.
        true => vec![0.0; n * n],
        false => sum_with_products(n, row, &vectors),
    };
    let squares = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
    Ok(Some(Clipped {
        matrix: Pairwise::new(n, n, matrix)?,
        projection,
        change: (squares(&values[..directions]) / squares(&values)).sqrt(),
    }))
}

/// K + WᵀW, where row i of K is `row(i)` and W has rows of n values.
fn sum_with_products<R: AsRef<[f32]>>(
    n: usize,
    row: impl Fn(usize) -> R + Sync,
    w: &[f64],
) -> Vec<f32> {
    let count = w.len() / n;
    let mut out = vec![0.0; n * n];
    out.par_chunks_mut(ROWS * n)
        .enumerate()
        .for_each(|(block, out)| {
            let (first, rows) = (block * ROWS, out.len() / n);
            // Only the lower half: the upper one shall have the same bits.
            let width = first + rows;
            let mut sums = Vec::with_capacity(rows * width);
            for i in first..width {
                let row = row(i);
                sums.extend(row.as_ref()[..width].iter().map(|&v| f64::from(v)));
            }
            let some = Matrix::new(&w[first..], count, rows, n).transposed();
            let all = Matrix::new(w, count, width, n);
            multiply(some, all, 1.0, 1.0, &mut sums, width);
            for (out, sums) in out.chunks_mut(n).zip(sums.chunks(width)) {
                out.iter_mut().zip(sums).for_each(|(o, &s)| *o = s as f32);
            }
        });
    for i in 0..n {
        for j in 0..i {
            out[j * n + i] = out[i * n + j];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn matrix(n: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        let mut k = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value = random.normal() as f32;
                k[i * n + j] = value;
                k[j * n + i] = value;
            }
        }
        k
    }

    fn clipped(k: &[f32], n: usize) -> Option<Clipped> {
        let largest = k.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        clip(n, |i| &k[i * n..(i + 1) * n], largest.into()).unwrap()
    }

    fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max)
    }

    /// Eigenvalues and eigenvectors by Jacobi's rotations: slow, and nothing in common with the solver used.
    fn jacobi(k: &[f32], n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut a: Vec<f64> = k.iter().map(|&v| f64::from(v)).collect();
        let mut v: Vec<f64> = (0..n * n)
            .map(|e| f64::from(u8::from(e / n == e % n)))
            .collect();
        for _ in 0..30 {
            for p in 0..n {
                for q in p + 1..n {
                    if a[p * n + q] == 0.0 {
                        continue;
                    }
                    let angle = 0.5 * (2.0 * a[p * n + q]).atan2(a[q * n + q] - a[p * n + p]);
                    let (s, c) = angle.sin_cos();
                    let turn = |x: &mut [f64], i: usize, j: usize| {
                        (x[i], x[j]) = (c * x[i] - s * x[j], s * x[i] + c * x[j]);
                    };
                    (0..n).for_each(|r| turn(&mut a, r * n + p, r * n + q));
                    (0..n).for_each(|r| turn(&mut a, p * n + r, q * n + r));
                    (0..n).for_each(|r| turn(&mut v, r * n + p, r * n + q));
                }
            }
        }
        ((0..n).map(|i| a[i * n + i]).collect(), v)
    }

    #[test]
    fn it_is_the_projection_that_the_eigenvalues_give() {
        for (n, seed) in [(2, 0), (7, 1), (40, 2)] {
            let k = matrix(n, seed);
            let (values, vectors) = jacobi(&k, n);
            let projection: Vec<f32> = (0..n * n)
                .map(|e| {
                    let (i, j) = (e / n, e % n);
                    let term =
                        |l: usize| values[l].max(0.0) * vectors[i * n + l] * vectors[j * n + l];
                    (0..n).map(term).sum::<f64>() as f32
                })
                .collect();
            let found = clipped(&k, n).unwrap();
            let all = found
                .matrix
                .row(0)
                .iter()
                .chain((1..n).flat_map(|i| found.matrix.row(i)));
            let all: Vec<f32> = all.copied().collect();
            assert!(largest_difference(&all, &projection) < 5e-6, "n {n}");
            let negative = values.iter().filter(|v| **v < 0.0);
            assert_eq!(found.projection.directions(), negative.clone().count());
            let change =
                negative.map(|v| v * v).sum::<f64>() / values.iter().map(|v| v * v).sum::<f64>();
            assert!((found.change - change.sqrt()).abs() < 1e-9);
            assert!(found.projection.fits(n));
            // What is positive semidefinite stays so.
            let (values, _) = jacobi(&all, n);
            assert!(values.iter().all(|v| *v > -1e-5), "{values:?}");
            // Twice is once: what is left below 0 is rounding.
            let again = clipped(&all, n).map(|c| (c.projection.directions(), c.change));
            assert_eq!(again, None, "n {n}");
        }
    }

    #[test]
    fn rows_of_training_samples_become_the_rows_of_training() {
        // More rows and directions than are taken together, and not whole numbers of those.
        let n = 3 * PANEL + 5;
        let k = matrix(n, 4);
        let found = clipped(&k, n).unwrap();
        assert!(found.projection.directions() > PANEL);
        let rows = found.projection.apply(&k);
        for i in 0..n {
            let row = &rows[i * n..(i + 1) * n];
            assert!(
                largest_difference(row, found.matrix.row(i)) < 1e-5,
                "row {i}"
            );
        }
        // And a row that is there already stays.
        let again = found.projection.apply(found.matrix.row(3));
        assert!(largest_difference(&again, found.matrix.row(3)) < 1e-5);
    }

    #[test]
    fn rounding_is_not_clipped() {
        // Rank one, rounded: half of the eigenvalues are below 0 by rounding.
        let n = 50;
        let k: Vec<f32> = (0..n * n)
            .map(|e| ((1.0 + (e / n) as f64).sqrt() * (1.0 + (e % n) as f64).sqrt()) as f32)
            .collect();
        assert!(clipped(&k, n).is_none());
    }

    #[test]
    fn the_threads_do_not_change_a_bit() {
        let n = 150;
        let k = matrix(n, 9);
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let found = clipped(&k, n).unwrap();
                let rows = found.projection.apply(&k);
                (
                    found.projection,
                    rows.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
                )
            })
        };
        assert_eq!(bits(1), bits(3));
    }
}
