//! Exact MKL for one score per sample: coefficients and kernel weights to a duality gap that the user chooses.
//!
//! Problem: min ½ Ω(g)² + Σ C_i ℓ(f_i + b, y_i) (see `certificate`), for any norm Ω and scalar loss ℓ.
//!
//! Method: alternate (i) the working-set solver on the combined kernel K_β (`smo.rs`), warm started, to an accuracy
//! tied to the current gap, with (ii) the norm's weight map, which never raises the objective; the map's steps are
//! lengthened by Anderson's extrapolation on ln β, given up where it does not help. r = 2 needs no (ii).
//! At r = 1 the map loses its guarantee: there Newton steps on the simplex take its place (`newton.rs`); a little above, where it is slow,
//! Newton steps go to its fixed point as long as they cost less than the rounds they save.
//!
//! Large problems start from the weights of a quarter of their samples.
//!
//! Stop: relative duality gap (P − D)/max(|P|, |D|) of the same (a, β), recomputed from the kernels at the end.
//!
//! Cost: per round one combined matrix (after the first round the rows of support samples, and others on demand), one product and one
//! histogram of the pairs of support samples, for any number of kernels per statistic; per working-set step two rows.

mod crammer_singer;
mod extrapolate;
mod free;
pub mod interleaved;
pub mod multiclass;
pub(crate) mod newton;
mod outputs;
mod polish;
mod rows;
mod smo;
pub(crate) mod svm;
pub mod tikhonov;
mod tiles;
pub mod wrapper;

use crate::gram::Gram;
use crate::loss::Loss;
use crate::norm::Norm;
use crate::observe::{Observer, Progress};
use crate::problem::{
    Certificate, Limits, Look, Problem, Solution, Start, Status, certify, dual, from_scores,
    relative_gap,
};
use crate::random::Random;
use extrapolate::Extrapolation;
use newton::{Model, Newton};
use outputs::Outputs;
use rows::Rows;
use std::time::{Duration, Instant};

/// The inner accuracy is this share of the current gap: tighter wastes steps, looser stalls the gap.
const INNER_SHARE: f64 = 0.3;

/// The same where a row costs more than steps do, because many given kernels are read for it or many families looked up.
const INNER_SHARE_OF_DEAR_ROUNDS: f64 = 0.1;

/// The same for a warm start: it needs few steps, and weights that follow rough coefficients away from where they were right cost a
/// round.
const INNER_SHARE_OF_WARM_ROUNDS: f64 = 0.03;

/// The gap is taken to be at most this share of the objective before it is known.
const FIRST_GAP: f64 = 0.2;
/// The same for a warm start, whose weights are mostly good enough for the first round to be the last.
const WARM_GAP: f64 = 1e-3;
/// From so many samples on, the weights start from those of a part of the samples,
const COARSE_FROM: usize = 2000;
/// one in so many,
const COARSE_SHARE: usize = 4;
/// to this gap: the part's own optimum is no nearer to the whole's.
const COARSE_TOLERANCE: f64 = 1e-2;

/// More accuracy than this share of the gap never pays, nor than the tolerance's own share: near r = 1 the dual feels the
/// root of the inner gap.
const LEAST_INNER_SHARE: f64 = 1e-6;
const LEAST_SHARE_OF_TOLERANCE: f64 = 0.1;
/// Outputs are taken for rounding only where no finer gap than this is asked for: finer ones are for problems that allow them.
const SILENT_FROM: f64 = 1e-4;
/// The tolerance must be so many times the rounding of f32 rows for them to be good enough.
const NOISY: f64 = 5.0;

/// Farther from the optimum than this the model says no more than the map does.
const NEWTON_NEAR: f64 = 0.1;
/// From here on the map needs so few rounds that Newton steps do not pay.
const NEWTON_BELOW: f64 = 1.5;
/// A Newton step at r > 1 is worth so many operations of its factor for each value of a row that a round makes or goes through.
const NEWTON_SHARE: f64 = 32.0;

