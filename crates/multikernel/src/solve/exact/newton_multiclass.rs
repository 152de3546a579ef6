//! Newton steps for the joint multiclass problem, in the directions in which coefficients are free to move.
//!
//! A row of A is free in the classes strictly inside their bounds; since it sums to 0, a row with c free classes has
//! c − 1 free directions (one class up, the row's reference class down). For directions (i: k up, k' down) and
//! (j: l up, l' down) the dual's curvature is K_ij ([k = l] − [k = l'] − [k' = l] + [k' = l']).
//!
//! Two uses: [`polish`] finishes the coefficients where steps on rows stall on ill-conditioned kernels, and [`weight_model`] makes the
//! quadratic model of the kernel weights (as `newton_scalar.rs` does for one score).
//!
//! Cost: V³/3 for V directions. With too many of them the model couples the samples of one class only and forgets that
//! rows sum to 0: its curvature is then too large, and its steps are shorter than they could be, never wrong.

use super::CombinedRows;
use super::best_row::make_feasible;
use super::crammer_singer::{self, MulticlassState};
use super::newton::{
    MOST_STEPS, WeightModel, add_ridge, exact_kernel_among, solved, while_gap_falls,
};
use crate::gram::Coefficients;
use crate::math;
use crate::problem::MulticlassProblem;
use rayon::prelude::*;

/// With more directions than this the factor costs more than it saves in polishing.
const MOST_POLISHED: usize = 2000;
/// With more directions than this the factor costs more than it saves in the model: it takes the classes one by one then.
const MOST_COUPLED: usize = 1500;
/// With more free samples of one class than this there is no model.
const MOST_OF_CLASS: usize = 3000;
/// Ridge of polishing relative to the mean diagonal, far below what f64 can tell apart after a factorisation.
const RIDGE: f64 = 1e-13;
/// Ridge of the model relative to the mean diagonal: duplicates make the kernel singular.
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
    fn new(problem: &MulticlassProblem<'_>, state: &MulticlassState) -> Self {
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
        add_ridge(&mut matrix, v, ridge);
        matrix
    }
}

/// Moves `state.a`, with exact margins, while that lowers the gap and `stop` does not say otherwise.
pub(super) fn polish(
    rows: &mut CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut MulticlassState,
    target: f64,
    stop: &mut dyn FnMut() -> bool,
) {
    exact_margins(rows, problem, state);
    let gap = crammer_singer::gap(rows, problem, state);
    // Row steps let go of bounds that a Newton step runs into one at a time.
    let mut row_steps = true;
    while_gap_falls(state, gap, target, 2 * MOST_STEPS, stop, |state| {
        row_steps = !row_steps;
        if row_steps {
            crammer_singer::pass(rows, problem, state, target);
            exact_margins(rows, problem, state);
        } else if !step(rows, problem, state) {
            return None;
        }
        Some(crammer_singer::gap(rows, problem, state))
    });
}

fn exact_margins(
    rows: &CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut MulticlassState,
) {
    let scores = rows.exact_products(&state.a.to_rows(), problem.n_classes);
    state.set_scores(scores, problem);
}

/// One step; false if there is none.
fn step(
    rows: &CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &mut MulticlassState,
) -> bool {
    let free = Free::new(problem, state);
    let v = free.directions.len();
    if v == 0 || v > MOST_POLISHED {
        return false;
    }
    let Some(change) = newton_change(rows, problem.n_classes, state, &free) else {
        return false;
    };
    // As far as the first bound.
    let k = problem.n_classes;
    let room = |at: usize| {
        let (i, class) = (free.samples[at / k], at % k);
        let own = class == problem.classes[i] as usize;
        let bound = if own { problem.costs[i] } else { 0.0 };
        (bound - state.a.at(i, class)) / change[at]
    };
    let rooms: Vec<f64> = (0..change.len())
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
        make_feasible(&mut row, problem.classes[i] as usize, problem.costs[i]);
        for (class, a) in row.iter().enumerate() {
            *state.a.at_mut(i, class) = *a;
        }
    }
    exact_margins(rows, problem, state);
    true
}

