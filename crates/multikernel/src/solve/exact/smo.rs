//! The working-set solver for one combined kernel.
//!
//! Problem: max over a of Σ_i d_i(a_i) − ½ aᵀKa, a_i ∈ [L_i, U_i], Σ a_i kept where there is a bias, with
//! d_i(a) = −C_i ℓ*(−a/C_i, y_i) concave (theory of the certificate). K is the combined kernel.
//!
//! Step: with a bias the pair (i, j) moves a_i up and a_j down: i has the steepest slope up, j is chosen by second
//! order (Fan, Chen, Lin 2005); without, the one coordinate with the largest gain moves. Along the step d_i is
//! quadratic in pieces (ε-insensitive: cut at 0) or smooth (logistic: Newton inside a bracket).
//!
//! Stop: the duality gap of this problem (not a KKT tolerance), looked at now and then.
//!
//! Cost: two rows of K and O(active) per step. Samples that sit at a bound and pull further into it are set aside
//! (shrinking) and brought back, with exact scores, before the gap is measured.

use super::CombinedRows;
use super::work::InnerSolve;
use super::working_set::WorkingSet;
use crate::problem::{Problem, best_bias, dual_linear, risk};

/// Steps per sample between two looks at the gap.
const STEPS_PER_LOOK: f64 = 0.5;
/// A logistic coefficient so near to its bound, relative to C_i, is at it: its slope is infinite there, so that it would
/// be chosen for ever though it cannot move.
const AT_BOUND: f64 = 1e-14;
/// Looks without a tenth off the gap after which more will not bring it either.
const PATIENCE: usize = 500;
/// No dual value exceeds a primal one where the kernel is positive semidefinite. A dual value this many times as large is no round-off: the
/// kernel is indefinite, and if the loss does not bound the coefficients, there is no optimum.
const NO_OPTIMUM: f64 = 2.0;
/// Shrinking copies its arrays only when this share would go.
const SHRINK_SHARE: f64 = 0.25;

/// State of the coefficients, kept between calls for warm starts.
#[derive(Debug, Clone)]
pub(crate) struct ScalarState {
    /// a
    pub(crate) a: Vec<f64>,
    /// K a for the kernel last solved for.
    pub(crate) scores: Vec<f64>,
}

/// Feasible coefficients to start with: 0, or for the logistic loss, whose slope is infinite there, inside.
pub(super) fn cold_start(problem: &Problem<'_>) -> Vec<f64> {
    let samples = || problem.targets.iter().zip(problem.costs);
    if !problem.loss.stays_inside() {
        return vec![0.0; problem.targets.len()];
    }
    let total = |sign: f64| -> f64 {
        let of_sign = samples().filter(|(y, _)| **y == sign);
        of_sign.map(|(_, c)| c).sum()
    };
    let (plus, minus) = (total(1.0), total(-1.0));
    let share = |own: f64, other: f64| match problem.bias {
        true => 0.5 * (other / own).min(1.0),
        false => 0.5,
    };
    let start = |(&y, &c): (&f64, &f64)| {
        let share = match y > 0.0 {
            true => share(plus, minus),
            false => share(minus, plus),
        };
        y * c * share
    };
    samples().map(start).collect()
}

/// Moves `state.a` towards the optimum for the kernel of `rows` until the gap is at most `target`, or `max_steps`
/// are done, or `stop` says so. `state.scores` must be K a on entry and is on exit.
pub(crate) fn solve(
    rows: &mut CombinedRows<'_>,
    problem: &Problem<'_>,
    state: &mut ScalarState,
    target: f64,
    max_steps: u64,
    stop: &mut dyn FnMut() -> bool,
) -> InnerSolve {
    let n = state.a.len();
    let mut outcome = InnerSolve {
        steps: 0,
        gap: gap(problem, state),
        target,
        stopped: false,
    };
    let look = ((n as f64 * STEPS_PER_LOOK) as u64).clamp(100, 100_000);
    let mut patience = (outcome.gap, PATIENCE);
    let unbounded = problem.loss.lipschitz().is_none();
    let mut lowest = objectives(problem, state).0;
    while outcome.gap > target && outcome.steps < max_steps && !outcome.stopped {
        let before = unbounded.then(|| state.clone());
        let mut work = WorkingSet::new(rows, problem, state, shrink(problem, state));
        let mut steps = 0;
        while steps < look && work.step(rows) {
            steps += 1;
            // A look at the clock costs more than a step of a small problem.
            if steps.is_multiple_of(64) && stop() {
                outcome.stopped = true;
                break;
            }
        }
        work.finish(rows, state);
        outcome.steps += steps;
        if let Some(before) = before {
            let (primal, dual) = objectives(problem, state);
            if !(primal.is_finite() && dual <= NO_OPTIMUM * lowest) {
                *state = before;
                break;
            }
            lowest = lowest.min(primal);
        }
        let before = outcome.gap;
        outcome.gap = gap(problem, state);
        if steps == 0 || (steps < look && !outcome.stopped && outcome.gap >= before) {
            break; // no step improves anything any more: this is round-off's floor
        }
        if outcome.gap < 0.9 * patience.0 {
            patience = (outcome.gap, PATIENCE);
        } else if patience.1 == 0 {
            break;
        } else {
            patience.1 -= 1;
        }
    }
    outcome
}

