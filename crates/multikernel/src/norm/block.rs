//! Block norms ‖g‖_r, 1 ≤ r ≤ ∞, and what exact line searches need of their duals.
//!
//! With 1/r + 1/r* = 1, q_m = s_m² and e = r*/2 − 1 (so e = ∞, 1/(p−1), 0, −½ for r = 1, Kloft's p, 2, ∞):
//! Ω*² = ‖q‖_{e+1} and the dual map is β_m = (q_m/‖q‖_{e+1})^e. Everything is scaled by the largest entry first, so that
//! powers are taken of numbers in [0, 1]: they may underflow to an honest 0, never overflow.

use super::spec::{Exponent, NormInfo, NormSpec};

/// Above this, repeated multiplication loses more digits than `powf`.
const LARGEST_INTEGER_POWER: f64 = 64.0;

/// Independent partial sums: lets the compiler use vector instructions in a fixed order of summation.
const LANES: usize = 4;

/// A quadratic form this much smaller than the largest is 0 in [`BlockNorm::along`]: its negative powers would overflow.
const VANISHING: f64 = 1e-150;

pub(super) const LP: NormInfo = NormInfo {
    name: "lp",
    argument: Some("P"),
    means: "Kloft's p on the kernel weights, 1 to inf, fractions like 4/3",
    read: |p| p.parse().map(NormSpec::Lp),
};

pub(super) const BLOCK: NormInfo = NormInfo {
    name: "block",
    argument: Some("R"),
    means: "the exponent on the group norms, 1 to inf",
    read: |r| r.parse().map(NormSpec::Block),
};

pub(super) const BLOCK_AUTO: NormInfo = NormInfo {
    name: "block:auto",
    argument: None,
    means: "the block norm of OM-2's corollary, whose price grows with the logarithm of the kernels' number",
    read: |_| Ok(NormSpec::BlockAuto),
};

/// The block norm ‖g‖_r with everything that follows from r.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockNorm {
    r: f64,
    r_dual: f64,
    e: f64,
}

/// ½Ω*² along a line and its first two derivatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlongLine {
    /// ½Ω*(s(h))²
    pub value: f64,
    /// Its derivative, Σ β_m(h) (g_m + h r_m); from the right where there is a kink.
    pub first: f64,
    /// Its second derivative; not negative, +∞ where a kernel with r > 2 is just being switched on.
    pub second: f64,
}

impl BlockNorm {
    /// The block norm with exponent r itself.
    pub fn block(r: Exponent) -> Self {
        let (numerator, denominator) = r.parts();
        if numerator.is_infinite() {
            return Self {
                r: f64::INFINITY,
                r_dual: 1.0,
                e: -0.5,
            };
        }
        let above_one = numerator - denominator;
        let e = (2.0 * denominator - numerator) / (2.0 * above_one);
        Self::with(r.value(), numerator / above_one, e, numerator / above_one)
    }

    /// The block norm r = 2p/(p+1) of Kloft's p on the kernel weights.
    pub fn lp(p: Exponent) -> Self {
        let (numerator, denominator) = p.parts();
        if numerator.is_infinite() {
            return Self {
                r: 2.0,
                r_dual: 2.0,
                e: 0.0,
            };
        }
        let above_one = numerator - denominator;
        Self::with(
            numerator / (0.5 * numerator + 0.5 * denominator),
            numerator / (0.5 * above_one),
            denominator / above_one,
            numerator / above_one,
        )
    }

    /// OM-2's corollary: r = 2 ln M / (2 ln M − 1), or 2 for at most two kernels.
    pub fn auto(n_kernels: usize) -> Self {
        if n_kernels <= 2 {
            return Self::with(2.0, 2.0, 0.0, 1.0);
        }
        let r_dual = 2.0 * (n_kernels as f64).ln();
        Self::with(r_dual / (r_dual - 1.0), r_dual, 0.5 * r_dual - 1.0, 1.0)
    }

    /// `condition` bounds how many times larger the relative error of e is than that of the number it came from: within that
    /// error an integer e is what was meant (1.1 is not a binary fraction), and integers are fast.
    fn with(r: f64, r_dual: f64, e: f64, condition: f64) -> Self {
        let nearest = e.round();
        let meant = nearest != 0.0
            && nearest.abs() <= LARGEST_INTEGER_POWER
            && (e - nearest).abs() <= 4.0 * f64::EPSILON * condition * nearest.abs();
        if meant {
            Self {
                r,
                r_dual: 2.0 * (nearest + 1.0),
                e: nearest,
            }
        } else {
            Self { r, r_dual, e }
        }
    }

