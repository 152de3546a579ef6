//! Training: the description of a problem ([`Mkl`]) applied to kernels and targets gives a model and its certificate.
//!
//! Two classes, a real value or one class are one problem ½Ω² + Σ C_i ℓ; several classes are one problem with a score for
//! each (joint), or one problem per class (one-vs-rest) or per pair of classes (one-vs-one), solved one after another on
//! the same kernels.

pub mod baseline;
mod choices;
mod joint;
mod lp_beta;
mod norms;
mod omcl;
mod parts;
mod problems;
mod solvers;
mod start;
mod stochastic;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;
mod two_stage;

pub use choices::{Bias, ClassWeight, Multiclass};
pub(crate) use parts::{Forward, Part, Parts, held_out_scores};
pub(crate) use solvers::Setting;
pub use solvers::{SOLVERS, Solver, SolverInfo};
pub use start::WarmStart;
pub use stochastic::Watched;

use crate::data::{Scaling, Targets};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::model::{Model, Trained};
use crate::norm::{Norm, NormSpec};
use crate::observe::{Observer, Progress};
use crate::problem::{
    Certificate, Limits, Objective, Problem, Round, Solution, Start, Status, relative_gap,
};
use crate::solve::{exact, search};
use problems::{Question, Work};
use solvers::Way;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is to be trained and how. `Mkl::default()` is a good start; every field may be changed.
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
/// let fitted = Mkl { c: 10.0, ..Mkl::default() }.fit(&kernels, &targets, &())?;
/// assert!(fitted.relative_gap() <= 1e-3);
/// let predictions = fitted.model.predict(&views)?;
/// # assert_eq!(predictions.len(), 200);
/// # Ok::<(), multikernel::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mkl {
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
    /// Whether the exact solver's gap is confirmed by the kernels themselves (see [`Limits::confirm`]). Searches do not ask for that
    /// while they compare, only of the model that they end with.
    pub confirm: bool,
    /// How the views were scaled before the kernels saw them; kept in the model, which scales new samples by it.
    pub scaling: Scaling,
}

