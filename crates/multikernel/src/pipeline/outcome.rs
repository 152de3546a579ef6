//! What a training gives.

use super::labelled::{Labelled, metrics};
use crate::error::{Error, Result};
use crate::inspect::KernelSample;
use crate::record::{Record, ResultObject};
use crate::train::{Fitted, Mkl};
use std::collections::BTreeMap;

/// A model and everything that is to be said about it.
#[derive(Debug)]
pub struct Outcome {
    /// The model, its certificate and its rounds.
    pub fitted: Fitted,
    /// The result object.
    pub result: ResultObject,
    /// What is kept in the model beside the result object; its notes and alignments are filled in by [`Outcome::keep`].
    pub record: Record,
    /// What was chosen automatically, in sentences.
    pub notes: Vec<String>,
    /// The first of the result's warnings, this many, were told to the observer before the training.
    pub told: usize,
    /// Number of samples held out.
    pub held_out: usize,
    /// These weights, then what simpler ways reach; empty where nothing was measured.
    pub compared: Vec<Compared>,
    /// A sample of the kernels, from which alignments are computed when they are asked for.
    pub sample: Option<KernelSample>,
}

/// A way to learn and what it reaches.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// What it reaches, by the names of the result object.
    pub metrics: BTreeMap<String, f64>,
}

impl Outcome {
    pub(super) fn new(mut fitted: Fitted, mut notes: Vec<String>, seen: Vec<String>) -> Outcome {
        let mut result = ResultObject::new(&fitted);
        let told = seen.len();
        result.warnings.splice(0..0, seen);
        notes.append(&mut fitted.notes);
        Outcome {
            record: Record::new(&fitted),
            fitted,
            result,
            notes,
            told,
            held_out: 0,
            compared: Vec::new(),
            sample: None,
        }
    }

    /// What these weights reach on samples that are at hand.
    pub(super) fn measure(
        &mut self,
        samples: Option<&Labelled>,
        held_out: Option<&Labelled>,
        mkl: &Mkl,
    ) -> Result<()> {
        if samples.is_none() && held_out.is_none() {
            return Ok(());
        }
        self.result.metrics = metrics(&self.fitted.model, samples, held_out)?;
        let norm = self.fitted.model.norm();
        let form = mkl.tikhonov.map(|mu| format!(", tikhonov {mu}"));
        self.compared.push(Compared {
            name: format!("these weights ({norm}{})", form.unwrap_or_default()),
            metrics: self.result.metrics.clone(),
        });
        Ok(())
    }

    /// Computes the alignments, which were put off.
    pub fn align(&mut self) {
        if let Some(sample) = self.sample.take() {
            self.record.alignment = Some(sample.alignments());
        }
    }

    /// Keeps result and record with the model, where a report finds them.
    ///
    /// # Errors
    /// If they cannot be written as JSON.
    pub fn keep(&mut self) -> Result<()> {
        self.align();
        self.record.notes = self.notes.clone();
        let training = self.record.beside(&self.result);
        let training = training.map_err(|e| Error::input("record", e.to_string(), ""))?;
        self.fitted.model.set_training(training);
        Ok(())
    }
}
