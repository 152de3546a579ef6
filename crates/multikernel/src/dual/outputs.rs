//! Outputs F_m = K_m a of every kernel on every sample, for kernels that must be read.
//!
//! With them the quadratic forms aᵀF_m and the scores Σ β_m F_m of any weights cost no further reading, and a change of a
//! reads the rows of the samples that changed alone.

use crate::gram::Gram;
use crate::math::dot;

/// F_m of coefficients a, kernel after kernel.
pub(super) struct Outputs {
    a: Vec<f64>,
    values: Vec<f64>,
}

impl Outputs {
    /// For a = 0; none where the kernels need not be read or `memory` bytes cannot hold them beside a combined matrix.
    pub(super) fn new(gram: &Gram, memory: u64) -> Option<Outputs> {
        let (n, m) = (gram.n_rows() as u64, gram.n_kernels() as u64);
        let bytes = n.checked_mul(4 * n + 8 * m)?;
        (bytes <= memory && gram.must_be_read()).then(|| Outputs {
            a: vec![0.0; gram.n_rows()],
            values: vec![0.0; gram.n_rows() * gram.n_kernels()],
        })
    }

    /// Follows the coefficients to `a`.
    pub(super) fn follow(&mut self, gram: &Gram, a: &[f64]) {
        let change: Vec<f64> = a.iter().zip(&self.a).map(|(new, old)| new - old).collect();
        gram.add_kernel_products(&change, &mut self.values);
        self.a.copy_from_slice(a);
    }

    /// aᵀK_m a of every kernel, never negative.
    pub(super) fn forms(&self) -> Vec<f64> {
        let of_kernel = self.values.chunks(self.a.len());
        of_kernel.map(|f| dot(&self.a, f).max(0.0)).collect()
    }

    /// K_β a.
    pub(super) fn scores(&self, weights: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.a.len()];
        let of_kernel = self.values.chunks(self.a.len()).zip(weights);
        for (f, b) in of_kernel.filter(|(_, b)| **b != 0.0) {
            scores.iter_mut().zip(f).for_each(|(s, f)| *s += b * f);
        }
        scores
    }
}