impl Default for Mkl {
    fn default() -> Self {
        Mkl {
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
        self.fit_gram(kernels, kernels.gram(), None, targets, None, observer)
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
        self.fit_gram(
            kernels,
            kernels.gram(),
            None,
            targets,
            Some(watched),
            observer,
        )
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
        self.fit_gram(kernels, &gram, Some(which), targets, None, observer)
    }

    /// `gram` holds the kernels `which`, all if none are named.
    fn fit_gram(
        &self,
        kernels: &KernelSet,
        gram: &Gram,
        which: Option<&[usize]>,
        targets: &Targets,
        watched: Option<&Watched<'_>>,
        observer: &dyn Observer,
    ) -> Result<Fitted> {
        let begin = Instant::now();
        let n = gram.n_rows();
        self.check(n)?;
        let mut notes = kernels.notes().to_vec();
        let mut warnings = kernels.warnings().to_vec();
        if let Way::Whole(fit) = self.solver.info().way {
            return fit(self, kernels, gram, which, targets, observer);
        }
        self.check_groups(kernels.kernels())?;
        let (task, scheme, classes, work) = self.questions(n, targets, &mut notes)?;
        let place = |k: usize| which.map_or(k, |which| which[k]);
        let mut groups: Vec<&str> = (0..gram.n_kernels())
            .map(|k| kernels.kernels()[place(k)].group.as_str())
            .collect();
        let given = self.given_weights(kernels, gram, which, targets, &mut notes, observer)?;
        let limits = Limits {
            tolerance: self.tolerance,
            max_rounds: self.max_rounds,
            deadline: self.deadline(begin),
            // The kernel set was given the memory; the solver holds its rows in what that left.
            memory: gram.spare_memory(),
            confirm: self.confirm,
        };
        let (norm, solver, found) = match &work {
            Work::Each(questions) => {
                if self.start_epochs > 0 {
                    return Err(Error::input(
                        "start-epochs",
                        "this is for the joint problem of several classes",
                        "leave it out, or give classes that are learned jointly",
                    ));
                }
                let loss = self.loss_for(task)?;
                let bias = self.bias_for(task, &mut notes)?;
                let (norm, solver) = self.norm_for(&groups, given, &mut notes)?;
                let found = self.fit_each(
                    gram, &norm, questions, loss, bias, limits, solver, watched, &mut notes,
                    observer,
                )?;
                (norm, solver, found)
            }
            Work::Joint(problem) => {
                let constant = self.bias == Bias::On;
                if constant {
                    joint::check_name(kernels)?;
                    groups.push(joint::CONSTANT);
                    notes.push(
                        "the bias of the joint problem is one more kernel, 'constant', whose value is 1 everywhere"
                            .into(),
                    );
                }
                // The constant kernel counts as it is.
                let given = given.map(|weights| match constant {
                    true => weights.into_iter().chain([1.0]).collect(),
                    false => weights,
                });
                let (norm, mut solver) = self.norm_for(&groups, given, &mut notes)?;
                if self.solver == Solver::Auto {
                    solver = joint::choose_solver(problem, &norm, limits.memory, &mut notes);
                }
                let found = joint::fit(gram, problem, constant, |gram, problem| {
                    if let Some(method) = solver.method() {
                        let objective = Objective::Multiclass(*problem);
                        let found =
                            search::solve(method, gram, &norm, &objective, &limits, observer);
                        return Ok(found.into());
                    }
                    if !solver.is_stochastic() {
                        let mut start =
                            self.joint_start(gram, &norm, problem, &limits, observer, &mut notes)?;
                        if let (None, Some(warm)) = (&start, &self.start) {
                            start = warm.joint(gram, &norm, problem, self.c);
                        }
                        let found = exact::multiclass::solve(
                            gram, &norm, problem, &limits, start, observer,
                        );
                        return Ok(found.into());
                    }
                    let objective = Objective::Multiclass(*problem);
                    // The constant kernel is one more there too.
                    let cross = watched
                        .filter(|_| constant)
                        .map(|watched| watched.gram.with_constant());
                    let watched = watched.map(|watched| Watched {
                        gram: cross.as_ref().unwrap_or(watched.gram),
                        ..*watched
                    });
                    self.solve_stochastic(
                        gram,
                        &norm,
                        &objective,
                        watched.as_ref(),
                        &limits,
                        observer,
                        &mut notes,
                    )
                })?;
                (norm, solver, found)
            }
        };
        // From the kernels that were trained on to all of the set.
        let m = kernels.kernels().len();
        let spread = |values: &[Vec<f64>]| -> Vec<f64> {
            let mut all = vec![0.0; m * values.len()];
            for (row, values) in all.chunks_mut(m.max(1)).zip(values) {
                for (j, value) in values.iter().take(gram.n_kernels()).enumerate() {
                    row[place(j)] = *value;
                }
            }
            all
        };
        let (weights, group_norms) = (spread(&found.weights), spread(&found.group_norms));
        let Found {
            coefficients,
            biases,
            bias,
            loss,
            problems,
            ..
        } = found;
        let outputs = biases.len();
        let certificate = total(&problems);
        let status = worst(&problems);
        let n_support = coefficients
            .chunks(outputs)
            .filter(|row| row.iter().any(|&a| a != 0.0))
            .count();
        if let (Work::Each(questions), LossSpec::Scalar(loss)) = (&work, loss)
            && status != Status::Converged
            && self.minimises_the_objective(solver)
        {
            let nothing: f64 = questions
                .iter()
                .map(|q| q.knowing_nothing(loss, bias))
                .sum();
            if certificate.primal > (1.0 + self.tolerance) * nothing {
                warnings.push(format!(
                    "the objective, {:.3e}, is above {nothing:.3e}, that of a model that knows nothing: do not use this one; scale the features, normalise the kernels, lower C, or take another solver",
                    certificate.primal
                ));
            }
        }
        if n_support == 0 {
            warnings.push(
                "no sample has a coefficient: the model gives every sample the same score (a larger C lets it learn more)"
                    .into(),
            );
        }
        let model = Model::trained(
            Trained {
                kernels,
                task,
                scheme,
                classes,
                loss,
                norm: norm.spec().clone(),
                c: self.c,
                bias,
                biases,
                weights: &weights,
                coefficients: &coefficients,
                separate: None,
                scaling: &self.scaling,
            },
            &mut notes,
            &mut warnings,
        )?;
        let pick = |values: &[f64], k: usize| values.iter().skip(k).step_by(m).copied().collect();
        let mut reports: Vec<KernelReport> = kernels
            .kernels()
            .iter()
            .enumerate()
            .map(|(k, kernel)| KernelReport {
                name: kernel.name.clone(),
                group: kernel.group.clone(),
                weights: pick(&weights, k),
                group_norms: pick(&group_norms, k),
            })
            .collect();
        reports.extend(found.constant);
        Ok(Fitted {
            model,
            certificate,
            status,
            kernels: reports,
            n_samples: n,
            n_support,
            iterations: problems.iter().map(|p| p.history.len()).sum(),
            problems,
            seconds: begin.elapsed().as_secs_f64(),
            solver,
            notes,
            warnings,
        })
    }

    /// Whether the primal objective is what the solver makes small.
    fn minimises_the_objective(&self, solver: Solver) -> bool {
        self.tikhonov.is_none() && solver.knows_c()
    }

    /// Solves problems of one score per sample, one after another.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call, and every argument is another noun"
    )]
    fn fit_each(
        &self,
        gram: &Gram,
        norm: &Norm,
        questions: &[Question],
        loss: crate::loss::Loss,
        bias: bool,
        mut limits: Limits,
        solver: Solver,
        watched: Option<&Watched<'_>>,
        notes: &mut Vec<String>,
        observer: &dyn Observer,
    ) -> Result<Found> {
        let outputs = questions.len();
        let mut found = Found {
            coefficients: vec![0.0; gram.n_rows() * outputs],
            weights: Vec::with_capacity(outputs),
            group_norms: Vec::with_capacity(outputs),
            biases: Vec::with_capacity(outputs),
            bias,
            loss: LossSpec::Scalar(loss),
            problems: Vec::with_capacity(outputs),
            constant: None,
        };
        for (k, question) in questions.iter().enumerate() {
            if outputs > 1 {
                let told = observer.progress(&Progress::Work {
                    stage: "problems of two classes",
                    done: k as u64,
                    total: outputs as u64,
                });
                if told.is_break() {
                    // What is left still gets a feasible point and its certificate, but no work.
                    limits.deadline = Some(Instant::now());
                }
            }
            let (own, solved) = if solver.is_stochastic() {
                let own = question.gram(gram);
                let objective = Objective::Scalar(question.problem(loss, bias));
                let watched = watched.filter(|_| outputs == 1);
                let solved = self
                    .solve_stochastic(&own, norm, &objective, watched, &limits, observer, notes)?;
                (own, solved)
            } else {
                let own = question.gram(gram);
                let problem = question.problem(loss, bias);
                let start = self.start.as_ref().and_then(|start| {
                    start.scalar(k, outputs, question, &own, norm, &problem, self.c)
                });
                let solution = solve(
                    &own,
                    norm,
                    &problem,
                    &limits,
                    solver,
                    self.tikhonov,
                    start,
                    observer,
                )?;
                (own, solution.into())
            };
            let mut solution = solved.solution;
            if solution.status == Status::Stopped {
                limits.deadline = Some(Instant::now());
            }
            let forms = solution.forms.take().unwrap_or_else(|| {
                own.quadratic_forms(Coefficients::single(&solution.coefficients))
            });
            question.scatter(&solution.coefficients, &mut found.coefficients, k, outputs);
            found.biases.push(solution.certificate.bias);
            found.add(question.name.clone(), solution, &forms, solved.validation);
        }
        Ok(found)
    }

    /// Values that no problem can have.
    fn check(&self, n: usize) -> Result<()> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if !positive(self.c) {
            return Err(Error::input(
                "C",
                format!("it is {}", self.c),
                "give a positive finite number",
            ));
        }
        if !positive(self.tolerance) {
            return Err(Error::input(
                "tol",
                format!("the relative gap asked for is {}", self.tolerance),
                "give a positive finite number such as 1e-3",
            ));
        }
        if self.tikhonov.is_some() {
            self.solver.check(Setting::Tikhonov)?;
        }
        if self.start_epochs > 0 {
            self.solver.check(Setting::StartEpochs)?;
        }
        if let Some(seconds) = self.max_seconds
            && (seconds.is_nan() || seconds < 0.0)
        {
            return Err(Error::input(
                "max-seconds",
                format!("it is {seconds}"),
                "give a number of seconds that is not negative",
            ));
        }
        if self.max_rounds == 0 {
            return Err(Error::input(
                "the largest number of rounds",
                "it is 0",
                "give at least 1",
            ));
        }
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

    fn deadline(&self, begin: Instant) -> Option<Instant> {
        // A time beyond what a duration can hold is no bound.
        let seconds = Duration::try_from_secs_f64(self.max_seconds?).ok()?;
        begin.checked_add(seconds)
    }
}

