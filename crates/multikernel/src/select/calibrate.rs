//! Probabilities for a model: the calibration of scores of samples that were not trained on.

use crate::data::{Folds, Targets};
use crate::error::{Error, Result};
use crate::gram::KernelSet;
use crate::measure::Calibration;
use crate::observe::Observer;
use crate::train::{Mkl, held_out_scores};

/// Folds of the scores that probabilities are fitted to.
const FOLDS: usize = 5;

impl Mkl {
    /// What turns the scores of a model trained by this into probabilities: fitted to the scores of each of five parts of the
    /// samples by a model trained on the others.
    ///
    /// All five use the kernels as they are, whose widths and normalisations come from all samples.
    pub fn calibrate(
        &self,
        kernels: &KernelSet,
        targets: &Targets,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<Calibration> {
        let Targets::Classes { names, index } = targets else {
            return Err(Error::input(
                "probabilities",
                "there are no classes to have any",
                "leave them out, or take the task classify",
            ));
        };
        let folds = Folds::new(FOLDS, targets, index.len(), None, seed)?;
        let scores = held_out_scores(self, kernels, targets, &folds, observer)?;
        let ones;
        let weights = match &self.sample_weight {
            Some(weights) => weights,
            None => {
                ones = vec![1.0; index.len()];
                &ones
            }
        };
        Ok(Calibration::fit(&scores, index, weights, names.len()))
    }
}
