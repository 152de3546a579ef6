//! One call of [`Mkl::fit`]: what it was given, what it has to say, and how what a solver found becomes a model.

use super::{Fitted, KernelReport, Mkl, ProblemReport, Solver, Watched};
use crate::data::{Targets, Task};
use crate::error::Result;
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::model::{Model, Scheme, Trained};
use crate::norm::NormSpec;
use crate::observe::Observer;
use crate::problem::{Certificate, Limits, Solution, Status};
use std::time::{Duration, Instant};

/// What a training works on, and the sentences it leaves.
pub(super) struct Fitting<'a> {
    pub(super) set: &'a KernelSet,
    /// The kernels that are trained on.
    pub(super) gram: &'a Gram,
    /// Which of the set's these are; none: all.
    pub(super) which: Option<&'a [usize]>,
    pub(super) targets: &'a Targets,
    pub(super) watched: Option<&'a Watched<'a>>,
    pub(super) observer: &'a dyn Observer,
    pub(super) begin: Instant,
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// What was solved, and by what.
pub(super) struct Summary {
    pub(super) task: Task,
    pub(super) scheme: Scheme,
    pub(super) classes: Vec<String>,
    pub(super) norm: NormSpec,
    pub(super) solver: Solver,
}

/// What the solvers found; kernels are those that were trained on.
pub(super) struct Found {
    /// Sample after sample, one number per score.
    pub(super) coefficients: Vec<f64>,
    /// Where every kernel has coefficients of its own: kernel after kernel, each as `coefficients`.
    pub(super) separate: Option<Vec<f64>>,
    /// β and ‖w_m‖, for every problem.
    pub(super) weights: Vec<Vec<f64>>,
    pub(super) group_norms: Vec<Vec<f64>>,
    /// One per score.
    pub(super) biases: Vec<f64>,
    pub(super) bias: bool,
    pub(super) loss: LossSpec,
    pub(super) problems: Vec<ProblemReport>,
    /// The constant kernel, if there is one: it stands behind the others in weights and group norms.
    pub(super) constant: Option<KernelReport>,
}

impl Found {
    /// Nothing yet, for `outputs` scores of n samples.
    pub(super) fn new(n: usize, outputs: usize, loss: LossSpec, bias: bool) -> Found {
        Found {
            coefficients: vec![0.0; n * outputs],
            separate: None,
            weights: Vec::new(),
            group_norms: Vec::new(),
            biases: vec![0.0; outputs],
            bias,
            loss,
            problems: Vec::new(),
            constant: None,
        }
    }

    /// Adds the weights and the report of a problem; `forms` are its aᵀK_m a.
    pub(super) fn add(
        &mut self,
        name: String,
        solution: Solution,
        forms: &[f64],
        validation: Vec<f64>,
    ) {
        let norms = forms.iter().zip(&solution.weights);
        self.group_norms
            .push(norms.map(|(q, b)| b * q.sqrt()).collect());
        self.weights.push(solution.weights);
        self.problems.push(ProblemReport {
            name,
            certificate: solution.certificate,
            status: solution.status,
            steps: solution.steps,
            history: solution.history,
            validation,
        });
    }

    /// Takes coefficients that every kernel has for itself: `weights` combine them, once for all scores or for each by itself.
    pub(super) fn combine(&mut self, gram: &Gram, separate: Vec<f64>, weights: Vec<Vec<f64>>) {
        let (outputs, sets) = (self.biases.len(), weights.len());
        self.group_norms = vec![vec![0.0; gram.n_kernels()]; sets];
        for (m, own) in separate.chunks(gram.n_rows() * outputs).enumerate() {
            if weights.iter().all(|row| row[m] == 0.0) {
                continue;
            }
            for (at, (sum, a)) in self.coefficients.iter_mut().zip(own).enumerate() {
                *sum += weights[at % outputs % sets][m] * a;
            }
            let kernel = gram.select_kernels(&[m]);
            let form =
                |a: &[f64], outputs| kernel.quadratic_forms(Coefficients::new(a, outputs))[0];
            for (k, row) in weights.iter().enumerate() {
                let form = match sets {
                    1 => form(own, outputs),
                    _ => {
                        let column: Vec<f64> =
                            own.iter().skip(k).step_by(outputs).copied().collect();
                        form(&column, 1)
                    }
                };
                self.group_norms[k][m] = row[m] * form.sqrt();
            }
        }
        self.separate = Some(separate);
        self.weights = weights;
    }

    /// Summed over the problems.
    pub(super) fn certificate(&self) -> Certificate {
        let certificates = || self.problems.iter().map(|problem| &problem.certificate);
        Certificate {
            primal: certificates().map(|c| c.primal).sum(),
            dual: certificates().map(|c| c.dual).sum(),
            risk: certificates().map(|c| c.risk).sum(),
            bias: match &self.problems[..] {
                [one] => one.certificate.bias,
                _ => 0.0,
            },
        }
    }

