//! Crammer and Singer's problem for one combined kernel, by blocks of samples.
//!
//! Problem: max over A of Σ_i A_{i,y_i} − ½ Σ_k A_·kᵀ K A_·k, every row with A_ik ≤ C_i [k = y_i] and Σ_k A_ik = 0.
//!
//! Margins E_ik = (KA)_ik + [k ≠ y_i] are minus the slope. The gap of this problem is a sum over samples,
//!   Σ_i C_i (max_k E_ik − E_{i,y_i}) + ⟨A_i, E_i⟩, every term ≥ 0,
//! so that it is both the stopping rule and the choice of samples.
//!
//! Step: for one sample, with K_ii = d, the best row is the projection of A_i − E_i/d on the feasible rows, exactly, by
//! Michelot's passes (at most K, usually three). The samples with the largest claims form a block; their rows are
//! improved in turn on the block's own kernel, in cache, and then all margins follow in one pass over the block's kernel
//! rows.
//!
//! Cost: per block one pass over the margins, and per sample of the block one kernel row times the classes that changed.

use super::rows::Rows;
use super::tiles::{TILE, Tiles, add_one};
use crate::certificate::MulticlassProblem;
use rayon::prelude::*;

/// The least curvature of a row, relative to the largest diagonal entry.
const LEAST_CURVATURE: f64 = 1e-10;
/// Samples of a block.
const BLOCK: usize = 256;
/// Passes over a block at most: more make it too exact for margins that will change.
const MOST_PASSES: usize = 10;
/// A sample of a block rests when its share of the gap has fallen to this part of the block's largest.
const REST_SHARE: f64 = 0.1;
/// A sample rests too when its share is this part of an even share of the target.
const EVEN_SHARE: f64 = 0.3;
/// If so many row steps per sample do not halve the gap, steps on rows are not what helps,
const PATIENCE: u64 = 60;
/// with at least so many in all.
const LEAST_PATIENCE: u64 = 20_000;

/// Coefficients and margins.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) a: Tiles,
    pub(super) margins: Tiles,
}

/// What a call achieved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// Row steps.
    pub(super) steps: u64,
    /// Gap of the fixed-kernel problem at the end.
    pub(super) gap: f64,
    /// Someone asked to stop.
    pub(super) stopped: bool,
}

impl State {
    /// Coefficients (one row per sample) with margins to be computed: here those of no score at all.
    pub(super) fn new(a: &[f64], problem: &MulticlassProblem<'_>) -> Self {
        let classes = problem.n_classes;
        let mut state = State {
            a: Tiles::from_rows(a, classes),
            margins: Tiles::zeros(0, classes),
        };
        state.set_scores(vec![0.0; a.len()], problem);
        state
    }

    /// Margins of the scores KA, one row per sample.
    pub(super) fn set_scores(&mut self, scores: Vec<f64>, problem: &MulticlassProblem<'_>) {
        let mut margins = scores;
        for (row, &y) in margins.chunks_mut(problem.n_classes).zip(problem.classes) {
            row.iter_mut().for_each(|v| *v += 1.0);
            row[y as usize] -= 1.0;
        }
        self.margins = Tiles::from_rows(&margins, problem.n_classes);
    }

    /// The scores KA, one row per sample.
    pub(super) fn scores(&self, problem: &MulticlassProblem<'_>) -> Vec<f64> {
        let mut scores = self.margins.to_rows();
        for (row, &y) in scores.chunks_mut(problem.n_classes).zip(problem.classes) {
            row[y as usize] += 1.0;
            row.iter_mut().for_each(|v| *v -= 1.0);
        }
        scores
    }

    /// Margins from rows in f32.
    pub(super) fn add_up(&mut self, rows: &mut Rows<'_>, problem: &MulticlassProblem<'_>) {
        let (n, classes) = (problem.classes.len(), problem.n_classes);
        self.set_scores(vec![0.0; n * classes], problem);
        let support: Vec<usize> = (0..n)
            .filter(|&i| (0..classes).any(|k| self.a.at(i, k) != 0.0))
            .collect();
        for block in support.chunks(BLOCK.min(rows.capacity())) {
            rows.hold(block);
            let mut changes = vec![Vec::new(); classes];
            for (b, &i) in block.iter().enumerate() {
                for (k, changes) in changes.iter_mut().enumerate() {
                    let a = self.a.at(i, k);
                    if a != 0.0 {
                        changes.push((b, a));
                    }
                }
            }
            let held: Vec<&[f32]> = block.iter().map(|&i| rows.row(i)).collect();
            self.margins.add_rows(&held, &changes);
        }
    }
}

