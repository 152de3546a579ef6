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

use super::rows::Rows;
use super::tiles::{TILE, Tiles, add_one};
use crate::problem::MulticlassProblem;
use rayon::prelude::*;

/// The least curvature of a row, relative to the largest diagonal entry.
const LEAST_CURVATURE: f64 = 1e-10;
/// Samples times classes of a block,
const BLOCK_NUMBERS: usize = 16_384;
/// with at least so many samples,
const LEAST_BLOCK: usize = 128;
/// and at most so many.
const MOST_BLOCK: usize = 1024;
/// Samples among which the best one moves, half of it with many classes.
const PART: usize = 32;
/// So many classes are many.
const MANY: usize = 32;
/// Samples that are looked at at a time.
const LANES: usize = 8;
/// Row steps of a block at most, per sample.
const MOST_STEPS: u64 = 10;
/// A block is left when what its best step promises has fallen to this share of the first: more would be too exact for
/// margins that will change.
const REST_SHARE: f64 = 0.03;
/// A sample rests when its share of the gap is this part of an even share of the target.
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
    /// What it should be.
    pub(super) target: f64,
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
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
    target: &dyn Fn(f64) -> f64,
    stop: &mut dyn FnMut() -> bool,
) -> Outcome {
    let n = problem.classes.len();
    let least = least_curvature(rows);
    let patience = (PATIENCE * n as u64).max(LEAST_PATIENCE);
    let mut half = (f64::INFINITY, 0);
    let mut outcome = Outcome {
        steps: 0,
        gap: 0.0,
        target: 0.0,
        stopped: false,
    };
    loop {
        let look = look(rows, problem, state);
        outcome.gap = look.shares.iter().sum();
        outcome.target = target(look.primal);
        if outcome.gap <= 0.5 * half.0 {
            half = (outcome.gap, outcome.steps);
        }
        let weary = outcome.steps - half.1 > patience || outcome.gap.is_nan();
        if outcome.gap <= outcome.target || weary || outcome.stopped {
            return outcome;
        }
        let steps = block_step(rows, problem, state, &look, outcome.target, least);
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
    let look = look(rows, problem, state);
    let least = least_curvature(rows);
    block_step(rows, problem, state, &look, target, least);
}

fn least_curvature(rows: &Rows<'_>) -> f64 {
    let largest = rows.diagonal().iter().fold(0.0f64, |a, d| a.max(d.abs()));
    (LEAST_CURVATURE * largest).max(f64::MIN_POSITIVE)
}

/// Improves the block of samples that promise most; the number of row steps.
fn block_step(
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
    look: &Look,
    target: f64,
    least: f64,
) -> u64 {
    let enough = EVEN_SHARE * target / look.shares.len() as f64;
    let size = samples_of_block(problem.n_classes).min(rows.capacity());
    let block = most_promising(look, size, enough);
    rows.hold(&block);
    let mut work = Block::new(rows, problem, state, &block, least);
    let steps = work.improve(enough);
    let held: Vec<&[f32]> = block.iter().map(|&i| rows.row(i)).collect();
    let changes = work.finish(state, &block);
    state.margins.add_rows(&held, &changes);
    steps
}

/// P − D for the fixed kernel.
pub(super) fn gap(rows: &Rows<'_>, problem: &MulticlassProblem<'_>, state: &State) -> f64 {
    look(rows, problem, state).shares.iter().sum()
}

/// How things stand.
struct Look {
    /// Every sample's share of the gap.
    shares: Vec<f64>,
    /// What a step on its row promises.
    promises: Vec<f64>,
    primal: f64,
}

fn look(rows: &Rows<'_>, problem: &MulticlassProblem<'_>, state: &State) -> Look {
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
    Look {
        shares,
        promises,
        primal: parts.iter().sum(),
    }
}

/// Samples of a block: its numbers should stay in cache.
fn samples_of_block(classes: usize) -> usize {
    (BLOCK_NUMBERS / classes).clamp(LEAST_BLOCK, MOST_BLOCK)
}

/// Samples among which the best one moves: with many classes looking at them costs more than the steps it saves.
fn samples_together(classes: usize) -> usize {
    if classes > MANY { PART / 2 } else { PART }
}

fn promised(violation: f64, d: f64) -> f64 {
    let violation = violation.max(0.0);
    violation * violation / d
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
fn most_promising(look: &Look, size: usize, enough: f64) -> Vec<usize> {
    let n = look.shares.len();
    let mut order: Vec<usize> = (0..n).filter(|&i| look.shares[i] > enough).collect();
    let best_first = |a: &usize, b: &usize| {
        look.promises[*b]
            .total_cmp(&look.promises[*a])
            .then(a.cmp(b))
    };
    if order.len() > size {
        order.select_nth_unstable_by(size, best_first);
        order.truncate(size);
    }
    order.sort_unstable_by(best_first);
    order
}

/// A block of samples in compact arrays, class after class.
struct Block {
    /// Samples, and so many with those that fill up the last part.
    size: usize,
    width: usize,
    classes: Vec<usize>,
    costs: Vec<f64>,
    n_classes: usize,
    /// The kernel among them, one row of `width` per sample.
    kernel: Vec<f32>,
    /// K_ii, at least the least curvature; ∞ for samples that cannot move any more.
    diagonal: Vec<f64>,
    a: Vec<f64>,
    before: Vec<f64>,
    margins: Vec<f64>,
    /// 0 where a class is inside of its bound, else ∞.
    barred: Vec<f64>,
}

impl Block {
    fn new(
        rows: &Rows<'_>,
        problem: &MulticlassProblem<'_>,
        state: &State,
        block: &[usize],
        least: f64,
    ) -> Self {
        let (k, size) = (problem.n_classes, block.len());
        let width = size.next_multiple_of(PART);
        let mut kernel = vec![0.0; size * width];
        kernel
            .par_chunks_mut(width.max(1))
            .zip(block)
            .for_each(|(out, &i)| {
                let row = rows.row(i);
                out.iter_mut().zip(block).for_each(|(o, &j)| *o = row[j]);
            });
        let classes: Vec<usize> = block.iter().map(|&i| problem.classes[i] as usize).collect();
        let costs: Vec<f64> = block.iter().map(|&i| problem.costs[i]).collect();
        let spread = |of: &Tiles| {
            let mut values = vec![0.0; k * width];
            for (class, values) in values.chunks_mut(width.max(1)).enumerate() {
                let own = values.iter_mut().zip(block);
                own.for_each(|(v, &i)| *v = of.at(i, class));
            }
            values
        };
        let a = spread(&state.a);
        let barred = (0..k * width)
            .map(|at| {
                let (class, b) = (at / width, at % width);
                let inside = b < size && a[at] < if class == classes[b] { costs[b] } else { 0.0 };
                if inside { 0.0 } else { f64::INFINITY }
            })
            .collect();
        Block {
            size,
            width,
            n_classes: k,
            diagonal: (0..size)
                .map(|b| f64::from(kernel[b * width + b]).max(least))
                .collect(),
            kernel,
            classes,
            costs,
            before: a.clone(),
            a,
            margins: spread(&state.margins),
            barred,
        }
    }

    /// Row steps until every sample rests; how many.
    fn improve(&mut self, enough: f64) -> u64 {
        let (width, k) = (self.width, self.n_classes);
        let together = samples_together(k);
        let parts = width / together;
        let (mut row, mut margins, mut next) = (vec![0.0; k], vec![0.0; k], vec![0.0; k]);
        let mut candidates = Vec::with_capacity(k);
        let mut steps = 0;
        let mut first = 0.0f64;
        let mut idle = 0;
        let mut part = 0;
        while idle < parts && steps < MOST_STEPS * self.size as u64 {
            let (promise, b) = self.best_of_part(part * together, together, enough);
            part = (part + 1) % parts;
            if steps == 0 {
                first = first.max(promise);
            }
            if b == usize::MAX || promise < REST_SHARE * first {
                idle += 1;
                continue;
            }
            idle = 0;
            for class in 0..k {
                row[class] = self.a[class * width + b];
                margins[class] = self.margins[class * width + b];
            }
            let (y, cost, d) = (self.classes[b], self.costs[b], self.diagonal[b]);
            best_row(&row, &margins, d, y, cost, &mut next, &mut candidates);
            let kernel = &self.kernel[b * width..(b + 1) * width];
            let mut changed = false;
            for class in 0..k {
                let change = next[class] - row[class];
                if change != 0.0 {
                    changed = true;
                    let own = class * width..(class + 1) * width;
                    let bound = if class == y { cost } else { 0.0 };
                    self.a[class * width + b] = next[class];
                    self.barred[class * width + b] = match next[class] < bound {
                        true => 0.0,
                        false => f64::INFINITY,
                    };
                    add_one(&mut self.margins[own], kernel, change);
                }
            }
            if changed {
                steps += 1;
            } else {
                self.diagonal[b] = f64::INFINITY; // round-off: it promises nothing any more
            }
        }
        steps
    }

    /// What the best step of so many samples from one on promises, and whose it is; `usize::MAX` if all of them rest.
    fn best_of_part(&self, from: usize, together: usize, enough: f64) -> (f64, usize) {
        let mut best = (0.0, usize::MAX);
        for from in (from..from + together).step_by(LANES) {
            let (mut top, mut low) = ([f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]);
            let mut inner = [0.0; LANES];
            extremes_of_part(
                [&self.margins, &self.a, &self.barred],
                self.width,
                from,
                &mut top,
                &mut low,
                &mut inner,
            );
            for b in from..(from + LANES).min(self.size) {
                let j = b - from;
                let own = self.margins[self.classes[b] * self.width + b];
                let share = self.costs[b] * (top[j] - own) + inner[j];
                let promise = promised(top[j] - low[j], self.diagonal[b]);
                if share > enough && promise > best.0 {
                    best = (promise, b);
                }
            }
        }
        best
    }

    /// Writes the coefficients back; what changed, class after class.
    fn finish(self, state: &mut State, block: &[usize]) -> Vec<Vec<(usize, f64)>> {
        let mut changes = vec![Vec::new(); self.n_classes];
        for (class, changes) in changes.iter_mut().enumerate() {
            for (b, &i) in block.iter().enumerate() {
                let (now, before) = (
                    self.a[class * self.width + b],
                    self.before[class * self.width + b],
                );
                if now != before {
                    changes.push((b, now - before));
                    *state.a.at_mut(i, class) = now;
                }
            }
        }
        changes
    }
}

/// The largest margin, the smallest of classes inside, and ⟨A_i, E_i⟩ for the samples `from..from + LANES`.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn extremes_of_part(
    [margins, a, barred]: [&[f64]; 3],
    width: usize,
    from: usize,
    top: &mut [f64; LANES],
    low: &mut [f64; LANES],
    inner: &mut [f64; LANES],
) {
    for at in (from..margins.len()).step_by(width) {
        let (e, a) = (&margins[at..at + LANES], &a[at..at + LANES]);
        let barred = &barred[at..at + LANES];
        for j in 0..LANES {
            top[j] = if e[j] > top[j] { e[j] } else { top[j] };
            let inside = e[j] + barred[j];
            low[j] = if inside < low[j] { inside } else { low[j] };
            inner[j] += a[j] * e[j];
        }
    }
}

/// A class that may end inside of its bounds.
#[derive(Clone, Copy)]
struct Candidate {
    class: usize,
    /// Where it would go without bounds, b_k, and from which τ on it is inside, b_k − U_k.
    aim: f64,
    from: f64,
}

/// The row that maximises −⟨row, e⟩ − ½ d ‖row − a‖² over feasible rows: min(b_k − τ, U_k) with b = a − e/d, U_k = C [k = y]
/// and τ such that the sum is 0.
///
/// For any set S of classes, the τ at which the row would sum to 0 with those of S inside and the others at their bounds
/// is no less than the right one. So the classes inside now, and the lowest one alone, leave few candidates.
fn best_row(
    a: &[f64],
    e: &[f64],
    d: f64,
    y: usize,
    cost: f64,
    out: &mut [f64],
    candidates: &mut Vec<Candidate>,
) {
    let per_d = 1.0 / d;
    let mut lowest = Candidate {
        class: y,
        aim: 0.0,
        from: f64::INFINITY,
    };
    let (mut sum, mut inside) = (if a[y] < cost { 0.0 } else { cost }, 0.0);
    for (k, out) in out.iter_mut().enumerate() {
        let bound = if k == y { cost } else { 0.0 };
        let aim = a[k] - e[k] * per_d;
        *out = aim;
        if aim - bound < lowest.from {
            lowest = Candidate {
                class: k,
                aim,
                from: aim - bound,
            };
        }
        if a[k] < bound {
            sum += aim;
            inside += 1.0;
        }
    }
    let alone = match lowest.class == y {
        true => lowest.aim,
        false => cost + lowest.aim,
    };
    let highest = alone.min(if inside > 0.0 { sum / inside } else { alone });
    candidates.clear();
    for (k, out) in out.iter_mut().enumerate() {
        let bound = if k == y { cost } else { 0.0 };
        let aim = std::mem::replace(out, 0.0);
        if aim - bound < highest {
            candidates.push(Candidate {
                class: k,
                aim,
                from: aim - bound,
            });
        }
    }
    // Classes leave for their bounds until those that stay agree on τ (Michelot).
    let tau = loop {
        let count = candidates.len();
        let bounded = candidates.iter().all(|c| c.class != y);
        let aims: f64 = candidates.iter().map(|c| c.aim).sum();
        let tau = (aims + if bounded { cost } else { 0.0 }) / count as f64;
        candidates.retain(|c| c.from < tau);
        if candidates.len() == count {
            break tau;
        }
    };
    if candidates.is_empty() {
        // Round-off: the lowest class takes all.
        if lowest.class != y {
            out[lowest.class] = -cost;
        }
        return make_feasible(out, y, cost);
    }
    let mut own_inside = false;
    let mut total = 0.0;
    for c in candidates.iter() {
        if c.class == y {
            own_inside = true;
        } else {
            out[c.class] = (c.aim - tau).min(0.0);
            total -= out[c.class];
        }
    }
    if own_inside || total <= 0.0 {
        make_feasible(out, y, cost);
    } else {
        // At its bound, and no rounding of the sum may take it away from there.
        let factor = cost / total;
        out.iter_mut().for_each(|out| *out *= factor);
        out[y] = cost;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::multiclass::feasible;
    use crate::random::Random;

    #[test]
    fn the_best_row_is_feasible_and_no_pair_of_classes_improves_it() {
        let mut random = Random::new(4);
        for round in 0..5000 {
            let k = 2 + random.below(12);
            let y = random.below(k);
            let cost = [1e-3, 1.0, 1e6][random.below(3)];
            let d = [1e-9, 0.5, 30.0][random.below(3)];
            let mut a: Vec<f64> = (0..k)
                .map(|_| -cost * (random.uniform() - 0.5).max(0.0))
                .collect();
            make_feasible(&mut a, y, cost);
            let e: Vec<f64> = (0..k).map(|_| 3.0 * random.normal()).collect();
            let mut row = vec![0.0; k];
            best_row(&a, &e, d, y, cost, &mut row, &mut Vec::new());
            assert!(feasible(&row, y, cost), "round {round}: {row:?}");
            // The slope of every class that may rise is at most that of any other.
            let slope = |k: usize| -e[k] - d * (row[k] - a[k]);
            // Steep slopes leave no digits of the row below this.
            let least = 1e-12 * cost + 1e-14 / d;
            let rises = |k: usize| row[k] < if k == y { cost } else { 0.0 } - least;
            for up in (0..k).filter(|&k| rises(k)) {
                for down in 0..k {
                    let gain = slope(up) - slope(down);
                    let rounding = 1e-9 + 1e-14 * d * cost;
                    assert!(
                        gain <= rounding,
                        "round {round}: {gain} from {down} to {up}"
                    );
                }
            }
        }
    }
}
