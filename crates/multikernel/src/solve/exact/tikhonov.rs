//! The Tikhonov form of MKL (Kloft et al., JMLR 2011, eq. (3)): the size of the kernel weights is priced, not bounded.
//!
//! Problem: min over w, b, θ ≥ 0 of Σ C̃_i ℓ(f_i + b, y_i) + ½ Σ_m ‖w_m‖²/θ_m + μ ‖θ‖², ‖·‖ the norm on the weights (ℓp, or
//! the non-isotropic one). Inputs: those of [`super::solve`] with C̃ as costs, and μ > 0.
//!
//! With θ = τβ, ‖β‖ = 1, the best β makes the middle term Ω(g)²/(2τ), so that for fixed τ this is the usual problem with
//! C = τC̃, divided by τ: Theorem 1. The best τ for fixed w has τ³ = Ω²/(4μ); put in, this leaves
//!   primal  Σ C̃_i ℓ + κ Ω^(4/3), κ = 3 (μ/16)^(1/3),      dual  Σ −C̃_i ℓ*(−a_i/C̃_i) − Ω*(s)⁴/(16μ),
//! which the certificate evaluates: the gap is this problem's own. No closed form gives τ from (C̃, μ), since Ω depends on τ
//! through the whole solution; but Ω never falls and Ω/τ never rises with τ, so that τ → (Ω(τ)²/(4μ))^(1/3) contracts ln τ
//! by 2/3 or better from anywhere, and a secant makes it faster.
//!
//! Stop: the relative gap. Cost: a few warm-started solves of the usual problem.

use super::{Limits, Solution, Start, Status};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram};
use crate::math;
use crate::norm::{Norm, NormSpec};
use crate::observe::Observer;
use crate::problem::{Certificate, Problem, dual_linear, risk};

/// Solves of the usual problem at most: the contraction alone gains 40 digits in these.
const MOST_SOLVES: usize = 200;
/// The share of the tolerance that each solve of the usual problem may use up.
const INNER_SHARE: f64 = 0.3;

/// A solution of the Tikhonov form.
#[derive(Debug, Clone)]
pub struct Tikhonov {
    /// Coefficients and weights θ in the scale of eq. (3), its own primal, dual and bias; the history is that of the usual
    /// problems solved, in their scale.
    pub solution: Solution,
    /// τ = ‖θ‖: the same predictor solves the usual problem with costs τC̃.
    pub scale: f64,
}

/// Solves eq. (3) with the price μ; `start`, in the scale of eq. (3), makes it a warm start, and is made feasible first.
///
/// `Limits::max_rounds` counts the weight steps of all solves.
pub fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    mu: f64,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Result<Tikhonov> {
    check(norm, mu)?;
    let mut tau = match &start {
        Some(start) => size_of_weights(norm, &start.weights),
        None => 1.0,
    };
    let mut warm = start.map(|start| usual_start(problem, &start, tau));
    let mut last: Option<(f64, f64)> = None;
    let mut steps = 0;
    let mut history = Vec::new();
    for solves in 1.. {
        let costs: Vec<f64> = problem.costs.iter().map(|c| c * tau).collect();
        let scaled = Problem {
            costs: &costs,
            ..*problem
        };
        let inner_limits = Limits {
            tolerance: INNER_SHARE * limits.tolerance,
            max_rounds: limits.max_rounds.saturating_sub(history.len()).max(1),
            ..*limits
        };
        let inner = super::solve(gram, norm, &scaled, &inner_limits, warm, observer);
        steps += inner.steps;
        history.extend_from_slice(&inner.history);
        let (certificate, omega) = certify(gram, norm, problem, mu, tau, &inner);
        let done = certificate.relative_gap() <= limits.tolerance;
        let given_up = matches!(inner.status, Status::TimeLimit | Status::Stopped);
        let used_up = history.len() >= limits.max_rounds || solves >= MOST_SOLVES;
        let next = next_scale(tau, omega, mu, &mut last);
        if done || given_up || used_up || next == tau {
            let status = match inner.status {
                _ if done => Status::Converged,
                Status::Converged => Status::MaxIterations,
                other => other,
            };
            let solution = Solution {
                coefficients: scaled_to(problem, &inner.coefficients, 1.0 / tau, 1.0),
                weights: inner.weights.iter().map(|w| w * tau).collect(),
                certificate,
                witness: inner
                    .witness
                    .map(|witness| scaled_to(problem, &witness, 1.0 / tau, 1.0)),
                status,
                steps,
                history,
                forms: None,
            };
            return Ok(Tikhonov {
                solution,
                scale: tau,
            });
        }
        // Coefficients stay feasible when they grow with the costs, but for a rounding: one that is the least bit outside
        // has no dual value, and no gap ever closes.
        warm = Some(Start {
            coefficients: scaled_to(problem, &inner.coefficients, next / tau, next),
            weights: inner.weights,
        });
        tau = next;
    }
    unreachable!("the loop above ends by its own count")
}

