//! Newton steps for the joint multiclass problem, in the directions in which coefficients are free to move.
//!
//! A row of A is free in the classes strictly inside their bounds; since it sums to 0, a row with c free classes has
//! c − 1 free directions (one class up, the row's reference class down). For directions (i: k up, k' down) and
//! (j: l up, l' down) the dual's curvature is K_ij ([k = l] − [k = l'] − [k' = l] + [k' = l']).
//!
//! Two uses: [`polish`] finishes the coefficients where steps on rows stall on ill-conditioned kernels (as `polish.rs`
//! does for one score), and [`newton_point`] makes the quadratic model of the kernel weights at r = 1 (as `newton.rs`).
//!
//! Cost: V³/3 for V directions. With too many of them the model couples the samples of one class only and forgets that
//! rows sum to 0: its curvature is then too large, and its steps are shorter than they could be, never wrong.

use super::crammer_singer::{self, State};
use super::newton::{MOST_ON_SIMPLEX, kernels_that_matter, minimize_model};
use super::rows::Rows;
use crate::gram::{Coefficients, Gram};
use crate::math;
use crate::problem::MulticlassProblem;
use rayon::prelude::*;

/// More directions than this make the factor too dear for polishing,
const MOST_POLISHED: usize = 2000;
/// and for the model.
const MOST_COUPLED: usize = 1500;
/// More free samples of one class than this make the model altogether too dear.
const MOST_OF_CLASS: usize = 3000;
/// Steps of one call at most.
const MOST_STEPS: usize = 40;
/// Ridge relative to the mean diagonal, far below what f64 can tell apart after a factorisation.
const RIDGE: f64 = 1e-13;
/// Ridge of the model: duplicates make the kernel singular.
const MODEL_RIDGE: f64 = 1e-9;

/// One class up, another down, for the sample in this place of a list.
struct Direction {
    place: usize,
    up: usize,
    down: usize,
}

/// The samples that are free to move, and how.
struct Free {
    samples: Vec<usize>,
    directions: Vec<Direction>,
}

impl Free {
    fn new(problem: &MulticlassProblem<'_>, state: &State) -> Self {
        let mut free = Free {
            samples: Vec::new(),
            directions: Vec::new(),
        };
        for (i, (&y, &cost)) in problem.classes.iter().zip(problem.costs).enumerate() {
            let y = y as usize;
            let room = |k: usize| if k == y { cost } else { 0.0 } - state.a.at(i, k);
            let classes: Vec<usize> = (0..problem.n_classes).filter(|&k| room(k) > 0.0).collect();
            let Some(&down) = classes
                .iter()
                .max_by(|&&a, &&b| room(a).total_cmp(&room(b)).then(b.cmp(&a)))
            else {
                continue;
            };
            if classes.len() < 2 {
                continue;
            }
            let place = free.samples.len();
            free.samples.push(i);
            let others = classes.into_iter().filter(|&k| k != down);
            free.directions
                .extend(others.map(|up| Direction { place, up, down }));
        }
        free
    }

    /// The curvature along the directions from the kernel among the samples, with a ridge.
    fn matrix(&self, kernel: &[f64], ridge: f64) -> Vec<f64> {
        let (s, v) = (self.samples.len(), self.directions.len());
        let mut matrix = vec![0.0; v * v];
        matrix
            .par_chunks_mut(v.max(1))
            .enumerate()
            .for_each(|(p, out)| {
                let at = &self.directions[p];
                let row = &kernel[at.place * s..(at.place + 1) * s];
                for (out, to) in out.iter_mut().zip(&self.directions).take(p + 1) {
                    let same = f64::from(at.up == to.up) + f64::from(at.down == to.down);
                    let cross = f64::from(at.up == to.down) + f64::from(at.down == to.up);
                    *out = (same - cross) * row[to.place];
                }
            });
        let mean = (0..v).map(|p| matrix[p * v + p]).sum::<f64>() / v.max(1) as f64;
        for p in 0..v {
            matrix[p * v + p] += ridge * mean;
        }
        matrix
    }
}

