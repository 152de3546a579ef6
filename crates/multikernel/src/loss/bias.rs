//! The best bias: argmin over b of B(b) = Σ_i C_i ℓ(f_i + b, y_i).
//!
//! All but the logistic loss are piecewise quadratic. Their derivative B' is evaluated at the kinks themselves, found by
//! bisection on the sorted kinks (O(n log n) in all), and is linear between two of them. Samples are seen from b: with
//! p_i = y_i − f_i (the bias at which f_i + b = y_i) every loss is a function of b − p_i, and a kink compares equal
//! to itself, which f_i + b would not.

use super::Loss;

/// Enough to halve any bracket of numbers down to neighbours.
const MAX_HALVINGS: usize = 2200;

/// e^(−750) is 0: with this margin the logistic loss is 0.
const MARGIN_WITHOUT_LOSS: f64 = 750.0;

/// A sum of slopes this small relative to the sum of their sizes counts as 0.
const ROUNDING: f64 = 1e-14;

struct Sample {
    /// y_i − f_i
    zero: f64,
    y: f64,
    cost: f64,
}

pub(super) fn best(loss: Loss, scores: &[f64], targets: &[f64], costs: &[f64]) -> f64 {
    let samples: Vec<Sample> = scores
        .iter()
        .zip(targets)
        .zip(costs)
        .filter(|(_, cost)| **cost > 0.0)
        .map(|((score, &y), &cost)| {
            let y = loss.sign(y);
            Sample {
                zero: y - score,
                y,
                cost,
            }
        })
        .collect();
    if samples.is_empty() {
        return 0.0;
    }
    match loss {
        Loss::Logistic => logistic(&samples),
        Loss::Squared => {
            // around one of them, so that a common offset costs no digits
            let origin = samples[0].zero;
            let total: f64 = samples.iter().map(|sample| sample.cost).sum();
            origin
                + samples
                    .iter()
                    .map(|sample| sample.cost / total * (sample.zero - origin))
                    .sum::<f64>()
        }
        _ => piecewise(loss, &samples),
    }
}

fn piecewise(loss: Loss, samples: &[Sample]) -> f64 {
    let mut kinks: Vec<f64> = samples
        .iter()
        .flat_map(|sample| sample.kinks(loss))
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
fn newton(loss: Loss, samples: &[Sample], from: f64, to: f64) -> f64 {
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
fn slopes(loss: Loss, samples: &[Sample], b: f64) -> (f64, f64) {
    let (mut left, mut right, mut size) = (0.0, 0.0, 0.0);
    for sample in samples {
        let (l, r) = sample.slopes(loss, b);
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
fn curvature(loss: Loss, samples: &[Sample], from: f64, to: f64) -> f64 {
    let inside = match (from.is_finite(), to.is_finite()) {
        (true, true) => 0.5 * from + 0.5 * to,
        (true, false) => from + to.signum() * (1.0 + from.abs()),
        _ => to,
    };
    samples
        .iter()
        .map(|sample| sample.cost * sample.curvature(loss, inside))
        .sum()
}

impl Sample {
    fn kinks(&self, loss: Loss) -> impl Iterator<Item = f64> + use<> {
        let (first, second) = match loss {
            Loss::Epsilon(width) | Loss::Huber(width) => {
                (self.zero - width, Some(self.zero + width))
            }
            _ => (self.zero, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Left and right derivative of this sample's loss at b.
    fn slopes(&self, loss: Loss, b: f64) -> (f64, f64) {
        let step = |kink: f64| {
            let left = f64::from(u8::from(b > kink));
            let right = f64::from(u8::from(b >= kink));
            (left, right)
        };
        match loss {
            Loss::Epsilon(epsilon) => {
                let (low, high) = (step(self.zero - epsilon), step(self.zero + epsilon));
                (low.0 + high.0 - 1.0, low.1 + high.1 - 1.0)
            }
            Loss::Huber(delta) => {
                let slope = if b <= self.zero - delta {
                    -delta
                } else if b >= self.zero + delta {
                    delta
                } else {
                    (b - self.zero).clamp(-delta, delta)
                };
                (slope, slope)
            }
            Loss::SquaredHinge => {
                let slope = 2.0 * (b - self.zero);
                let slope = if self.y > 0.0 {
                    slope.min(0.0)
                } else {
                    slope.max(0.0)
                };
                (slope, slope)
            }
            _ => {
                let (left, right) = step(self.zero);
                let before = if self.y > 0.0 { -1.0 } else { 0.0 };
                (before + left, before + right)
            }
        }
    }

    fn curvature(&self, loss: Loss, b: f64) -> f64 {
        let curved = match loss {
            Loss::Huber(delta) => (b - self.zero).abs() < delta,
            Loss::SquaredHinge => (b < self.zero) == (self.y > 0.0),
            _ => false,
        };
        match (curved, loss) {
            (true, Loss::SquaredHinge) => 2.0,
            (true, _) => 1.0,
            (false, _) => 0.0,
        }
    }
}

/// Newton inside a bracket, halving where it leaves it.
fn logistic(samples: &[Sample]) -> f64 {
    // y (f + b) = y (b − p) + 1
    let derivatives = |b: f64| {
        let (mut first, mut second) = (0.0, 0.0);
        for sample in samples {
            let margin = sample.y * (b - sample.zero) + 1.0;
            let small = (-margin.abs()).exp();
            let miss = if margin > 0.0 {
                small / (1.0 + small)
            } else {
                1.0 / (1.0 + small)
            };
            first -= sample.cost * sample.y * miss;
            second += sample.cost * small / ((1.0 + small) * (1.0 + small));
        }
        (first, second)
    };
    // with all margins of one class this large that class pulls with force 0
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for sample in samples {
        let reach = sample.zero + sample.y * MARGIN_WITHOUT_LOSS;
        low = low.min(reach);
        high = high.max(reach);
    }
    if samples.iter().all(|sample| sample.y > 0.0) {
        return high;
    }
    if samples.iter().all(|sample| sample.y < 0.0) {
        return low;
    }
    let mut b = 0.5 * low + 0.5 * high;
    let mut last_step = high - low;
    for _ in 0..MAX_HALVINGS {
        let (first, second) = derivatives(b);
        if first > 0.0 {
            high = b;
        } else if first < 0.0 {
            low = b;
        } else {
            break;
        }
        // In the exponential tails Newton walks in steps of one: halve unless it at least halves its step.
        let newton = b - first / second;
        let fast = newton > low && newton < high && (newton - b).abs() < 0.5 * last_step;
        let next = if fast { newton } else { 0.5 * low + 0.5 * high };
        if next == b || next <= low || next >= high {
            break;
        }
        last_step = (next - b).abs();
        b = next;
    }
    b
}
