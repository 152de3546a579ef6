//! Newton's equations on the free samples of a problem with one score per sample.
//!
//! With the samples at their bounds held there, the free ones F (strictly inside a piece of their dual term) solve a smooth problem with
//! the matrix K_FF + diag(curvature), on the subspace Σ a_F = const where there is a bias. Two uses:
//!
//! [`polish`] finishes the coefficients where steps on pairs stall on ill-conditioned kernels: (K_FF + diag(curvature)) d = slope,
//! Σ d = 0 where there is a bias. The step goes as far as the first bound; who reaches it is held from then on. Everything is in f64.
//!
//! [`weight_model`] says how J follows the kernel weights (`newton.rs`), and [`FreeSamples`] how the coefficients do.
//!
//! Cost: per step or model |F|³/3, |F|² per kernel with weight; a step one product with the kernels besides.

use super::CombinedRows;
use super::kernel_outputs::KernelOutputs;
use super::newton::{MOST_STEPS, WeightModel, exact_kernel_among, solved, while_gap_falls};
use super::smo::{self, ScalarState};
use crate::gram::{Coefficients, Gram};
use crate::math;
use crate::problem::Problem;

/// With more free samples than this the factor costs more than it saves in polishing.
const MOST_POLISHED: usize = 2000;
/// Ridge of polishing relative to the mean diagonal, far below what f64 can tell apart after a factorisation.
const RIDGE: f64 = 1e-13;
/// With more free samples than this the factor costs more than it saves in the model.
const MOST_FREE: usize = 6000;
/// Ridge of the model relative to the mean diagonal of the kernel: duplicates make it singular.
const MODEL_RIDGE: f64 = 1e-9;
/// Steps outwards of a search for the shift that keeps a sum.
const DOUBLINGS: u32 = 60;
/// Steps of the same search between two shifts.
const HALVINGS: u32 = 60;

/// Moves `state.a`, with exact scores, while that lowers the gap and `stop` does not say otherwise.
pub(super) fn polish(
    rows: &CombinedRows<'_>,
    problem: &Problem<'_>,
    state: &mut ScalarState,
    target: f64,
    stop: &mut dyn FnMut() -> bool,
) {
    state.scores = rows.exact_product(&state.a);
    let gap = smo::gap(problem, state);
    while_gap_falls(state, gap, target, MOST_STEPS, stop, |state| {
        step(rows, problem, state).then(|| smo::gap(problem, state))
    });
}

/// One step; false if there is none.
fn step(rows: &CombinedRows<'_>, problem: &Problem<'_>, state: &mut ScalarState) -> bool {
    let is_free = |i: &usize| {
        let (up, down) = smo::pulls(problem, state, *i);
        up == down
    };
    let free: Vec<usize> = (0..state.a.len()).filter(is_free).collect();
    if free.is_empty() || free.len() > MOST_POLISHED {
        return false;
    }
    let Some(d) = direction(rows, problem, state, &free) else {
        return false;
    };
    // As far as the first bound.
    let logistic = problem.loss.stays_inside();
    let ends: Vec<f64> = free
        .iter()
        .zip(&d)
        .map(|(&i, d)| smo::end_of_piece(problem, state.a[i], i, *d > 0.0))
        .collect();
    let rooms: Vec<f64> = (0..free.len())
        .map(|k| match d[k] {
            0.0 => f64::INFINITY,
            d => (ends[k] - state.a[free[k]]) / d,
        })
        .collect();
    let first = rooms.iter().copied().fold(f64::INFINITY, f64::min);
    // The logistic dual term is infinitely steep at its bounds: stay inside.
    let length = first.min(1.0) * if logistic && first <= 1.0 { 0.9 } else { 1.0 };
    if length.is_nan() || length <= 0.0 {
        return false;
    }
    for (k, &i) in free.iter().enumerate() {
        state.a[i] = if !logistic && rooms[k] <= length {
            ends[k]
        } else {
            let (low, high) = problem.loss.feasible(problem.costs[i], problem.targets[i]);
            (state.a[i] + length * d[k]).clamp(low, high)
        };
    }
    state.scores = rows.exact_product(&state.a);
    true
}

