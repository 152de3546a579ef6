//! Training: the description of a problem ([`Mkl`]) applied to kernels and targets gives a model and its certificate.
//!
//! Two classes, a real value or one class are one problem ½Ω² + Σ C_i ℓ; several classes are one problem with a score for
//! each (joint), or one problem per class (one-vs-rest) or per pair of classes (one-vs-one), solved one after another on
//! the same kernels.

pub(crate) mod baseline;
mod builder;
mod check;
mod choices;
mod fitting;
mod fixed_weights;
mod joint;
mod lp_beta;
mod norms;
mod omcl;
mod parts;
mod problems;
mod scalar;
mod solvers;
mod stochastic;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;
mod warm_start;

pub use baseline::leave_one_out;
pub use choices::{Bias, ClassWeight, Multiclass};
pub(crate) use parts::{Forward, Part, Parts, held_out_scores};
pub(crate) use solvers::Setting;
pub use solvers::{SOLVERS, Solver, SolverInfo};
pub use stochastic::Watched;
pub use warm_start::WarmStart;

use crate::data::{Scaling, Targets, Task};
use crate::error::{Error, InputError, Result};
use crate::gram::KernelSet;
use crate::loss::LossSpec;
use crate::model::Model;
use crate::norm::NormSpec;
use crate::observe::Observer;
use crate::problem::{Certificate, Round, Status, relative_gap};
use fitting::{Fitting, Found, Summary};
use problems::Work;
use scalar::ScalarSetup;
use solvers::Way;
use std::sync::Arc;

/// What is to be trained and how. [`Mkl::classifier`], [`Mkl::regressor`] and [`Mkl::one_class`] are a good start, and so is
/// `Mkl::default()`, which learns whatever the targets are; every field may be changed, those that are words by setters, too.
///
/// ```
/// use multikernel::data::{Targets, Task, digits};
/// use multikernel::gram::{KernelSet, Options};
/// use multikernel::kernel::KernelSpec;
/// use multikernel::train::Mkl;
///
/// let data = digits()?;
/// let rows: Vec<usize> = (0..200).collect();
/// let (views, labels) = (data.views.select(&rows)?, data.labels.map(|l| l.select(&rows)));
/// let kernels = KernelSet::new(&KernelSpec::parse("rbf")?, &views, &Options::default(), &())?;
/// let targets = Targets::new(labels.as_ref(), Task::Classify, views.len())?;
/// let fitted = Mkl::classifier().c(10.0).fit(&kernels, &targets, &())?;
/// assert!(fitted.relative_gap() <= 1e-3);
/// let predictions = fitted.model.predict(&views)?;
/// # assert_eq!(predictions.len(), 200);
/// # Ok::<(), multikernel::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mkl {
    /// What is learned; none: what the targets are.
    pub task: Option<Task>,
    /// The first word given to a setter that could not be read: [`Mkl::fit`] refuses it.
    pub misread: Option<InputError>,
    /// How the kernels share.
    pub norm: NormSpec,
    /// The matrix E of a non-isotropic norm, row after row; else empty.
    pub matrix: Vec<f64>,
    /// μ of the Tikhonov form, where the size of the weights is priced and not bounded; none: the usual form.
    pub tikhonov: Option<f64>,
    /// The loss; none: what is usual for the task.
    pub loss: Option<LossSpec>,
    /// C
    pub c: f64,
    /// The algorithm.
    pub solver: Solver,
    /// How several classes are told apart.
    pub multiclass: Multiclass,
    /// Whether there is a bias.
    pub bias: Bias,
    /// Weights of the classes.
    pub class_weight: ClassWeight,
    /// Weights of the samples; none: all 1.
    pub sample_weight: Option<Vec<f64>>,
    /// Relative duality gap to reach.
    pub tolerance: f64,
    /// Largest number of rounds of the solver, for each problem.
    pub max_rounds: usize,
    /// When to stop at the latest, counted from the call of [`Mkl::fit`].
    pub max_seconds: Option<f64>,
    /// Epochs, steps and draws of the solvers obscure and pegasos.
    pub stochastic: crate::solve::stochastic::StochasticSettings,
    /// The exact solver of the joint problem starts from so many epochs of OBSCURE's second stage; cold if 0.
    pub start_epochs: usize,
    /// Where to start: the result of an earlier training on the same samples and kernels, with another C or norm; none: cold. The
    /// solvers obscure, pegasos, om2, pa1 and omcl and the Tikhonov form always start cold, and so does what does not fit.
    pub start: Option<Arc<WarmStart>>,
    /// Whether the exact solver's gap is confirmed by the kernels themselves (see [`Limits::confirm`](crate::problem::Limits::confirm)). Searches do not ask for that
    /// while they compare, only of the model that they end with.
    pub confirm: bool,
    /// How the views were scaled before the kernels saw them; kept in the model, which scales new samples by it.
    pub scaling: Scaling,
}

