//! Exact MKL for all classes together: one score per class, one set of kernel weights, to a duality gap that the user
//! chooses.
//!
//! Problem: min ½ Ω(g)² + Σ C_i max_k ([k ≠ y_i] + f_ik − f_{i,y_i}), no bias (Crammer and Singer's loss), for any norm
//! Ω (see `certificate`). Coefficients are one row of A per sample.
//!
//! Method: that of `dual::solve`, with another solver for the coefficients: alternate (i) blocks of rows of A on the
//! combined kernel (`crammer_singer.rs`), warm started, to an accuracy tied to the current gap, with (ii) the norm's weight
//! map, lengthened by extrapolation; at r = 1 Newton steps on the simplex instead. Large problems start from the weights
//! of a quarter of their samples.
//!
//! Stop: relative duality gap of the same (A, β), recomputed from the kernels at the end.
//!
//! Cost: per round one combined matrix, one product and one histogram of the pairs of support samples, for any number of
//! kernels per statistic; per row step one kernel row for each class that changes.

use super::crammer_singer::{self, State, make_feasible};
use super::extrapolate::Extrapolation;
use super::newton::Newton;
use super::rows::Rows;
use super::{
    COARSE_SHARE, COARSE_TOLERANCE, FIRST_GAP, LEAST_INNER_SHARE, Limits, Look, NOISY, Patience,
    Silence, Solution, Start, Status, free,
};
use crate::gram::{Coefficients, Gram};
use crate::math;
use crate::norm::Norm;
use crate::observe::{Observer, Progress};
use crate::problem::{
    MulticlassProblem, certify_multiclass, multiclass_from_scores, multiclass_risk,
};
use crate::random::Random;
use std::time::Instant;

/// The inner accuracy is this share of the current gap: row steps from a good start are cheap beside a round.
const INNER_SHARE: f64 = 0.1;
/// From so many samples on, a part of the samples is solved first.
const COARSE_FROM: usize = 800;

/// Solves the problem; `start` makes it a warm start. Coefficients are row after row, one number per class.
///
/// # Panics
/// If classes, costs and start do not fit the kernels.
pub fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &MulticlassProblem<'_>,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let begin = Instant::now();
    let (n, classes) = (gram.n_rows(), problem.n_classes);
    assert!(problem.classes.len() == n && problem.costs.len() == n);
    let mut first_gap = FIRST_GAP;
    let Start {
        mut coefficients,
        mut weights,
    } = match start {
        Some(start) => start,
        None => match coarse_start(gram, norm, problem, limits, observer) {
            Some(start) => {
                first_gap = COARSE_TOLERANCE;
                start
            }
            None => Start {
                coefficients: vec![0.0; n * classes],
                weights: norm.initial_weights(gram.n_kernels()),
            },
        },
    };
    assert_eq!(coefficients.len(), n * classes);
    for ((row, &y), &cost) in coefficients
        .chunks_mut(classes)
        .zip(problem.classes)
        .zip(problem.costs)
    {
        make_feasible(row, y as usize, cost);
    }
    let mut state = State::new(&coefficients, problem);
    // Coefficients, margins and copies of them are held too.
    let memory = limits.memory.saturating_sub(8 * 8 * (n * classes) as u64);
    let fixed = norm.fixes_weights();
    let sparse = norm.as_block().is_some_and(|b| b.r() == 1.0);
    let mut extrapolation = Extrapolation::new();
    let silence = Silence::new(gram, norm, limits.tolerance);
    let mut newton = Newton::new();
    let mut history: Vec<Look> = Vec::new();
    let mut steps = 0;
    let mut gap = f64::INFINITY;
    let mut share = INNER_SHARE;
    let mut doubted = false;
    let mut certificate = None;
    let mut patience = Patience::new(limits, observer);
    let mut forms: Vec<f64>;
    let status = loop {
        let mut rows = Rows::on_demand(gram.combine(&weights), n, memory, &[]);
        // Scores from rows rounded to f32 carry an error in proportion to A; exact ones to start with leave an error in
        // proportion to the change of A alone, which falls from round to round.
        let exact = doubted
            || limits.tolerance * scale(problem, &coefficients, &state, &history)
                < NOISY * rounding(&rows, problem, &coefficients);
        if exact {
            state.set_scores(rows.exact_products(&coefficients, classes), problem);
        } else {
            state.add_up(&mut rows, problem);
        }
        let target = |primal: f64| {
            let tolerance = limits.tolerance * primal;
            match fixed {
                true => 0.5 * tolerance,
                false => share * gap.min(first_gap * primal).max(tolerance),
            }
        };
        let mut stop = || patience.is_over();
        let inner = crammer_singer::solve(&mut rows, problem, &mut state, &target, &mut stop);
        steps += inner.steps;
        if inner.gap > inner.target && !inner.stopped {
            // Steps on rows have given up.
            let target = inner.target;
            free::polish(
                gram, &weights, &mut rows, problem, &mut state, target, &mut stop,
            );
        }
        coefficients = state.a.to_rows();
        let scores = if exact {
            let scores = rows.exact_products(&coefficients, classes);
            state.set_scores(scores.clone(), problem);
            scores
        } else {
            state.scores(problem)
        };
        forms = gram.quadratic_forms(Coefficients::new(&coefficients, classes));
        let now = multiclass_from_scores(norm, problem, &coefficients, &weights, &scores, &forms);
        // Weights follow coefficients that are too rough to show the way: be more exact from here on.
        let falls = now.primal - now.dual < 0.9 * gap;
        if !falls {
            share = (0.5 * share).max(LEAST_INNER_SHARE);
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
            // Exact scores are the kernels' own.
            let confirmed = if exact || !limits.confirm {
                now
            } else {
                let scores = rows.exact_products(&coefficients, classes);
                multiclass_from_scores(norm, problem, &coefficients, &weights, &scores, &forms)
            };
            if confirmed.relative_gap() <= limits.tolerance {
                certificate = Some(confirmed);
                break Status::Converged;
            }
        }
        if told.is_break() || patience.told_to_stop {
            break Status::Stopped;
        }
        if inner.stopped {
            break Status::TimeLimit;
        }
        if history.len() >= limits.max_rounds {
            break Status::MaxIterations;
        }
        if reached || (fixed && inner.steps == 0 && !exact) {
            doubted = true;
        } else if !fixed {
            if sparse {
                newton.step(&forms, now.primal, &mut weights, |weights| {
                    free::newton_point(gram, &mut rows, problem, &state, weights, &forms)
                });
            } else {
                let s = silence.outputs(&forms, &state.a.to_rows());
                extrapolation.step(norm, &s, &forms, now.primal, &mut weights, |_, _| None);
            }
        } else if inner.steps == 0 {
            break Status::MaxIterations;
        }
    };
    let certificate = certificate
        .unwrap_or_else(|| certify_multiclass(gram, norm, problem, &coefficients, &weights));
    let status = match status {
        Status::MaxIterations if certificate.relative_gap() <= limits.tolerance => {
            Status::Converged
        }
        other => other,
    };
    Solution {
        coefficients,
        weights,
        certificate,
        witness: None,
        status,
        steps,
        history,
        forms: Some(forms),
    }
}

