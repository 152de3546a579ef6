//! The combined kernel Σ_m β_m K_m of a Gram for fixed weights.

use super::accumulate::add_multiple;
use super::combined_rows::{CombinedRows, Place};
use super::family::{CACHED_ROWS, Centring, Family, Map};
use super::row_plan::RowPlan;
use super::symmetric::mirror;
use super::term::{Mixture, Term};
use super::{Coefficients, Gram, Index, Precision};
use crate::huge_pages::zeros;
use crate::math::dot;
use rayon::prelude::*;

/// Rows per task in products, and in matrices of which one half is made.
const ROWS: usize = 32;
/// Most sums of rows that are held at once.
const SUMS_AT_ONCE: usize = 16;
/// Bytes that these sums may take.
const SUMS_BYTES: usize = 64 << 20;

/// Σ_m β_m K_m between the row samples and the column samples of a [`Gram`].
#[derive(Debug)]
pub struct Combined<'g> {
    gram: &'g Gram,
    plan: RowPlan,
    pub(super) terms: Vec<Term<'g>>,
    pub(super) shifts: Option<Shifts>,
    error_bound: f64,
    rows_error_bound: f64,
}

/// Centring: subtracted from row i and from column j, and added everywhere. Numbered as the families number.
#[derive(Debug)]
pub(super) struct Shifts {
    pub(super) rows: Vec<f64>,
    pub(super) cols: Vec<f64>,
    pub(super) grand: f64,
}

impl Shifts {
    /// Of a family whose kernels have these weights.
    fn new(centring: &Centring, beta: &[f64]) -> Shifts {
        let mix = |means: &[f64]| -> Vec<f64> {
            means
                .par_chunks(beta.len())
                .map(|row| row.iter().zip(beta).map(|(r, b)| r * b).sum())
                .collect()
        };
        Shifts {
            rows: mix(&centring.row_means),
            cols: mix(&centring.col_means),
            grand: centring.grand.iter().zip(beta).map(|(c, b)| c * b).sum(),
        }
    }

    fn plus(mut self, other: &Shifts) -> Shifts {
        let add = |a: &mut [f64], b: &[f64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(&mut self.rows, &other.rows);
        add(&mut self.cols, &other.cols);
        self.grand += other.grand;
        self
    }
}

impl<'g> Combined<'g> {
    pub(super) fn new(gram: &'g Gram, beta: &[f64]) -> Self {
        assert_eq!(beta.len(), gram.n_kernels, "one weight per kernel");
        let mut terms = Vec::new();
        let mut shifts: Option<Shifts> = None;
        let (mut error_bound, mut rows_error_bound) = (0.0, 0.0);
        for family in gram.families.iter() {
            if family.members.iter().all(|&m| beta[m] == 0.0) {
                continue;
            }
            let beta: Vec<f64> = family.members.iter().map(|&m| beta[m]).collect();
            if let Map::Table(basis) = &family.map {
                let worst = family.largest_factor();
                for (b, bound) in beta.iter().zip(basis.bounds()) {
                    error_bound += worst * b.abs() * bound.value;
                    rows_error_bound += worst * b.abs() * bound.row;
                }
            }
            if let Some(centring) = &family.centring {
                let own = Shifts::new(centring, &beta);
                shifts = Some(match shifts {
                    None => own,
                    Some(others) => others.plus(&own),
                });
            }
            terms.push(Term::new(family, beta));
        }
        Combined {
            gram,
            plan: RowPlan::choose(terms.iter().map(Term::family), gram),
            terms,
            shifts,
            error_bound,
            rows_error_bound,
        }
    }

    /// How far a value may be from Σ β_m φ_m(t) of the stored statistic in products, diagonals and sums, which are in f64.
    pub fn error_bound(&self) -> f64 {
        self.error_bound
    }

    /// How far a value of [`Combined::rows`] may be from Σ β_m φ_m(t) of the stored statistic, in exact arithmetic, beside its
    /// own rounding to f32: rows of a family may be computed in f32.
    pub fn rows_error_bound(&self) -> f64 {
        self.rows_error_bound
    }

    /// How its rows are made, and what they cost.
    pub(crate) fn row_plan(&self) -> &RowPlan {
        &self.plan
    }

    /// Combined rows, row after row into `out`. Many rows are spread over the threads, a few are not.
    ///
    /// # Panics
    /// If `out` is not as long as the rows asked for.
    pub fn rows(&self, rows: &[usize], out: &mut [f32]) {
        let n = self.gram.n_cols();
        assert_eq!(out.len(), rows.len() * n);
        let block = self.plan.block_rows;
        // A few cheap rows are done before other threads would have woken up.
        if rows.len() <= CACHED_ROWS {
            self.rows_on_this_thread(rows, out);
        } else {
            out.par_chunks_mut((block * n).max(1))
                .zip(rows.par_chunks(block))
                .for_each(|(out, rows)| self.rows_on_this_thread(rows, out));
        }
    }

