//! OM-2 (Luo, Orabona, Fornoni, Caputo, Cesa-Bianchi, CVPR 2010): online multiclass learning with several kernels.
//!
//! Problem: examples come one after another; few mistakes, by Theorem 1 not many more than those of the best fixed u.
//!
//! Algorithm 1. The paper's z̄_t = φ(x_t, y_t) − φ(x_t, ŷ_t) is −∂ℓ: [`Subgradient`](super::Subgradient) has the other sign.
//!
//! ```text
//!  4–6  receive x_t, predict ŷ_t = argmax_y w_t·φ(x_t, y), receive y_t
//!    7  z̄_t = φ(x_t, y_t) − φ(x_t, ŷ_t)
//!    8  if ℓ(w_t, x_t, y_t) > 0 then η_t = min {1 − 2 w_t·z̄_t/‖z̄_t‖²_{2,q}, 1}
//!    9  else η_t = 0
//!   10  θ_{t+1} = θ_t + η_t z̄_t
//!   11  w^j_{t+1} = (1/q) (‖θ^j_{t+1}‖/‖θ_{t+1}‖_{2,q})^{q−2} θ^j_{t+1}
//! ```
//!
//! Two corrections. Line 5 must pass over y_t where line 7 takes its ŷ_t: the best of all classes would make z̄ = 0 at a margin
//! that is right but too small. And η turns negative where kernels are not normalised to k(x, x) = 1: it is held at 0.

use super::{Expansion, Visit};

/// Lines 8–11, where z is that of lines 4–7. Gives η_t.
pub(crate) fn step(visit: &mut Visit<'_, impl Expansion>) -> f64 {
    let square = visit.z.square();
    let eta = match square > 0.0 {
        true => (1.0 - 2.0 * visit.z.margin / square).clamp(0.0, 1.0), // line 8
        false => 0.0,                                                  // line 9
    };
    visit.subtract(eta) // lines 10, 11
}
