//! Theorem 1 of OM-2: a bound of the mistakes by what any fixed predictor u would have suffered on the same stream.

use super::Online;
use crate::data::Views;
use crate::error::{Error, Result};
use crate::model::{Model, Scheme};
use crate::norm::BlockNorm;
use serde::Serialize;

/// M ≤ C + L + √(LC) − Σ η over rounds that were right with too small a margin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MistakeBound {
    /// The bound.
    pub bound: f64,
    /// M: rounds in which w did not prefer the right class when its label came.
    pub wrong_rounds: u64,
    /// L: Σ ℓ(u, x, y).
    pub comparator_loss: f64,
    /// ‖u‖_{2,p}
    pub comparator_norm: f64,
    /// C = 2 q F^{2/q} κ ‖u‖² (without the 2 for one score), κ the larger of 1 and the largest k(x, x).
    pub capacity: f64,
}

impl MistakeBound {
    /// From ‖u‖_{2,p} and what the report says.
    pub(super) fn new(
        norm: &BlockNorm,
        kernels: usize,
        binary: bool,
        comparator_norm: f64,
        report: &super::Report,
    ) -> Self {
        let q = norm.r_dual();
        let loss = report.comparator_loss;
        let sides = if binary { 1.0 } else { 2.0 };
        let capacity = sides
            * q
            * (kernels as f64).powf(2.0 / q)
            * report.largest_self_value.max(1.0)
            * comparator_norm.powi(2);
        MistakeBound {
            bound: capacity + loss + (loss * capacity).sqrt() - report.margin_steps,
            wrong_rounds: report.wrong_rounds,
            comparator_loss: loss,
            comparator_norm,
            capacity,
        }
    }
}

/// A model whose loss is added up along the stream.
#[derive(Debug)]
pub(super) struct Comparator {
    model: Model,
    /// ‖u‖_{2,p}
    pub(super) norm: f64,
}

impl Comparator {
    /// # Errors
    /// If the model is no point of the learner's spaces: it has a bias, several problems, or a kernel that the learner does
    /// not have.
    pub(super) fn new(model: Model, online: &Online) -> Result<Self> {
        let refused = |found: String, remedy: &str| Err(Error::input("comparator", found, remedy));
        if model.has_bias() && model.biases().iter().any(|b| *b != 0.0) {
            return refused(
                "the model has a bias, which the learner has not".into(),
                "train it with bias off",
            );
        }
        let joint = match model.scheme() {
            Scheme::Joint => true,
            Scheme::Single => false,
            Scheme::OneVsRest | Scheme::OneVsOne => {
                return refused(
                    "the model is made of several problems".into(),
                    "train it with multiclass joint",
                );
            }
        };
        if joint == online.settings().binary || model.classes().is_empty() {
            return refused(
                match joint {
                    true => {
                        "the model has a score for each class, the learner has one score".into()
                    }
                    false => "the model has one score, the learner one for each class".into(),
                },
                "train it with multiclass joint, or learn with one score for two classes",
            );
        }
        for kernel in model.kernels() {
            let same = online
                .kernels()
                .iter()
                .any(|k| k.spec.kind == kernel.spec.kind && k.view() == kernel.view());
            if !same {
                return refused(
                    format!(
                        "the learner has no kernel like its kernel '{}'",
                        kernel.name
                    ),
                    "train it with the kernels of the stream, with widths as numbers",
                );
            }
        }
        let lengths = model.group_norms()?;
        Ok(Comparator {
            norm: online.block_norm().value(&lengths),
            model,
        })
    }

    /// ℓ(u, x, y) of every labelled row.
    pub(super) fn losses(
        &self,
        views: &Views,
        labels: &[Option<&str>],
        known: &[String],
    ) -> Result<Vec<f64>> {
        let values = self.model.decision_values(views)?;
        let classes = self.model.classes();
        let rows = values.chunks(self.model.n_scores());
        let losses = rows.zip(labels).map(|(row, label)| {
            let Some(label) = label else {
                return 0.0;
            };
            let y = classes.iter().position(|c| c == label);
            if self.model.scheme() == Scheme::Single {
                let margin = match y {
                    Some(0) => -row[0],
                    Some(_) => row[0],
                    None => 0.0,
                };
                return (1.0 - margin).max(0.0);
            }
            // classes that it does not know have score 0
            let own = y.map_or(0.0, |y| row[y]);
            let strange = known.iter().any(|c| c != label && !classes.contains(c));
            let least = if strange { 0.0 } else { f64::NEG_INFINITY };
            let others = row.iter().enumerate().filter(|(k, _)| Some(*k) != y);
            let best = others.map(|(_, f)| *f).fold(least, f64::max);
            (1.0 - own + best).max(0.0)
        });
        Ok(losses.collect())
    }
}