    /// The exponent r on the group norms.
    pub fn r(&self) -> f64 {
        self.r
    }

    /// The exponent r* of the dual norm.
    pub fn r_dual(&self) -> f64 {
        self.r_dual
    }

    /// Kloft's p = r/(2−r) on the kernel weights; none for r > 2.
    pub fn p(&self) -> Option<f64> {
        (self.r <= 2.0).then(|| 1.0 + 1.0 / self.e)
    }

    /// Scales weights to where the maps put theirs: ‖β‖_p = 1 for r < 2; for r > 2 the same of 1/β with
    /// p = r*/(2−r*). Weights of 0 stay 0. At r = 2 weights are 1 and not scaled.
    pub fn normalize_weights(&self, beta: &mut [f64]) {
        if self.r < 2.0 {
            let size = length(beta, self.r / (2.0 - self.r));
            if size > 0.0 {
                beta.iter_mut().for_each(|b| *b /= size);
            }
        } else if self.r > 2.0 {
            let inverse: Vec<f64> = beta
                .iter()
                .map(|&b| if b > 0.0 { 1.0 / b } else { 0.0 })
                .collect();
            let size = length(&inverse, self.r_dual / (2.0 - self.r_dual));
            if size > 0.0 {
                beta.iter_mut().for_each(|b| *b *= size);
            }
        }
    }

    /// Ω(g) = ‖g‖_r.
    pub fn value(&self, g: &[f64]) -> f64 {
        length(g, self.r)
    }

    /// Ω*(s) = ‖s‖_{r*}.
    pub fn dual(&self, s: &[f64]) -> f64 {
        length(s, self.r_dual)
    }

    /// The weight of each of M kernels that look alike: M^((r−2)/r).
    pub fn initial_weight(&self, n_kernels: usize) -> f64 {
        // (r−2)/r = 1 − 2/r, which also holds for r = ∞
        (n_kernels as f64).powf(1.0 - 2.0 / self.r)
    }

    /// β_m = (g_m/Ω(g))^(2−r); false (and β untouched) for r = ∞, where g does not determine β.
    pub fn primal_map(&self, g: &[f64], beta: &mut [f64]) -> bool {
        if self.r.is_infinite() {
            return false;
        }
        let top = largest(g);
        if top == 0.0 || self.r == 2.0 {
            beta.fill(self.initial_weight(g.len()));
            return true;
        }
        // one power serves both: x^r = x²/x^(2−r)
        let power = Power::new(2.0 - self.r);
        let mut sum = 0.0;
        for (beta, &g) in beta.iter_mut().zip(g) {
            let x = g.abs() / top;
            *beta = if x == 0.0 { 0.0 } else { power.of(x) };
            sum += if x == 0.0 { 0.0 } else { x / *beta * x };
        }
        rescale(beta, sum.powf((self.r - 2.0) / self.r));
        true
    }

    /// β_m = (s_m/Ω*(s))^(r*−2).
    pub fn dual_map(&self, s: &[f64], beta: &mut [f64]) {
        let top = largest(s);
        if top == 0.0 || self.e == 0.0 {
            beta.fill(self.initial_weight(s.len()));
        } else if self.e.is_infinite() {
            let ties = s.iter().filter(|s| s.abs() == top).count() as f64;
            for (beta, &s) in beta.iter_mut().zip(s) {
                *beta = if s.abs() == top { 1.0 / ties } else { 0.0 };
            }
        } else {
            // The ratio to the largest entry is raised, not the ratio to Ω*: for r → 1 the latter is rounded near 1
            // and the exponent (10001 and more) would blow that rounding up.
            let power = Power::new(2.0 * self.e);
            let mut sum = 0.0;
            for (beta, &s) in beta.iter_mut().zip(s) {
                let x = s.abs() / top;
                *beta = if x == 0.0 { 0.0 } else { power.of(x) };
                // for r > 2 the power may overflow, where its share of the sum is nothing
                sum += if beta.is_infinite() {
                    0.0
                } else {
                    *beta * x * x
                };
            }
            rescale(beta, sum.powf(-self.e / (self.e + 1.0)));
        }
    }