/// Solves the problem; `start` makes it a warm start.
pub fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let begin = Instant::now();
    let n = gram.n_rows();
    let warm = start.is_some();
    let mut first_gap = if warm {
        WARM_GAP.max(limits.tolerance)
    } else {
        FIRST_GAP
    };
    let Start {
        coefficients,
        mut weights,
    } = start.unwrap_or_else(|| Start {
        coefficients: cold_start(problem),
        weights: match coarse_weights(gram, norm, problem, limits, observer) {
            Some(weights) => {
                first_gap = COARSE_TOLERANCE;
                weights
            }
            None => norm.initial_weights(gram.n_kernels()),
        },
    });
    let mut state = smo::Coefficients {
        a: coefficients,
        scores: vec![0.0; n],
    };
    let fixed = norm.fixes_weights();
    let sparse = norm.as_block().is_some_and(|b| b.r() == 1.0);
    let mut extrapolation = Extrapolation::new();
    let mut newton = Newton::new();
    let silence = Silence::new(gram, norm, limits.tolerance);
    let mut history: Vec<Look> = Vec::new();
    let mut steps = 0;
    let mut gap = f64::INFINITY;
    let mut patience = Patience::new(limits, observer);
    let least_share = LEAST_INNER_SHARE.min(LEAST_SHARE_OF_TOLERANCE * limits.tolerance);
    let mut doubted = false;
    let mut certificate = None;
    let mut witness = None;
    let mut outputs = Outputs::new(gram, limits.memory);
    let mut share = match outputs {
        Some(_) => INNER_SHARE_OF_DEAR_ROUNDS,
        None if warm => INNER_SHARE_OF_WARM_ROUNDS,
        None if gram.has_dear_rows() => INNER_SHARE_OF_DEAR_ROUNDS,
        None => INNER_SHARE,
    };
    let mut forms: Vec<f64>;
    let status = loop {
        let combined = gram.combine(&weights);
        let mut rows = match &outputs {
            // Few samples move in later rounds: mostly those that are free now.
            Some(_) if !history.is_empty() => {
                let free = newton::free_samples(problem, &state.a);
                Rows::on_demand(combined, n, limits.memory, &free)
            }
            // From a good start, and after the first round, few samples move: most of the matrix would never be looked at.
            None if warm || !history.is_empty() => Rows::on_demand(combined, n, limits.memory, &[]),
            _ => Rows::new(combined, n, limits.memory),
        };
        // Scores from rows rounded to f32 carry an error in proportion to a; exact ones to start with leave an error in
        // proportion to the change of a alone, which falls from round to round.
        let exact = outputs.is_some()
            || doubted
            || limits.tolerance * scale(problem, &state, &history)
                < NOISY * rounding(&rows, &state.a);
        if let Some(outputs) = &mut outputs {
            outputs.follow(gram, &state.a);
            state.scores = outputs.scores(&weights);
        } else {
            rows.hold_support(&state.a);
            if exact {
                state.scores = rows.exact_product(&state.a);
            } else {
                state.scores.fill(0.0);
                rows.add_product(&state.a, &mut state.scores);
            }
        }
        let mut target = if fixed {
            0.5 * limits.tolerance * scale(problem, &state, &history)
        } else {
            let size = scale(problem, &state, &history);
            share * gap.min(first_gap * size).max(limits.tolerance * size)
        };
        let mut stop = || patience.is_over();
        let mut inner = smo::solve(&mut rows, problem, &mut state, target, u64::MAX, &mut stop);
        steps += inner.steps;
        if fixed && history.is_empty() && !inner.stopped {
            // Now that the objective is known: another round would only make the same rows again.
            target = target.min(0.5 * limits.tolerance * objective(problem, &state));
            if inner.gap > target {
                let before = inner.steps;
                inner = smo::solve(&mut rows, problem, &mut state, target, u64::MAX, &mut stop);
                steps += inner.steps;
                inner.steps += before;
            }
        }
        let gave_up = inner.gap > target && !inner.stopped;
        if gave_up {
            // Steps on pairs have given up.
            polish::polish(
                gram, &weights, &rows, problem, &mut state, target, &mut stop,
            );
        } else if exact && outputs.is_none() && inner.steps > 0 {
            state.scores = rows.exact_product(&state.a);
        }
        forms = match &mut outputs {
            Some(outputs) => {
                outputs.follow(gram, &state.a);
                state.scores = outputs.scores(&weights);
                outputs.forms()
            }
            None => gram.quadratic_forms(crate::gram::Coefficients::single(&state.a)),
        };
        let now = from_scores(norm, problem, &state.a, &weights, &state.scores, &forms);
        // Weights follow coefficients that are too rough to show the way: be more exact from here on.
        let falls = now.primal - now.dual < 0.9 * gap;
        if !falls {
            share = (0.5 * share).max(least_share);
        }
        gap = now.primal - now.dual;
        history.push(Look {
            seconds: begin.elapsed().as_secs_f64(),
            primal: now.primal,
            dual: now.dual,
            steps,
        });
        let told = observer.progress(&Progress::Round {
            round: history.len(),
            primal: now.primal,
            dual: now.dual,
        });
        let reached = now.relative_gap() <= limits.tolerance;
        // The gap of rounded scores is believed only if the kernels themselves confirm it.
        if reached {
            // Exact scores are the kernels' own already.
            let trusted = !limits.confirm || (exact && outputs.is_none() && !gave_up);
            let confirmed = match (trusted, Outputs::new(gram, limits.memory)) {
                (true, _) => now,
                (false, Some(mut fresh)) => {
                    fresh.follow(gram, &state.a);
                    let (scores, forms) = (fresh.scores(&weights), fresh.forms());
                    from_scores(norm, problem, &state.a, &weights, &scores, &forms)
                }
                (false, None) => {
                    let scores = rows.exact_product(&state.a);
                    from_scores(norm, problem, &state.a, &weights, &scores, &forms)
                }
            };
            if confirmed.relative_gap() <= limits.tolerance {
                certificate = Some(confirmed);
                break Status::Converged;
            }
        }
        if told.is_break() || patience.told_to_stop {
            break Status::Stopped;
        }
        // A round of few steps never looked at the clock.
        if inner.stopped || limits.deadline.is_some_and(|d| Instant::now() >= d) {
            break Status::TimeLimit;
        }
        if history.len() >= limits.max_rounds {
            break Status::MaxIterations;
        }
        if reached || (fixed && inner.steps == 0 && !exact) {
            doubted = true;
        } else if !fixed {
            let before = weights.clone();
            let mut model = None;
            let mut model_at = |weights: &[f64]| {
                let outputs = outputs.as_ref();
                let most = if sparse {
                    newton::MOST_ON_SIMPLEX
                } else {
                    newton::MOST_KERNELS
                };
                let kernels = newton::kernels_that_matter(weights, &forms, most);
                let exact = !limits.confirm;
                Model::new(gram, &mut rows, problem, &state, kernels, outputs, exact)
            };
            if sparse {
                newton.step(&forms, now.primal, &mut weights, |weights| {
                    model = model_at(weights);
                    model.as_ref()?.on_simplex(weights, &forms)
                });
            } else {
                let s = silence.outputs(&forms, &state.a);
                let r = norm.as_block().map(|block| block.r());
                let r = r.filter(|&r| {
                    r > 1.0
                        && r < NEWTON_BELOW
                        && now.relative_gap() <= NEWTON_NEAR
                        && newton_pays(gram, problem, &state.a, inner.steps)
                });
                extrapolation.step(norm, &s, &forms, now.primal, &mut weights, |weights, e| {
                    let r = r?;
                    model = model_at(weights);
                    model.as_ref()?.to_fixed_point(weights, &forms, e, r)
                });
            }
            // Coefficients of the logistic loss stay away from their bounds.
            if let Some(model) = model.filter(|_| problem.loss != Loss::Logistic) {
                let next = model.follow(problem, &state.a, &before, &weights);
                if !limits.confirm {
                    let forms = match &mut outputs {
                        Some(outputs) => {
                            outputs.follow(gram, &next);
                            outputs.forms()
                        }
                        None => model
                            .forms(gram, &state.a, &next, &forms)
                            .unwrap_or_else(|| {
                                gram.quadratic_forms(crate::gram::Coefficients::single(&next))
                            }),
                    };
                    let dual = dual(norm, problem, &next, &forms);
                    if relative_gap(now.primal, dual) <= limits.tolerance {
                        // They bound the optimum from below more tightly than those at hand, which may be good enough.
                        certificate = Some(Certificate { dual, ..now });
                        witness = Some(next);
                        weights = before;
                        break Status::Converged;
                    }
                }
                state.a = next;
            }
        } else if inner.steps == 0 {
            break Status::MaxIterations;
        }
    };
    let certificate =
        certificate.unwrap_or_else(|| certify(gram, norm, problem, &state.a, &weights));
    let status = match status {
        Status::MaxIterations if certificate.relative_gap() <= limits.tolerance => {
            Status::Converged
        }
        other => other,
    };
    Solution {
        coefficients: state.a,
        weights,
        certificate,
        witness,
        status,
        steps,
        history,
        forms: Some(forms),
    }
}

