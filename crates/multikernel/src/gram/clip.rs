//! The positive semidefinite matrix next to a symmetric one, and what that means for new samples.
//!
//! With K = VΛVᵀ and V₋ the eigenvectors of negative eigenvalues, K − V₋Λ₋V₋ᵀ is the positive semidefinite matrix
//! nearest to K in the Frobenius norm. It equals K·P with P = I − V₋V₋ᵀ, so a row k of new samples becomes kP: rows of
//! training samples then give what training saw.

use crate::data::Pairwise;
use crate::error::{Error, Result};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par, Spec, diag::DiagMut};
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
            let v = MatRef::from_column_major_slice(&panel, n, panel.len() / n);
            x.par_chunks_mut(ROWS * n).for_each(|x| {
                let count = x.len() / n;
                let mut along = vec![0.0; v.ncols() * count];
                let mut along = MatMut::from_column_major_slice_mut(&mut along, v.ncols(), count);
                let mut x = MatMut::from_column_major_slice_mut(x, n, count);
                let of = x.as_ref();
                matmul(&mut along, Accum::Replace, v.transpose(), of, 1.0, Par::Seq);
                matmul(&mut x, Accum::Add, v, &along, -1.0, Par::Seq);
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

/// Bytes that clipping n samples needs at a time.
pub(super) fn bytes(n: usize) -> u64 {
    let scratch =
        self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default());
    // The matrix and its eigenvectors in f64, the result and the directions kept in f32.
    24 * (n as u64).pow(2) + scratch.size_bytes() as u64
}

/// The nearest positive semidefinite matrix; none if there are no negative eigenvalues. Row i is `row(i)`, the largest
/// entry `largest`.
///
/// Eigenvalues that may be the rounding of 0 to f32 stay: the result is rounded the same way.
///
/// One thread: the work is bound by memory, and the bits shall not depend on the threads. Cost: about 9n³ operations.
pub(super) fn clip<'a, R: AsRef<[f32]>>(
    n: usize,
    row: impl Fn(usize) -> R + 'a,
    largest: f64,
) -> Result<Option<Clipped>> {
    let mut k: Vec<f64> = Vec::with_capacity(n * n);
    for i in 0..n {
        k.extend(row(i).as_ref().iter().map(|&v| f64::from(v)));
    }
    let mut vectors = vec![0.0; n * n];
    let mut values = vec![0.0; n];
    let req =
        self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default());
    let failed =
        |why: &str| Error::input("", format!("its eigenvalues cannot be found: {why}"), "");
    let mut buffer = MemBuffer::try_new(req).map_err(|_| failed("there is not enough memory"))?;
    self_adjoint_evd(
        MatRef::from_column_major_slice(&k, n, n),
        DiagMut::from_slice_mut(&mut values),
        Some(MatMut::from_column_major_slice_mut(&mut vectors, n, n)),
        Par::Seq,
        MemStack::new(&mut buffer),
        Spec::default(),
    )
    .map_err(|_| failed("the iteration does not converge"))?;
    drop(buffer);
    // A symmetric matrix of rounding errors ε·max|K| has eigenvalues of about this size.
    let rounding = f64::from(f32::EPSILON) * (n as f64).sqrt() * largest;
    // They ascend.
    let directions = values.partition_point(|&v| v < -rounding);
    if directions == 0 {
        return Ok(None);
    }
    vectors.truncate(directions * n);
    let projection = Projection {
        directions,
        vectors: Arc::new(vectors.iter().map(|&v| v as f32).collect()),
    };
    for (vector, value) in vectors.chunks_mut(n).zip(&values) {
        let root = (-value).sqrt();
        vector.iter_mut().for_each(|v| *v *= root);
    }
    let w = MatRef::from_column_major_slice(&vectors, n, directions);
    triangular::matmul(
        MatMut::from_column_major_slice_mut(&mut k, n, n),
        BlockStructure::TriangularLower,
        Accum::Add,
        w,
        BlockStructure::Rectangular,
        w.transpose(),
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
    if directions == n {
        // Nothing is left but rounding.
        k.fill(0.0);
    }
    let mut out = vec![0.0; n * n];
    for j in 0..n {
        for i in j..n {
            let value = k[j * n + i] as f32;
            out[j * n + i] = value;
            out[i * n + j] = value;
        }
    }
    let squares = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
    Ok(Some(Clipped {
        matrix: Pairwise::new(n, n, out)?,
        projection,
        change: (squares(&values[..directions]) / squares(&values)).sqrt(),
    }))
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
