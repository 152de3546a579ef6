//! Crammer and Singer's problem for one combined kernel, by blocks of samples.
//!
//! Problem: max over A of Σ_i A_{i,y_i} − ½ Σ_k A_·kᵀ K A_·k, every row with A_ik ≤ C_i [k = y_i] and Σ_k A_ik = 0.
//!
//! Margins E_ik = (KA)_ik + [k ≠ y_i] are minus the slope. The gap of this problem is a sum over samples,
//!   Σ_i C_i (max_k E_ik − E_{i,y_i}) + ⟨A_i, E_i⟩, every term ≥ 0,
//! so that it is both the stopping rule and the choice of samples.
//!
//! Step: for one sample, with K_ii = d, the best row is the projection of A_i − E_i/d on the feasible rows, exactly, by
//! Michelot's passes over the few classes that may be inside of their bounds. The samples with the largest claims form a block; their rows are
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
const MOST_PASSES: usize = 4;
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
        let (shares, primal) = look(problem, state);
        outcome.gap = shares.iter().sum();
        outcome.target = target(primal);
        if outcome.gap <= 0.5 * half.0 {
            half = (outcome.gap, outcome.steps);
        }
        let weary = outcome.steps - half.1 > patience || outcome.gap.is_nan();
        if outcome.gap <= outcome.target || weary || outcome.stopped {
            return outcome;
        }
        let steps = block_step(rows, problem, state, &shares, outcome.target, least);
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
    let (shares, _) = look(problem, state);
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
    look(problem, state).0.iter().sum()
}

/// Every sample's share of the gap, and the primal objective.
fn look(problem: &MulticlassProblem<'_>, state: &State) -> (Vec<f64>, f64) {
    let mut shares = vec![0.0; problem.classes.len()];
    let k = problem.n_classes;
    let parts: Vec<f64> = shares
        .par_chunks_mut(TILE)
        .zip(state.margins.tiles().zip(state.a.tiles()))
        .enumerate()
        .map(|(t, (shares, (margins, a)))| {
            let mut primal = 0.0;
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
                    let loss = cost * (top[j] - own);
                    let form = inner[j] + a[problem.classes[i] as usize * TILE + j];
                    *share = (loss + inner[j]).max(0.0);
                    primal += loss + 0.5 * form;
                }
            }
            primal
        })
        .collect();
    (shares, parts.iter().sum())
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
        let mut candidates = Vec::with_capacity(k);
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
                best_row(row, &margins, d, y, cost, &mut next, &mut candidates);
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
