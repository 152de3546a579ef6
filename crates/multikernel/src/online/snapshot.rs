//! Snapshots: what has been learned so far as an ordinary model.

use super::sample::Sample;
use super::{Online, Rule};
use crate::data::Views;
use crate::error::Result;
use crate::gram::{Kernel, Normalizer};
use crate::loss::{Loss, LossSpec};
use crate::model::{Model, Scheme, Streamed};

/// What stands in for classes that have not come: a model has two at least.
const NOT_SEEN: [&str; 2] = ["(not seen yet)", "(not seen yet either)"];

/// What a model keeps of the support.
struct Kept {
    samples: Vec<Sample>,
    columns: Vec<usize>,
    ids: Option<Vec<String>>,
    /// A
    coefficients: Vec<f64>,
    /// Of every kernel by itself.
    separate: Option<Vec<f64>>,
}

impl Online {
    /// An ordinary model of what has been learned so far.
    ///
    /// # Errors
    /// If it cannot be put together, which a stream's examples have no way to cause.
    pub fn snapshot(&self) -> Result<Model> {
        Ok(self.model()?.0)
    }

    /// The model, and the place in it of every slot's sample.
    pub(super) fn model(&self) -> Result<(Model, Vec<usize>)> {
        let slots = self.support.slots();
        let mut by_number: Vec<usize> = (0..slots.len()).collect();
        by_number.sort_unstable_by_key(|&j| slots[j].number);
        let mut order = vec![0; slots.len()];
        for (place, &j) in by_number.iter().enumerate() {
            order[j] = place;
        }
        let mut classes = self.classes.clone();
        for name in NOT_SEEN {
            if classes.len() < 2 {
                classes.push(name.to_owned());
            }
        }
        let (scheme, loss, outputs) = match self.settings.binary {
            true => (Scheme::Single, LossSpec::Scalar(Loss::Hinge), 1),
            false => (Scheme::Joint, LossSpec::MulticlassHinge, classes.len()),
        };
        let weights = match &self.combiner {
            Some(combiner) => combiner.model_weights(),
            None => self.weights(),
        };
        let kept = match by_number.is_empty() {
            false => self.kept(&by_number, outputs, &weights),
            true => self.nothing_kept(outputs),
        };
        let mut model = Model::streamed(Streamed {
            scheme,
            classes,
            loss,
            norm: self.norm.clone(),
            c: self.settings.rule.cost(),
            kernels: kept_kernels(self.bank.kernels(), &kept.samples),
            weights,
            columns: kept.columns,
            n_training: (self.next as usize).max(1),
            ids: kept.ids,
            coefficients: kept.coefficients,
            separate: kept.separate,
            views: Views::new(self.bank.to_views(kept.samples.iter())?)?,
            scaling: self.scaling.clone(),
        })?;
        model.set_training(self.training());
        Ok((model, order))
    }

    /// The support in the order of the stream.
    fn kept(&self, by_number: &[usize], outputs: usize, weights: &[f64]) -> Kept {
        let slots = self.support.slots();
        let (coefficients, separate) = self.model_coefficients(by_number, outputs, weights);
        let numbers = by_number.iter().map(|&j| slots[j].number as usize);
        Kept {
            samples: by_number.iter().map(|&j| self.support.sample(j)).collect(),
            columns: numbers.collect(),
            ids: by_number.iter().map(|&j| slots[j].id.clone()).collect(),
            coefficients,
            separate,
        }
    }

    /// One sample that counts nothing: a model without samples would not know what its views look like.
    fn nothing_kept(&self, outputs: usize) -> Kept {
        let separate = vec![0.0; outputs * self.bank.n_kernels()];
        Kept {
            samples: vec![self.first.clone()],
            columns: vec![0],
            ids: None,
            coefficients: vec![0.0; outputs],
            separate: self.combiner.is_some().then_some(separate),
        }
    }

    /// A, sample after sample; and kernel after kernel where each has its own.
    fn model_coefficients(
        &self,
        by_number: &[usize],
        outputs: usize,
        weights: &[f64],
    ) -> (Vec<f64>, Option<Vec<f64>>) {
        let slots = self.support.slots();
        let n = by_number.len();
        let Some(combiner) = &self.combiner else {
            // PA-I: θ/2 with weight 1 for every kernel is θ·F/2 with weight 1/F
            let factor = match self.settings.rule {
                Rule::PassiveAggressive { .. } => {
                    self.theta.score_factor() * self.bank.n_kernels() as f64
                }
                _ => self.theta.score_factor(),
            };
            let mut all = vec![0.0; n * outputs];
            for (row, &j) in all.chunks_mut(outputs).zip(by_number) {
                for (class, value) in slots[j].classes.iter().zip(&slots[j].values) {
                    row[*class as usize] = factor * value;
                }
            }
            return (all, None);
        };
        let kernels = self.bank.n_kernels();
        let known = self.classes.len();
        let mut separate = vec![0.0; kernels * n * outputs];
        let mut together = vec![0.0; n * outputs];
        for (i, &j) in by_number.iter().enumerate() {
            let slot = &slots[j];
            for (from, values) in slot.classes.iter().zip(slot.values.chunks(kernels)) {
                for (m, value) in values.iter().enumerate() {
                    for k in 0..known {
                        let part = combiner.share(k, *from as usize, m) * value;
                        separate[(m * n + i) * outputs + k] += part / weights[m];
                        together[i * outputs + k] += part;
                    }
                }
            }
        }
        (together, Some(separate))
    }

    /// How the model came to be, for people and programs that ask.
    fn training(&self) -> serde_json::Value {
        let report = &self.report;
        serde_json::json!({
            "solver": self.settings.rule.name(),
            "settings": &self.settings,
            "n_seen": self.next,
            "n_support": self.support.len(),
            "n_waiting": self.waiting.len(),
            "updates": report.updates,
            "metrics": { "mistakes": report.mistakes, "online_error": report.online_error() },
            "curve": report.curve.points(),
        })
    }
}

/// The kernels with the factors of the samples kept.
fn kept_kernels(kernels: &[Kernel], samples: &[Sample]) -> Vec<Kernel> {
    let all = kernels.iter().enumerate();
    all.map(|(m, kernel)| Kernel {
        normalizer: match kernel.needs_factors() {
            true => Normalizer::Spherical {
                factors: samples.iter().map(|s| s.roots[m]).collect(),
            },
            false => kernel.normalizer.clone(),
        },
        ..kernel.clone()
    })
    .collect()
}
