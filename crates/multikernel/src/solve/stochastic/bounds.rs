//! What the theorems promise for a run, computed from the run. Bounds of averages and of worst cases, never a certificate.

/// The bounds of OBSCURE's theorems 3 and 4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// L: bound of ‖z‖_{2,q}; for losses without one, the largest seen.
    pub gradient: f64,
    /// R: bound of ‖w*‖_{2,p}; ∞ for Pegasos-MKL.
    pub radius: f64,
    /// Theorem 3: the mean of the objective over the steps of stage 2, averaged over the draws, exceeds the optimum by at most
    /// this, in the scale ½Ω² + CΣℓ. For samples drawn with replacement; none if there was no step.
    pub excess: Option<f64>,
    /// Theorem 4: stage 1 makes at most this number of updates, by comparison with the weight vectors returned. None for losses that
    /// the theorem does not speak of, for samples with different weights, and without a stage 1.
    pub online_updates: Option<f64>,
}

/// Theorem 3 in OBSCURE's scale λ/2·Ω² + (1/N)Σℓ.
pub(super) fn excess(lambda: f64, q: f64, radius: f64, gradient: f64, steps: u64) -> Option<f64> {
    if steps == 0 {
        return None;
    }
    let t = steps as f64;
    let growth = q.sqrt() * (1.0 + t.ln()).sqrt();
    // without a radius θ is q/(λt) times a sum of t gradients, so that λ‖w‖ ≤ L
    let c = if radius.is_finite() {
        lambda * radius + gradient
    } else {
        2.0 * gradient
    };
    Some(c * growth * (c * growth / (lambda * t)).min(4.0 * radius / t.sqrt()))
}

/// Theorem 4 for a comparison vector u with norm ‖u‖_{2,p} and the sum of its losses over the updates.
pub(super) fn online_updates(eta: f64, q: f64, gradient: f64, norm: f64, losses: f64) -> f64 {
    let price = q * (2.0 / eta + gradient * gradient) * norm * norm;
    price + losses + (price * losses).sqrt()
}
