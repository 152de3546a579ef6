//! The logistic loss: ln(1 + e^(−y t)).

use super::LossSpec;
use super::bias::Sample;
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, both, positive};
use crate::data::Task;

pub(super) const INFO: LossInfo = LossInfo {
    name: "logistic",
    made: Made::Plain(LossSpec::Scalar(Loss::Logistic)),
    tasks: &[Task::Classify],
    needs_signs: true,
    traits: Traits {
        stays_inside: true,
        ..Traits::NONE
    },
};

/// Enough to halve any bracket of numbers down to neighbours.
const MAX_HALVINGS: usize = 2200;

/// e^(−750) is 0: with this margin the logistic loss is 0.
const MARGIN_WITHOUT_LOSS: f64 = 750.0;

pub(super) struct Logistic;

impl Formula for Logistic {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        // ln(1 + e^x) = max(x, 0) + ln(1 + e^−|x|) does not overflow
        positive(-y * t) + (-(y * t).abs()).exp().ln_1p()
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        both(-y / (1.0 + (y * t).exp()))
    }

    fn feasible(&self, c: f64, y: f64) -> (f64, f64) {
        if y > 0.0 { (0.0, c) } else { (-c, 0.0) }
    }

    fn dual_term(&self, a: f64, c: f64, y: f64) -> f64 {
        let u = y * a / c;
        c * (entropy_part(u) + rest_of_entropy(u))
    }

    fn dual_slopes(&self, a: f64, c: f64, y: f64) -> (f64, f64) {
        let u = y * a / c;
        both(y * ((-u).ln_1p() - u.ln()))
    }

    fn dual_curvature(&self, a: f64, c: f64, y: f64) -> f64 {
        let u = y * a / c;
        1.0 / (c * u * (1.0 - u))
    }

    /// Newton inside a bracket, halving where it leaves it.
    fn best_bias(&self, samples: &[Sample]) -> f64 {
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
}

/// −u ln u
fn entropy_part(u: f64) -> f64 {
    if u == 0.0 { 0.0 } else { -u * u.ln() }
}

/// −(1−u) ln(1−u), with all digits for small u
fn rest_of_entropy(u: f64) -> f64 {
    if u == 1.0 {
        0.0
    } else {
        -(1.0 - u) * (-u).ln_1p()
    }
}
