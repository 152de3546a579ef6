//! The best bias: argmin over b of B(b) = Σ_i C_i ℓ(f_i + b, y_i).
//!
//! All but the logistic loss are piecewise quadratic. Their derivative B' is evaluated at the kinks themselves, found by
//! bisection on the sorted kinks (O(n log n) in all), and is linear between two of them. Samples are seen from b: with
//! p_i = y_i − f_i (the bias at which f_i + b = y_i) every loss is a function of b − p_i, and a kink compares equal
//! to itself, which f_i + b would not.

/// A sum of slopes this small relative to the sum of their sizes counts as 0.
const ROUNDING: f64 = 1e-14;

/// A sample that counts, as seen from the bias.
pub(super) struct Sample {
    /// p_i = y_i − f_i
    pub(super) zero: f64,
    pub(super) y: f64,
    pub(super) cost: f64,
}

/// A loss whose derivative in the bias b is linear between kinks.
pub(super) trait Piecewise {
    /// Where the derivative has kinks.
    fn kinks(&self, sample: &Sample) -> (f64, Option<f64>) {
        (sample.zero, None)
    }

    /// Left and right derivative of the sample's loss at b.
    fn slopes(&self, sample: &Sample, b: f64) -> (f64, f64);

    /// Its second derivative between two kinks.
    fn curvature(&self, _sample: &Sample, _b: f64) -> f64 {
        0.0
    }
}

/// The samples with a positive cost; `sign` is the target as the loss sees it.
pub(super) fn samples(
    scores: &[f64],
    targets: &[f64],
    costs: &[f64],
    sign: impl Fn(f64) -> f64,
) -> Vec<Sample> {
    scores
        .iter()
        .zip(targets)
        .zip(costs)
        .filter(|(_, cost)| **cost > 0.0)
        .map(|((score, &y), &cost)| {
            let y = sign(y);
            Sample {
                zero: y - score,
                y,
                cost,
            }
        })
        .collect()
}

/// Left and right value at b of a step from 0 to 1.
pub(super) fn step(b: f64, kink: f64) -> (f64, f64) {
    let left = f64::from(u8::from(b > kink));
    let right = f64::from(u8::from(b >= kink));
    (left, right)
}

/// The best bias of at least one sample; where a whole interval is best, its middle.
pub(super) fn piecewise(loss: &impl Piecewise, samples: &[Sample]) -> f64 {
    let mut kinks: Vec<f64> = samples
        .iter()
        .map(|sample| loss.kinks(sample))
        .flat_map(|(first, second)| std::iter::once(first).chain(second))
        .collect();
    kinks.sort_unstable_by(f64::total_cmp);
    kinks.dedup();
    // the first kink from which the sum does not fall
    let turn = kinks.partition_point(|&b| slopes(loss, samples, b).1 < 0.0);
    let Some(&at) = kinks.get(turn) else {
        let last = kinks[kinks.len() - 1];
        return last + newton(loss, samples, last, f64::INFINITY);
    };
    let (left, right) = slopes(loss, samples, at);
    if left > 0.0 {
        let before = if turn > 0 {
            kinks[turn - 1]
        } else {
            f64::NEG_INFINITY
        };
        return (at + newton(loss, samples, at, before)).max(before);
    }
    // flat up to the next kink, unless the slope rises at once
    if right == 0.0
        && let Some(&next) = kinks.get(turn + 1)
        && curvature(loss, samples, at, next) == 0.0
    {
        return 0.5 * at + 0.5 * next;
    }
    at
}

/// The step from the kink `from` to the zero of B' on the linear piece towards `to`.
fn newton(loss: &impl Piecewise, samples: &[Sample], from: f64, to: f64) -> f64 {
    let (left, right) = slopes(loss, samples, from);
    let curvature = curvature(loss, samples, from, to);
    let slope = if to < from { left } else { right };
    if curvature > 0.0 {
        -slope / curvature
    } else {
        0.0
    }
}

/// B'(b) from the left and from the right.
fn slopes(loss: &impl Piecewise, samples: &[Sample], b: f64) -> (f64, f64) {
    let (mut left, mut right, mut size) = (0.0, 0.0, 0.0);
    for sample in samples {
        let (l, r) = loss.slopes(sample, b);
        left += sample.cost * l;
        right += sample.cost * r;
        size += sample.cost * l.abs().max(r.abs());
    }
    let rounded = |slope: f64| {
        if slope.abs() <= ROUNDING * size {
            0.0
        } else {
            slope
        }
    };
    (rounded(left), rounded(right))
}

/// B'' between two neighbouring kinks, one of which may be infinite.
fn curvature(loss: &impl Piecewise, samples: &[Sample], from: f64, to: f64) -> f64 {
    let inside = match (from.is_finite(), to.is_finite()) {
        (true, true) => 0.5 * from + 0.5 * to,
        (true, false) => from + to.signum() * (1.0 + from.abs()),
        _ => to,
    };
    samples
        .iter()
        .map(|sample| sample.cost * loss.curvature(sample, inside))
        .sum()
}