/// Newton's direction of the free samples; none where the matrix is not definite.
fn direction(
    rows: &CombinedRows<'_>,
    problem: &Problem<'_>,
    state: &ScalarState,
    free: &[usize],
) -> Option<Vec<f64>> {
    let f = free.len();
    let mut matrix = exact_kernel_among(rows, free);
    let mean = (0..f).map(|k| matrix[k * f + k]).sum::<f64>() / f as f64;
    for (k, &i) in free.iter().enumerate() {
        matrix[k * f + k] += bend(problem, state, i) + RIDGE * mean;
    }
    math::cholesky(&mut matrix, f)?;
    let pull = |&i: &usize| smo::pulls(problem, state, i).0;
    let mut d = solved(&matrix, free.iter().map(pull).collect());
    if problem.bias {
        let ones = solved(&matrix, vec![1.0; f]);
        let shift = d.iter().sum::<f64>() / ones.iter().sum::<f64>();
        d.iter_mut().zip(&ones).for_each(|(d, o)| *d -= shift * o);
    }
    d.iter().all(|d| d.is_finite()).then_some(d)
}

/// The curvature of the dual term of sample i.
fn bend(problem: &Problem<'_>, state: &ScalarState, i: usize) -> f64 {
    let (a, c, y) = (state.a[i], problem.costs[i], problem.targets[i]);
    problem.loss.dual_curvature(a, c, y)
}

/// The model of J around coefficients that were solved for with the weights of `rows`; none if there are too many free samples, or none.
/// `outputs` has K_m a where it is known; `exact` asks for it in f64, which [`FreeSamples::forms`] needs and steps do not.
pub(super) fn weight_model(
    rows: &mut CombinedRows<'_>,
    problem: &Problem<'_>,
    state: &ScalarState,
    kernels: Vec<usize>,
    outputs: Option<&KernelOutputs>,
    exact: bool,
) -> Option<WeightModel> {
    let free = free_samples(problem, &state.a);
    if free.is_empty() || free.len() > MOST_FREE {
        return None;
    }
    let f = free.len();
    let mut factor = free_matrix(rows, problem, state, &free);
    math::cholesky(&mut factor, f)?;
    let scores = match outputs {
        Some(outputs) => outputs.at(&free, &kernels),
        None if exact => rows
            .gram()
            .kernel_scores(&free, &kernels, Coefficients::single(&state.a)),
        None => rows
            .gram()
            .fast_kernel_scores(&free, &kernels, Coefficients::single(&state.a)),
    };
    let k = kernels.len();
    let mut z = scores.clone();
    math::solve_lower_columns(&factor, &mut z, k);
    if problem.bias {
        let mut ones = vec![1.0; f];
        math::solve_lower(&factor, &mut ones);
        let size = math::dot(&ones, &ones);
        let mut along = vec![0.0; k];
        for (row, one) in z.chunks(k).zip(&ones) {
            along.iter_mut().zip(row).for_each(|(a, z)| *a += one * z);
        }
        for (row, one) in z.chunks_mut(k).zip(&ones) {
            let one = one / size;
            row.iter_mut().zip(&along).for_each(|(z, a)| *z -= one * a);
        }
    }
    Some(WeightModel {
        kernels,
        z,
        free: Some(FreeSamples {
            samples: free,
            factor,
            scores,
        }),
    })
}

/// The free samples of a model, and what moves them.
pub(super) struct FreeSamples {
    samples: Vec<usize>,
    /// The factor L of K_β,FF + curvature.
    factor: Vec<f64>,
    /// (K_m a)_F, sample after sample.
    scores: Vec<f64>,
}

