//! The squared loss: ½ (t − y)².

use super::LossSpec;
use super::bias::Sample;
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, both};
use crate::data::Task;

pub(super) const INFO: LossInfo = LossInfo {
    name: "squared",
    made: Made::Plain(LossSpec::Scalar(Loss::Squared)),
    tasks: &[Task::Classify, Task::Regress],
    needs_signs: false,
    traits: Traits::NONE,
};

pub(super) struct Squared;

impl Formula for Squared {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn lipschitz(&self) -> Option<f64> {
        None
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        0.5 * (t - y) * (t - y)
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        both(t - y)
    }

    fn feasible(&self, _c: f64, _y: f64) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn dual_term(&self, a: f64, c: f64, y: f64) -> f64 {
        y * a - a * a / (2.0 * c)
    }

    fn dual_slopes(&self, a: f64, c: f64, y: f64) -> (f64, f64) {
        both(y - a / c)
    }

    fn dual_curvature(&self, _a: f64, c: f64, _y: f64) -> f64 {
        1.0 / c
    }

    /// The weighted mean of y − f.
    fn best_bias(&self, samples: &[Sample]) -> f64 {
        // around one of them, so that a common offset costs no digits
        let origin = samples[0].zero;
        let total: f64 = samples.iter().map(|sample| sample.cost).sum();
        origin
            + samples
                .iter()
                .map(|sample| sample.cost / total * (sample.zero - origin))
                .sum::<f64>()
    }
}