/// Moves `state.a` towards the optimum for the kernel of `rows` until the gap is at most `target` or `stop` says so or
/// row steps do not help any more. `state.margins` must belong to `state.a` on entry and do on exit.
pub(super) fn solve(
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
    target: f64,
    stop: &mut dyn FnMut() -> bool,
) -> Outcome {
    let n = problem.classes.len();
    let least = least_curvature(rows);
    let patience = (PATIENCE * n as u64).max(LEAST_PATIENCE);
    let mut half = (f64::INFINITY, 0);
    let mut outcome = Outcome {
        steps: 0,
        gap: 0.0,
        stopped: false,
    };
    loop {
        let shares = shares(problem, state);
        outcome.gap = shares.iter().sum();
        if outcome.gap <= 0.5 * half.0 {
            half = (outcome.gap, outcome.steps);
        }
        let weary = outcome.steps - half.1 > patience || outcome.gap.is_nan();
        if outcome.gap <= target || weary || outcome.stopped {
            return outcome;
        }
        let steps = block_step(rows, problem, state, &shares, target, least);
        if steps == 0 {
            return outcome; // round-off's floor
        }
        outcome.steps += steps;
        outcome.stopped = stop();
    }
}

/// One block of the samples that need it most.
pub(super) fn pass(
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
    target: f64,
) {
    let shares = shares(problem, state);
    let least = least_curvature(rows);
    block_step(rows, problem, state, &shares, target, least);
}

fn least_curvature(rows: &Rows<'_>) -> f64 {
    let largest = rows.diagonal().iter().fold(0.0f64, |a, d| a.max(d.abs()));
    (LEAST_CURVATURE * largest).max(f64::MIN_POSITIVE)
}

/// Improves the block of samples with the largest shares; the number of row steps.
fn block_step(
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
    shares: &[f64],
    target: f64,
    least: f64,
) -> u64 {
    let enough = EVEN_SHARE * target / shares.len() as f64;
    let block = largest_shares(shares, BLOCK.min(rows.capacity()), enough);
    rows.hold(&block);
    let mut work = Block::new(rows, problem, state, &block);
    let steps = work.improve(enough, least);
    let held: Vec<&[f32]> = block.iter().map(|&i| rows.row(i)).collect();
    let changes = work.finish(state, &block);
    state.margins.add_rows(&held, &changes);
    steps
}

/// P − D for the fixed kernel.
pub(super) fn gap(problem: &MulticlassProblem<'_>, state: &State) -> f64 {
    shares(problem, state).iter().sum()
}

/// Every sample's share of the gap.
fn shares(problem: &MulticlassProblem<'_>, state: &State) -> Vec<f64> {
    let mut shares = vec![0.0; problem.classes.len()];
    let k = problem.n_classes;
    shares
        .par_chunks_mut(TILE)
        .zip(state.margins.tiles().zip(state.a.tiles()))
        .enumerate()
        .for_each(|(t, (shares, (margins, a)))| {
            let mut top = [f64::NEG_INFINITY; TILE];
            let mut inner = [0.0; TILE];
            for (e, a) in margins.chunks(TILE).zip(a.chunks(TILE)).take(k) {
                top_and_inner(e, a, &mut top, &mut inner);
            }
            for (j, share) in shares.iter_mut().enumerate() {
                let i = t * TILE + j;
                let own = margins[problem.classes[i] as usize * TILE + j];
                let cost = problem.costs[i];
                if cost > 0.0 {
                    *share = (cost * (top[j] - own) + inner[j]).max(0.0);
                }
            }
        });
    shares
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn top_and_inner(e: &[f64], a: &[f64], top: &mut [f64; TILE], inner: &mut [f64; TILE]) {
    let (e, a) = (&e[..TILE], &a[..TILE]);
    for j in 0..TILE {
        top[j] = if e[j] > top[j] { e[j] } else { top[j] };
        inner[j] += a[j] * e[j];
    }
}

/// The samples with the largest shares, largest first, leaving out those with enough.
fn largest_shares(shares: &[f64], size: usize, enough: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shares.len()).filter(|&i| shares[i] > enough).collect();
    let by_share = |a: &usize, b: &usize| shares[*b].total_cmp(&shares[*a]).then(a.cmp(b));
    if order.len() > size {
        order.select_nth_unstable_by(size, by_share);
        order.truncate(size);
    }
    order.sort_unstable_by(by_share);
    order
}

/// A block of samples in compact arrays.
struct Block {
    classes: Vec<usize>,
    costs: Vec<f64>,
    n_classes: usize,
    /// The kernel among them.
    kernel: Vec<f32>,
    /// Rows of coefficients now and before.
    a: Vec<f64>,
    before: Vec<f64>,
    /// Margins, class after class.
    margins: Vec<f64>,
}

impl Block {
    fn new(
        rows: &Rows<'_>,
        problem: &MulticlassProblem<'_>,
        state: &State,
        block: &[usize],
    ) -> Self {
        let k = problem.n_classes;
        let mut kernel = Vec::with_capacity(block.len() * block.len());
        for &i in block {
            let row = rows.row(i);
            kernel.extend(block.iter().map(|&j| row[j]));
        }
        let a: Vec<f64> = block
            .iter()
            .flat_map(|&i| (0..k).map(move |k| state.a.at(i, k)))
            .collect();
        Block {
            classes: block.iter().map(|&i| problem.classes[i] as usize).collect(),
            costs: block.iter().map(|&i| problem.costs[i]).collect(),
            n_classes: k,
            kernel,
            before: a.clone(),
            a,
            margins: (0..k)
                .flat_map(|k| block.iter().map(move |&i| state.margins.at(i, k)))
                .collect(),
        }
    }