/// Moves `state.a`, with exact margins, while that lowers the gap; the gap reached.
pub(super) fn polish(
    gram: &Gram,
    weights: &[f64],
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
    target: f64,
    stop: &mut dyn FnMut() -> bool,
) -> f64 {
    exact_margins(rows, problem, state);
    let mut gap = crammer_singer::gap(rows, problem, state);
    let mut best = state.clone();
    let mut least = gap;
    for _ in 0..MOST_STEPS {
        if gap <= target || stop() || !step(gram, weights, rows, problem, state) {
            break;
        }
        gap = crammer_singer::gap(rows, problem, state);
        if gap < least {
            least = gap;
            best = state.clone();
        }
        if gap > target {
            // Row steps let go of bounds that a Newton step runs into one at a time.
            crammer_singer::pass(rows, problem, state, target);
            exact_margins(rows, problem, state);
            gap = crammer_singer::gap(rows, problem, state);
            if gap < least {
                least = gap;
                best = state.clone();
            }
        }
    }
    *state = best;
    least
}

fn exact_margins(rows: &Rows<'_>, problem: &MulticlassProblem<'_>, state: &mut State) {
    let scores = rows.exact_products(&state.a.to_rows(), problem.n_classes);
    state.set_scores(scores, problem);
}

/// One step; false if there is none.
fn step(
    gram: &Gram,
    weights: &[f64],
    rows: &Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut State,
) -> bool {
    let free = Free::new(problem, state);
    let v = free.directions.len();
    if v == 0 || v > MOST_POLISHED {
        return false;
    }
    // In f64: weights a million times apart leave nothing of the smaller kernels in f32.
    let s = free.samples.len();
    let mut kernel = vec![0.0; s * s];
    let part = gram.subset(&free.samples);
    for (m, &w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        let values = part.kernel(m).matrix();
        kernel
            .iter_mut()
            .zip(values)
            .for_each(|(x, k)| *x += w * f64::from(k));
    }
    let mut matrix = free.matrix(&kernel, RIDGE);
    if math::cholesky(&mut matrix, v).is_none() {
        return false;
    }
    let slope = |d: &Direction| {
        let i = free.samples[d.place];
        state.margins.at(i, d.down) - state.margins.at(i, d.up)
    };
    let mut along: Vec<f64> = free.directions.iter().map(slope).collect();
    math::solve_lower(&matrix, &mut along);
    math::solve_upper(&matrix, &mut along);
    if !along.iter().all(|d| d.is_finite()) {
        return false;
    }
    // Changes of coefficients, and how far they may go.
    let k = problem.n_classes;
    let mut change = vec![0.0; s * k];
    for (d, x) in free.directions.iter().zip(&along) {
        change[d.place * k + d.up] += x;
        change[d.place * k + d.down] -= x;
    }
    let room = |at: usize| {
        let (i, class) = (free.samples[at / k], at % k);
        let bound = if class == problem.classes[i] as usize {
            problem.costs[i]
        } else {
            0.0
        };
        (bound - state.a.at(i, class)) / change[at]
    };
    let rooms: Vec<f64> = (0..s * k)
        .map(|at| {
            if change[at] > 0.0 {
                room(at)
            } else {
                f64::INFINITY
            }
        })
        .collect();
    let length = rooms.iter().copied().fold(1.0, f64::min);
    if length.is_nan() || length <= 0.0 {
        return false;
    }
    for (place, &i) in free.samples.iter().enumerate() {
        let mut row: Vec<f64> = (0..k).map(|k| state.a.at(i, k)).collect();
        for (class, a) in row.iter_mut().enumerate() {
            let at = place * k + class;
            *a = if rooms[at] <= length {
                0.0 // its bound; that of the own class follows from the others
            } else {
                *a + length * change[at]
            };
        }
        crammer_singer::make_feasible(&mut row, problem.classes[i] as usize, problem.costs[i]);
        for (class, a) in row.iter().enumerate() {
            *state.a.at_mut(i, class) = *a;
        }
    }
    exact_margins(rows, problem, state);
    true
}