    /// The dual map of s_m = √q_m, as [`BlockNorm::dual_map`], and Ω*(s), for one power per kernel.
    ///
    /// For r ≤ 2; small negative q_m, left by rounding, count as 0. Where all are 0, so is Ω*.
    pub fn dual_map_of_squares(&self, q: &[f64], beta: &mut [f64]) -> f64 {
        let top = q.iter().fold(0.0f64, |top, q| top.max(*q));
        if top == 0.0 || self.e == 0.0 {
            beta.fill(self.initial_weight(q.len()));
            return q.iter().map(|q| q.max(0.0)).sum::<f64>().sqrt();
        }
        if self.e.is_infinite() {
            let ties = q.iter().filter(|q| **q == top).count() as f64;
            for (beta, &q) in beta.iter_mut().zip(q) {
                *beta = if q == top { 1.0 / ties } else { 0.0 };
            }
            return top.sqrt();
        }
        let power = Power::new(self.e);
        let mut sum = 0.0;
        for (beta, &q) in beta.iter_mut().zip(q) {
            let x = q / top;
            *beta = if x > 0.0 { power.of(x) } else { 0.0 };
            sum += if x > 0.0 { *beta * x } else { 0.0 };
        }
        rescale(beta, sum.powf(-self.e / (self.e + 1.0)));
        (top * sum.powf(1.0 / (self.e + 1.0))).sqrt()
    }

    /// ½Ω*² and its derivatives at h along q_m(h) = q_m + 2 h g_m + h² r_m, in O(M) and without allocation.
    ///
    /// The three slices have one entry per kernel: q = aᵀK_m a, g = dᵀK_m a and r = dᵀK_m d for a step a + h d.
    /// Small negative q_m(h), left by rounding, count as 0.
    pub fn along(&self, q: &[f64], g: &[f64], r: &[f64], h: f64) -> AlongLine {
        let e = self.e;
        if e == 0.0 {
            return straight(q, g, r, h);
        }
        let top = largest_at(q, g, r, h);
        if top < f64::MIN_POSITIVE {
            // a = 0: here q_m(h) = h² r_m exactly
            let second = if e.is_infinite() {
                largest(r)
            } else {
                length(r, e + 1.0)
            };
            return AlongLine {
                value: 0.0,
                first: 0.0,
                second,
            };
        }
        if e.is_infinite() {
            return steepest(q, g, r, h, top);
        }
        let sums = if e == 1.0 {
            Sums::over(q, g, r, h, top, |_| 1.0)
        } else if e == 2.0 {
            Sums::over(q, g, r, h, top, |x| x)
        } else if e == 3.0 {
            Sums::over(q, g, r, h, top, |x| x * x)
        } else if e == 10.0 {
            Sums::over(q, g, r, h, top, |x| {
                let cube = x * x * x;
                cube * cube * cube
            })
        } else {
            let power = Power::new(e - 1.0);
            Sums::over(q, g, r, h, top, |x| {
                if x > VANISHING { power.of(x) } else { 0.0 }
            })
        };
        let norm = top * sums.q.powf(1.0 / (e + 1.0));
        let scale = sums.q.powf(-e / (e + 1.0));
        let first = scale * sums.v;
        let curvature = scale * sums.r + 2.0 * e * (scale * sums.v2 - first / norm * first);
        let switched_on = e < 0.0
            && (0..q.len()).any(|m| r[m] > 0.0 && at(q[m], g[m], r[m], h) <= VANISHING * top);
        AlongLine {
            value: 0.5 * norm,
            first,
            second: if switched_on {
                f64::INFINITY
            } else {
                curvature.max(0.0)
            },
        }
    }
}

/// A weight beyond the numbers, for r > 2 and a group that almost vanishes, becomes the largest number.
fn rescale(beta: &mut [f64], factor: f64) {
    for beta in beta {
        let scaled = *beta * factor;
        *beta = if scaled > f64::MAX { f64::MAX } else { scaled };
    }
}

/// The largest magnitude; NaN if there is one.
pub(super) fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |top, x| {
        let x = x.abs();
        if x > top || x.is_nan() { x } else { top }
    })
}

/// ‖x‖_exponent, scaled by the largest entry.
fn length(x: &[f64], exponent: f64) -> f64 {
    let top = largest(x);
    if exponent.is_infinite() || top == 0.0 || !top.is_finite() {
        return top;
    }
    let power = Power::new(exponent);
    let sum: f64 = x.iter().map(|x| power.of(x.abs() / top)).sum();
    top * Power::new(1.0 / exponent).of(sum)
}

/// x^exponent for x ≥ 0, without `powf` where multiplication or a root will do.
#[derive(Debug, Clone, Copy)]
enum Power {
    Integer(i32),
    IntegerAndHalf(i32),
    General(f64),
}

impl Power {
    fn new(exponent: f64) -> Self {
        let below = exponent.floor();
        if exponent.abs() > LARGEST_INTEGER_POWER {
            Power::General(exponent)
        } else if exponent == below {
            Power::Integer(below as i32)
        } else if exponent == below + 0.5 {
            Power::IntegerAndHalf(below as i32)
        } else {
            Power::General(exponent)
        }
    }

