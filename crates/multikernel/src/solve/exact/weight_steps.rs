//! Where the weights go between two rounds of the outer loop, as the norm asks for it.
//!
//! r = 2 leaves them as they are. At r = 1, where the norm's weight map loses its guarantee, Newton steps on the simplex take its place.
//! Else the map's steps are lengthened by Anderson's extrapolation (`extrapolate.rs`); a little above r = 1, where the map is slow, Newton
//! steps go to its fixed point as long as they cost less than the rounds they save.

use super::extrapolate::Extrapolation;
use super::newton::{MOST_KERNELS, MOST_ON_SIMPLEX, Newton, WeightModel, kernels_that_matter};
use super::run::SolvedPoint;
use crate::gram::Gram;
use crate::norm::Norm;

/// Farther from the optimum than this the model says no more than the map does.
const NEWTON_NEAR: f64 = 0.1;
/// From this r on the map needs so few rounds that Newton steps do not pay.
const NEWTON_BELOW: f64 = 1.5;
/// Outputs are taken for rounding only where no finer gap than this is asked for: finer ones are for problems that allow them.
const NOISE_FROM: f64 = 1e-4;

/// The weight steps of one run.
pub(super) enum WeightSteps {
    /// The norm fixes the weights.
    Fixed,
    Simplex(Newton),
    Map(Extrapolation, NoiseFloor),
}

impl WeightSteps {
    pub(super) fn new(gram: &Gram, norm: &Norm, tolerance: f64) -> WeightSteps {
        let r = norm.as_block().map(|block| block.r());
        if norm.fixes_weights() {
            WeightSteps::Fixed
        } else if r == Some(1.0) {
            WeightSteps::Simplex(Newton::new())
        } else {
            WeightSteps::Map(Extrapolation::new(), NoiseFloor::new(gram, norm, tolerance))
        }
    }

    pub(super) fn are_fixed(&self) -> bool {
        matches!(self, WeightSteps::Fixed)
    }

    /// Replaces the weights of the point by the next ones; the model that led there, if one did. `model` makes one of these kernels; `pays`
    /// says whether it costs less than rounds of the map.
    pub(super) fn step(
        &mut self,
        norm: &Norm,
        point: &SolvedPoint,
        weights: &mut [f64],
        model: impl FnOnce(Vec<usize>) -> Option<WeightModel>,
        pays: impl FnOnce() -> bool,
    ) -> Option<WeightModel> {
        let forms = &point.forms;
        let primal = point.certificate.primal;
        let mut made = None;
        match self {
            WeightSteps::Fixed => {}
            WeightSteps::Simplex(newton) => newton.step(forms, primal, weights, |weights| {
                made = model(kernels_that_matter(weights, forms, MOST_ON_SIMPLEX));
                made.as_ref()?.on_simplex(weights, forms)
            }),
            WeightSteps::Map(extrapolation, noise) => {
                let s = noise.outputs(forms, &point.coefficients);
                let r = norm.as_block().map(|block| block.r());
                let near = point.certificate.relative_gap() <= NEWTON_NEAR;
                let r = r.filter(|&r| r > 1.0 && r < NEWTON_BELOW && near && pays());
                extrapolation.step(norm, &s, forms, primal, weights, |weights, residual| {
                    let r = r?;
                    made = model(kernels_that_matter(weights, forms, MOST_KERNELS));
                    made.as_ref()?.to_fixed_point(weights, forms, residual, r)
                });
            }
        }
        made
    }
}

/// Below which a kernel's output is rounding. Its values are in f32, so that a kernel of low rank is positive semidefinite up to rounding
/// only; a norm that rewards silence would make its weight, and with it the negative eigenvalues, ever larger.
pub(super) struct NoiseFloor {
    /// Rounding of each kernel's values; empty where no weight grows by it.
    noise: Vec<f64>,
}

impl NoiseFloor {
    fn new(gram: &Gram, norm: &Norm, tolerance: f64) -> NoiseFloor {
        let noise = |m: usize| {
            let largest = gram.self_values(m).into_iter().fold(0.0f64, f64::max);
            0.25 * f64::from(f32::EPSILON) * largest
        };
        let kernels = match norm.rewards_silence() && tolerance >= NOISE_FROM {
            true => gram.n_kernels(),
            false => 0,
        };
        NoiseFloor {
            noise: (0..kernels).map(noise).collect(),
        }
    }

    /// s_m = √q_m, or what rounding makes of coefficients of this size if that is more.
    fn outputs(&self, forms: &[f64], a: &[f64]) -> Vec<f64> {
        let mut s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
        let size = crate::math::dot(a, a);
        for (s, noise) in s.iter_mut().zip(&self.noise) {
            *s = s.max((noise * size).sqrt());
        }
        s
    }
}