/// Whether a Newton step costs less than the rounds that it saves, for a round of so many working-set steps: the factor of the free
/// samples against rows of the support and steps on rows.
fn newton_pays(gram: &Gram, problem: &Problem<'_>, a: &[f64], steps: u64) -> bool {
    let free = newton::free_samples(problem, a).len() as f64;
    let kernels = gram.n_kernels().min(newton::MOST_KERNELS) as f64;
    let support = a.iter().filter(|a| **a != 0.0).count();
    let rows = (support * gram.n_families()) as f64 + steps as f64;
    // The factors of the samples' matrix and of the kernels', and what leads from one to the other.
    let operations = free.powi(3) + 3.0 * free * kernels * (free + kernels) + kernels.powi(3);
    operations <= NEWTON_SHARE * rows * gram.n_rows() as f64
}

/// Inside of a round the observer is asked so often whether to stop.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// Whether to stop inside of a round: by the clock, or because the observer says so.
struct Patience<'a> {
    deadline: Option<Instant>,
    observer: &'a dyn Observer,
    asked: Instant,
    told_to_stop: bool,
}

impl<'a> Patience<'a> {
    fn new(limits: &Limits, observer: &'a dyn Observer) -> Self {
        Patience {
            deadline: limits.deadline,
            observer,
            asked: Instant::now(),
            told_to_stop: false,
        }
    }

    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now.duration_since(self.asked) >= ASKED_EVERY {
            self.asked = now;
            self.told_to_stop |= self.observer.progress(&Progress::Alive).is_break();
        }
        self.told_to_stop || self.deadline.is_some_and(|d| now >= d)
    }
}

