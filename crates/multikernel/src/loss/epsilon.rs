//! The ε-insensitive loss: max(0, |t − y| − ε).

use super::bias::{Piecewise, Sample, piecewise, step};
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, one_kink, positive};
use crate::data::Task;
use crate::error::{Error, Result};

pub(super) const INFO: LossInfo = LossInfo {
    name: "epsilon",
    made: Made::With {
        parameter: "EPS",
        usual: "0.1",
        make: Loss::epsilon,
    },
    tasks: &[Task::Regress],
    needs_signs: false,
    traits: Traits {
        dual_kink: true,
        scales_with_c: true,
        ..Traits::NONE
    },
};

impl Loss {
    /// The ε-insensitive loss, ε ≥ 0.
    pub fn epsilon(epsilon: f64) -> Result<Self> {
        if epsilon >= 0.0 && epsilon.is_finite() {
            Ok(Loss::Epsilon(epsilon))
        } else {
            Err(Error::input(
                "loss epsilon",
                format!("ε is {epsilon}"),
                "give a number that is not negative",
            ))
        }
    }
}

/// With its ε.
pub(super) struct Epsilon(pub(super) f64);

impl Formula for Epsilon {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.0)
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        positive((t - y).abs() - self.0)
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        let d = t - y;
        let left = one_kink(-self.0 - d, -1.0, 0.0);
        let right = one_kink(self.0 - d, 0.0, 1.0);
        (left.0 + right.0, left.1 + right.1)
    }

    fn feasible(&self, c: f64, _y: f64) -> (f64, f64) {
        (-c, c)
    }

    fn dual_term(&self, a: f64, _c: f64, y: f64) -> f64 {
        y * a - self.0 * a.abs()
    }

    fn dual_slopes(&self, a: f64, _c: f64, y: f64) -> (f64, f64) {
        let (left, right) = one_kink(-a, self.0, -self.0);
        (y + left, y + right)
    }

    fn dual_curvature(&self, _a: f64, _c: f64, _y: f64) -> f64 {
        0.0
    }

    fn best_bias(&self, samples: &[Sample]) -> f64 {
        piecewise(self, samples)
    }
}

impl Piecewise for Epsilon {
    fn kinks(&self, sample: &Sample) -> (f64, Option<f64>) {
        (sample.zero - self.0, Some(sample.zero + self.0))
    }

    fn slopes(&self, sample: &Sample, b: f64) -> (f64, f64) {
        let (low, high) = (step(b, sample.zero - self.0), step(b, sample.zero + self.0));
        (low.0 + high.0 - 1.0, low.1 + high.1 - 1.0)
    }
}
