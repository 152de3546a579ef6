//! The squared hinge: max(0, 1 − y t)².

use super::LossSpec;
use super::bias::{Piecewise, Sample, piecewise};
use super::scalar::{Formula, Loss, LossInfo, Made, Traits, both, positive};
use crate::data::Task;

pub(super) const INFO: LossInfo = LossInfo {
    name: "squared-hinge",
    made: Made::Plain(LossSpec::Scalar(Loss::SquaredHinge)),
    tasks: &[Task::Classify],
    needs_signs: true,
    traits: Traits::NONE,
};

pub(super) struct SquaredHinge;

impl Formula for SquaredHinge {
    fn info(&self) -> &'static LossInfo {
        &INFO
    }

    fn lipschitz(&self) -> Option<f64> {
        None
    }

    fn value(&self, t: f64, y: f64) -> f64 {
        positive(1.0 - y * t).powi(2)
    }

    fn slopes(&self, t: f64, y: f64) -> (f64, f64) {
        both(-2.0 * y * positive(1.0 - y * t))
    }

    fn feasible(&self, _c: f64, y: f64) -> (f64, f64) {
        match y > 0.0 {
            true => (0.0, f64::INFINITY),
            false => (f64::NEG_INFINITY, 0.0),
        }
    }

    fn dual_term(&self, a: f64, c: f64, y: f64) -> f64 {
        y * a - a * a / (4.0 * c)
    }

    fn dual_slopes(&self, a: f64, c: f64, y: f64) -> (f64, f64) {
        both(y - a / (2.0 * c))
    }

    fn dual_curvature(&self, _a: f64, c: f64, _y: f64) -> f64 {
        0.5 / c
    }

    fn best_bias(&self, samples: &[Sample]) -> f64 {
        piecewise(self, samples)
    }
}

impl Piecewise for SquaredHinge {
    fn slopes(&self, sample: &Sample, b: f64) -> (f64, f64) {
        let slope = 2.0 * (b - sample.zero);
        both(match sample.y > 0.0 {
            true => slope.min(0.0),
            false => slope.max(0.0),
        })
    }

    fn curvature(&self, sample: &Sample, b: f64) -> f64 {
        match (b < sample.zero) == (sample.y > 0.0) {
            true => 2.0,
            false => 0.0,
        }
    }
}
