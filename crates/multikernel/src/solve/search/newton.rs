//! The Newton descent of Kloft, Brefeld, Sonnenburg, Laskov, Müller, Zien (NIPS 2009, section 3.2).
//!
//! Problem: ℓp-norm MKL, 1 < p < ∞: min over ‖θ‖_p ≤ 1 of min over w of ½ Σ ‖w_m‖²/θ_m + Σ C_i ℓ.
//! Round: the SVM at θ gives ‖w_m‖² = θ_m² q_m; with these fixed, the Lagrangian ½ Σ ‖w_m‖²/θ_m + (δ/p)(Σ θ_m^p − 1) has slope
//! −½‖w_m‖²/θ_m² + δ θ_m^{p−1} and a diagonal Hessian ‖w_m‖²/θ_m³ + (p−1) δ θ_m^{p−2}; δ = ½ Σ ‖w_m‖²/θ_m / Σ θ_m^p is what
//! optimality makes it. One Newton step, θ back onto the ball; halved (on a logarithmic scale) while J has risen.
//! Stop: relative duality gap. Near p = 1 the steps may fail, as the authors write: the status then says so.
//! Cost: one SVM per round.

use crate::solve::exact::svm::Svm;

/// A step takes at most this share of a weight away.
const MOST_TAKEN: f64 = 0.9;
/// Halvings of one step before it is given up.
const MOST_HALVINGS: usize = 8;

/// Searches from `weights` on the unit sphere of ‖·‖_p.
pub(super) fn search(svm: &mut Svm<'_>, mut weights: Vec<f64>, p: f64) {
    let mut halvings = 0;
    let mut best: Option<(f64, Vec<f64>)> = None;
    while let Some(at) = svm.at(&weights) {
        if let Some((value, from)) = &best
            && at.value > *value
            && halvings < MOST_HALVINGS
        {
            halvings += 1;
            for (w, b) in weights.iter_mut().zip(from) {
                *w = (*w * b).sqrt();
            }
            on_sphere(&mut weights, p);
            continue;
        }
        if halvings == MOST_HALVINGS && !svm.sharpen() {
            return;
        }
        halvings = 0;
        best = Some((at.value, weights.clone()));
        let squares: Vec<f64> = weights
            .iter()
            .zip(at.forms())
            .map(|(w, q)| w * w * q)
            .collect();
        let pulled: f64 = squares
            .iter()
            .zip(&weights)
            .filter(|(_, w)| **w > 0.0)
            .map(|(s, w)| 0.5 * s / w)
            .sum();
        if pulled == 0.0 {
            return; // no kernel has any output: all weights are as good
        }
        let size: f64 = weights.iter().map(|w| w.powf(p)).sum();
        let delta = pulled / size;
        let mut next = weights.clone();
        for (w, s) in next.iter_mut().zip(&squares).filter(|(w, _)| **w > 0.0) {
            let slope = -0.5 * s / (*w * *w) + delta * w.powf(p - 1.0);
            let bend = s / (*w * *w * *w) + (p - 1.0) * delta * w.powf(p - 2.0);
            let step = slope / bend;
            if step.is_finite() {
                *w -= step.min(MOST_TAKEN * *w);
            }
        }
        on_sphere(&mut next, p);
        if next == weights && !svm.sharpen() {
            return;
        }
        weights = next;
    }
}

/// Scales to ‖θ‖_p = 1.
fn on_sphere(weights: &mut [f64], p: f64) {
    let largest = weights.iter().fold(0.0f64, |a, &b| a.max(b));
    let sum: f64 = weights.iter().map(|w| (w / largest).powf(p)).sum();
    let size = largest * sum.powf(1.0 / p);
    weights.iter_mut().for_each(|w| *w /= size);
}
