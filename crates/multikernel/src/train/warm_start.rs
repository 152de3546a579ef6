//! Warm starts: from the result for one C and norm to the next.
//!
//! The constraints of the dual do not depend on the norm, so coefficients stay feasible when it changes. For another C, those at
//! their bound, which are held back by it, follow the bound, and the others stay: their samples lie on the margin, where they
//! mostly remain. What is no longer feasible (other weights of the samples) is moved inside.

mod file;

use super::Fitted;
use super::problems::ScalarProblem;
use crate::gram::{Coefficients, Gram};
use crate::math;
use crate::norm::{Norm, NormSpec};
use crate::problem::{MulticlassProblem, Problem, Start};
use serde::{Deserialize, Serialize};

/// A coefficient counts as at its bound from this share of it on.
const NEARLY: f64 = 0.999;

/// The result of a training, to start another one from: on the same samples and kernels, with another C, norm or weights of the
/// samples.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WarmStart {
    c: f64,
    norm: NormSpec,
    samples: usize,
    outputs: usize,
    /// Samples with coefficients, and these: one number per score each.
    rows: Vec<usize>,
    values: Vec<f64>,
    /// β of all kernels, problem after problem.
    weights: Vec<Vec<f64>>,
}

impl WarmStart {
    /// What a training gave; none for a model that says its samples are rows of a larger set, or whose kernels have
    /// coefficients of their own.
    pub fn of(fitted: &Fitted) -> Option<WarmStart> {
        let model = &fitted.model;
        let (samples, outputs) = (fitted.n_samples, model.n_scores());
        if model.n_training() != samples || model.separate_coefficients(0).is_some() {
            return None;
        }
        let weights = (0..model.n_problems()).map(|k| {
            let all = fitted.kernels.iter().map(|kernel| kernel.weights.get(k));
            all.map(|w| w.copied().unwrap_or(0.0)).collect()
        });
        Some(WarmStart {
            c: model.c(),
            norm: model.norm().clone(),
            samples,
            outputs,
            rows: model.columns().to_vec(),
            values: model.coefficients().to_vec(),
            weights: weights.collect(),
        })
    }

    /// β of all kernels, problem after problem.
    pub(crate) fn weights(&self) -> &[Vec<f64>] {
        &self.weights
    }

    /// The same with other weights, which belong to this norm.
    pub(crate) fn with_weights(self, norm: &NormSpec, weights: Vec<Vec<f64>>) -> WarmStart {
        WarmStart {
            norm: norm.clone(),
            weights,
            ..self
        }
    }

    /// What training will give for the next C, as seen from this result, of the C before, and from two results of the norm before, of the
    /// same samples: `corner` at this C, `same_c` at the next. What the norm changed here, it will change there.
    pub(crate) fn foretelling(self, same_c: &Self, corner: &Self) -> WarmStart {
        let pairs = same_c
            .weights
            .iter()
            .flatten()
            .zip(corner.weights.iter().flatten());
        let mut weights = self.weights.clone();
        for (weight, (next, here)) in weights.iter_mut().flatten().zip(pairs) {
            if *next > 0.0 && *here > 0.0 {
                *weight *= next / here;
            }
        }
        let known = self.coefficients().into_iter();
        let changes = same_c.coefficients().into_iter().zip(corner.coefficients());
        // Who has no coefficient on either side will have none, whatever it was at the corner.
        let values = known.zip(changes).map(|(own, (next, here))| {
            let still = own == 0.0 && next == 0.0;
            if still { 0.0 } else { own + next - here }
        });
        WarmStart {
            c: same_c.c,
            rows: (0..self.samples).collect(),
            values: values.collect(),
            weights,
            ..self
        }
    }

    /// The same for some of the samples and some of `n_kernels` kernels; a constant kernel, which stands behind them, stays.
    pub(crate) fn select(&self, rows: &[usize], kernels: &[usize], n_kernels: usize) -> WarmStart {
        let all = self.coefficients();
        let row = |&i: &usize| &all[i * self.outputs..(i + 1) * self.outputs];
        WarmStart {
            c: self.c,
            norm: self.norm.clone(),
            samples: rows.len(),
            outputs: self.outputs,
            values: rows.iter().flat_map(row).copied().collect(),
            rows: (0..rows.len()).collect(),
            weights: self
                .weights
                .iter()
                .map(|all| {
                    let own = kernels.iter().copied().chain(n_kernels..all.len());
                    own.filter_map(|m| all.get(m)).copied().collect()
                })
                .collect(),
        }
    }

