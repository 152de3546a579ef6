//! OMCL behind the same door as the others, though it minimises no objective and has no certificate.

use super::two_stage::nothing_to_certify;
use super::{Fitted, KernelReport, Mkl, ProblemReport};
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::model::{Model, Scheme, Trained};
use crate::norm::{Exponent, NormSpec};
use crate::observe::Observer;
use crate::problem::Status;
use crate::solve::stochastic::omcl::Job;
use std::time::Instant;

impl Mkl {
    pub(super) fn fit_omcl(
        &self,
        kernels: &KernelSet,
        gram: &Gram,
        which: Option<&[usize]>,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        let begin = Instant::now();
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
        if self
            .loss
            .is_some_and(|loss| loss != LossSpec::MulticlassHinge)
            || self.bias == super::Bias::On
            || self.sample_weight.is_some()
            || self.class_weight != super::ClassWeight::None
            || matches!(
                self.multiclass,
                super::Multiclass::OneVsRest | super::Multiclass::OneVsOne
            )
        {
            return refused(
                "it has a score for every class, and no other loss, bias, or weights of samples or classes",
                "leave these out",
            );
        }
        let (n, k, f) = (gram.n_rows(), names.len(), gram.n_kernels());
        let job = Job {
            gram,
            classes: index,
            n_classes: k,
            c: self.c,
            epochs: self.stochastic.epochs,
            seed: self.stochastic.seed,
            deadline: self.deadline(begin),
            memory: gram.spare_memory(),
        };
        if job.score_bytes() > gram.spare_memory() {
            return Err(Error::Memory {
                what: "the scores of all samples, kernels and classes".into(),
                needed: job.score_bytes(),
                available: gram.spare_memory(),
                remedy: "allow more memory, or take the solver om2".into(),
            });
        }
        let found = job.run(observer);
        let mut notes = kernels.notes().to_vec();
        notes.push("omcl minimises no objective: there is no duality gap".into());
        self.say_no_norm(&mut notes);
        let mut warnings = kernels.warnings().to_vec();
        // from the kernels that were trained on to all of the set
        let all = kernels.kernels().len();
        let place = |m: usize| which.map_or(m, |which| which[m]);
        let mut weights = vec![0.0; all];
        let mut separate = vec![0.0; all * n * k];
        let mut together = vec![0.0; n * k];
        let mut group_norms = vec![0.0; all];
        for (m, own) in found.coefficients.chunks(n * k).enumerate() {
            let weight = found.weights[m];
            weights[place(m)] = weight;
            separate[place(m) * n * k..(place(m) + 1) * n * k].copy_from_slice(own);
            together
                .iter_mut()
                .zip(own)
                .for_each(|(t, a)| *t += weight * a);
            let one = gram.select_kernels(&[m]);
            let form = one.quadratic_forms(Coefficients::new(own, k))[0];
            group_norms[place(m)] = weight * form.sqrt();
        }
        debug_assert_eq!(found.coefficients.len(), f * n * k);
        let support = (0..n).filter(|&i| {
            let rows = found.coefficients.chunks(n * k);
            rows.into_iter()
                .any(|own| own[i * k..(i + 1) * k].iter().any(|a| *a != 0.0))
        });
        let n_support = support.count();
        let model = Model::trained(
            Trained {
                kernels,
                task: Task::Classify,
                scheme: Scheme::Joint,
                classes: names.clone(),
                loss: LossSpec::MulticlassHinge,
                norm: NormSpec::Lp(Exponent::new(f64::INFINITY)?),
                c: self.c,
                bias: false,
                biases: vec![0.0; k],
                weights: &weights,
                coefficients: &together,
                separate: Some(&separate),
                scaling: &self.scaling,
            },
            &mut notes,
            &mut warnings,
        )?;
        let nothing = nothing_to_certify();
        let status = match (found.stopped, found.late) {
            (true, _) => Status::Stopped,
            (_, true) => Status::TimeLimit,
            _ => Status::MaxIterations,
        };
        Ok(Fitted {
            model,
            certificate: nothing,
            status,
            problems: vec![ProblemReport {
                name: String::new(),
                certificate: nothing,
                status,
                steps: found.steps,
                history: Vec::new(),
                validation: Vec::new(),
            }],
            kernels: kernels
                .kernels()
                .iter()
                .enumerate()
                .map(|(m, kernel)| KernelReport {
                    name: kernel.name.clone(),
                    group: kernel.group.clone(),
                    weights: vec![weights[m]],
                    group_norms: vec![group_norms[m]],
                })
                .collect(),
            n_samples: n,
            n_support,
            iterations: found.passes,
            seconds: begin.elapsed().as_secs_f64(),
            solver: self.solver,
            notes,
            warnings,
        })
    }
}
