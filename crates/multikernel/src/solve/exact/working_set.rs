//! The samples that a working-set solver moves, in compact arrays, and the steps on them (see `smo.rs`).

use super::CombinedRows;
use super::smo::{ScalarState, end_of_piece, reach};
use crate::problem::Problem;

/// The least curvature of a pair, relative to its diagonal: below, kernels are told apart by round-off only.
const LEAST_CURVATURE: f64 = 1e-10;

/// The samples that may still move, in compact arrays.
pub(super) struct WorkingSet<'p> {
    problem: &'p Problem<'p>,
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

impl<'p> WorkingSet<'p> {
    /// The samples `keep` in ascending order, with scores and slopes.
    pub(super) fn new(
        rows: &CombinedRows<'_>,
        problem: &'p Problem<'p>,
        state: &ScalarState,
        keep: Vec<u32>,
    ) -> Self {
        let n = state.a.len();
        let everyone = keep.len() == n;
        let pick = |v: &[f64]| -> Vec<f64> { keep.iter().map(|&i| v[i as usize]).collect() };
        let mut work = WorkingSet {
            problem,
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
            work.slopes(k);
        }
        work
    }

    /// Renews the slopes of sample k.
    fn slopes(&mut self, k: usize) {
        let problem = self.problem;
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

    /// The best step; false if none improves.
    pub(super) fn step(&mut self, rows: &mut CombinedRows<'_>) -> bool {
        match self.problem.bias {
            true => self.pair(rows),
            false => self.single(rows),
        }
    }

    /// One pair step; false if no pair improves.
    fn pair(&mut self, rows: &mut CombinedRows<'_>) -> bool {
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
        let room = self.room(i, 1.0).min(self.room(j, -1.0));
        let h = self.length((i, 1.0), Some(j), slope, kernel, room);
        if h.is_nan() || h <= 0.0 {
            return false;
        }
        let hit = h >= room;
        self.shift(i, h, hit);
        self.shift(j, -h, hit);
        // What one of them lost by stopping exactly at a bound is round-off; the sum is kept by the other.
        update_pair(&mut self.scores, &self.row_i, &self.row_j, h);
        true
    }

    /// One coordinate step; false if none improves.
    fn single(&mut self, rows: &mut CombinedRows<'_>) -> bool {
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
        let sign = slope.signum();
        let room = self.room(i, sign);
        let h = self.length((i, sign), None, slope.abs(), self.kernel[i], room);
        self.shift(i, sign * h, h >= room);
        let h = sign * h;
        if h == 0.0 {
            return false;
        }
        update_single(&mut self.scores, &self.row_i, h);
        true
    }

    /// Where the piece of the dual term of sample k ends, above or below.
    fn end(&self, k: usize, above: bool) -> f64 {
        end_of_piece(self.problem, self.a[k], self.active[k] as usize, above)
    }

    /// How far sample k may go up (sign 1) or down (sign −1).
    fn room(&self, k: usize, sign: f64) -> f64 {
        sign * (self.end(k, sign > 0.0) - self.a[k])
    }

    /// The best step h ∈ [0, room] of i in the direction of its sign, and of j in the other one, given the slope at 0.
    fn length(
        &self,
        (i, sign): (usize, f64),
        j: Option<usize>,
        slope: f64,
        kernel: f64,
        room: f64,
    ) -> f64 {
        let loss = self.problem.loss;
        let size = self.diagonal[i] + j.map_or(0.0, |j| self.diagonal[j]);
        let kernel = kernel.max(LEAST_CURVATURE * size.max(f64::MIN_POSITIVE));
        if !loss.stays_inside() {
            let bend = |k: usize| loss.dual_curvature(self.a[k], self.costs[k], self.targets[k]);
            let curvature = kernel + bend(i) + j.map_or(0.0, bend);
            return (slope / curvature).min(room);
        }
        let at = |k: usize, h: f64| {
            let (a, c, y) = (self.a[k] + h, self.costs[k], self.targets[k]);
            (loss.dual_slopes(a, c, y).0, loss.dual_curvature(a, c, y))
        };
        let scores = self.scores[i] - j.map_or(0.0, |j| self.scores[j]);
        smooth_step(room, |h| {
            let (si, ci) = at(i, sign * h);
            let (sj, cj) = j.map_or((0.0, 0.0), |j| at(j, -sign * h));
            (sign * (si - sj - scores) - h * kernel, ci + cj + kernel)
        })
    }

    /// Moves sample k by h; exactly to its piece's end if that was hit by it.
    fn shift(&mut self, k: usize, h: f64, hit: bool) {
        // The end itself: a plus the room may be a rounding beyond it, which is not feasible.
        let end = self.end(k, h > 0.0);
        let next = self.a[k] + h;
        let past = (h > 0.0 && next >= end) || (h < 0.0 && next <= end);
        let near = hit
            && end.is_finite()
            && (next - end).abs() <= 4.0 * f64::EPSILON * end.abs().max(self.a[k].abs());
        self.a[k] = if past || near { end } else { next };
        self.slopes(k);
    }

    /// Writes the result back; scores of samples set aside follow from the change of a.
    pub(super) fn finish(self, rows: &mut CombinedRows<'_>, state: &mut ScalarState) {
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
