//! The hinge: max(0, 1 − y t).

use super::LossSpec;
use super::bias::{Piecewise, Sample, piecewise, step};
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, both, one_kink, positive};
use crate::data::Task;

pub(super) const INFO: LossInfo = LossInfo {
    name: "hinge",
    made: Made::Plain(LossSpec::Scalar(Loss::Hinge)),
    tasks: &[Task::Classify],
    needs_signs: true,
    traits: Traits {
        scales_with_c: true,
        counts_mistakes: true,
        ..Traits::NONE
    },
};

pub(super) struct Hinge;

impl Formula for Hinge {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        positive(1.0 - y * t)
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        let (below, above) = if y > 0.0 { (-y, 0.0) } else { (0.0, -y) };
        one_kink(y - t, below, above)
    }

    fn feasible(&self, c: f64, y: f64) -> (f64, f64) {
        if y > 0.0 { (0.0, c) } else { (-c, 0.0) }
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

impl Piecewise for Hinge {
    fn slopes(&self, sample: &Sample, b: f64) -> (f64, f64) {
        let (left, right) = step(b, sample.zero);
        let before = if sample.y > 0.0 { -1.0 } else { 0.0 };
        (before + left, before + right)
    }
}