/// Newton's change of the free samples' rows; none where the matrix is not definite.
fn newton_change(
    rows: &CombinedRows<'_>,
    classes: usize,
    state: &MulticlassState,
    free: &Free,
) -> Option<Vec<f64>> {
    let mut matrix = free.matrix(&exact_kernel_among(rows, &free.samples), RIDGE);
    math::cholesky(&mut matrix, free.directions.len())?;
    let slope = |d: &Direction| {
        let i = free.samples[d.place];
        state.margins.at(i, d.down) - state.margins.at(i, d.up)
    };
    let along = solved(&matrix, free.directions.iter().map(slope).collect());
    let mut change = vec![0.0; free.samples.len() * classes];
    for (d, x) in free.directions.iter().zip(&along) {
        change[d.place * classes + d.up] += x;
        change[d.place * classes + d.down] -= x;
    }
    along.iter().all(|d| d.is_finite()).then_some(change)
}

/// The model of J around coefficients that were solved for with the weights of `rows`; none if it cannot be made.
pub(super) fn weight_model(
    rows: &mut CombinedRows<'_>,
    problem: &MulticlassProblem<'_>,
    state: &MulticlassState,
    kernels: Vec<usize>,
) -> Option<WeightModel> {
    let free = Free::new(problem, state);
    if free.directions.is_empty() {
        return None;
    }
    let a = state.a.to_rows();
    let a = Coefficients::new(&a, problem.n_classes);
    let scores = FreeScores {
        values: rows.gram().fast_kernel_scores(&free.samples, &kernels, a),
        kernels: kernels.len(),
        classes: problem.n_classes,
    };
    let z = match free.directions.len() <= MOST_COUPLED {
        true => coupled(rows, &free, &scores)?,
        false => class_by_class(rows, &free, &scores)?,
    };
    Some(WeightModel {
        kernels,
        z,
        free: None,
    })
}

/// (K_m A)_ik of the free samples.
struct FreeScores {
    values: Vec<f64>,
    kernels: usize,
    classes: usize,
}

impl FreeScores {
    fn at(&self, place: usize, m: usize, class: usize) -> f64 {
        self.values[(place * self.kernels + m) * self.classes + class]
    }
}

/// z of the model from all directions together.
fn coupled(rows: &mut CombinedRows<'_>, free: &Free, scores: &FreeScores) -> Option<Vec<f64>> {
    let kernel = kernel_among(rows, &free.samples);
    let mut matrix = free.matrix(&kernel, MODEL_RIDGE);
    math::cholesky(&mut matrix, free.directions.len())?;
    let slopes = |d: &Direction| {
        let of = |m: usize| scores.at(d.place, m, d.up) - scores.at(d.place, m, d.down);
        (0..scores.kernels).map(of).collect::<Vec<f64>>()
    };
    let mut z: Vec<f64> = free.directions.iter().flat_map(slopes).collect();
    math::solve_lower_columns(&matrix, &mut z, scores.kernels);
    Some(z)
}

/// z of the model class by class, with slopes relative to their mean over the row's free classes.
fn class_by_class(
    rows: &mut CombinedRows<'_>,
    free: &Free,
    scores: &FreeScores,
) -> Option<Vec<f64>> {
    let kernels = scores.kernels;
    let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); scores.classes];
    let mut count = vec![0.0; free.samples.len()];
    let mut means = vec![0.0; free.samples.len() * kernels];
    for (p, d) in free.directions.iter().enumerate() {
        let first = p == 0 || free.directions[p - 1].place != d.place;
        for class in [Some(d.up), first.then_some(d.down)].into_iter().flatten() {
            of_class[class].push(d.place);
            count[d.place] += 1.0;
            for m in 0..kernels {
                means[d.place * kernels + m] += scores.at(d.place, m, class);
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
        add_ridge(&mut matrix, samples.len(), MODEL_RIDGE);
        math::cholesky(&mut matrix, samples.len())?;
        let slopes = |&p: &usize| {
            let mean = |m: usize| means[p * kernels + m] / count[p];
            let of = |m: usize| scores.at(p, m, class) - mean(m);
            (0..kernels).map(of).collect::<Vec<f64>>()
        };
        let mut part: Vec<f64> = places.iter().flat_map(slopes).collect();
        math::solve_lower_columns(&matrix, &mut part, kernels);
        z.extend(part);
    }
    Some(z)
}

/// The combined kernel among some samples.
fn kernel_among(rows: &mut CombinedRows<'_>, samples: &[usize]) -> Vec<f64> {
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
