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

use super::rows::Rows;
use crate::problem::{Problem, best_bias, dual_linear, risk};

/// The least curvature of a pair, relative to its diagonal: below, kernels are told apart by round-off only.
const LEAST_CURVATURE: f64 = 1e-10;
/// The gap is looked at after so many steps per sample.
const STEPS_PER_LOOK: f64 = 0.5;
/// A logistic coefficient so near to its bound, relative to C_i, is at it: its slope is infinite there, so that it would
/// be chosen for ever though it cannot move.
const AT_BOUND: f64 = 1e-14;
/// If so many looks do not lower the gap by a tenth, more will not either.
const PATIENCE: usize = 500;
/// No dual value exceeds a primal one where the kernel is positive semidefinite; one that is so many times as large is
/// no round-off: the kernel is indefinite, and if the loss does not bound the coefficients, there is no optimum.
const NO_OPTIMUM: f64 = 2.0;
/// Shrinking copies its arrays only when this share would go.
const SHRINK_SHARE: f64 = 0.25;

/// State of the coefficients, kept between calls for warm starts.
#[derive(Debug, Clone)]
pub(crate) struct Coefficients {
    /// a
    pub(crate) a: Vec<f64>,
    /// K a for the kernel last solved for.
    pub(crate) scores: Vec<f64>,
}

/// What a call achieved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) steps: u64,
    /// Gap of the fixed-kernel problem at the end.
    pub(crate) gap: f64,
    /// Someone asked to stop.
    pub(crate) stopped: bool,
}