    pub(super) fn rows_on_this_thread(&self, rows: &[usize], out: &mut [f32]) {
        let outs = out.chunks_mut(self.gram.n_cols().max(1));
        let mut places: Vec<Place<'_>> = rows.iter().copied().zip(outs).collect();
        self.on(self.gram).fill(&mut places);
    }

    /// The whole combined matrix, row after row, in new memory.
    pub fn matrix(&self) -> Vec<f32> {
        let mut out = zeros(self.gram.n_rows() * self.gram.n_cols());
        self.matrix_into(&mut out);
        out
    }

    /// The whole combined matrix, row after row; of a symmetric one the lower half is computed where that is faster. One matrix after
    /// the other in the same memory takes less time than each in memory of its own, which the system has to clear.
    ///
    /// # Panics
    /// If `out` is not as long as the matrix.
    pub fn matrix_into(&self, out: &mut [f32]) {
        let n = self.gram.n_cols();
        assert_eq!(out.len(), self.gram.n_rows() * n);
        if !self.plan.halves_matrices() {
            let rows: Vec<usize> = (0..self.gram.n_rows()).collect();
            return self.rows(&rows, out);
        }
        let rows = self.on(self.gram);
        out.par_chunks_mut(ROWS * n.max(1))
            .enumerate()
            .for_each(|(b, out)| {
                let halves = (ROWS * b..).zip(out.chunks_mut(n));
                let mut places: Vec<Place<'_>> =
                    halves.map(|(i, row)| (i, &mut row[..=i])).collect();
                rows.fill(&mut places);
            });
        mirror(out, n);
    }

    /// The lower half of a symmetric combined matrix with the diagonal, row after row.
    ///
    /// # Panics
    /// If rows and columns are different samples, or `out` is not as long as the half.
    pub fn lower_into(&self, out: &mut [f32]) {
        let n = self.gram.n_rows();
        assert!(self.gram.symmetric && out.len() == n * (n + 1) / 2);
        let rows = self.on(self.gram);
        let mut places: Vec<Place<'_>> = Vec::with_capacity(n);
        let mut rest = out;
        for i in 0..n {
            let (row, below) = rest.split_at_mut(i + 1);
            places.push((i, row));
            rest = below;
        }
        for some in places.chunks_mut(self.plan.block_rows) {
            rows.fill(some);
        }
    }

    /// The diagonal of a training Gram.
    ///
    /// # Panics
    /// If rows and columns are different samples.
    pub fn diagonal(&self) -> Vec<f64> {
        assert!(self.gram.symmetric);
        let rows = &self.gram.rows;
        let mut sums = vec![0.0; self.gram.n_rows()];
        for term in &self.terms {
            let family = term.family();
            // Distances of samples from themselves are all the same.
            let mut last = (f32::NAN, f64::NAN);
            for (i, sum) in sums.iter_mut().enumerate() {
                let i = rows.get(i);
                let t = family.diagonal[i];
                if t != last.0 {
                    last = (t, term.at(t));
                }
                let factor = family.factors.as_ref().map_or(1.0, |f| f.0[i] * f.1[i]);
                *sum += factor * last.1;
            }
        }
        if let Some(shifts) = &self.shifts {
            for (i, sum) in sums.iter_mut().enumerate() {
                let i = rows.get(i);
                *sum += shifts.grand - shifts.rows[i] - shifts.cols[i];
            }
        }
        sums
    }

    /// K_β A: `outputs` numbers for each row sample.
    ///
    /// # Panics
    /// If there is not one row of coefficients per column sample.
    pub fn product(&self, a: Coefficients<'_>) -> Vec<f64> {
        let rows: Vec<usize> = (0..self.gram.n_rows()).collect();
        self.product_rows(&rows, a)
    }

    /// (K_β A)_i for the rows named.
    ///
    /// # Panics
    /// If there is not one row of coefficients per column sample.
    pub fn product_rows(&self, rows: &[usize], a: Coefficients<'_>) -> Vec<f64> {
        self.product_by(rows, a, Precision::Exact)
    }

    /// As [`Combined::product`], from values as [`Combined::rows`] has them: faster, and as far from the truth as these.
    pub(crate) fn fast_product(&self, a: Coefficients<'_>) -> Vec<f64> {
        let rows: Vec<usize> = (0..self.gram.n_rows()).collect();
        self.product_by(&rows, a, Precision::Fast)
    }

    /// Kᵀ A, one row per column sample, from values as [`Combined::rows`] has them.
    pub(crate) fn fast_transposed_product(&self, a: Coefficients<'_>) -> Vec<f64> {
        assert_eq!(a.len(), self.gram.n_rows());
        let rows: Vec<usize> = (0..a.len()).collect();
        self.on(self.gram).sum_of_rows(&rows, a, Precision::Fast)
    }

