//! Samples whose truth is known, and what a model reaches on them.

use anyhow::Result;
use multikernel::Model;
use multikernel::data::{Targets, Views};
use multikernel::evaluate::{Bootstrap, evaluate};
use multikernel::metrics::{Truth, measure};
use multikernel::record::Evaluation;
use std::collections::BTreeMap;

/// Samples and what is true of them.
pub(crate) struct Known {
    pub(crate) views: Views,
    pub(crate) targets: Targets,
}

/// Classes as metrics want them.
pub(super) struct Classes(Vec<Option<u32>>);

impl Classes {
    pub(super) fn as_truth<'a>(&'a self, targets: &'a Targets) -> Truth<'a> {
        match targets {
            Targets::None => Truth::None,
            Targets::Real(values) => Truth::Real(values),
            Targets::Classes { .. } => Truth::Classes(&self.0),
        }
    }
}

impl Known {
    pub(super) fn truth(targets: &Targets) -> Classes {
        match targets {
            Targets::Classes { index, .. } => Classes(index.iter().map(|&c| Some(c)).collect()),
            Targets::None | Targets::Real(_) => Classes(Vec::new()),
        }
    }

    fn measured(&self, model: &Model) -> Result<BTreeMap<String, f64>> {
        let scores = model.scores(&self.views)?;
        let truth = Self::truth(&self.targets);
        Ok(measure(
            &model.predictions(&scores),
            &scores,
            truth.as_truth(&self.targets),
        ))
    }

    /// What the model is worth on samples that were held out, with intervals.
    pub(super) fn judged(&self, model: &Model, seed: u64) -> Result<Evaluation> {
        let scores = model.scores(&self.views)?;
        let truth = Self::truth(&self.targets);
        let bootstrap = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        let samples = format!("{} samples held out", self.views.len());
        let truth = truth.as_truth(&self.targets);
        Ok(evaluate(model, &scores, truth, samples, &bootstrap))
    }
}

/// What the model reaches in training (`train_…`) and on the samples held out.
pub(super) fn metrics(
    model: &Model,
    known: &Known,
    held_out: Option<&Known>,
) -> Result<BTreeMap<String, f64>> {
    let training = known.measured(model)?;
    let mut all: BTreeMap<String, f64> = training
        .into_iter()
        .map(|(name, value)| (format!("train_{name}"), value))
        .collect();
    if let Some(held_out) = held_out {
        all.extend(held_out.measured(model)?);
    }
    Ok(all)
}