/// Solves one problem.
#[allow(
    clippy::too_many_arguments,
    reason = "one call, and every argument is another noun"
)]
fn solve(
    own: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    limits: &Limits,
    solver: Solver,
    tikhonov: Option<f64>,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Result<Solution> {
    if let Some(mu) = tikhonov {
        // Cold: its scale is found on the way, and a start in the wrong scale is worse than none.
        let found = exact::tikhonov::solve(own, norm, problem, mu, limits, None, observer)?;
        return Ok(found.solution);
    }
    match solver.info().way {
        Way::OneScore(solve) => Ok(solve(own, norm, problem, limits, start, observer)),
        Way::Search(method) => {
            let objective = Objective::Scalar(*problem);
            Ok(search::solve(
                method, own, norm, &objective, limits, observer,
            ))
        }
        Way::Steps(_) | Way::Whole(_) => unreachable!("they go another way"),
    }
}

/// What the solvers found.
struct Found {
    /// Sample after sample, one number per score.
    coefficients: Vec<f64>,
    /// β and ‖w_m‖ of the kernels trained on, for every problem.
    weights: Vec<Vec<f64>>,
    group_norms: Vec<Vec<f64>>,
    /// One per score.
    biases: Vec<f64>,
    bias: bool,
    loss: LossSpec,
    problems: Vec<ProblemReport>,
    /// The constant kernel, if there is one: it stands behind the others in weights and group norms.
    constant: Option<KernelReport>,
}

impl Found {
    /// Adds the weights and the report of a problem.
    fn add(&mut self, name: String, solution: Solution, forms: &[f64], validation: Vec<f64>) {
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
}

fn total(problems: &[ProblemReport]) -> Certificate {
    let sum = |f: fn(&Certificate) -> f64| problems.iter().map(|p| f(&p.certificate)).sum();
    Certificate {
        primal: sum(|c| c.primal),
        dual: sum(|c| c.dual),
        risk: sum(|c| c.risk),
        bias: match problems {
            [one] => one.certificate.bias,
            _ => 0.0,
        },
    }
}

fn worst(problems: &[ProblemReport]) -> Status {
    let order = [Status::Stopped, Status::TimeLimit, Status::MaxIterations];
    order
        .into_iter()
        .find(|status| problems.iter().any(|p| p.status == *status))
        .unwrap_or(Status::Converged)
}