/// The solution of a quarter of the samples, each counted four times, at a sixteenth of the cost: good weights, and
/// coefficients whose scores leave few samples to be looked at. None where the problem is small.
fn coarse_start(
    gram: &Gram,
    norm: &Norm,
    problem: &MulticlassProblem<'_>,
    limits: &Limits,
    observer: &dyn Observer,
) -> Option<Start> {
    let n = gram.n_rows();
    if n < COARSE_FROM {
        return None;
    }
    let some = Random::new(0).sample(n, n / COARSE_SHARE);
    let classes: Vec<u32> = some.iter().map(|&i| problem.classes[i]).collect();
    let costs: Vec<f64> = some
        .iter()
        .map(|&i| COARSE_SHARE as f64 * problem.costs[i])
        .collect();
    let part = MulticlassProblem {
        classes: &classes,
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
    if solution.status != Status::Converged {
        return None;
    }
    let k = problem.n_classes;
    let mut coefficients = vec![0.0; n * k];
    for (&i, row) in some.iter().zip(solution.coefficients.chunks(k)) {
        coefficients[i * k..(i + 1) * k].copy_from_slice(row);
    }
    Some(Start {
        coefficients,
        weights: solution.weights,
    })
}

/// How much of the objective is rounding when scores come from rows in f32: their errors are independent, so that the
/// squares add up, and the risk has slope C_i for the samples that have a loss, or nearly: those with coefficients.
fn rounding(rows: &Rows<'_>, problem: &MulticlassProblem<'_>, a: &[f64]) -> f64 {
    let largest = rows.diagonal().iter().fold(0.0f64, |x, k| x.max(k.abs()));
    let length = a.iter().map(|a| a * a).sum::<f64>().sqrt();
    let cost: f64 = a
        .chunks(problem.n_classes)
        .zip(problem.costs)
        .filter(|(row, _)| row.iter().any(|a| *a != 0.0))
        .map(|(_, cost)| cost)
        .sum();
    0.25 * f64::from(f32::EPSILON) * largest * length * cost
}

/// The size of the objective, for absolute accuracies.
fn scale(problem: &MulticlassProblem<'_>, a: &[f64], state: &State, history: &[Look]) -> f64 {
    match history.last() {
        Some(look) => look.primal.abs(),
        None => {
            let scores = state.scores(problem);
            0.5 * math::dot(a, &scores) + multiclass_risk(problem, &scores)
        }
    }
}
