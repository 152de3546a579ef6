//! The wrapper of Kloft et al. (JMLR 2011, Algorithm 1), as published: for comparison, and to check the exact solver.
//!
//! Problem: ℓp-norm MKL (their Optimization Problem (14)), min ½ Ω(g)² + Σ C_i ℓ(f_i + b, y_i), 1 < p < ∞.
//! Inputs: those of [`super::solve`]. Other norms are taken too: the weight step is then the norm's own.
//!
//! Round: (i) the coefficients for the present weights, eq. (20), to a high accuracy that does not depend on the round;
//! (ii) ‖w_m‖² = θ_m² aᵀK_m a, eq. (21); (iii) θ_m = ‖w_m‖^(2/(p+1)) / (Σ ‖w‖^(2p/(p+1)))^(1/p), eq. (16). Nothing is
//! extrapolated. Their Theorem 4 proves convergence for p > 1 and positive definite kernels. At p = 1 step (iii) is
//! θ_m ∝ ‖w_m‖: the objective still never rises, but a weight that comes near 0 hardly returns, so that the gap may stand
//! still above the tolerance, and the status then says so. At p = ∞ one round is all.
//!
//! Where the working-set solver gives up above its accuracy (C = 1e4 and the like), Newton steps finish (`newton_scalar.rs`).
//!
//! Stop: the relative duality gap, as in [`super::solve`] (the paper leaves the rule open).
//! Cost: per round one SVM to the end, warm started, and one visit to every pair of support samples and kernel.

use super::outer_loop::Rounds;
use super::run::SolverRun;
use super::scalar::Scalar;
use super::work::Work;
use super::{CombinedRows, Limits, Solution, Start, Status};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::Problem;

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
    let mut work = Scalar::new(*problem);
    let mut run = SolverRun::new(gram, norm, work.objective(), limits, observer);
    let mut theta = norm.initial_weights(gram.n_kernels());
    if let Some(start) = start {
        work.begin(start.coefficients);
        theta = start.weights;
    }
    let to_the_end = |primal: f64| INNER_SHARE * limits.tolerance * primal;
    let status = loop {
        // (i) a for θ, eq. (20)
        let mut rows = CombinedRows::new(gram, &theta, limits.memory);
        let (now, inner) = run.round(&mut work, &mut rows, true, false, &to_the_end);
        if now.certificate.relative_gap() <= limits.tolerance {
            break Status::Converged;
        }
        if let Some(status) = run.ending(inner.stopped) {
            break status;
        }
        // (ii) and (iii) θ from ‖w_m‖² = θ_m² q_m, eqs. (21) and (16)
        let s: Vec<f64> = now.forms.iter().map(|q| q.sqrt()).collect();
        norm.weights(&s, &mut theta);
        if theta == now.weights && inner.steps == 0 {
            break Status::MaxIterations;
        }
    };
    run.finish(status)
}