/// Moves `state.a` towards the optimum for the kernel of `rows` until the gap is at most `target`, or `max_steps`
/// are done, or `stop` says so. `state.scores` must be K a on entry and is on exit.
pub(crate) fn solve(
    rows: &mut Rows<'_>,
    problem: &Problem<'_>,
    state: &mut Coefficients,
    target: f64,
    max_steps: u64,
    stop: &mut dyn FnMut() -> bool,
) -> Outcome {
    let n = state.a.len();
    let mut outcome = Outcome {
        steps: 0,
        gap: gap(problem, state),
        stopped: false,
    };
    let look = ((n as f64 * STEPS_PER_LOOK) as u64).clamp(100, 100_000);
    let mut patience = (outcome.gap, PATIENCE);
    let unbounded = problem.loss.lipschitz().is_none();
    let mut lowest = objectives(problem, state).0;
    while outcome.gap > target && outcome.steps < max_steps && !outcome.stopped {
        let before = unbounded.then(|| state.clone());
        let mut work = Working::new(rows, problem, state);
        let mut steps = 0;
        while steps < look {
            let moved = if problem.bias {
                work.pair(rows, problem)
            } else {
                work.single(rows, problem)
            };
            if !moved {
                break;
            }
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
pub(crate) fn gap(problem: &Problem<'_>, state: &Coefficients) -> f64 {
    let (primal, dual) = objectives(problem, state);
    primal - dual
}

/// ½aᵀKa + risk and linear − ½aᵀKa.
fn objectives(problem: &Problem<'_>, state: &Coefficients) -> (f64, f64) {
    let form: f64 = state.a.iter().zip(&state.scores).map(|(a, f)| a * f).sum();
    let bias = best_bias(problem, &state.scores);
    let risk = risk(problem, &state.scores, bias);
    (
        0.5 * form + risk,
        dual_linear(problem, &state.a) - 0.5 * form,
    )
}

/// The samples that may still move, in compact arrays.
struct Working {
    /// Their numbers; all samples if that many.
    active: Vec<u32>,
    everyone: bool,
    a: Vec<f64>,
    scores: Vec<f64>,
    /// Slope of d_i to the right and to the left; −∞ and +∞ where a_i cannot go there.
    up: Vec<f64>,
    down: Vec<f64>,
    /// K_ii.
    kernel: Vec<f64>,
    /// K_ii plus the curvature of d_i.
    diagonal: Vec<f64>,
    targets: Vec<f64>,
    costs: Vec<f64>,
    row_i: Vec<f32>,
    row_j: Vec<f32>,
}

impl Working {
    fn new(rows: &Rows<'_>, problem: &Problem<'_>, state: &Coefficients) -> Self {
        let n = state.a.len();
        let keep = shrink(problem, state);
        let everyone = keep.len() == n;
        let pick = |v: &[f64]| -> Vec<f64> { keep.iter().map(|&i| v[i as usize]).collect() };
        let mut work = Working {
            everyone,
            a: pick(&state.a),
            scores: pick(&state.scores),
            up: vec![0.0; keep.len()],
            down: vec![0.0; keep.len()],
            kernel: pick(rows.diagonal()),
            diagonal: vec![0.0; keep.len()],
            targets: pick(problem.targets),
            costs: pick(problem.costs),
            row_i: vec![0.0; n],
            row_j: vec![0.0; n],
            active: keep,
        };
        for k in 0..work.active.len() {
            work.slopes(problem, k);
        }
        work
    }

    /// Renews the slopes of sample k.
    fn slopes(&mut self, problem: &Problem<'_>, k: usize) {
        let (a, c, y) = (self.a[k], self.costs[k], self.targets[k]);
        let (low, high) = reach(problem, c, y);
        // Exactly at its bound a logistic term has infinite slope and curvature, and a gain that is no number: such a
        // sample would never be chosen again.
        let inside = a.clamp(low, high);
        let (left, right) = problem.loss.dual_slopes(inside, c, y);
        self.up[k] = if a < high { right } else { f64::NEG_INFINITY };
        self.down[k] = if a > low { left } else { f64::INFINITY };
        let bend = if c > 0.0 {
            problem.loss.dual_curvature(inside, c, y)
        } else {
            0.0
        };
        self.diagonal[k] = self.kernel[k] + bend;
    }

    /// One pair step; false if no pair improves.
    fn pair(&mut self, rows: &mut Rows<'_>, problem: &Problem<'_>) -> bool {
        let (i, steepest) = steepest_up(&self.up, &self.scores);
        if steepest == f64::NEG_INFINITY {
            return false;
        }
        rows.fetch(
            self.active[i] as usize,
            &self.active,
            self.everyone,
            &mut self.row_i,
        );
        let chosen = second_order(
            &self.down,
            &self.scores,
            &self.diagonal,
            &self.row_i,
            steepest,
            self.diagonal[i],
        );
        let Some(j) = chosen else {
            return false;
        };
        rows.fetch(
            self.active[j] as usize,
            &self.active,
            self.everyone,
            &mut self.row_j,
        );
        let slope = steepest - (self.down[j] - self.scores[j]);
        let kij = f64::from(self.row_i[j]);
        // Curvature from the kernel alone; that of the losses comes from their slopes.
        let kernel = self.kernel[i] + self.kernel[j] - 2.0 * kij;
        let room = self.room_up(problem, i).min(self.room_down(problem, j));
        let h = self.step(problem, i, Some(j), slope, kernel, room);
        if h.is_nan() || h <= 0.0 {
            return false;
        }
        let hit = h >= room;
        self.shift(problem, i, h, hit);
        self.shift(problem, j, -h, hit);
        // What one of them lost by stopping exactly at a bound is round-off; the sum is kept by the other.
        update_pair(&mut self.scores, &self.row_i, &self.row_j, h);
        true
    }

    /// One coordinate step; false if none improves.
    fn single(&mut self, rows: &mut Rows<'_>, problem: &Problem<'_>) -> bool {
        let mut best = (0.0, usize::MAX, 0.0);
        for k in 0..self.a.len() {
            let (up, down) = (self.up[k] - self.scores[k], self.down[k] - self.scores[k]);
            let slope = if up > 0.0 {
                up
            } else if down < 0.0 {
                down
            } else {
                continue;
            };
            let gain = slope * slope / self.diagonal[k].max(f64::MIN_POSITIVE);
            if gain > best.0 {
                best = (gain, k, slope);
            }
        }
        let (_, i, slope) = best;
        if i == usize::MAX {
            return false;
        }
        rows.fetch(
            self.active[i] as usize,
            &self.active,
            self.everyone,
            &mut self.row_i,
        );
        let kernel = self.kernel[i];
        let h = if slope > 0.0 {
            let room = self.room_up(problem, i);
            let h = self.step(problem, i, None, slope, kernel, room);
            self.shift(problem, i, h, h >= room);
            h
        } else {
            let room = self.room_down(problem, i);
            let h = self.step_down(problem, i, -slope, kernel, room);
            self.shift(problem, i, -h, h >= room);
            -h
        };
        if h == 0.0 {
            return false;
        }
        update_single(&mut self.scores, &self.row_i, h);
        true
    }

    /// Where the piece of the dual term of sample k ends, above or below.
    fn end(&self, problem: &Problem<'_>, k: usize, above: bool) -> f64 {
        end_of_piece(problem, self.a[k], self.active[k] as usize, above)
    }

    fn room_up(&self, problem: &Problem<'_>, k: usize) -> f64 {
        self.end(problem, k, true) - self.a[k]
    }

    fn room_down(&self, problem: &Problem<'_>, k: usize) -> f64 {
        self.a[k] - self.end(problem, k, false)
    }

    /// The best step h ∈ [0, room] up for i (and down for j), given the slope at 0.
    fn step(
        &self,
        problem: &Problem<'_>,
        i: usize,
        j: Option<usize>,
        slope: f64,
        kernel: f64,
        room: f64,
    ) -> f64 {
        let size = self.diagonal[i] + j.map_or(0.0, |j| self.diagonal[j]);
        let kernel = kernel.max(LEAST_CURVATURE * size.max(f64::MIN_POSITIVE));
        if problem.loss != crate::loss::Loss::Logistic {
            let bend = |k: usize| {
                problem
                    .loss
                    .dual_curvature(self.a[k], self.costs[k], self.targets[k])
            };
            let curvature = kernel + bend(i) + j.map_or(0.0, bend);
            return (slope / curvature).min(room);
        }
        let at = |k: usize, h: f64| {
            let (a, c, y) = (self.a[k] + h, self.costs[k], self.targets[k]);
            (
                problem.loss.dual_slopes(a, c, y).0,
                problem.loss.dual_curvature(a, c, y),
            )
        };
        let scores = self.scores[i] - j.map_or(0.0, |j| self.scores[j]);
        smooth_step(room, |h| {
            let (si, ci) = at(i, h);
            let (sj, cj) = j.map_or((0.0, 0.0), |j| at(j, -h));
            (si - sj - scores - h * kernel, ci + cj + kernel)
        })
    }

    /// The best step h ∈ [0, room] down for i.
    fn step_down(
        &self,
        problem: &Problem<'_>,
        i: usize,
        slope: f64,
        kernel: f64,
        room: f64,
    ) -> f64 {
        let kernel = kernel.max(LEAST_CURVATURE * self.diagonal[i].max(f64::MIN_POSITIVE));
        let (a, c, y) = (self.a[i], self.costs[i], self.targets[i]);
        if problem.loss != crate::loss::Loss::Logistic {
            return (slope / (kernel + problem.loss.dual_curvature(a, c, y))).min(room);
        }
        smooth_step(room, |h| {
            let s = problem.loss.dual_slopes(a - h, c, y).0;
            (
                self.scores[i] - s - h * kernel,
                problem.loss.dual_curvature(a - h, c, y) + kernel,
            )
        })
    }

    /// Moves sample k by h; exactly to its piece's end if that was hit by it.
    fn shift(&mut self, problem: &Problem<'_>, k: usize, h: f64, hit: bool) {
        // The end itself: a plus the room may be a rounding beyond it, which is not feasible.
        let end = self.end(problem, k, h > 0.0);
        let next = self.a[k] + h;
        let past = (h > 0.0 && next >= end) || (h < 0.0 && next <= end);
        let near = hit
            && end.is_finite()
            && (next - end).abs() <= 4.0 * f64::EPSILON * end.abs().max(self.a[k].abs());
        self.a[k] = if past || near { end } else { next };
        self.slopes(problem, k);
    }

    /// Writes the result back; scores of samples set aside follow from the change of a.
    fn finish(self, rows: &mut Rows<'_>, state: &mut Coefficients) {
        if self.everyone {
            state.a = self.a;
            state.scores = self.scores;
            return;
        }
        let mut change = vec![0.0; state.a.len()];
        for (k, &i) in self.active.iter().enumerate() {
            change[i as usize] = self.a[k] - state.a[i as usize];
            state.a[i as usize] = self.a[k];
        }
        rows.add_product(&change, &mut state.scores);
        for (k, &i) in self.active.iter().enumerate() {
            state.scores[i as usize] = self.scores[k];
        }
    }
}

/// Newton inside a bracket for the zero of a falling slope on [0, room], where it is positive at 0.
fn smooth_step(room: f64, at: impl Fn(f64) -> (f64, f64)) -> f64 {
    // The logistic dual term is infinitely steep at its bounds: stay strictly inside.
    let (mut low, mut high) = (0.0, room * (1.0 - 1e-12));
    let (slope, curvature) = at(0.0);
    let mut h = (slope / curvature).clamp(0.0, 0.5 * high);
    if !h.is_finite() {
        h = 0.5 * high;
    }
    for _ in 0..60 {
        let (slope, curvature) = at(h);
        if slope > 0.0 {
            low = h;
        } else {
            high = h;
        }
        let next = h + slope / curvature;
        let next = if next > low && next < high {
            next
        } else {
            0.5 * (low + high)
        };
        if (next - h).abs() <= 1e-14 * h {
            return next;
        }
        h = next;
    }
    h
}

/// Where a coefficient may still be moved from: outside of this it is at its bound.
fn reach(problem: &Problem<'_>, c: f64, y: f64) -> (f64, f64) {
    let (low, high) = problem.loss.feasible(c, y);
    if problem.loss == crate::loss::Loss::Logistic {
        (low + AT_BOUND * c, high - AT_BOUND * c)
    } else {
        (low, high)
    }
}

/// The slope of the dual along a_i upwards and downwards, a bias aside; −∞ and +∞ where a_i cannot go there.
pub(crate) fn pulls(problem: &Problem<'_>, state: &Coefficients, i: usize) -> (f64, f64) {
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
    let kink = matches!(problem.loss, crate::loss::Loss::Epsilon(_));
    match above {
        true if kink && a < 0.0 => 0.0,
        true => high,
        false if kink && a > 0.0 => 0.0,
        false => low,
    }
}

/// The samples worth working on: not those whose bound holds them with a margin.
fn shrink(problem: &Problem<'_>, state: &Coefficients) -> Vec<u32> {
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

/// The sample with the largest up − score.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn steepest_up(up: &[f64], scores: &[f64]) -> (usize, f64) {
    const LANES: usize = 8;
    let mut best = [f64::NEG_INFINITY; LANES];
    let mut at = [0u64; LANES];
    let chunks = up.chunks_exact(LANES).zip(scores.chunks_exact(LANES));
    for (c, (u, f)) in chunks.enumerate() {
        for l in 0..LANES {
            let v = u[l] - f[l];
            let better = v > best[l];
            best[l] = if better { v } else { best[l] };
            at[l] = if better { c as u64 } else { at[l] };
        }
    }
    let mut found = (0, f64::NEG_INFINITY);
    for l in 0..LANES {
        let k = at[l] as usize * LANES + l;
        if best[l] > found.1 || (best[l] == found.1 && k < found.0) {
            found = (k, best[l]);
        }
    }
    for k in up.len() / LANES * LANES..up.len() {
        if up[k] - scores[k] > found.1 {
            found = (k, up[k] - scores[k]);
        }
    }
    found
}

/// The sample j with the largest gain (slope_i − slope_j)²/curvature among those with slope_j < slope_i.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn second_order(
    down: &[f64],
    scores: &[f64],
    diagonal: &[f64],
    row: &[f32],
    slope_i: f64,
    diagonal_i: f64,
) -> Option<usize> {
    const LANES: usize = 8;
    let n = down.len();
    let gain = |d: f64, f: f64, kjj: f64, kij: f32| {
        let slope = slope_i - (d - f);
        let size = diagonal_i + kjj;
        let curvature = (size - 2.0 * f64::from(kij))
            .max(LEAST_CURVATURE * size)
            .max(f64::MIN_POSITIVE);
        if slope > 0.0 {
            slope * slope / curvature
        } else {
            0.0
        }
    };
    let mut best = [0.0f64; LANES];
    let mut at = [0u64; LANES];
    for c in 0..n / LANES {
        let o = c * LANES;
        let (d, f) = (&down[o..o + LANES], &scores[o..o + LANES]);
        let (kjj, kij) = (&diagonal[o..o + LANES], &row[o..o + LANES]);
        for l in 0..LANES {
            let v = gain(d[l], f[l], kjj[l], kij[l]);
            let better = v > best[l];
            best[l] = if better { v } else { best[l] };
            at[l] = if better { c as u64 } else { at[l] };
        }
    }
    let mut found = (usize::MAX, 0.0);
    for l in 0..LANES {
        let k = at[l] as usize * LANES + l;
        if best[l] > found.1 || (best[l] == found.1 && best[l] > 0.0 && k < found.0) {
            found = (k, best[l]);
        }
    }
    for k in n / LANES * LANES..n {
        let v = gain(down[k], scores[k], diagonal[k], row[k]);
        if v > found.1 {
            found = (k, v);
        }
    }
    (found.0 != usize::MAX).then_some(found.0)
}

/// scores += h (row_i − row_j)
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn update_pair(scores: &mut [f64], row_i: &[f32], row_j: &[f32], h: f64) {
    for ((s, ki), kj) in scores.iter_mut().zip(row_i).zip(row_j) {
        *s += h * (f64::from(*ki) - f64::from(*kj));
    }
}

/// scores += h row_i
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn update_single(scores: &mut [f64], row_i: &[f32], h: f64) {
    for (s, ki) in scores.iter_mut().zip(row_i) {
        *s += h * f64::from(*ki);
    }
}
