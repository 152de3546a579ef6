//! A toy: the absolute error |t − y|. Only tests know it; the guide shows it as the way to add a loss.

use super::LossSpec;
use super::bias::{Piecewise, Sample, piecewise, step};
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, both, one_kink};
use crate::data::Task;

pub(super) const INFO: LossInfo = LossInfo {
    name: "absolute",
    made: Made::Plain(LossSpec::Scalar(Loss::Absolute)),
    tasks: &[Task::Regress],
    needs_signs: false,
    traits: Traits::NONE,
};

pub(super) struct Absolute;

impl Formula for Absolute {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        (t - y).abs()
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        one_kink(y - t, -1.0, 1.0)
    }

    fn feasible(&self, c: f64, _y: f64) -> (f64, f64) {
        (-c, c)
    }

    fn dual_term(&self, a: f64, _c: f64, y: f64) -> f64 {
        y * a
    }

    fn dual_slopes(&self, _a: f64, _c: f64, y: f64) -> (f64, f64) {
        both(y)
    }

    fn dual_curvature(&self, _a: f64, _c: f64, _y: f64) -> f64 {
        0.0
    }

    fn best_bias(&self, samples: &[Sample]) -> f64 {
        piecewise(self, samples)
    }
}

impl Piecewise for Absolute {
    fn slopes(&self, sample: &Sample, b: f64) -> (f64, f64) {
        let (left, right) = step(b, sample.zero);
        (2.0 * left - 1.0, 2.0 * right - 1.0)
    }
}