impl FreeSamples {
    /// The quadratic forms of other coefficients that differ in free samples alone; `forms` are those of the model's own, `a`. None where
    /// not all kernels matter.
    pub(super) fn forms(
        &self,
        model: &WeightModel,
        gram: &Gram,
        a: &[f64],
        other: &[f64],
        forms: &[f64],
    ) -> Option<Vec<f64>> {
        let k = model.kernels.len();
        if k != forms.len() {
            return None;
        }
        let change: Vec<f64> = other.iter().zip(a).map(|(other, a)| other - a).collect();
        // (a + d)ᵀK(a + d) = aᵀKa + 2 dᵀKa + dᵀKd
        let mut sums = gram.quadratic_forms(Coefficients::single(&change));
        for (&i, scores) in self.samples.iter().zip(self.scores.chunks(k)) {
            let each = sums.iter_mut().zip(scores);
            each.for_each(|(sum, score)| *sum += 2.0 * change[i] * score);
        }
        let each = sums.iter().zip(forms);
        Some(each.map(|(sum, form)| (sum + form).max(0.0)).collect())
    }

    /// The coefficients that belong to new weights, made feasible; `a` belongs to the old ones.
    pub(super) fn follow(
        &self,
        model: &WeightModel,
        problem: &Problem<'_>,
        a: &[f64],
        old: &[f64],
        new: &[f64],
    ) -> Vec<f64> {
        let f = self.samples.len();
        let change: Vec<f64> = model.kernels.iter().map(|&m| old[m] - new[m]).collect();
        let rows = model.z.chunks(change.len());
        let mut shift: Vec<f64> = rows.map(|row| math::dot(row, &change)).collect();
        math::solve_upper(&self.factor, &mut shift);
        let bounds = |i: usize| problem.loss.feasible(problem.costs[i], problem.targets[i]);
        let moved = |t: f64| -> Vec<f64> {
            let each = self.samples.iter().zip(&shift);
            each.map(|(&i, s)| {
                let (low, high) = bounds(i);
                (a[i] + s + t).clamp(low, high)
            })
            .collect()
        };
        let mut next = moved(0.0);
        let total: f64 = self.samples.iter().map(|&i| a[i]).sum();
        let missing = |next: &[f64]| total - next.iter().sum::<f64>();
        if problem.bias && missing(&next) != 0.0 {
            // Bounds took from the sum: all of them move until it is as it was.
            let (mut low, mut high) = (0.0, 0.0);
            let mut step = missing(&next) / f as f64;
            for _ in 0..DOUBLINGS {
                match missing(&next) {
                    m if m * step <= 0.0 => break,
                    _ => (low, high) = (high, high + step),
                }
                step *= 2.0;
                next = moved(high);
            }
            for _ in 0..HALVINGS {
                let middle = 0.5 * (low + high);
                next = moved(middle);
                match missing(&next) * (high - low) > 0.0 {
                    true => low = middle,
                    false => high = middle,
                }
            }
        }
        let mut all = a.to_vec();
        for (&i, next) in self.samples.iter().zip(next) {
            all[i] = next;
        }
        all
    }
}

/// Samples strictly inside a piece of their dual term.
pub(super) fn free_samples(problem: &Problem<'_>, a: &[f64]) -> Vec<usize> {
    (0..a.len())
        .filter(|&i| {
            let (c, y) = (problem.costs[i], problem.targets[i]);
            let (low, high) = problem.loss.feasible(c, y);
            let (left, right) = problem.loss.dual_slopes(a[i], c, y);
            a[i] > low && a[i] < high && left == right
        })
        .collect()
}

/// K_FF plus the curvature of the dual terms, lower half.
fn free_matrix(
    rows: &mut CombinedRows<'_>,
    problem: &Problem<'_>,
    state: &ScalarState,
    free: &[usize],
) -> Vec<f64> {
    let f = free.len();
    let active: Vec<u32> = free.iter().map(|&i| i as u32).collect();
    let mut row = vec![0.0f32; state.a.len()];
    let mut matrix = vec![0.0; f * f];
    let mean = free.iter().map(|&i| rows.diagonal()[i]).sum::<f64>() / f as f64;
    for (k, &i) in free.iter().enumerate() {
        rows.fetch(i, &active, false, &mut row);
        let out = &mut matrix[k * f..k * f + k + 1];
        out.iter_mut()
            .zip(&row)
            .for_each(|(o, r)| *o = f64::from(*r));
        out[k] += bend(problem, state, i) + MODEL_RIDGE * mean;
    }
    matrix
}
