//! Crammer and Singer's multiclass hinge on one score per class:
//! ℓ(f, y) = max over classes k of [k ≠ y] + f_k − f_y.
//!
//! Its conjugate is ℓ*(u, y) = u_y where u_k ≥ 0 for k ≠ y, Σ_k u_k = 0 and u_y ≥ −1, and ∞ elsewhere. So a row A_i of dual
//! coefficients is feasible when A_ik ≤ C_i [k = y_i] and Σ_k A_ik = 0, and adds A_{i,y_i} to the dual.

use super::LossSpec;
use super::scalar::{LossInfo, Made, Traits};

pub(super) const FORMULA: &str = "max over classes k of [k ≠ y] + f_k − f_y";

pub(super) const INFO: LossInfo = LossInfo {
    name: "multiclass-hinge",
    made: Made::Plain(LossSpec::MulticlassHinge),
    tasks: &[],
    needs_signs: false,
    traits: Traits::NONE,
};

/// Bound of the length of a subgradient (+1 at one class, −1 at another).
pub const LIPSCHITZ: f64 = std::f64::consts::SQRT_2;

/// Rounding allowed in the sum of a row, relative to its largest entry and per class.
const ROW_SUM_ROUNDING: f64 = 1e-14;

/// ℓ(f, y) of a row of scores.
pub fn value(scores: &[f64], class: usize) -> f64 {
    match violator(scores, class) {
        Some(other) => {
            let excess = 1.0 + scores[other] - scores[class];
            if excess < 0.0 { 0.0 } else { excess }
        }
        None => 0.0,
    }
}

/// The wrong class with the highest score, the first of equals; none if there is only one class.
pub fn violator(scores: &[f64], class: usize) -> Option<usize> {
    let wrong = (0..scores.len()).filter(|&other| other != class);
    wrong.reduce(|best, other| {
        if scores[other] > scores[best] {
            other
        } else {
            best
        }
    })
}

/// One subgradient: +1 at the class returned, −1 at the right one; none where 0 is a subgradient.
pub fn subgradient(scores: &[f64], class: usize) -> Option<usize> {
    violator(scores, class).filter(|&other| 1.0 + scores[other] - scores[class] > 0.0)
}

/// ℓ*(u, y); ∞ outside its domain.
pub fn conjugate(u: &[f64], class: usize) -> f64 {
    let row: Vec<f64> = u.iter().map(|u| -u).collect();
    -dual_term(&row, class, 1.0)
}

/// What a row of A adds to the dual for C_i = c: A_{i,y_i}, or −∞ if the row is not feasible.
pub fn dual_term(row: &[f64], class: usize, c: f64) -> f64 {
    if feasible(row, class, c) {
        row[class]
    } else {
        f64::NEG_INFINITY
    }
}

/// Whether A_ik ≤ c [k = y_i] for every class and the row sums to 0 up to rounding.
pub fn feasible(row: &[f64], class: usize, c: f64) -> bool {
    let bounded = row
        .iter()
        .enumerate()
        .all(|(k, &a)| a <= if k == class { c } else { 0.0 });
    let largest = row.iter().fold(0.0f64, |largest, a| largest.max(a.abs()));
    let sum: f64 = row.iter().sum();
    bounded && sum.abs() <= ROW_SUM_ROUNDING * row.len() as f64 * largest
}