impl Default for Mkl {
    fn default() -> Self {
        Mkl {
            task: None,
            misread: None,
            norm: NormSpec::default(),
            matrix: Vec::new(),
            tikhonov: None,
            loss: None,
            c: 1.0,
            solver: Solver::Auto,
            multiclass: Multiclass::Auto,
            bias: Bias::Auto,
            class_weight: ClassWeight::None,
            sample_weight: None,
            tolerance: 1e-3,
            max_rounds: 1000,
            max_seconds: None,
            stochastic: crate::solve::stochastic::StochasticSettings::default(),
            start_epochs: 0,
            start: None,
            confirm: true,
            scaling: Scaling::default(),
        }
    }
}

/// A model, how far it is from the optimum, and how it came to be.
#[derive(Debug)]
pub struct Fitted {
    /// What predicts.
    pub model: Model,
    /// Primal and dual objective, summed over the problems. Its bias is that of a single problem and 0 for several;
    /// [`Model::biases`] has them all.
    pub certificate: Certificate,
    /// Why training stopped; of several problems the least happy one.
    pub status: Status,
    /// The problems, one or several.
    pub problems: Vec<ProblemReport>,
    /// All kernels of the set, also those the model does not need.
    pub kernels: Vec<KernelReport>,
    /// Number of training samples.
    pub n_samples: usize,
    /// Number of training samples with a coefficient other than zero.
    pub n_support: usize,
    /// Weight steps of all problems.
    pub iterations: usize,
    /// Seconds in [`Mkl::fit`].
    pub seconds: f64,
    /// The algorithm that ran.
    pub solver: Solver,
    /// What was chosen automatically, in sentences.
    pub notes: Vec<String>,
    /// What the user should look at, in sentences.
    pub warnings: Vec<String>,
}

/// One of the problems that were solved.
#[derive(Debug, Clone)]
pub struct ProblemReport {
    /// What it separates, in words; empty if it is the only one.
    pub name: String,
    /// P, D and the bias.
    pub certificate: Certificate,
    /// Why it stopped.
    pub status: Status,
    /// Working-set steps.
    pub steps: u64,
    /// One entry per round.
    pub history: Vec<Round>,
    /// What every round was worth on watched samples (see [`Mkl::fit_watched`]): share of right answers, or mean squared error where
    /// targets are numbers. Empty where nothing was watched.
    pub validation: Vec<f64>,
}

/// A kernel's part in the result; one number for each problem.
#[derive(Debug, Clone)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// β_m
    pub weights: Vec<f64>,
    /// ‖w_m‖ = β_m √(aᵀK_m a)
    pub group_norms: Vec<f64>,
}

impl Fitted {
    /// (P − D) / max(|P|, |D|).
    pub fn relative_gap(&self) -> f64 {
        relative_gap(self.certificate.primal, self.certificate.dual)
    }
}

impl Mkl {
    /// Trains a model on the samples of `kernels`.
    pub fn fit(
        &self,
        kernels: &KernelSet,
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        self.run(Fitting::new(
            kernels,
            kernels.gram(),
            None,
            targets,
            observer,
        ))
    }

