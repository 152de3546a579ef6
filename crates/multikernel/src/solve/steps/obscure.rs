//! OBSCURE (Orabona, Luo, Caputo, CVPR 2010 and JMLR 2012): p-norm multiple kernel learning by stochastic steps in two stages.
//!
//! Problem (5): min over w of λ/2 ‖w‖²_{2,p} + (1/N) Σ_i ℓ(w, x_i, y_i), 1 < p ≤ 2, q = p/(p − 1).
//!
//! Both algorithms step along z_t = ∂ℓ(w_t, x_t, y_t) at a sample drawn at random (lines 4 and 5) and end in the link
//! w^j = (1/q) (‖θ^j‖/‖θ‖_{2,q})^{q−2} θ^j (lines 7 and 11), which [`Theta`](super::Theta) keeps.
//!
//! ```text
//! Algorithm 1, stage 1 (online)                     Algorithm 2, stage 2 (stochastic optimization)
//!  2  θ_1 = 0, w_1 = 0                               2  s_0 = 0
//!  6  θ_{t+1} = θ_t − η z_t                          6  d_t = λt + s_{t−1}
//! 10  R² = ‖w_{T+1}‖²_{2,p}                          7  s_t = s_{t−1} + ½ (√(d_t² + q (λ/q ‖θ_t‖_{2,q} + ‖z_t‖_{2,q})²/R²) − d_t)
//!          + 2/(λN) Σ_i ℓ(w_{T+1}, x_i, y_i)         8  η_t = q/(λt + s_t)
//!                                                    9  θ_{t+½} = (1 − λη_t/q) θ_t − η_t z_t
//!                                                   10  θ_{t+1} = min(1, qR/‖θ_{t+½}‖_{2,q}) θ_{t+½}
//! ```
//!
//! With R = ∞ Algorithm 2 is Pegasos-MKL: s stays 0, η_t = q/(λt), and the first step forgets where it began.

use super::{Expansion, Visit};

/// Algorithm 1, line 6. Gives η, or 0 where z = 0.
pub(crate) fn stage_1(eta: f64, visit: &mut Visit<'_, impl Expansion>) -> f64 {
    visit.subtract(eta)
}

/// Algorithm 1, line 10. In the scale of `primal` = ½‖w‖² + C Σ ℓ, with λ = 1/(CN), it is R² = 2P(w); P(0) bounds the optimum
/// as well, and stage 1 can end above it.
pub(crate) fn radius(primal: f64, at_zero: f64) -> f64 {
    (2.0 * primal.min(at_zero)).sqrt()
}

/// Algorithm 2: its parameters, and what it remembers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage2 {
    lambda: f64,
    q: f64,
    radius: f64,
    /// Rounds done.
    t: u64,
    s: f64,
}

impl Stage2 {
    /// Line 2.
    pub(crate) fn new(lambda: f64, q: f64, radius: f64) -> Self {
        Stage2 {
            lambda,
            q,
            radius,
            t: 0,
            s: 0.0,
        }
    }

    /// Pegasos-MKL after t rounds: all that it remembers.
    pub(crate) fn pegasos(lambda: f64, q: f64, t: u64) -> Self {
        Stage2 {
            t,
            ..Stage2::new(lambda, q, f64::INFINITY)
        }
    }

    /// Rounds done.
    pub(crate) fn rounds(&self) -> u64 {
        self.t
    }

    /// Lines 6–8: 1 − λη_t/q and η_t, from ‖θ_t‖_{2,q} and ‖z_t‖_{2,q}.
    fn sizes(&mut self, theta: f64, z: f64) -> (f64, f64) {
        let Stage2 {
            lambda, q, radius, ..
        } = *self;
        self.t += 1;
        let t = self.t as f64;
        let d = lambda * t + self.s;
        let slope = (lambda / q * theta + z) / radius;
        let x = q * slope * slope;
        // √(d² + x) − d without its cancellation
        self.s += 0.5 * x / ((d * d + x).sqrt() + d);
        let whole = lambda * t + self.s;
        // 1 − λη/q, exactly 0 in the first round with R = ∞
        ((lambda * (t - 1.0) + self.s) / whole, q / whole)
    }

    /// Lines 6–11. Gives η_t, or 0 where z = 0.
    pub(crate) fn step(&mut self, visit: &mut Visit<'_, impl Expansion>) -> f64 {
        let (shrink, eta) = self.sizes(visit.theta.length(), visit.z.length()); // lines 6–8
        visit.scale(shrink);
        let eta = visit.subtract(eta); // line 9
        visit.project(self.q * self.radius); // lines 10, 11
        eta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formulas as they stand in the paper.
    fn plain(lambda: f64, q: f64, radius: f64, seen: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut s = 0.0;
        let seen = seen.iter().enumerate();
        seen.map(|(t, &(length, gradient))| {
            let t = t as f64 + 1.0;
            let d = lambda * t + s;
            let slope = lambda / q * length + gradient;
            s += 0.5 * ((d * d + q * slope * slope / (radius * radius)).sqrt() - d);
            let step = q / (lambda * t + s);
            (1.0 - lambda * step / q, step)
        })
        .collect()
    }

    #[test]
    fn steps_are_the_papers() {
        let seen: Vec<(f64, f64)> = (0..200)
            .map(|t| (f64::from(t % 17), f64::from(t % 3) * 0.7))
            .collect();
        for (lambda, q, radius) in [(0.01, 2.0, 3.0), (1e-4, 11.0, 40.0), (0.3, 10001.0, 1.0)] {
            let mut stage = Stage2::new(lambda, q, radius);
            let want = plain(lambda, q, radius, &seen);
            for ((want_shrink, want_eta), &(length, gradient)) in want.into_iter().zip(&seen) {
                let (shrink, eta) = stage.sizes(length, gradient);
                assert!((eta - want_eta).abs() <= 1e-9 * want_eta);
                assert!((shrink - want_shrink).abs() <= 1e-9);
            }
        }
    }

    #[test]
    fn without_a_radius_the_steps_are_those_of_pegasos() {
        let (lambda, q) = (0.02, 4.0);
        let mut stage = Stage2::new(lambda, q, f64::INFINITY);
        for t in 1..50 {
            let (shrink, eta) = stage.sizes(3.0, 1.4);
            let t = f64::from(t);
            assert!((eta - q / (lambda * t)).abs() <= 1e-12 * eta);
            assert!((shrink - (1.0 - 1.0 / t)).abs() <= 1e-15);
            if t == 1.0 {
                assert_eq!(shrink, 0.0);
            }
            let (next, later) = (
                Stage2::pegasos(lambda, q, t as u64).sizes(3.0, 1.4),
                { stage }.sizes(3.0, 1.4),
            );
            assert_eq!(next, later, "t is all that Pegasos remembers");
        }
        // a radius that grows gives the same in the limit
        for (radius, close) in [(1e3, 1e-2), (1e6, 1e-7)] {
            let mut near = Stage2::new(lambda, q, radius);
            let mut far = Stage2::new(lambda, q, f64::INFINITY);
            for _ in 0..50 {
                let (near, far) = (near.sizes(3.0, 1.4).1, far.sizes(3.0, 1.4).1);
                assert!((near - far).abs() <= close * far);
            }
        }
    }
}