/// Good weights from a quarter of the samples, each counted four times, at a sixteenth of the cost; none where the
/// problem is small or has no weights to learn.
fn coarse_weights(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    limits: &Limits,
    observer: &dyn Observer,
) -> Option<Vec<f64>> {
    let n = gram.n_rows();
    let fixed = norm.fixes_weights();
    if fixed || n < COARSE_FROM || gram.n_kernels() < 2 {
        return None;
    }
    let some = Random::new(0).sample(n, n / COARSE_SHARE);
    let targets: Vec<f64> = some.iter().map(|&i| problem.targets[i]).collect();
    let costs: Vec<f64> = some
        .iter()
        .map(|&i| COARSE_SHARE as f64 * problem.costs[i])
        .collect();
    let part = Problem {
        targets: &targets,
        costs: &costs,
        ..*problem
    };
    let part_gram = gram.copied_subset(&some, limits.memory / 2);
    let limits = Limits {
        tolerance: limits.tolerance.max(COARSE_TOLERANCE),
        memory: limits.memory / 2,
        confirm: false,
        ..*limits
    };
    let solution = solve(&part_gram, norm, &part, &limits, None, observer);
    (solution.status == Status::Converged).then_some(solution.weights)
}

/// Below which a kernel's output is rounding. Its values are in f32, so that a kernel of low rank is positive semidefinite up to rounding
/// only; a norm that rewards silence would make its weight, and with it the negative eigenvalues, ever larger.
struct Silence {
    /// Rounding of each kernel's values; empty where no weight grows by it.
    noise: Vec<f64>,
}

