//! How far a result is from the optimum: primal and dual objective, from coefficients and kernels alone.
//!
//! The problem (P) min ½ Ω(g)² + Σ_i C_i ℓ(f_i + b, y_i), g_m = ‖w_m‖, f = Σ_m ⟨w_m, ψ_m⟩, and its dual
//! (D) max Σ_i −C_i ℓ*(−a_i/C_i, y_i) − ½ Ω*(s)², s_m = √(aᵀK_m a), Σ a_i = 0 if there is a bias.
//! Coefficients a and weights β ≥ 0 stand for w_m = β_m Σ_i a_i ψ_m(x_i), so g_m = β_m s_m and f = Σ_m β_m K_m a.
//! Whatever made them, P(w, b) ≥ optimum ≥ D(a).
//!
//! The joint problem of several classes has one score per class, coefficients A of one row per sample, s_m² = Σ_k A_·kᵀ K_m A_·k,
//! Crammer and Singer's loss and no bias ([`MulticlassProblem`]).

use crate::gram::{Coefficients, Gram};
use crate::loss::{Loss, multiclass};
use crate::norm::Norm;

/// What is asked of one score per sample.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// The loss ℓ.
    pub loss: Loss,
    /// The targets y_i.
    pub targets: &'a [f64],
    /// The costs C_i ≥ 0: C times the sample's weight.
    pub costs: &'a [f64],
    /// Whether there is a bias b.
    pub bias: bool,
}

/// What is asked of one score per class and sample, with the loss of [`multiclass`]; there is no bias.
#[derive(Debug, Clone, Copy)]
pub struct MulticlassProblem<'a> {
    /// The class y_i of every sample, from 0.
    pub classes: &'a [u32],
    /// Number of classes.
    pub n_classes: usize,
    /// The costs C_i ≥ 0: C times the sample's weight.
    pub costs: &'a [f64],
}

/// Primal and dual objective of a result, in the scale ½Ω² + CΣℓ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// P of the weight vectors, with the best bias.
    pub primal: f64,
    /// D of the coefficients; −∞ if they are not feasible.
    pub dual: f64,
    /// CΣℓ, the share of P that grows with C.
    pub risk: f64,
    /// The best bias (0 where there is none).
    pub bias: f64,
}

impl Certificate {
    /// (P − D) / max(|P|, |D|): how far the objective may be from the optimum, at most.
    pub fn relative_gap(&self) -> f64 {
        relative_gap(self.primal, self.dual)
    }

    /// The same result seen as one for `factor` times C, factor ≥ 1, where the dual objective of coefficients does not depend on C: for
    /// losses that are linear in slacks (hinge, ε-insensitive, the hinge of several classes).
    pub fn for_larger_c(&self, factor: f64) -> Certificate {
        Certificate {
            primal: self.primal + (factor - 1.0) * self.risk,
            risk: factor * self.risk,
            ..*self
        }
    }
}

/// (P − D) / max(|P|, |D|), 0 if both are 0, never negative.
pub fn relative_gap(primal: f64, dual: f64) -> f64 {
    let size = primal.abs().max(dual.abs());
    if size == 0.0 {
        0.0
    } else if size.is_finite() && !(primal - dual).is_nan() {
        ((primal - dual) / size).max(0.0)
    } else {
        f64::INFINITY
    }
}

/// Σ a_i may differ from 0 by round-off only: by this share of Σ|a_i|.
const BALANCE: f64 = 1e-9;

/// The certificate of coefficients and weights on a training Gram, from the kernels themselves.
pub fn certify(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    coefficients: &[f64],
    weights: &[f64],
) -> Certificate {
    let a = Coefficients::single(coefficients);
    let scores = gram.combine(weights).product(a);
    let forms = gram.quadratic_forms(a);
    from_scores(norm, problem, coefficients, weights, &scores, &forms)
}

/// The certificate when the scores f = K_β a and the quadratic forms aᵀK_m a are at hand.
pub fn from_scores(
    norm: &Norm,
    problem: &Problem<'_>,
    coefficients: &[f64],
    weights: &[f64],
    scores: &[f64],
    forms: &[f64],
) -> Certificate {
    let bias = best_bias(problem, scores);
    let (primal, dual) = norm_terms(norm, weights, forms);
    let risk = risk(problem, scores, bias);
    Certificate {
        primal: primal + risk,
        dual: dual_linear(problem, coefficients) - dual,
        risk,
        bias,
    }
}

