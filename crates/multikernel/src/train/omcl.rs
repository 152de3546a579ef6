//! OMCL behind the same door as the others, though it minimises no objective and has no certificate.

use super::two_stage::nothing_to_certify;
use super::{Bias, ClassWeight, Fitted, KernelReport, Mkl, Multiclass, ProblemReport};
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::model::{Model, Scheme, Trained};
use crate::norm::{Exponent, NormSpec};
use crate::observe::Observer;
use crate::solve::stochastic::omcl::{Combined, OmclTask};
use std::time::Instant;

/// What was learned, in the order of the whole set of kernels: those that were not trained on have weight 0.
struct Spread {
    weights: Vec<f64>,
    /// Kernel after kernel, sample after sample, class after class.
    separate: Vec<f64>,
    /// Sample after sample: Σ_m β_m A_m.
    together: Vec<f64>,
    group_norms: Vec<f64>,
    n_support: usize,
}

impl Spread {
    fn new(found: &Combined, gram: &Gram, which: Option<&[usize]>, all: usize, k: usize) -> Self {
        let size = gram.n_rows() * k;
        let mut spread = Spread {
            weights: vec![0.0; all],
            separate: vec![0.0; all * size],
            together: vec![0.0; size],
            group_norms: vec![0.0; all],
            n_support: 0,
        };
        for (m, own) in found.coefficients.chunks(size).enumerate() {
            let place = which.map_or(m, |which| which[m]);
            let weight = found.weights[m];
            spread.weights[place] = weight;
            spread.separate[place * size..(place + 1) * size].copy_from_slice(own);
            let pairs = spread.together.iter_mut().zip(own);
            pairs.for_each(|(t, a)| *t += weight * a);
            let form = gram
                .select_kernels(&[m])
                .quadratic_forms(Coefficients::new(own, k))[0];
            spread.group_norms[place] = weight * form.sqrt();
        }
        let supports = |i: &usize| {
            let mut kernels = found.coefficients.chunks(size);
            kernels.any(|own| own[i * k..(i + 1) * k].iter().any(|a| *a != 0.0))
        };
        spread.n_support = (0..gram.n_rows()).filter(supports).count();
        spread
    }
}

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

    pub(super) fn fit_omcl(
        &self,
        kernels: &KernelSet,
        gram: &Gram,
        which: Option<&[usize]>,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        let begin = Instant::now();
        let (names, classes) = self.omcl_classes(gram, targets)?;
        let task = OmclTask {
            gram,
            classes,
            n_classes: names.len(),
            c: self.c,
            epochs: self.stochastic.epochs,
            seed: self.stochastic.seed,
            deadline: self.deadline(begin),
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
        let found = task.run(observer);
        let spread = Spread::new(&found, gram, which, kernels.kernels().len(), names.len());
        let mut notes = kernels.notes().to_vec();
        notes.push("omcl minimises no objective: there is no duality gap".into());
        self.say_no_norm(&mut notes);
        let mut warnings = kernels.warnings().to_vec();
        let model = Model::trained(
            Trained {
                kernels,
                task: Task::Classify,
                scheme: Scheme::Joint,
                classes: names.to_vec(),
                loss: LossSpec::MulticlassHinge,
                norm: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
                c: self.c,
                bias: false,
                biases: vec![0.0; names.len()],
                weights: &spread.weights,
                coefficients: &spread.together,
                separate: Some(&spread.separate),
                scaling: &self.scaling,
            },
            &mut notes,
            &mut warnings,
        )?;
        let numbers = spread.weights.iter().zip(&spread.group_norms);
        let reports = kernels.kernels().iter().zip(numbers);
        let nothing = nothing_to_certify();
        Ok(Fitted {
            model,
            certificate: nothing,
            status: found.status,
            problems: vec![ProblemReport {
                name: String::new(),
                certificate: nothing,
                status: found.status,
                steps: found.steps,
                history: Vec::new(),
                validation: Vec::new(),
            }],
            kernels: reports
                .map(|(kernel, (weight, group_norm))| KernelReport {
                    name: kernel.name.clone(),
                    group: kernel.group.clone(),
                    weights: vec![*weight],
                    group_norms: vec![*group_norm],
                })
                .collect(),
            n_samples: gram.n_rows(),
            n_support: spread.n_support,
            iterations: found.passes,
            seconds: begin.elapsed().as_secs_f64(),
            solver: self.solver,
            notes,
            warnings,
        })
    }
}
