//! OMCL behind the same door as the others, though it minimises no objective and has no certificate.

use super::fitting::{Fitting, Found, Summary};
use super::fixed_weights::nothing_to_certify;
use super::{Bias, ClassWeight, Fitted, Mkl, Multiclass, ProblemReport};
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use crate::gram::Gram;
use crate::loss::LossSpec;
use crate::model::Scheme;
use crate::norm::{Exponent, NormSpec};
use crate::solve::stochastic::omcl::OmclTask;

impl Mkl {
    /// The classes, if OMCL can do what is asked.
    fn omcl_classes<'t>(
        &self,
        gram: &Gram,
        targets: &'t Targets,
    ) -> Result<(&'t [String], &'t [u32])> {
        let refused = |found: &str, remedy: &str| Err(Error::input("omcl", found, remedy));
        let Targets::Classes { names, index } = targets else {
            return refused(
                "it tells classes apart, and there are none",
                "give labels of classes",
            );
        };
        if names.len() < 2 || index.len() != gram.n_rows() {
            return refused(
                "it needs two classes and a label for each sample",
                "give these",
            );
        }
        let other_loss = self
            .loss
            .is_some_and(|loss| loss != LossSpec::MulticlassHinge);
        let split = matches!(
            self.multiclass,
            Multiclass::OneVsRest | Multiclass::OneVsOne
        );
        let weighted = self.sample_weight.is_some() || self.class_weight != ClassWeight::None;
        if other_loss || split || weighted || self.bias == Bias::On {
            return refused(
                "it has a score for every class, and no other loss, bias, or weights of samples or classes",
                "leave these out",
            );
        }
        Ok((names, index))
    }

    pub(super) fn fit_omcl(&self, mut fit: Fitting<'_>) -> Result<Fitted> {
        let gram = fit.gram;
        let (names, classes) = self.omcl_classes(gram, fit.targets)?;
        let (n, k) = (gram.n_rows(), names.len());
        let task = OmclTask {
            gram,
            classes,
            n_classes: k,
            c: self.c,
            epochs: self.stochastic.epochs,
            seed: self.stochastic.seed,
            deadline: fit.deadline(self),
            memory: gram.spare_memory(),
        };
        if task.score_bytes() > gram.spare_memory() {
            return Err(Error::Memory {
                what: "the scores of all samples, kernels and classes".into(),
                needed: task.score_bytes(),
                available: gram.spare_memory(),
                remedy: "allow more memory, or take the solver om2".into(),
            });
        }
        let found = task.run(fit.observer);
        fit.notes
            .push("omcl minimises no objective: there is no duality gap".into());
        self.say_no_norm(&mut fit.notes);
        let support = (0..n).filter(|&i| {
            let rows = found.coefficients.chunks(n * k);
            rows.into_iter()
                .any(|own| own[i * k..(i + 1) * k].iter().any(|a| *a != 0.0))
        });
        let n_support = support.count();
        let mut learned = Found::new(n, k, LossSpec::MulticlassHinge, false);
        learned.combine(gram, found.coefficients, vec![found.weights]);
        learned.problems.push(ProblemReport {
            name: String::new(),
            certificate: nothing_to_certify(),
            status: found.status,
            steps: found.steps,
            history: Vec::new(),
            validation: Vec::new(),
        });
        let summary = Summary {
            task: Task::Classify,
            scheme: Scheme::Joint,
            classes: names.to_vec(),
            norm: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
            solver: self.solver,
        };
        Ok(Fitted {
            n_support,
            iterations: found.passes,
            ..fit.finish(self, summary, learned)?
        })
    }
}