    /// That of the least happy problem.
    pub(super) fn status(&self) -> Status {
        let order = [Status::Stopped, Status::TimeLimit, Status::MaxIterations];
        let is_some = |status: &Status| self.problems.iter().any(|p| p.status == *status);
        order.into_iter().find(is_some).unwrap_or(Status::Converged)
    }

    /// Number of samples with a coefficient.
    pub(super) fn n_support(&self) -> usize {
        let rows = self.coefficients.chunks(self.biases.len());
        rows.filter(|row| row.iter().any(|&a| a != 0.0)).count()
    }
}

impl<'a> Fitting<'a> {
    pub(super) fn new(
        set: &'a KernelSet,
        gram: &'a Gram,
        which: Option<&'a [usize]>,
        targets: &'a Targets,
        observer: &'a dyn Observer,
    ) -> Fitting<'a> {
        Fitting {
            set,
            gram,
            which,
            targets,
            watched: None,
            observer,
            begin: Instant::now(),
            notes: set.notes().to_vec(),
            warnings: set.warnings().to_vec(),
        }
    }

    /// Where the k-th kernel that is trained on stands in the set.
    pub(super) fn place(&self, k: usize) -> usize {
        self.which.map_or(k, |which| which[k])
    }

    /// The groups of the kernels that are trained on.
    pub(super) fn groups(&self) -> Vec<&'a str> {
        let set = self.set;
        (0..self.gram.n_kernels())
            .map(|k| set.kernels()[self.place(k)].group.as_str())
            .collect()
    }

    pub(super) fn deadline(&self, mkl: &Mkl) -> Option<Instant> {
        mkl.deadline(self.begin)
    }

    pub(super) fn limits(&self, mkl: &Mkl) -> Limits {
        Limits {
            tolerance: mkl.tolerance,
            max_rounds: mkl.max_rounds,
            deadline: self.deadline(mkl),
            // The kernel set was given the memory; the solver holds its rows in what that left.
            memory: self.gram.spare_memory(),
            confirm: mkl.confirm,
        }
    }

    /// The model of what was found, and the report of its training.
    pub(super) fn finish(mut self, mkl: &Mkl, summary: Summary, found: Found) -> Result<Fitted> {
        let (n, outputs) = (self.gram.n_rows(), found.biases.len());
        let (certificate, status) = (found.certificate(), found.status());
        let n_support = found.n_support();
        let (weights, group_norms) = (self.of_set(&found.weights), self.of_set(&found.group_norms));
        let separate = found
            .separate
            .map(|own| self.lists_of_set(&own, n * outputs));
        let model = Model::trained(
            Trained {
                kernels: self.set,
                task: summary.task,
                scheme: summary.scheme,
                classes: summary.classes,
                loss: found.loss,
                norm: summary.norm,
                c: mkl.c,
                bias: found.bias,
                biases: found.biases,
                weights: &weights,
                coefficients: &found.coefficients,
                separate: separate.as_deref(),
                scaling: &mkl.scaling,
            },
            &mut self.notes,
            &mut self.warnings,
        )?;
        let all = self.set.kernels();
        let of_kernel =
            |values: &[f64], m: usize| values.iter().skip(m).step_by(all.len()).copied().collect();
        let mut kernels: Vec<KernelReport> = all
            .iter()
            .enumerate()
            .map(|(m, kernel)| KernelReport {
                name: kernel.name.clone(),
                group: kernel.group.clone(),
                weights: of_kernel(&weights, m),
                group_norms: of_kernel(&group_norms, m),
            })
            .collect();
        kernels.extend(found.constant);
        Ok(Fitted {
            model,
            certificate,
            status,
            kernels,
            n_samples: n,
            n_support,
            iterations: found.problems.iter().map(|p| p.history.len()).sum(),
            problems: found.problems,
            seconds: self.begin.elapsed().as_secs_f64(),
            solver: summary.solver,
            notes: self.notes,
            warnings: self.warnings,
        })
    }

    /// Numbers of the kernels that were trained on as numbers of all kernels of the set, problem after problem.
    fn of_set(&self, values: &[Vec<f64>]) -> Vec<f64> {
        let m = self.set.kernels().len();
        let mut all = vec![0.0; m * values.len()];
        for (row, values) in all.chunks_mut(m.max(1)).zip(values) {
            for (k, value) in values.iter().take(self.gram.n_kernels()).enumerate() {
                row[self.place(k)] = *value;
            }
        }
        all
    }

    /// The same for lists of so many numbers for each kernel.
    fn lists_of_set(&self, lists: &[f64], size: usize) -> Vec<f64> {
        let mut all = vec![0.0; self.set.kernels().len() * size];
        for (k, own) in lists.chunks(size).enumerate() {
            all[self.place(k) * size..][..size].copy_from_slice(own);
        }
        all
    }
}

impl Mkl {
    pub(super) fn deadline(&self, begin: Instant) -> Option<Instant> {
        // A time beyond what a duration can hold is no bound.
        let seconds = Duration::try_from_secs_f64(self.max_seconds?).ok()?;
        begin.checked_add(seconds)
    }
}