    /// Sample after sample, one number per score.
    fn coefficients(&self) -> Vec<f64> {
        let k = self.outputs;
        let mut all = vec![0.0; self.samples * k];
        for (row, &i) in self.values.chunks(k).zip(&self.rows) {
            all[i * k..(i + 1) * k].copy_from_slice(row);
        }
        all
    }

    /// Coefficients and weights for problem k of `outputs`, whose samples are those of `gram`; none where this does not fit.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call, and every argument is another noun"
    )]
    pub(super) fn scalar(
        &self,
        k: usize,
        outputs: usize,
        scalar: &ScalarProblem,
        gram: &Gram,
        norm: &Norm,
        problem: &Problem<'_>,
        c: f64,
    ) -> Option<Start> {
        let n = gram.n_rows();
        let fits = self.outputs == outputs
            && self.weights.get(k)?.len() == gram.n_kernels()
            && match &scalar.samples {
                None => n == self.samples,
                Some(samples) => samples.last().is_none_or(|&last| last < self.samples),
            };
        if !fits {
            return None;
        }
        let factor = c / self.c;
        let all = self.coefficients();
        let mut coefficients: Vec<f64> = (0..n)
            .map(|i| {
                let sample = scalar.samples.as_ref().map_or(i, |samples| samples[i]);
                let a = all[sample * outputs + k];
                let (low, high) = problem.loss.feasible(problem.costs[i], problem.targets[i]);
                let bound = if a > 0.0 { high } else { -low };
                let a = match a.abs() >= NEARLY * bound / factor {
                    true => factor * a,
                    false => a,
                };
                a.clamp(low, high)
            })
            .collect();
        if problem.bias {
            math::balance(&mut coefficients);
        }
        let weights = self.weights_for(k, norm, gram, &coefficients, 1);
        Some(Start {
            coefficients,
            weights,
        })
    }

    /// Coefficients and weights for a joint problem, which makes them feasible itself; none where this does not fit.
    pub(super) fn joint(
        &self,
        gram: &Gram,
        norm: &Norm,
        problem: &MulticlassProblem<'_>,
        c: f64,
    ) -> Option<Start> {
        let classes = problem.n_classes;
        let fits = self.outputs == classes
            && self.samples == gram.n_rows()
            && self.weights.len() == 1
            && self.weights[0].len() == gram.n_kernels();
        if !fits {
            return None;
        }
        let factor = c / self.c;
        let mut coefficients = self.coefficients();
        for (row, cost) in coefficients.chunks_mut(classes).zip(problem.costs) {
            // The largest is that of the sample's own class, which the cost bounds.
            let top = row.iter().fold(0.0f64, |t, a| t.max(*a));
            if top >= NEARLY * cost / factor {
                row.iter_mut().for_each(|a| *a *= factor);
            }
        }
        let weights = self.weights_for(0, norm, gram, &coefficients, classes);
        Some(Start {
            coefficients,
            weights,
        })
    }

    /// Weights for the norm: those known, or where they belong to another norm the step that this norm takes from there.
    fn weights_for(
        &self,
        k: usize,
        norm: &Norm,
        gram: &Gram,
        coefficients: &[f64],
        outputs: usize,
    ) -> Vec<f64> {
        let r = norm.as_block().map(|block| block.r());
        let initial = norm.initial_weights(gram.n_kernels());
        if r == Some(2.0) || self.weights[k].iter().all(|w| *w == 0.0) {
            return initial;
        }
        let mut weights = self.weights[k].clone();
        norm.normalize_weights(&mut weights);
        if *norm.spec() != self.norm && r != Some(1.0) {
            let forms = gram.quadratic_forms(Coefficients::new(coefficients, outputs));
            let s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
            norm.weights(&s, &mut weights);
        }
        match weights.iter().all(|w| w.is_finite()) {
            true => weights,
            false => initial,
        }
    }
}