/// Only norms on the weights can be priced, and only at a price.
fn check(norm: &Norm, mu: f64) -> Result<()> {
    if !(mu > 0.0 && mu.is_finite()) {
        return Err(Error::input(
            "tikhonov",
            format!("μ is {mu}"),
            "give a positive number",
        ));
    }
    let on_weights = match norm.spec() {
        NormSpec::NonIsotropic(_) => true,
        _ => norm.as_block().is_some_and(|block| block.r() <= 2.0),
    };
    match on_weights {
        true => Ok(()),
        false => Err(Error::input(
            "tikhonov",
            format!("the norm {norm} is no norm of the kernel weights"),
            "give lp:P, block:R with R at most 2, or noniso:FILE",
        )),
    }
}

/// A start in the scale of eq. (3) as one of the usual problem with C = τC̃, made feasible.
fn usual_start(problem: &Problem<'_>, start: &Start, tau: f64) -> Start {
    let mut coefficients = scaled_to(problem, &start.coefficients, tau, tau);
    if problem.bias {
        math::balance(&mut coefficients);
    }
    Start {
        coefficients,
        weights: start.weights.iter().map(|w| w / tau).collect(),
    }
}

/// ‖θ‖ of the weights to start from, or their largest where the norm has no scale at hand: only the first guess at τ.
fn size_of_weights(norm: &Norm, weights: &[f64]) -> f64 {
    let largest = |w: &[f64]| w.iter().fold(0.0f64, |t, w| t.max(*w));
    let top = largest(weights);
    let mut unit = weights.to_vec();
    if let Some(block) = norm.as_block().filter(|block| block.r() < 2.0) {
        block.normalize_weights(&mut unit);
    } else {
        unit.fill(1.0);
    }
    let size = top / largest(&unit);
    if size > 0.0 && size.is_finite() {
        size
    } else {
        1.0
    }
}

/// Coefficients times a factor, feasible for costs τC̃: rounding would leave some just outside.
fn scaled_to(problem: &Problem<'_>, a: &[f64], factor: f64, tau: f64) -> Vec<f64> {
    let targets_and_costs = problem.targets.iter().zip(problem.costs);
    a.iter()
        .zip(targets_and_costs)
        .map(|(a, (y, c))| {
            let (low, high) = problem.loss.feasible(c * tau, *y);
            (a * factor).clamp(low, high)
        })
        .collect()
}

/// Primal and dual of eq. (3) at the solution of the usual problem for C = τC̃, and Ω there.
fn certify(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    mu: f64,
    tau: f64,
    inner: &Solution,
) -> (Certificate, f64) {
    let coefficients = Coefficients::single(&inner.coefficients);
    let forms = gram.quadratic_forms(coefficients);
    let s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
    let g: Vec<f64> = s.iter().zip(&inner.weights).map(|(s, b)| s * b).collect();
    let omega = norm.value(&g);
    let scores = gram.combine(&inner.weights).product(coefficients);
    let bias = crate::problem::best_bias(problem, &scores);
    let kappa = 3.0 * (mu / 16.0).cbrt();
    let risk = risk(problem, &scores, bias);
    let primal = risk + kappa * omega.powf(4.0 / 3.0);
    let s: Vec<f64> = match &inner.witness {
        Some(witness) => {
            let forms = gram.quadratic_forms(Coefficients::single(witness));
            forms.iter().map(|q| q.sqrt()).collect()
        }
        None => s,
    };
    let bound = inner.witness.as_ref().unwrap_or(&inner.coefficients);
    let a = scaled_to(problem, bound, 1.0 / tau, 1.0);
    let dual = dual_linear(problem, &a) - (norm.dual(&s) / tau).powi(4) / (16.0 * mu);
    let certificate = Certificate {
        primal,
        dual,
        risk,
        bias,
    };
    (certificate, omega)
}

/// The next τ: the map τ → (Ω²/(4μ))^(1/3) on ln τ, lengthened by the slope that the last two solves show.
fn next_scale(tau: f64, omega: f64, mu: f64, last: &mut Option<(f64, f64)>) -> f64 {
    if !(omega > 0.0 && omega.is_finite()) {
        return tau; // w = 0 is optimal whatever τ is: Theorem 1 excludes it, and nothing is left to find
    }
    let x = tau.ln();
    let mapped = (omega * omega / (4.0 * mu)).ln() / 3.0;
    let slope = match last.replace((x, mapped)) {
        Some((x0, mapped0)) if x != x0 => ((mapped - mapped0) / (x - x0)).clamp(0.0, 2.0 / 3.0),
        _ => 0.0,
    };
    (x + (mapped - x) / (1.0 - slope)).exp()
}
