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

    /// φ(t) of many t ≥ 0 in f32, each the same whatever stands beside it.
    pub(crate) fn values(&self, t: &[f32], out: &mut [f32]) {
        match *self {
            Profile::Identity => out.copy_from_slice(t),
            Profile::Poly { .. } => {
                for (out, t) in out.iter_mut().zip(t) {
                    *out = self.value(f64::from(*t)) as f32;
                }
            }
            Profile::Exp { width } => exponentials(t, width, out),
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

/// exp(−t/w) for t ≥ 0, to about 1e-7 of the value; 1 at t = 0, and 0 below the smallest normal number.
#[multiversion::multiversion(targets("x86_64+avx2+fma", "x86_64+avx512f+avx512vl"))]
fn exponentials(t: &[f32], width: f64, out: &mut [f32]) {
    let slope = (-1.0 / width) as f32;
    for (out, t) in out.iter_mut().zip(t) {
        *out = exponential(slope * t);
    }
}

/// eˣ for x ≤ 0: 2ⁿ·eʳ with |r| ≤ ½ ln 2, whose Taylor series to the seventh power is right to 6e-9.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    /// Adding it leaves a float's whole part in its last bits.
    const ROUNDING: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first with so few bits that n times it is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;
    let held = x.max(-87.0);
    let shifted = held * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = (held - n * LN2_HIGH) - n * LN2_LOW;
    let mut series = 1.0 / 5040.0;
    series = series * r + 1.0 / 720.0;
    series = series * r + 1.0 / 120.0;
    series = series * r + 1.0 / 24.0;
    series = series * r + 1.0 / 6.0;
    series = series * r + 0.5;
    series = series * r + 1.0;
    series = series * r + 1.0;
    // the last bits of `shifted` are n; a float's exponent stands above its 23 bits
    let power = shifted.to_bits().wrapping_sub(ROUNDING.to_bits());
    let two_to_n = f32::from_bits(power.wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { series * two_to_n }
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

    #[test]
    fn exponentials_are_right_to_single_precision() {
        let t: Vec<f32> = (0..200_000).map(|k| k as f32 * 5e-4).collect();
        let mut out = vec![0.0; t.len()];
        exponentials(&t, 1.0, &mut out);
        assert_eq!(out[0], 1.0);
        for (t, v) in t.iter().zip(&out) {
            let want = (-f64::from(*t)).exp();
            if *t > 87.0 {
                assert_eq!(*v, 0.0);
            } else {
                assert!(
                    (f64::from(*v) - want).abs() <= 3e-7 * want,
                    "{t}: {v} {want}"
                );
            }
        }
        let mut far = [1.0];
        exponentials(&[f32::INFINITY], 1.0, &mut far);
        assert_eq!(far, [0.0]);
    }
}
