//! Crammer and Singer's problem for one combined kernel, by blocks of samples.
//!
//! Problem: max over A of Σ_i A_{i,y_i} − ½ Σ_k A_·kᵀ K A_·k, every row with A_ik ≤ C_i [k = y_i] and Σ_k A_ik = 0.
//!
//! Margins E_ik = (KA)_ik + [k ≠ y_i] are minus the slope. The gap of this problem is a sum over samples,
//!   Σ_i C_i (max_k E_ik − E_{i,y_i}) + ⟨A_i, E_i⟩, every term ≥ 0,
//! so that it is the stopping rule, and says which samples rest.
//!
//! Step: for one sample, with K_ii = d, the best row is the projection of A_i − E_i/d on the feasible rows, exactly, by
//! Michelot's passes over the few classes that may be inside of their bounds. What a step promises is measured by ψ²/d,
//! ψ = max_k E_ik − min over classes inside of E_ik. The samples that promise most form a block; their rows are improved
//! on the block's own kernel, in cache, always the one that promises most among a few (all of them would be looked at for
//! a little less steps, the next in order be taken for many more), and then all margins follow in one pass over the block's
//! kernel rows. The block should hold most of the samples with coefficients: small blocks undo each other's work.
//!
//! Cost: per block one pass over the margins, and per sample of the block one kernel row times the classes that changed.

use super::CombinedRows;
use super::class_block::{Block, MOST_BLOCK, promised, samples_of_block};
use super::class_matrix::{ClassMatrix, TILE};
use super::work::InnerSolve;
use crate::problem::MulticlassProblem;
use rayon::prelude::*;

/// The least curvature of a row, relative to the largest diagonal entry.
const LEAST_CURVATURE: f64 = 1e-10;
/// A sample rests when its share of the gap is this part of an even share of the target.
const EVEN_SHARE: f64 = 0.3;
/// Row steps per sample after which steps on rows are not what helps, if they have not halved the gap.
const PATIENCE: u64 = 60;
/// The least number of row steps for the same.
const LEAST_PATIENCE: u64 = 20_000;

/// Coefficients and margins.
#[derive(Debug, Clone)]
pub(super) struct MulticlassState {
    pub(super) a: ClassMatrix,
    pub(super) margins: ClassMatrix,
}

