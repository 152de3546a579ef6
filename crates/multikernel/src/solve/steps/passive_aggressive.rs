//! PA-I (Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 2006): w ← w + τ z̄ with τ = min{C, ℓ/‖z̄‖²}, z̄ = −∂ℓ.
//!
//! Here it learns on the average kernel K = (1/F) Σ_j K_j. Its w is that of θ at r = 2, where β ≡ 1 and the link is w = θ/2:
//! τ on the average kernel is η = 2τ/F on θ.

use super::{Expansion, Visit};

/// τ (their Figure 1, PA-I).
pub(crate) fn tau(c: f64, loss: f64, square: f64) -> f64 {
    c.min(loss / square)
}

/// One round of θ. Gives η.
pub(crate) fn step(c: f64, visit: &mut Visit<'_, impl Expansion>) -> f64 {
    let z = &visit.z;
    let kernels = z.diagonal.len() as f64;
    let square = z.slopes.square() * z.diagonal.iter().sum::<f64>() / kernels;
    let loss = (1.0 - z.margin).max(0.0);
    match square > 0.0 {
        true => visit.subtract(2.0 * tau(c, loss, square) / kernels),
        false => 0.0,
    }
}