    /// Row steps until every sample rests; how many.
    fn improve(&mut self, enough: f64, least: f64) -> u64 {
        let (size, k) = (self.costs.len(), self.n_classes);
        let mut margins = vec![0.0; k];
        let mut next = vec![0.0; k];
        let mut bound = vec![false; k];
        let mut steps = 0;
        let mut rest = enough;
        for pass in 0..MOST_PASSES {
            let mut moved = false;
            for b in 0..size {
                for (k, margin) in margins.iter_mut().enumerate() {
                    *margin = self.margins[k * size + b];
                }
                let (y, cost) = (self.classes[b], self.costs[b]);
                let row = &mut self.a[b * k..(b + 1) * k];
                let top = margins.iter().fold(f64::NEG_INFINITY, |t, e| t.max(*e));
                let inner: f64 = row.iter().zip(&margins).map(|(a, e)| a * e).sum();
                let share = cost * (top - margins[y]) + inner;
                if pass == 0 && b == 0 {
                    rest = enough.max(REST_SHARE * share);
                }
                if share.is_nan() || share <= if pass == 0 { enough } else { rest } {
                    continue;
                }
                let d = f64::from(self.kernel[b * size + b]).max(least);
                best_row(row, &margins, d, y, cost, &mut next, &mut bound);
                let kernel = &self.kernel[b * size..(b + 1) * size];
                let mut changed = false;
                for k in 0..k {
                    let change = next[k] - row[k];
                    if change != 0.0 {
                        row[k] = next[k];
                        changed = true;
                        add_one(&mut self.margins[k * size..(k + 1) * size], kernel, change);
                    }
                }
                moved |= changed;
                steps += u64::from(changed);
            }
            if !moved {
                break;
            }
        }
        steps
    }

    /// Writes the coefficients back; what changed, class after class.
    fn finish(self, state: &mut State, block: &[usize]) -> Vec<Vec<(usize, f64)>> {
        let mut changes = vec![Vec::new(); self.n_classes];
        let rows = self
            .a
            .chunks(self.n_classes)
            .zip(self.before.chunks(self.n_classes));
        for (b, (now, before)) in rows.enumerate() {
            for (k, (now, before)) in now.iter().zip(before).enumerate() {
                if now != before {
                    changes[k].push((b, now - before));
                    *state.a.at_mut(block[b], k) = *now;
                }
            }
        }
        changes
    }
}

/// The row that maximises −⟨row, e⟩ − ½ d ‖row − a‖² over feasible rows: min(b_k − τ, U_k) with b = a − e/d, U_k = C [k = y]
/// and τ such that the sum is 0.
fn best_row(
    a: &[f64],
    e: &[f64],
    d: f64,
    y: usize,
    cost: f64,
    out: &mut [f64],
    bound: &mut [bool],
) {
    let classes = a.len();
    // Classes leave for their bounds until those that stay agree on τ; one always stays.
    for k in 0..classes {
        out[k] = a[k] - e[k] / d;
        bound[k] = false;
    }
    let mut inside = classes;
    let tau = loop {
        let mut sum = if bound[y] { cost } else { 0.0 };
        for k in 0..classes {
            if !bound[k] {
                sum += out[k];
            }
        }
        let tau = sum / inside as f64;
        let mut lowest = (f64::INFINITY, usize::MAX);
        let mut left = 0;
        for k in 0..classes {
            let at = out[k] - if k == y { cost } else { 0.0 };
            if !bound[k] && at < lowest.0 {
                lowest = (at, k);
            }
            if !bound[k] && at >= tau {
                bound[k] = true;
                left += 1;
            }
        }
        if left == 0 {
            break tau;
        }
        inside -= left;
        if inside == 0 {
            // Round-off: the class that is lowest takes all.
            if lowest.1 < classes {
                bound[lowest.1] = false;
            }
            break f64::INFINITY;
        }
    };
    let mut total = 0.0;
    for k in 0..classes {
        if k == y {
            continue;
        }
        out[k] = if bound[k] {
            0.0
        } else if tau == f64::INFINITY {
            -cost
        } else {
            (out[k] - tau).min(0.0)
        };
        total -= out[k];
    }
    if bound[y] && total > 0.0 {
        let factor = cost / total;
        out.iter_mut().for_each(|out| *out *= factor);
    }
    make_feasible(out, y, cost);
}

/// Makes a row feasible that is so up to rounding: no wrong class above 0, the sum 0, the own class at most C.
pub(super) fn make_feasible(row: &mut [f64], y: usize, cost: f64) {
    let moved = |row: &mut [f64]| -> f64 {
        let wrong = row.iter_mut().enumerate().filter(|(k, _)| *k != y);
        wrong
            .map(|(_, a)| {
                *a = a.min(0.0);
                -*a
            })
            .sum()
    };
    let mut total = moved(row);
    if total > cost {
        let factor = cost / total;
        row.iter_mut().for_each(|a| *a *= factor);
        total = moved(row);
    }
    row[y] = total.min(cost);
}
