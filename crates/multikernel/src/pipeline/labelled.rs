//! Samples whose truth is known, and what a model reaches on them.

use crate::data::{Targets, Views};
use crate::error::Result;
use crate::measure::{Truth, measure};
use crate::model::Model;
use crate::record::Evaluation;
use crate::select::{Bootstrap, evaluate};
use std::collections::BTreeMap;

/// Samples and what is true of them.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// The samples.
    pub views: Views,
    /// What is true of them.
    pub targets: Targets,
}

/// Classes as metrics want them.
pub(super) struct Classes(Vec<Option<u32>>);

impl Classes {
    pub(super) fn of(targets: &Targets) -> Classes {
        match targets {
            Targets::Classes { index, .. } => Classes(index.iter().map(|&c| Some(c)).collect()),
            Targets::None | Targets::Real(_) => Classes(Vec::new()),
        }
    }

    pub(super) fn as_truth<'a>(&'a self, targets: &'a Targets) -> Truth<'a> {
        match targets {
            Targets::None => Truth::None,
            Targets::Real(values) => Truth::Real(values),
            Targets::Classes { .. } => Truth::Classes(&self.0),
        }
    }
}

impl Labelled {
    fn measured(&self, model: &Model) -> Result<BTreeMap<String, f64>> {
        let scores = model.scores(&self.views)?;
        let classes = Classes::of(&self.targets);
        Ok(measure(
            &model.predictions(&scores),
            &scores,
            classes.as_truth(&self.targets),
        ))
    }

    /// What the model is worth on samples that were held out, with intervals.
    pub(super) fn judged(&self, model: &Model, seed: u64) -> Result<Evaluation> {
        let scores = model.scores(&self.views)?;
        let classes = Classes::of(&self.targets);
        let bootstrap = Bootstrap {
            seed,
            ..Bootstrap::default()
        };
        let samples = format!("{} samples held out", self.views.len());
        let truth = classes.as_truth(&self.targets);
        Ok(evaluate(model, &scores, truth, samples, &bootstrap))
    }
}

/// What the model reaches in training (`train_…`) and on the samples held out.
pub(super) fn metrics(
    model: &Model,
    samples: Option<&Labelled>,
    held_out: Option<&Labelled>,
) -> Result<BTreeMap<String, f64>> {
    let mut all = BTreeMap::new();
    if let Some(samples) = samples {
        let training = samples.measured(model)?.into_iter();
        all.extend(training.map(|(name, value)| (format!("train_{name}"), value)));
    }
    if let Some(held_out) = held_out {
        all.extend(held_out.measured(model)?);
    }
    Ok(all)
}