/// P − D for the fixed kernel.
pub(crate) fn gap(problem: &Problem<'_>, state: &ScalarState) -> f64 {
    let (primal, dual) = objectives(problem, state);
    primal - dual
}

/// ½aᵀKa + risk and linear − ½aᵀKa.
fn objectives(problem: &Problem<'_>, state: &ScalarState) -> (f64, f64) {
    let form: f64 = state.a.iter().zip(&state.scores).map(|(a, f)| a * f).sum();
    let bias = best_bias(problem, &state.scores);
    let risk = risk(problem, &state.scores, bias);
    (
        0.5 * form + risk,
        dual_linear(problem, &state.a) - 0.5 * form,
    )
}

/// Where a coefficient may still be moved from: outside of this it is at its bound.
pub(super) fn reach(problem: &Problem<'_>, c: f64, y: f64) -> (f64, f64) {
    let (low, high) = problem.loss.feasible(c, y);
    if problem.loss.stays_inside() {
        (low + AT_BOUND * c, high - AT_BOUND * c)
    } else {
        (low, high)
    }
}

/// The slope of the dual along a_i upwards and downwards, a bias aside; −∞ and +∞ where a_i cannot go there.
pub(crate) fn pulls(problem: &Problem<'_>, state: &ScalarState, i: usize) -> (f64, f64) {
    let (a, c, y) = (state.a[i], problem.costs[i], problem.targets[i]);
    let (low, high) = reach(problem, c, y);
    let (left, right) = problem.loss.dual_slopes(a, c, y);
    let f = state.scores[i];
    let up = if a < high {
        right - f
    } else {
        f64::NEG_INFINITY
    };
    let down = if a > low { left - f } else { f64::INFINITY };
    (up, down)
}

/// Where the piece of the dual term of sample i ends, above a or below it.
pub(crate) fn end_of_piece(problem: &Problem<'_>, a: f64, i: usize, above: bool) -> f64 {
    let (low, high) = problem.loss.feasible(problem.costs[i], problem.targets[i]);
    let kink = problem.loss.has_dual_kink();
    match above {
        true if kink && a < 0.0 => 0.0,
        true => high,
        false if kink && a > 0.0 => 0.0,
        false => low,
    }
}

/// The samples worth working on: not those whose bound holds them with a margin.
fn shrink(problem: &Problem<'_>, state: &ScalarState) -> Vec<u32> {
    let n = state.a.len();
    let bias = best_bias(problem, &state.scores);
    let slopes: Vec<(f64, f64)> = (0..n)
        .map(|i| {
            let (up, down) = pulls(problem, state, i);
            (up - bias, down - bias)
        })
        .collect();
    // The largest violation: whoever is further than that inside its optimality stays there for now.
    let worst = slopes
        .iter()
        .map(|&(up, down)| up.max(-down))
        .fold(0.0, f64::max);
    let keep: Vec<u32> = (0..n)
        .filter(|&i| {
            let (up, down) = slopes[i];
            let held = -up.max(-down);
            problem.costs[i] > 0.0 && held <= worst
        })
        .map(|i| i as u32)
        .collect();
    if (keep.len() as f64) < (1.0 - SHRINK_SHARE) * n as f64 && keep.len() > 1 {
        keep
    } else {
        (0..n as u32).collect()
    }
}
