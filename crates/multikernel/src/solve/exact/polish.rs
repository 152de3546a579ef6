//! Newton steps on the free samples, for kernels too ill-conditioned for steps on pairs.
//!
//! Problem: that of `smo.rs`. With the samples at their bounds held there, the free ones (strictly inside a piece of their
//! dual term) solve a smooth problem: (K_FF + diag(curvature)) d = slope, Σ d = 0 where there is a bias. The step goes as
//! far as the first bound; who reaches it is held from then on. Everything is in f64: weights a million times apart leave nothing
//! of the smaller kernels in f32.
//!
//! Cost: per step |F|³/3, |F|² per kernel with weight, and one product with the kernels.

use super::rows::Rows;
use super::smo;
use crate::gram::Gram;
use crate::math;
use crate::problem::Problem;

/// More free samples than this make the factor too dear.
const MOST_FREE: usize = 2000;
/// Steps of one call at most.
const MOST_STEPS: usize = 40;
/// Ridge relative to the mean diagonal, far below what f64 can tell apart after a factorisation.
const RIDGE: f64 = 1e-13;

/// Moves `state.a`, with exact scores, while that lowers the gap and `stop` does not say otherwise; the gap reached.
pub(super) fn polish(
    gram: &Gram,
    weights: &[f64],
    rows: &Rows<'_>,
    problem: &Problem<'_>,
    state: &mut smo::Coefficients,
    target: f64,
    stop: &mut dyn FnMut() -> bool,
) -> f64 {
    state.scores = rows.exact_product(&state.a);
    let mut gap = smo::gap(problem, state);
    let mut best = state.clone();
    let mut least = gap;
    for _ in 0..MOST_STEPS {
        if gap <= target || stop() || !step(gram, weights, rows, problem, state) {
            break;
        }
        gap = smo::gap(problem, state);
        if gap < least {
            least = gap;
            best = state.clone();
        }
    }
    *state = best;
    least
}

/// One step; false if there is none.
fn step(
    gram: &Gram,
    weights: &[f64],
    rows: &Rows<'_>,
    problem: &Problem<'_>,
    state: &mut smo::Coefficients,
) -> bool {
    let free: Vec<usize> = (0..state.a.len())
        .filter(|&i| {
            let (up, down) = smo::pulls(problem, state, i);
            up == down
        })
        .collect();
    let f = free.len();
    if f == 0 || f > MOST_FREE {
        return false;
    }
    let mut matrix = vec![0.0; f * f];
    let part = gram.subset(&free);
    for (m, &w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        let kernel = part.kernel(m).matrix();
        matrix
            .iter_mut()
            .zip(kernel)
            .for_each(|(x, k)| *x += w * f64::from(k));
    }
    let bend = |i: usize| {
        let (a, c, y) = (state.a[i], problem.costs[i], problem.targets[i]);
        problem.loss.dual_curvature(a, c, y)
    };
    let mean = (0..f).map(|k| matrix[k * f + k]).sum::<f64>() / f as f64;
    for (k, &i) in free.iter().enumerate() {
        matrix[k * f + k] += bend(i) + RIDGE * mean;
    }
    if math::cholesky(&mut matrix, f).is_none() {
        return false;
    }
    let solve = |mut x: Vec<f64>| {
        math::solve_lower(&matrix, &mut x);
        math::solve_upper(&matrix, &mut x);
        x
    };
    let pull = |i: usize| smo::pulls(problem, state, i).0;
    let mut d = solve(free.iter().map(|&i| pull(i)).collect());
    if problem.bias {
        let ones = solve(vec![1.0; f]);
        let shift = d.iter().sum::<f64>() / ones.iter().sum::<f64>();
        d.iter_mut().zip(&ones).for_each(|(d, o)| *d -= shift * o);
    }
    if !d.iter().all(|d| d.is_finite()) {
        return false;
    }
    // As far as the first bound.
    let logistic = problem.loss == crate::loss::Loss::Logistic;
    let ends: Vec<f64> = free
        .iter()
        .zip(&d)
        .map(|(&i, d)| smo::end_of_piece(problem, state.a[i], i, *d > 0.0))
        .collect();
    let rooms: Vec<f64> = (0..f)
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