    fn product_by(&self, rows: &[usize], a: Coefficients<'_>, precision: Precision) -> Vec<f64> {
        assert_eq!(a.len(), self.gram.n_cols());
        let support = a.support();
        // Gathering a value costs about as much as looking it up: of a symmetric matrix whole rows are read instead.
        let whole = self.gram.symmetric && matches!(self.gram.cols, Index::All(_));
        let all = rows.len() == a.len() && rows.iter().enumerate().all(|(k, &i)| k == i);
        let rows_pay = match a.outputs() {
            1 => support.len() < a.len(),
            // Sums for every output need memory, which rows that are not stored were to save.
            _ => !self.plan.computes(),
        };
        if whole && all && rows_pay {
            return self.on(self.gram).sum_of_rows(&support, a, precision);
        }
        if support.len() >= a.len() / 2 {
            return self.on(self.gram).dense_product(rows, a, precision);
        }
        let values: Vec<f64> = support.iter().flat_map(|&j| a.row(j)).copied().collect();
        let all: Vec<usize> = (0..self.gram.n_rows()).collect();
        let gram = self.gram.block(&all, &support);
        let a = Coefficients::new(&values, a.outputs());
        self.on(&gram).dense_product(rows, a, precision)
    }

    pub(super) fn gram(&self) -> &'g Gram {
        self.gram
    }

    /// The one table, if there is nothing else in the combination.
    pub(super) fn only_table(&self) -> Option<(&Family, &Mixture<'g>)> {
        match &self.terms[..] {
            [Term::Mixture(family, mixture)] if self.plan.is_one_table => Some((family, mixture)),
            _ => None,
        }
    }

    /// The same combination on other samples of the same families.
    pub(super) fn on<'a>(&'a self, gram: &'a Gram) -> CombinedRows<'a> {
        let plan = match std::ptr::eq(self.gram, gram) {
            true => self.plan,
            false => RowPlan::choose(self.terms.iter().map(Term::family), gram),
        };
        CombinedRows {
            of: self,
            gram,
            plan,
        }
    }
}

impl CombinedRows<'_> {
    /// K A, row by row: each is a product with all coefficients.
    fn dense_product(&self, rows: &[usize], a: Coefficients<'_>, precision: Precision) -> Vec<f64> {
        let (k, block) = (a.outputs(), self.plan.block_rows);
        let mut out = vec![0.0; rows.len() * k];
        if a.len() == 0 {
            return out;
        }
        out.par_chunks_mut(block * k)
            .zip(rows.par_chunks(block))
            .for_each(|(out, rows)| {
                // Not rounded to f32: large coefficients would show the rounding in their scores.
                self.for_sums(rows, precision, |r, values| {
                    let out = &mut out[r * k..(r + 1) * k];
                    if k == 1 {
                        out[0] = dot(values, a.values);
                    } else {
                        for (v, a) in values.iter().zip(a.values.chunks(k)) {
                            for (o, a) in out.iter_mut().zip(a) {
                                *o += v * a;
                            }
                        }
                    }
                });
            });
        out
    }

    /// Σ_j a_j K_j over the rows j of the support, for each output: Kᵀ A, which is K A where K is symmetric.
    fn sum_of_rows(
        &self,
        support: &[usize],
        a: Coefficients<'_>,
        precision: Precision,
    ) -> Vec<f64> {
        let (n, k) = (self.gram.n_cols(), a.outputs());
        // Sums of this many rows each are added up in order: the same for any number of threads, and in bounded memory.
        let together = ROWS * k.div_ceil(8);
        let at_once = (SUMS_BYTES / (8 * n * k).max(1)).clamp(1, SUMS_AT_ONCE);
        // Output after output.
        let mut out = vec![0.0; n * k];
        for some in support.chunks(together * at_once) {
            let parts: Vec<Vec<f64>> = some
                .par_chunks(together)
                .map(|rows| {
                    let mut sums = vec![0.0; n * k];
                    for rows in rows.chunks(ROWS) {
                        self.for_sums(rows, precision, |r, values| {
                            for (&a, sums) in a.row(rows[r]).iter().zip(sums.chunks_mut(n)) {
                                if a != 0.0 {
                                    add_multiple(a, values, sums);
                                }
                            }
                        });
                    }
                    sums
                })
                .collect();
            for part in parts {
                add_multiple(1.0, &part, &mut out);
            }
        }
        if k == 1 {
            return out;
        }
        let of_sample = |i: usize| out.iter().skip(i).step_by(n.max(1)).copied();
        (0..n).flat_map(of_sample).collect()
    }
}
