//! The wrapper of Kloft et al. (JMLR 2011, Algorithm 1), as published: for comparison, and to check the exact solver.
//!
//! Problem: ℓp-norm MKL (their Optimization Problem (14)), min ½ Ω(g)² + Σ C_i ℓ(f_i + b, y_i), 1 < p < ∞.
//! Inputs: those of `dual::solve`. Other norms are taken too: the weight step is then the norm's own.
//!
//! Round: (i) the coefficients for the present weights, eq. (20), to a high accuracy that does not depend on the round;
//! (ii) ‖w_m‖² = θ_m² aᵀK_m a, eq. (21); (iii) θ_m = ‖w_m‖^(2/(p+1)) / (Σ ‖w‖^(2p/(p+1)))^(1/p), eq. (16). Nothing is
//! extrapolated. Their Theorem 4 proves convergence for p > 1 and positive definite kernels. At p = 1 step (iii) is
//! θ_m ∝ ‖w_m‖: the objective still never rises, but a weight that comes near 0 hardly returns, so that the gap may stand
//! still above the tolerance, and the status then says so. At p = ∞ one round is all.
//!
//! Where the working-set solver gives up above its accuracy (C = 1e4 and the like), Newton steps finish (`polish.rs`).
//!
//! Stop: the relative duality gap, as in `dual::solve` (the paper leaves the rule open).
//! Cost: per round one SVM to the end, warm started, and one visit to every pair of support samples and kernel.

use super::rows::Rows;
use super::{Limits, Look, Patience, Solution, Start, Status, cold_start, polish, scale, smo};
use crate::gram::{Coefficients, Gram};
use crate::norm::Norm;
use crate::observe::{Observer, Progress};
use crate::problem::{Problem, certify, from_scores};
use std::time::Instant;

/// "Solved to the end": the coefficients' own gap as a share of the tolerance. Near p = 1 the dual of the whole problem
/// feels the root of it.
const INNER_SHARE: f64 = 1e-3;

/// Solves the problem by full solves and analytic weights; `start` makes it a warm start.
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
    let Start {
        coefficients,
        mut weights,
    } = start.unwrap_or_else(|| Start {
        coefficients: cold_start(problem),
        weights: norm.initial_weights(gram.n_kernels()),
    });
    let mut state = smo::Coefficients {
        a: coefficients,
        scores: vec![0.0; n],
    };
    let mut history: Vec<Look> = Vec::new();
    let mut steps = 0;
    let mut patience = Patience::new(limits, observer);
    let status = loop {
        let mut rows = Rows::new(gram.combine(&weights), n, limits.memory);
        state.scores = rows.exact_product(&state.a);
        let target = INNER_SHARE * limits.tolerance * scale(problem, &state, &history);
        let mut stop = || patience.is_over();
        let inner = smo::solve(&mut rows, problem, &mut state, target, u64::MAX, &mut stop);
        steps += inner.steps;
        if inner.gap > target && !inner.stopped {
            // Steps on pairs have given up.
            polish::polish(
                gram, &weights, &rows, problem, &mut state, target, &mut stop,
            );
        }
        state.scores = rows.exact_product(&state.a);
        let forms = gram.quadratic_forms(Coefficients::single(&state.a));
        let now = from_scores(norm, problem, &state.a, &weights, &state.scores, &forms);
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
        if now.relative_gap() <= limits.tolerance {
            break Status::Converged;
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
        let s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
        let old = weights.clone();
        norm.weights(&s, &mut weights);
        if weights == old && inner.steps == 0 {
            break Status::MaxIterations;
        }
    };
    let certificate = certify(gram, norm, problem, &state.a, &weights);
    Solution {
        coefficients: state.a,
        weights,
        certificate,
        witness: None,
        status,
        steps,
        history,
        forms: None,
    }
}