/// ½ Ω(g)² and ½ Ω*(s)² of the quadratic forms.
pub(super) fn norm_terms(norm: &Norm, weights: &[f64], forms: &[f64]) -> (f64, f64) {
    let s: Vec<f64> = forms.iter().map(|q| q.max(0.0).sqrt()).collect();
    let g: Vec<f64> = s.iter().zip(weights).map(|(s, b)| s * b).collect();
    (0.5 * norm.value(&g).powi(2), 0.5 * norm.dual(&s).powi(2))
}

/// As [`certify`], for the joint problem of several classes; coefficients row after row.
pub fn certify_multiclass(
    gram: &Gram,
    norm: &Norm,
    problem: &MulticlassProblem<'_>,
    coefficients: &[f64],
    weights: &[f64],
) -> Certificate {
    let a = Coefficients::new(coefficients, problem.n_classes);
    let scores = gram.combine(weights).product(a);
    let forms = gram.quadratic_forms(a);
    multiclass_from_scores(norm, problem, coefficients, weights, &scores, &forms)
}

/// As [`from_scores`], for the joint problem of several classes; coefficients and scores row after row.
pub fn multiclass_from_scores(
    norm: &Norm,
    problem: &MulticlassProblem<'_>,
    coefficients: &[f64],
    weights: &[f64],
    scores: &[f64],
    forms: &[f64],
) -> Certificate {
    let (primal, dual) = norm_terms(norm, weights, forms);
    let risk = multiclass_risk(problem, scores);
    Certificate {
        primal: primal + risk,
        dual: multiclass_dual_linear(problem, coefficients) - dual,
        risk,
        bias: 0.0,
    }
}

/// Σ C_i ℓ(f_i, y_i) of one row of scores per sample.
pub fn multiclass_risk(problem: &MulticlassProblem<'_>, scores: &[f64]) -> f64 {
    scores
        .chunks(problem.n_classes)
        .zip(problem.classes)
        .zip(problem.costs)
        .filter(|&(_, &c)| c > 0.0)
        .map(|((row, &y), c)| c * multiclass::value(row, y as usize))
        .sum()
}

/// Σ A_{i,y_i}; −∞ if a row is not feasible.
pub fn multiclass_dual_linear(problem: &MulticlassProblem<'_>, coefficients: &[f64]) -> f64 {
    coefficients
        .chunks(problem.n_classes)
        .zip(problem.classes)
        .zip(problem.costs)
        .map(|((row, &y), &c)| multiclass::dual_term(row, y as usize, c))
        .sum()
}

/// The bias with the least risk; 0 where there is none.
pub fn best_bias(problem: &Problem<'_>, scores: &[f64]) -> f64 {
    if problem.bias {
        problem
            .loss
            .best_bias(scores, problem.targets, problem.costs)
    } else {
        0.0
    }
}

/// Σ C_i ℓ(f_i + b, y_i).
pub fn risk(problem: &Problem<'_>, scores: &[f64], bias: f64) -> f64 {
    scores
        .iter()
        .zip(problem.targets)
        .zip(problem.costs)
        .filter(|&(_, &c)| c > 0.0)
        .map(|((f, y), c)| c * problem.loss.value(f + bias, *y))
        .sum()
}

/// Σ −C_i ℓ*(−a_i/C_i, y_i); −∞ if the coefficients are not feasible.
pub fn dual_linear(problem: &Problem<'_>, coefficients: &[f64]) -> f64 {
    if problem.bias {
        let sum: f64 = coefficients.iter().sum();
        let size: f64 = coefficients.iter().map(|a| a.abs()).sum();
        if sum.abs() > BALANCE * size {
            return f64::NEG_INFINITY;
        }
    }
    coefficients
        .iter()
        .zip(problem.targets)
        .zip(problem.costs)
        .map(|((a, y), c)| problem.loss.dual_term(*a, *c, *y))
        .sum()
}