    /// As [`Mkl::fit`], looking at other samples after every epoch. Solvers that have no epochs do not look, and problems that are
    /// solved one after another (ovr, ovo) have no one answer to look at.
    pub fn fit_watched(
        &self,
        kernels: &KernelSet,
        targets: &Targets,
        watched: &Watched<'_>,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        self.run(Fitting {
            watched: Some(watched),
            ..Fitting::new(kernels, kernels.gram(), None, targets, observer)
        })
    }

    /// As [`Mkl::fit`], on some of the kernels; the others get weight 0.
    ///
    /// # Panics
    /// If a kernel does not exist or is named twice.
    pub fn fit_kernels(
        &self,
        kernels: &KernelSet,
        which: &[usize],
        targets: &Targets,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        let gram = kernels.gram().select_kernels(which);
        self.run(Fitting::new(kernels, &gram, Some(which), targets, observer))
    }

    /// Trains on the kernels of `fit`.
    fn run(&self, mut fit: Fitting<'_>) -> Result<Fitted> {
        let n = fit.gram.n_rows();
        self.check_words()?;
        self.check_values()?;
        self.check_sample_weights(n)?;
        if self.task == Some(Task::OneClass) {
            fit.targets = &Targets::None;
        }
        self.check_task(fit.targets.task())?;
        if let Way::Whole(train) = self.solver.info().way {
            return train(self, fit);
        }
        self.check_groups(fit.set.kernels())?;
        let plan = self.plan(n, fit.targets, &mut fit.notes)?;
        let given = self.given_weights(&mut fit)?;
        let limits = fit.limits(self);
        let (norm, solver, found) = match &plan.work {
            Work::Each(problems) => {
                if self.start_epochs > 0 {
                    return Err(Error::input(
                        "start-epochs",
                        "this is for the joint problem of several classes",
                        "leave it out, or give classes that are learned jointly",
                    ));
                }
                let loss = self.loss_for(plan.task)?;
                let bias = self.bias_for(plan.task, &mut fit.notes)?;
                let (norm, solver) = self.norm_for(&fit.groups(), given, &mut fit.notes)?;
                let setup = ScalarSetup {
                    loss,
                    bias,
                    norm: &norm,
                    solver,
                    limits,
                };
                let found = self.fit_each(&mut fit, problems, setup)?;
                (norm, solver, found)
            }
            Work::Joint(problem) => self.fit_joint(&mut fit, problem, given, &limits)?,
        };
        self.warn_of_nothing(&plan.work, solver, &found, &mut fit.warnings);
        let summary = Summary {
            task: plan.task,
            scheme: plan.scheme,
            classes: plan.classes,
            norm: norm.spec().clone(),
            solver,
        };
        fit.finish(self, summary, found)
    }

    /// Warns of a model that is worse than one that knows nothing, or that is one.
    fn warn_of_nothing(
        &self,
        work: &Work,
        solver: Solver,
        found: &Found,
        warnings: &mut Vec<String>,
    ) {
        // Whether the primal objective is what the solver makes small.
        let minimises = self.tikhonov.is_none() && solver.knows_c();
        if let (Work::Each(problems), LossSpec::Scalar(loss)) = (work, found.loss)
            && found.status() != Status::Converged
            && minimises
        {
            let nothing: f64 = problems
                .iter()
                .map(|problem| problem.null_objective(loss, found.bias))
                .sum();
            let primal = found.certificate().primal;
            if primal > (1.0 + self.tolerance) * nothing {
                warnings.push(format!(
                    "the objective, {primal:.3e}, is above {nothing:.3e}, that of a model that knows nothing: do not use this one; scale the features, normalise the kernels, lower C, or take another solver"
                ));
            }
        }
        if found.n_support() == 0 {
            warnings.push(
                "no sample has a coefficient: the model gives every sample the same score (a larger C lets it learn more)"
                    .into(),
            );
        }
    }

    /// Weights that samples cannot have.
    fn check_sample_weights(&self, n: usize) -> Result<()> {
        let Some(weights) = &self.sample_weight else {
            return Ok(());
        };
        if weights.len() != n {
            return Err(Error::input(
                "sample-weight",
                format!("there are {} weights for {n} samples", weights.len()),
                "give one weight for each sample, in the same order",
            ));
        }
        if let Some(i) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Error::input(
                format!("sample-weight row {}", i + 1),
                format!("the weight is {}", weights[i]),
                "give finite numbers that are not negative",
            ));
        }
        if weights.iter().all(|&w| w == 0.0) {
            return Err(Error::input(
                "sample-weight",
                "all weights are 0",
                "give some sample a positive weight",
            ));
        }
        Ok(())
    }
}
