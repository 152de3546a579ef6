//! The loss of one class: max(0, 1 − t), the hinge of a target that is always 1.

use super::LossSpec;
use super::bias::Sample;
use super::hinge::Hinge;
use super::scalar::{Formula, Loss, LossInfo, Made, Traits};
use crate::data::Task;

pub(super) const INFO: LossInfo = LossInfo {
    name: "one-class",
    made: Made::Plain(LossSpec::Scalar(Loss::OneClass)),
    tasks: &[Task::OneClass],
    needs_signs: false,
    traits: Traits {
        counts_mistakes: true,
        ..Traits::NONE
    },
};

pub(super) struct OneClass;

impl Formula for OneClass {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn value(&self, t: f64, _y: f64) -> f64 {
        Hinge.value(t, 1.0)
    }

    fn slopes(&self, t: f64, _y: f64) -> (f64, f64) {
        Formula::slopes(&Hinge, t, 1.0)
    }

    fn feasible(&self, c: f64, _y: f64) -> (f64, f64) {
        Hinge.feasible(c, 1.0)
    }

    fn dual_term(&self, a: f64, c: f64, _y: f64) -> f64 {
        Hinge.dual_term(a, c, 1.0)
    }

    fn dual_slopes(&self, a: f64, c: f64, _y: f64) -> (f64, f64) {
        Hinge.dual_slopes(a, c, 1.0)
    }

    fn dual_curvature(&self, _a: f64, _c: f64, _y: f64) -> f64 {
        0.0
    }

    /// A sample of the class has a score of 1 or more.
    fn right(&self, t: f64, _y: f64) -> f64 {
        f64::from(u8::from(t >= 1.0))
    }

    fn sign(&self, _y: f64) -> f64 {
        1.0
    }

    fn best_bias(&self, samples: &[Sample]) -> f64 {
        Hinge.best_bias(samples)
    }
}