impl MulticlassState {
    /// Coefficients (one row per sample) with margins to be computed: here those of no score at all.
    pub(super) fn new(a: &[f64], problem: &MulticlassProblem<'_>) -> Self {
        let classes = problem.n_classes;
        let mut state = MulticlassState {
            a: ClassMatrix::from_rows(a, classes),
            margins: ClassMatrix::zeros(0, classes),
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
        self.margins = ClassMatrix::from_rows(&margins, problem.n_classes);
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
    pub(super) fn add_up(&mut self, rows: &mut CombinedRows<'_>, problem: &MulticlassProblem<'_>) {
        let (n, classes) = (problem.classes.len(), problem.n_classes);
        self.set_scores(vec![0.0; n * classes], problem);
        let support: Vec<usize> = (0..n)
            .filter(|&i| (0..classes).any(|k| self.a.at(i, k) != 0.0))
            .collect();
        for block in support.chunks(MOST_BLOCK.min(rows.capacity())) {
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

/// Moves `state.a` towards the optimum for the kernel of `rows` until the gap is at most what `target` gives for the
/// primal objective reached, or `stop` says so, or row steps do not help any more. `state.margins` must belong to `state.a` on entry and do on exit.
pub(super) fn solve(
    rows: &mut CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut MulticlassState,
    target: &dyn Fn(f64) -> f64,
    stop: &mut dyn FnMut() -> bool,
) -> InnerSolve {
    let n = problem.classes.len();
    let least = least_curvature(rows);
    let patience = (PATIENCE * n as u64).max(LEAST_PATIENCE);
    let mut half = (f64::INFINITY, 0);
    let mut outcome = InnerSolve {
        steps: 0,
        gap: 0.0,
        target: 0.0,
        stopped: false,
    };
    loop {
        let now = gap_shares(rows, problem, state);
        outcome.gap = now.shares.iter().sum();
        outcome.target = target(now.primal);
        if outcome.gap <= 0.5 * half.0 {
            half = (outcome.gap, outcome.steps);
        }
        let stalled = outcome.steps - half.1 > patience || outcome.gap.is_nan();
        if outcome.gap <= outcome.target || stalled || outcome.stopped {
            return outcome;
        }
        let steps = block_step(rows, problem, state, &now, outcome.target, least);
        if steps == 0 {
            return outcome; // round-off's floor
        }
        outcome.steps += steps;
        outcome.stopped = stop();
    }
}

/// One block of the samples that need it most.
pub(super) fn pass(
    rows: &mut CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut MulticlassState,
    target: f64,
) {
    let now = gap_shares(rows, problem, state);
    let least = least_curvature(rows);
    block_step(rows, problem, state, &now, target, least);
}

fn least_curvature(rows: &CombinedRows<'_>) -> f64 {
    let largest = rows.diagonal().iter().fold(0.0f64, |a, d| a.max(d.abs()));
    (LEAST_CURVATURE * largest).max(f64::MIN_POSITIVE)
}

/// Improves the block of samples that promise most; the number of row steps.
fn block_step(
    rows: &mut CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut MulticlassState,
    now: &GapShares,
    target: f64,
    least: f64,
) -> u64 {
    let enough = EVEN_SHARE * target / now.shares.len() as f64;
    let size = samples_of_block(problem.n_classes).min(rows.capacity());
    let block = most_promising(now, size, enough);
    rows.hold(&block);
    let mut work = Block::new(rows, problem, state, &block, least);
    let steps = work.improve(enough);
    let held: Vec<&[f32]> = block.iter().map(|&i| rows.row(i)).collect();
    let changes = work.finish(state, &block);
    state.margins.add_rows(&held, &changes);
    steps
}

/// P − D for the fixed kernel.
pub(super) fn gap(
    rows: &CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &MulticlassState,
) -> f64 {
    gap_shares(rows, problem, state).shares.iter().sum()
}

/// Where the gap is, and what steps promise.
struct GapShares {
    /// Every sample's share of the gap.
    shares: Vec<f64>,
    /// What a step on its row promises.
    promises: Vec<f64>,
    primal: f64,
}

fn gap_shares(
    rows: &CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &MulticlassState,
) -> GapShares {
    let n = problem.classes.len();
    let least = least_curvature(rows);
    let (mut shares, mut promises) = (vec![0.0; n], vec![0.0; n]);
    let parts: Vec<f64> = shares
        .par_chunks_mut(TILE)
        .zip(promises.par_chunks_mut(TILE))
        .zip(state.margins.tiles().zip(state.a.tiles()))
        .enumerate()
        .map(|(t, ((shares, promises), (margins, a)))| {
            let mut extremes = Extremes::new();
            for (e, a) in margins.chunks(TILE).zip(a.chunks(TILE)) {
                extremes_of_class(e, a, &mut extremes);
            }
            let mut primal = 0.0;
            for (j, (share, promise)) in shares.iter_mut().zip(promises).enumerate() {
                let i = t * TILE + j;
                let (class, cost) = (problem.classes[i] as usize, problem.costs[i]);
                if cost > 0.0 {
                    let (own, own_a) = (margins[class * TILE + j], a[class * TILE + j]);
                    let loss = cost * (extremes.top[j] - own);
                    *share = (loss + extremes.inner[j]).max(0.0);
                    primal += loss + 0.5 * (extremes.inner[j] + own_a);
                    let low = match own_a < cost {
                        true => extremes.low[j].min(own),
                        false => extremes.low[j],
                    };
                    *promise = promised(extremes.top[j] - low, rows.diagonal()[i].max(least));
                }
            }
            primal
        })
        .collect();
    GapShares {
        shares,
        promises,
        primal: parts.iter().sum(),
    }
}

/// Over the classes: the largest margin, the smallest of wrong classes inside, and ⟨A_i, E_i⟩.
struct Extremes {
    top: [f64; TILE],
    low: [f64; TILE],
    inner: [f64; TILE],
}

impl Extremes {
    fn new() -> Self {
        Extremes {
            top: [f64::NEG_INFINITY; TILE],
            low: [f64::INFINITY; TILE],
            inner: [0.0; TILE],
        }
    }
}

#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn extremes_of_class(e: &[f64], a: &[f64], of: &mut Extremes) {
    let (e, a) = (&e[..TILE], &a[..TILE]);
    for j in 0..TILE {
        of.top[j] = if e[j] > of.top[j] { e[j] } else { of.top[j] };
        // Wrong classes are inside where A < 0; the own class never is below 0.
        let inside = if a[j] < 0.0 { e[j] } else { f64::INFINITY };
        of.low[j] = if inside < of.low[j] {
            inside
        } else {
            of.low[j]
        };
        of.inner[j] += a[j] * e[j];
    }
}

/// The samples that promise most, the best first, leaving out those whose share of the gap is small enough.
fn most_promising(now: &GapShares, size: usize, enough: f64) -> Vec<usize> {
    let n = now.shares.len();
    let mut order: Vec<usize> = (0..n).filter(|&i| now.shares[i] > enough).collect();
    let best_first =
        |a: &usize, b: &usize| now.promises[*b].total_cmp(&now.promises[*a]).then(a.cmp(b));
    if order.len() > size {
        order.select_nth_unstable_by(size, best_first);
        order.truncate(size);
    }
    order.sort_unstable_by(best_first);
    order
}
