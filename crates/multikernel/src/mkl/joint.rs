//! The joint problem of several classes: one score per class, one set of kernel weights.
//!
//! It has no bias of its own. Asked for one, it gets a kernel more whose value is 1 everywhere: its part of the score of
//! class k is β Σ_i A_ik for every sample, which the model keeps as that class's bias.

use super::problems::Joint;
use super::stochastic::Solved;
use super::{Found, KernelReport};
use crate::certificate::MulticlassProblem;
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelSet};
use crate::loss::LossSpec;

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
    let solution = solved.solution;
    let k = joint.n_classes;
    let forms = gram.quadratic_forms(Coefficients::new(&solution.coefficients, k));
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