    #[inline]
    fn of(self, x: f64) -> f64 {
        match self {
            Power::Integer(0) => 1.0,
            Power::Integer(1) => x,
            Power::Integer(2) => x * x,
            Power::Integer(k) => x.powi(k),
            Power::IntegerAndHalf(0) => x.sqrt(),
            Power::IntegerAndHalf(k) => x.powi(k) * x.sqrt(),
            Power::General(exponent) => x.powf(exponent),
        }
    }
}

#[inline]
fn at(q: f64, g: f64, r: f64, h: f64) -> f64 {
    let value = q + h * (2.0 * g + h * r);
    // keeps NaN, unlike max
    if value < 0.0 { 0.0 } else { value }
}

/// The sums of `term(q, g, r)` over all kernels, each in [`LANES`] parts.
#[inline(always)]
fn sums<const N: usize>(
    q: &[f64],
    g: &[f64],
    r: &[f64],
    term: impl Fn(f64, f64, f64) -> [f64; N],
) -> [f64; N] {
    let mut parts = [[0.0; LANES]; N];
    let (q_chunks, q_rest) = q.as_chunks::<LANES>();
    let (g_chunks, g_rest) = g.as_chunks::<LANES>();
    let (r_chunks, r_rest) = r.as_chunks::<LANES>();
    for ((q, g), r) in q_chunks.iter().zip(g_chunks).zip(r_chunks) {
        let terms: [[f64; N]; LANES] = std::array::from_fn(|lane| term(q[lane], g[lane], r[lane]));
        for (at, parts) in parts.iter_mut().enumerate() {
            for (part, term) in parts.iter_mut().zip(&terms) {
                *part += term[at];
            }
        }
    }
    for ((q, g), r) in q_rest.iter().zip(g_rest).zip(r_rest) {
        for (parts, term) in parts.iter_mut().zip(term(*q, *g, *r)) {
            parts[0] += term;
        }
    }
    parts.map(|parts| parts.into_iter().sum())
}

fn largest_at(q: &[f64], g: &[f64], r: &[f64], h: f64) -> f64 {
    let mut top = 0.0;
    for ((q, g), r) in q.iter().zip(g).zip(r) {
        let value = at(*q, *g, *r, h);
        top = if value > top { value } else { top };
    }
    top
}

/// r = 2: the sum of the quadratic forms.
fn straight(q: &[f64], g: &[f64], r: &[f64], h: f64) -> AlongLine {
    let [q, g, r] = sums(q, g, r, |q, g, r| [q, g, r]);
    AlongLine {
        value: 0.5 * at(q, g, r, h),
        first: g + h * r,
        second: r,
    }
}

/// r = 1: the largest quadratic form; among equals the one that rises fastest, which gives the right derivative.
fn steepest(q: &[f64], g: &[f64], r: &[f64], h: f64, top: f64) -> AlongLine {
    let (first, second) = q
        .iter()
        .zip(g)
        .zip(r)
        .filter(|&((&q, &g), &r)| at(q, g, r, h) == top)
        .map(|((_, &g), &r)| (g + h * r, r))
        .fold(
            (f64::NEG_INFINITY, 0.0),
            |best, v| if v > best { v } else { best },
        );
    AlongLine {
        value: 0.5 * top,
        first,
        second,
    }
}

/// With x = q(h)/top and v = g + h r: Σ x^(e+1), Σ x^e v, Σ x^e r, Σ x^(e−1) v²/top.
struct Sums {
    q: f64,
    v: f64,
    r: f64,
    v2: f64,
}

impl Sums {
    /// `power` is x ↦ x^(e−1): one power serves all four sums.
    #[inline(always)]
    fn over(q: &[f64], g: &[f64], r: &[f64], h: f64, top: f64, power: impl Fn(f64) -> f64) -> Self {
        let inverse = 1.0 / top;
        let [q, v, r, v2] = sums(q, g, r, |q, g, r| {
            let v = g + h * r;
            let x = at(q, g, r, h) * inverse;
            let low = power(x);
            let high = low * x;
            // v² ≤ q r for a kernel; rounding may break it where q(h) almost vanishes, and e < 1 would blow that up
            let (v2, bound) = (v * inverse * v, x * r);
            let v2 = if v2 < bound { v2 } else { bound };
            [high * x, high * v, high * r, low * v2]
        });
        Sums { q, v, r, v2 }
    }
}
