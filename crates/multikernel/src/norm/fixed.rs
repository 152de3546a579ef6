//! Weights that were chosen before and stay: Ω(g)² = Σ g_m²/β_m, Ω*(s)² = Σ β_m s_m², the SVM of the kernel Σ β_m K_m.
//!
//! With all weights 1 this is the block norm r = 2.

/// Ω(g); a kernel without weight can have no part.
pub(super) fn value(weights: &[f64], g: &[f64]) -> f64 {
    let parts = weights.iter().zip(g).filter(|(_, g)| **g != 0.0);
    parts.map(|(w, g)| g * g / w).sum::<f64>().sqrt()
}

/// Ω*(s)
pub(super) fn dual(weights: &[f64], s: &[f64]) -> f64 {
    let parts = weights.iter().zip(s);
    parts.map(|(w, s)| w * s * s).sum::<f64>().sqrt()
}