/// The minimiser of the quadratic model around β on the simplex; none if the model cannot be made.
pub(super) fn newton_point(
    gram: &Gram,
    rows: &mut Rows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &State,
    weights: &[f64],
    forms: &[f64],
) -> Option<Vec<f64>> {
    let kernels = kernels_that_matter(weights, forms, MOST_ON_SIMPLEX);
    let free = Free::new(problem, state);
    if free.directions.is_empty() {
        return None;
    }
    let classes = problem.n_classes;
    let a = state.a.to_rows();
    let scores = gram.fast_kernel_scores(&free.samples, &kernels, Coefficients::new(&a, classes));
    let score = |place: usize, m: usize, class: usize| {
        scores[(place * kernels.len() + m) * classes + class]
    };
    if free.directions.len() <= MOST_COUPLED {
        let kernel = kernel_among(rows, &free.samples);
        let mut matrix = free.matrix(&kernel, MODEL_RIDGE);
        math::cholesky(&mut matrix, free.directions.len())?;
        let slopes = |d: &Direction| {
            let of = |m: usize| score(d.place, m, d.up) - score(d.place, m, d.down);
            (0..kernels.len()).map(of).collect::<Vec<f64>>()
        };
        let mut z: Vec<f64> = free.directions.iter().flat_map(slopes).collect();
        math::solve_lower_columns(&matrix, &mut z, kernels.len());
        return minimize_model(weights, forms, &kernels, &z);
    }
    // Class by class, with slopes relative to their mean over the row's free classes.
    let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); classes];
    let mut count = vec![0.0; free.samples.len()];
    let mut means = vec![0.0; free.samples.len() * kernels.len()];
    for (p, d) in free.directions.iter().enumerate() {
        let first = p == 0 || free.directions[p - 1].place != d.place;
        for class in [Some(d.up), first.then_some(d.down)].into_iter().flatten() {
            of_class[class].push(d.place);
            count[d.place] += 1.0;
            for m in 0..kernels.len() {
                means[d.place * kernels.len() + m] += score(d.place, m, class);
            }
        }
    }
    let mut z = Vec::new();
    for (class, places) in of_class.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
        if places.len() > MOST_OF_CLASS {
            return None;
        }
        let samples: Vec<usize> = places.iter().map(|&p| free.samples[p]).collect();
        let mut matrix = kernel_among(rows, &samples);
        let f = samples.len();
        let mean = (0..f).map(|p| matrix[p * f + p]).sum::<f64>() / f as f64;
        for p in 0..f {
            matrix[p * f + p] += MODEL_RIDGE * mean;
        }
        math::cholesky(&mut matrix, f)?;
        let slopes = |&p: &usize| {
            let mean = |m: usize| means[p * kernels.len() + m] / count[p];
            let of = |m: usize| score(p, m, class) - mean(m);
            (0..kernels.len()).map(of).collect::<Vec<f64>>()
        };
        let mut part: Vec<f64> = places.iter().flat_map(slopes).collect();
        math::solve_lower_columns(&matrix, &mut part, kernels.len());
        z.extend(part);
    }
    minimize_model(weights, forms, &kernels, &z)
}

/// The combined kernel among some samples.
fn kernel_among(rows: &mut Rows<'_>, samples: &[usize]) -> Vec<f64> {
    let mut kernel = Vec::with_capacity(samples.len() * samples.len());
    for part in samples.chunks(rows.capacity().min(64)) {
        rows.hold(part);
        for &i in part {
            let row = rows.row(i);
            kernel.extend(samples.iter().map(|&j| f64::from(row[j])));
        }
    }
    kernel
}
