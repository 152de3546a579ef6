//! The joint problem of several classes: one score per class, one set of kernel weights.
//!
//! It has no bias of its own. Asked for one, it gets a kernel more whose value is 1 everywhere: its part of the score of
//! class k is β Σ_i A_ik for every sample, which the model keeps as that class's bias.

use super::fitting::{Fitting, Found};
use super::problems::JointProblem;
use super::stochastic::Solved;
use super::{Bias, KernelReport, Mkl, Solver, Watched};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, MulticlassProblem, Objective, Start};
use crate::solve::stochastic::{StochasticSettings, obscure};
use crate::solve::{exact, search};

/// The name and group of the constant kernel.
const CONSTANT: &str = "constant";

/// The constant kernel's name must be free.
fn check_name(kernels: &KernelSet) -> Result<()> {
    if kernels.kernels().iter().all(|k| k.name != CONSTANT) {
        return Ok(());
    }
    Err(Error::input(
        "bias",
        "in the joint problem it is a kernel named 'constant', but there is a kernel of that name",
        "give the kernel another name, or train without a bias",
    ))
}

/// Numbers of eight bytes that the exact solver holds per sample and class: coefficients, margins and copies of them.
const EXACT_NUMBERS: u64 = 8;
/// Kernel rows that it should be able to hold at least, to be worth its while.
const EXACT_ROWS: u64 = 256;

/// What `auto` is: the exact solver, which is faster wherever it was measured, unless memory cannot hold what it needs.
pub(super) fn choose_solver(
    joint: &JointProblem,
    norm: &Norm,
    memory: u64,
    notes: &mut Vec<String>,
) -> Solver {
    let (n, classes) = (joint.classes.len() as u64, joint.n_classes as u64);
    let needed = 8 * EXACT_NUMBERS * n * classes + 4 * n * n.min(EXACT_ROWS);
    let of = format!("{n} samples and {classes} classes");
    let possible = norm.as_block().is_some_and(|b| b.r() > 1.0 && b.r() <= 2.0);
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    if needed <= memory || !possible {
        notes.push(format!(
            "solver auto: exact, for {of} ({} MiB of {} MiB left)",
            mib(needed),
            mib(memory)
        ));
        return Solver::Exact;
    }
    notes.push(format!(
        "solver auto: obscure, since the exact solver would need {} MiB for {of} and {} MiB are left",
        mib(needed),
        mib(memory)
    ));
    Solver::Obscure
}

impl Mkl {
    /// Solves the joint problem; `given` are weights that were chosen before.
    pub(super) fn fit_joint(
        &self,
        fit: &mut Fitting<'_>,
        joint: &JointProblem,
        given: Option<Vec<f64>>,
        limits: &Limits,
    ) -> Result<(Norm, Solver, Found)> {
        let constant = self.bias == Bias::On;
        let mut groups = fit.groups();
        if constant {
            check_name(fit.set)?;
            groups.push(CONSTANT);
            fit.notes.push(
                "the bias of the joint problem is one more kernel, 'constant', whose value is 1 everywhere"
                    .into(),
            );
        }
        // The constant kernel counts as it is.
        let given = given.map(|weights| match constant {
            true => weights.into_iter().chain([1.0]).collect(),
            false => weights,
        });
        let (norm, mut solver) = self.norm_for(&groups, given, &mut fit.notes)?;
        if self.solver == Solver::Auto {
            solver = choose_solver(joint, &norm, limits.memory, &mut fit.notes);
        }
        let with_constant = constant.then(|| fit.gram.with_constant());
        let gram = with_constant.as_ref().unwrap_or(fit.gram);
        let solved = self.solve_joint(fit, gram, joint, &norm, solver, limits)?;
        let mut found = found_jointly(gram, joint, constant, solved);
        if constant {
            move_constant(&mut found);
        }
        Ok((norm, solver, found))
    }

    /// `gram` holds the constant kernel, too, if there is one.
    fn solve_joint(
        &self,
        fit: &mut Fitting<'_>,
        gram: &Gram,
        joint: &JointProblem,
        norm: &Norm,
        solver: Solver,
        limits: &Limits,
    ) -> Result<Solved> {
        let observer = fit.observer;
        let problem = MulticlassProblem {
            classes: &joint.classes,
            n_classes: joint.n_classes,
            costs: &joint.costs,
        };
        let objective = Objective::Multiclass(problem);
        if let Some(method) = solver.method() {
            return Ok(search::solve(method, gram, norm, &objective, limits, observer).into());
        }
        if solver.is_stochastic() {
            // The watched samples need the constant kernel, too.
            let constant = gram.n_kernels() > fit.gram.n_kernels();
            let cross = fit.watched.filter(|_| constant);
            let cross = cross.map(|watched| watched.gram.with_constant());
            let watched = fit.watched.map(|watched| Watched {
                gram: cross.as_ref().unwrap_or(watched.gram),
                ..*watched
            });
            let (watched, notes) = (watched.as_ref(), &mut fit.notes);
            return self.solve_stochastic(gram, norm, &objective, watched, limits, observer, notes);
        }
        let start = match &self.start {
            _ if self.start_epochs > 0 => {
                Some(self.joint_start(gram, norm, &objective, limits, observer, &mut fit.notes)?)
            }
            Some(warm) => warm.joint(gram, norm, &problem, self.c),
            None => None,
        };
        Ok(exact::multiclass::solve(gram, norm, &problem, limits, start, observer).into())
    }

    /// What some epochs of OBSCURE give the exact solver to start from.
    fn joint_start(
        &self,
        gram: &Gram,
        norm: &Norm,
        objective: &Objective<'_>,
        limits: &Limits,
        observer: &dyn Observer,
        notes: &mut Vec<String>,
    ) -> Result<Start> {
        let settings = StochasticSettings {
            epochs: self.start_epochs,
            ..self.stochastic.clone()
        };
        let found = obscure(gram, norm, objective, &settings, limits, None, observer)?;
        notes.push(format!(
            "the exact solver started from obscure, after {} epochs at a gap of {:.1e}",
            found.history.len(),
            found.certificate.relative_gap()
        ));
        Ok(Start {
            coefficients: found.feasible,
            weights: found.weights,
        })
    }
}

fn found_jointly(gram: &Gram, joint: &JointProblem, bias: bool, solved: Solved) -> Found {
    let (n, k) = (joint.classes.len(), joint.n_classes);
    let mut solution = solved.solution;
    let forms = solution
        .forms
        .take()
        .unwrap_or_else(|| gram.quadratic_forms(Coefficients::new(&solution.coefficients, k)));
    let mut found = Found::new(n, k, LossSpec::MulticlassHinge, bias);
    found.coefficients.clone_from(&solution.coefficients);
    found.add(String::new(), solution, &forms, solved.validation);
    found
}

/// Makes biases of the last kernel, which is constant, and reports it by itself.
fn move_constant(found: &mut Found) {
    let (Some(weight), Some(group_norm)) = (found.weights[0].last(), found.group_norms[0].last())
    else {
        return;
    };
    for row in found.coefficients.chunks(found.biases.len()) {
        for (bias, a) in found.biases.iter_mut().zip(row) {
            *bias += weight * a;
        }
    }
    found.constant = Some(KernelReport {
        name: CONSTANT.into(),
        group: CONSTANT.into(),
        weights: vec![*weight],
        group_norms: vec![*group_norm],
    });
}