impl Silence {
    fn new(gram: &Gram, norm: &Norm, tolerance: f64) -> Silence {
        let noise = |m: usize| {
            let largest = gram.self_values(m).into_iter().fold(0.0f64, f64::max);
            0.25 * f64::from(f32::EPSILON) * largest
        };
        let kernels = match norm.rewards_silence() && tolerance >= SILENT_FROM {
            true => gram.n_kernels(),
            false => 0,
        };
        Silence {
            noise: (0..kernels).map(noise).collect(),
        }
    }

    /// s_m = √q_m, or what rounding makes of coefficients of this size if that is more.
    fn outputs(&self, forms: &[f64], a: &[f64]) -> Vec<f64> {
        let mut s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
        let size = crate::math::dot(a, a);
        for (s, noise) in s.iter_mut().zip(&self.noise) {
            *s = s.max((noise * size).sqrt());
        }
        s
    }
}

/// How much of the objective is rounding when scores come from rows in f32: near the optimum the risk changes by a_i times the
/// error of score i, which is the sum of a_j times that of K_ij; these are independent, so that the squares add up.
fn rounding(rows: &Rows<'_>, a: &[f64]) -> f64 {
    let largest = rows.diagonal().iter().fold(0.0f64, |x, k| x.max(k.abs()));
    0.25 * f64::from(f32::EPSILON) * largest * crate::math::dot(a, a)
}

/// The size of the objective, for absolute accuracies.
fn scale(problem: &Problem<'_>, state: &smo::Coefficients, history: &[Look]) -> f64 {
    match history.last() {
        Some(look) => look.primal.abs(),
        None => objective(problem, state),
    }
}

/// The objective for the weights at hand.
fn objective(problem: &Problem<'_>, state: &smo::Coefficients) -> f64 {
    let bias = crate::problem::best_bias(problem, &state.scores);
    let form = crate::math::dot(&state.a, &state.scores);
    0.5 * form + crate::problem::risk(problem, &state.scores, bias)
}

/// Feasible coefficients to start with: 0, or for the logistic loss, whose slope is infinite there, inside.
fn cold_start(problem: &Problem<'_>) -> Vec<f64> {
    let n = problem.targets.len();
    if problem.loss != Loss::Logistic {
        return vec![0.0; n];
    }
    let total = |sign: f64| -> f64 {
        let of_sign = problem
            .targets
            .iter()
            .zip(problem.costs)
            .filter(|(y, _)| **y == sign);
        of_sign.map(|(_, c)| c).sum()
    };
    let (plus, minus) = (total(1.0), total(-1.0));
    let share = |own: f64, other: f64| match problem.bias {
        true => 0.5 * (other / own).min(1.0),
        false => 0.5,
    };
    problem
        .targets
        .iter()
        .zip(problem.costs)
        .map(|(&y, &c)| {
            let share = if y > 0.0 {
                share(plus, minus)
            } else {
                share(minus, plus)
            };
            y * c * share
        })
        .collect()
}
