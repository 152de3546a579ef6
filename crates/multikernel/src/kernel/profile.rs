//! Profiles: the scalar function φ that turns a statistic into a kernel value. Each formula stands here, once.

/// φ of k(x, x') = φ(t(x, x')).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// t
    Identity,
    /// (γ t + c)^d
    Poly {
        /// γ
        gamma: f64,
        /// c
        coef0: f64,
        /// d
        degree: u32,
    },
    /// exp(−t/w)
    Exp {
        /// w
        width: f64,
    },
}

impl Profile {
    /// φ(t).
    pub fn value(&self, t: f64) -> f64 {
        match *self {
            Profile::Identity => t,
            Profile::Poly {
                gamma,
                coef0,
                degree,
            } => (gamma * t + coef0).powi(degree as i32),
            Profile::Exp { width } => (-t / width).exp(),
        }
    }

    /// Bounds of |φ⁽ᵏ⁾| on [lo, hi] for each k; of |φ| itself for k = 0.
    pub fn derivative_bounds<const N: usize>(&self, ks: [u32; N], lo: f64, hi: f64) -> [f64; N] {
        match *self {
            Profile::Identity => ks.map(|k| match k {
                0 => lo.abs().max(hi.abs()),
                1 => 1.0,
                _ => 0.0,
            }),
            Profile::Poly {
                gamma,
                coef0,
                degree,
            } => {
                // |γt + c| is largest at an end of the interval.
                let base = (gamma * lo + coef0).abs().max((gamma * hi + coef0).abs());
                ks.map(|k| {
                    if k > degree {
                        return 0.0;
                    }
                    let falling: f64 = (0..k).map(|j| f64::from(degree - j)).product();
                    falling * gamma.abs().powi(k as i32) * base.powi((degree - k) as i32)
                })
            }
            Profile::Exp { width } => {
                let largest = self.value(lo);
                ks.map(|k| largest * width.powi(-(k as i32)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivative_bounds_hold_and_are_not_idle() {
        let profiles = [
            Profile::Identity,
            Profile::Poly {
                gamma: 0.7,
                coef0: 1.0,
                degree: 5,
            },
            Profile::Exp { width: 1.7 },
        ];
        for p in profiles {
            for (lo, hi) in [(0.0, 0.3), (1.0, 1.2), (5.0, 9.0)] {
                let h = 1e-5 * (hi - lo);
                let bounds = p.derivative_bounds([0, 1], lo, hi);
                let mut largest = [0.0f64; 2];
                for i in 0..=100 {
                    let t = lo + (hi - lo - h) * f64::from(i) / 100.0;
                    largest[0] = largest[0].max(p.value(t).abs());
                    largest[1] = largest[1].max(((p.value(t + h) - p.value(t)) / h).abs());
                }
                for (largest, bound) in largest.iter().zip(bounds) {
                    assert!(*largest <= bound * 1.0001, "{p:?} on [{lo}, {hi}]");
                    assert!(*largest >= bound * 0.99, "{p:?} on [{lo}, {hi}]");
                }
            }
        }
    }
}
