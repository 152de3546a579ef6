//! Whether the parts of a model fit together: files may hold anything.

use super::{Parts, Scheme};
use crate::data::Task;
use crate::error::{Error, Result};
use crate::gram::{Normalizer, Repair};
use crate::kernel::Normalize;
use std::collections::HashSet;

impl Parts {
    pub(super) fn problems(&self) -> usize {
        match self.scheme {
            Scheme::Joint => 1,
            Scheme::Single | Scheme::OneVsRest | Scheme::OneVsOne => self.biases.len(),
        }
    }

    /// Everything that prediction relies on.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |found: String| Err(Error::input("model", found, ""));
        let classes_fit = match self.task {
            Task::Classify => {
                let distinct: HashSet<&String> = self.classes.iter().collect();
                let many = self.classes.len() > 2;
                distinct.len() == self.classes.len()
                    && self.classes.len() >= 2
                    && (self.scheme == Scheme::Joint || many == (self.scheme != Scheme::Single))
            }
            Task::Regress | Task::OneClass => {
                self.classes.is_empty() && self.scheme == Scheme::Single
            }
        };
        if !classes_fit {
            return wrong(format!(
                "its {} classes do not fit its task {}",
                self.classes.len(),
                self.task
            ));
        }
        let outputs = self.scheme.outputs(self.classes.len());
        if outputs != Some(self.biases.len()) {
            return wrong(format!(
                "it has {} biases for {} classes",
                self.biases.len(),
                self.classes.len()
            ));
        }
        let outputs = self.biases.len();
        let n = self.columns.len();
        if n == 0 || self.kernels.is_empty() {
            return wrong("it has no samples or no kernels".into());
        }
        if n.checked_mul(outputs) != Some(self.coefficients.len()) {
            return wrong(format!(
                "it has {} coefficients for {n} samples and {outputs} scores",
                self.coefficients.len()
            ));
        }
        if let Some(separate) = &self.separate
            && (self.kernels.len().checked_mul(self.coefficients.len()) != Some(separate.len())
                || !separate.iter().all(|v| v.is_finite())
                || (self.problems() != 1 && self.problems() != outputs))
        {
            return wrong("the coefficients of its kernels do not fit".into());
        }
        let problems = self.problems();
        if self.kernels.len().checked_mul(problems) != Some(self.weights.len()) {
            return wrong(format!(
                "it has {} weights for {} kernels and {problems} problems",
                self.weights.len(),
                self.kernels.len()
            ));
        }
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let numbers = finite(&self.coefficients)
            && finite(&self.biases)
            && self.weights.iter().all(|w| *w >= 0.0 && w.is_finite())
            && self.c > 0.0
            && self.c.is_finite();
        if !numbers {
            return wrong("a coefficient, bias, weight or C is not a number it may be".into());
        }
        let ascending = self.columns.windows(2).all(|w| w[0] < w[1]);
        if !ascending
            || self
                .columns
                .last()
                .is_none_or(|&last| last >= self.n_training)
        {
            return wrong(
                "the numbers of its samples do not ascend within the training data".into(),
            );
        }
        if self
            .calibration
            .is_some_and(|c| !c.fits(self.classes.len()))
        {
            return wrong("its probabilities do not fit its classes".into());
        }
        if self.ids.as_ref().is_some_and(|ids| ids.len() != n) {
            return wrong("it does not have one id for each sample".into());
        }
        if !self.views.is_empty() && self.views.len() != n {
            return wrong(format!(
                "its views have {} rows for {n} samples",
                self.views.len()
            ));
        }
        self.check_kernels()
    }

    fn check_kernels(&self) -> Result<()> {
        let n = self.columns.len();
        let mut names: HashSet<&String> = HashSet::new();
        for kernel in &self.kernels {
            let wrong = |found: &str| {
                Err(Error::input(
                    format!("model, kernel '{}'", kernel.name),
                    found,
                    "",
                ))
            };
            let kind = &kernel.spec.kind;
            let given = kind.looks_at_matrix();
            let view = self.views.get(kernel.view());
            match kind.made_of() {
                Some((_, of)) if of.is_empty() || !of.iter().all(|part| names.contains(part)) => {
                    return wrong("the kernels it is made of do not stand before it");
                }
                None if given && view.is_some() => {
                    return wrong(
                        "it looks at a given matrix, but the model has a view of that name",
                    );
                }
                None if !given && view.is_none_or(|view| !kind.applies_to(&view.data)) => {
                    return wrong("the view it looks at is not in the model, or of another kind");
                }
                _ => {}
            }
            if let Some(width) = kind.width() {
                let number = width.number();
                if width.is_chosen_by_data() || !(number > 0.0 && number.is_finite()) {
                    return wrong("its width is not a positive number");
                }
            }
            let repairable = match &kernel.repair {
                None => true,
                Some(Repair::Shift) => given,
                Some(Repair::Clip(projection)) => given && projection.fits(n),
            };
            if !repairable {
                return wrong("what is to be clipped off new samples does not fit");
            }
            let fits = match (&kernel.normalizer, kernel.spec.normalize) {
                (Normalizer::None, Normalize::Spherical) => !kernel.needs_factors(),
                (Normalizer::None, normalize) => normalize != Normalize::Center,
                (Normalizer::Spherical { factors }, Normalize::Spherical) => {
                    factors.len() == n && factors.iter().all(|f| *f >= 0.0 && f.is_finite())
                }
                (Normalizer::Factor(f), Normalize::Trace | Normalize::Multiplicative) => {
                    f.is_finite()
                }
                (
                    Normalizer::Center {
                        row_means,
                        grand_mean,
                    },
                    Normalize::Center,
                ) => {
                    row_means.len() == n
                        && row_means.iter().all(|m| m.is_finite())
                        && grand_mean.is_finite()
                }
                _ => false,
            };
            if !fits {
                return wrong("the statistics of its normalisation do not fit");
            }
            if !names.insert(&kernel.name) {
                return wrong("another kernel has the same name");
            }
        }
        Ok(())
    }
}
