//! The joint problem of several classes: one score per class, one set of kernel weights.
//!
//! It has no bias of its own. Asked for one, it gets a kernel more whose value is 1 everywhere: its part of the score of
//! class k is β Σ_i A_ik for every sample, which the model keeps as that class's bias.

use super::problems::Joint;
use super::stochastic::Solved;
use super::{Found, KernelReport, Mkl, Solver};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, MulticlassProblem, Objective, Start};
use crate::solve::stochastic::{StochasticSettings, obscure};

/// The name and group of the constant kernel.
pub(super) const CONSTANT: &str = "constant";

/// The constant kernel's name must be free.
pub(super) fn check_name(kernels: &KernelSet) -> Result<()> {
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
    joint: &Joint,
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
    /// Where the exact solver starts, if not cold.
    pub(super) fn joint_start(
        &self,
        gram: &Gram,
        norm: &Norm,
        problem: &MulticlassProblem<'_>,
        limits: &Limits,
        observer: &dyn Observer,
        notes: &mut Vec<String>,
    ) -> Result<Option<Start>> {
        if self.start_epochs == 0 {
            return Ok(None);
        }
        let settings = StochasticSettings {
            epochs: self.start_epochs,
            ..self.stochastic.clone()
        };
        let objective = Objective::Multiclass(*problem);
        let found = obscure(gram, norm, &objective, &settings, limits, None, observer)?;
        notes.push(format!(
            "the exact solver started from obscure, after {} epochs at a gap of {:.1e}",
            found.history.len(),
            found.certificate.relative_gap()
        ));
        Ok(Some(Start {
            coefficients: found.feasible,
            weights: found.weights,
        }))
    }
}

/// Solves the problem, with one more kernel behind the others if there is to be a constant one.
pub(super) fn fit(
    gram: &Gram,
    joint: &Joint,
    constant: bool,
    solver: impl FnOnce(&Gram, &MulticlassProblem<'_>) -> Result<Solved>,
) -> Result<Found> {
    let problem = MulticlassProblem {
        classes: &joint.classes,
        n_classes: joint.n_classes,
        costs: &joint.costs,
    };
    let with_constant = constant.then(|| gram.with_constant());
    let gram = with_constant.as_ref().unwrap_or(gram);
    let solved = solver(gram, &problem)?;
    let mut solution = solved.solution;
    let k = joint.n_classes;
    let forms = solution
        .forms
        .take()
        .unwrap_or_else(|| gram.quadratic_forms(Coefficients::new(&solution.coefficients, k)));
    let mut found = Found {
        coefficients: solution.coefficients.clone(),
        weights: Vec::new(),
        group_norms: Vec::new(),
        biases: vec![0.0; k],
        bias: constant,
        loss: LossSpec::MulticlassHinge,
        problems: Vec::new(),
        constant: None,
    };
    found.add(String::new(), solution, &forms, solved.validation);
    if let (true, Some(weight), Some(group_norm)) = (
        constant,
        found.weights[0].last(),
        found.group_norms[0].last(),
    ) {
        for row in found.coefficients.chunks(k) {
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
    Ok(found)
}
