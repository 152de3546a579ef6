//! The Huber loss of d = t − y: ½ d² for |d| ≤ δ, else δ (|d| − δ/2).

use super::bias::{Piecewise, Sample, piecewise};
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, both};
use super::squared::Squared;
use crate::data::Task;
use crate::error::{Error, Result};

pub(super) const INFO: LossInfo = LossInfo {
    name: "huber",
    made: Made::With {
        parameter: "DELTA",
        usual: "1",
        make: Loss::huber,
    },
    tasks: &[Task::Regress],
    needs_signs: false,
    traits: Traits::NONE,
};

impl Loss {
    /// The Huber loss, δ > 0.
    pub fn huber(delta: f64) -> Result<Self> {
        if delta > 0.0 && delta.is_finite() {
            Ok(Loss::Huber(delta))
        } else {
            Err(Error::input(
                "loss huber",
                format!("δ is {delta}"),
                "give a positive number",
            ))
        }
    }
}

/// With its δ.
pub(super) struct Huber(pub(super) f64);

impl Formula for Huber {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.0)
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(self.0)
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        let d = (t - y).abs();
        if d <= self.0 {
            0.5 * d * d
        } else {
            self.0 * (d - 0.5 * self.0)
        }
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        both((t - y).clamp(-self.0, self.0))
    }

    fn feasible(&self, c: f64, _y: f64) -> (f64, f64) {
        (-c * self.0, c * self.0)
    }

    fn dual_term(&self, a: f64, c: f64, y: f64) -> f64 {
        Squared.dual_term(a, c, y)
    }

    fn dual_slopes(&self, a: f64, c: f64, y: f64) -> (f64, f64) {
        Squared.dual_slopes(a, c, y)
    }

    fn dual_curvature(&self, a: f64, c: f64, y: f64) -> f64 {
        Squared.dual_curvature(a, c, y)
    }

    fn best_bias(&self, samples: &[Sample]) -> f64 {
        piecewise(self, samples)
    }
}

impl Piecewise for Huber {
    fn kinks(&self, sample: &Sample) -> (f64, Option<f64>) {
        (sample.zero - self.0, Some(sample.zero + self.0))
    }

    fn slopes(&self, sample: &Sample, b: f64) -> (f64, f64) {
        let delta = self.0;
        both(if b <= sample.zero - delta {
            -delta
        } else if b >= sample.zero + delta {
            delta
        } else {
            (b - sample.zero).clamp(-delta, delta)
        })
    }

    fn curvature(&self, sample: &Sample, b: f64) -> f64 {
        f64::from(u8::from((b - sample.zero).abs() < self.0))
    }
}
