//! OBSCURE and Pegasos-MKL: p-norm MKL by stochastic steps in the primal, for any convex loss (Orabona, Luo, Caputo 2010, 2012).
//!
//! Problem: min ½ ‖w‖²_{2,p} + Σ C_i ℓ(f_i, y_i), 1 < p ≤ 2, without a bias; ℓ any loss of one score, or Crammer and Singer's
//! of one score per class. The authors write λ/2·‖w‖² + (1/N) Σ ℓ: the same divided by Σ C_i, with λ = 1/Σ C_i. Samples are
//! drawn alike; one with cost C_i has its subgradient multiplied by C_i over the mean cost, which makes the mean of the
//! subgradients that of the problem.
//!
//! Method: mirror descent on θ = Σ_i c_i φ(x_i, ·) with w_m = (1/q)(‖θ_m‖/‖θ‖_{2,q})^{q−2} θ_m, q = p/(p−1).
//! * Stage 1 (Algorithm 1): θ ← θ − η z for `online_epochs`; then R² = 2P(w) ≥ ‖w*‖², not more than 2P(0).
//! * Stage 2 (Algorithm 2): steps that shrink with what was seen, projection on ‖w‖ ≤ R, for `epochs`.
//!
//! Both algorithms stand in `solve/steps/obscure.rs`, as their paper prints them. [`Radius::Infinite`] is Pegasos-MKL, whose
//! first step would forget stage 1: it has none. [`Method`] offers OM-2 and PA-I on the same data.
//!
//! Result: A = c/q and β = the dual map of s(A), as in every model. The certificate's dual end comes from A made feasible
//! (`feasible.rs`). Stop: epochs done, or relative gap ≤ tolerance.
//!
//! Cost of an epoch: the values of all kernels at the samples that get an update, made once if memory allows to hold them; two classes
//! × N × M operations for each update, with all threads; and M operations for each visit and class, and each visit and update that
//! waits to be taken in (`scores.rs`).

mod bounds;
mod certify;
mod chain;
mod expansion;
mod feasible;
mod kernel_values;
pub(crate) mod omcl;
mod run;
mod scores;
mod settings;
mod structured;
#[cfg(test)]
mod tests;
mod two_stages;
mod watch;

pub use bounds::Bounds;
pub use chain::{ChainState, Chains, Neighbours};
pub use scores::Storage;
pub use settings::{Average, Method, Radius, Sampling, StochasticSettings};
pub use structured::{Structure, Structured, obscure_structured};

use crate::error::Result;
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Certificate, Limits, Objective, Round, Status};
use run::{Run, Task};
pub(crate) use settings::check_settings;
use settings::{check_bias, check_method};

/// Samples that are not trained on, to watch.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// The kernels between them (rows) and the training samples (columns).
    pub gram: &'a Gram,
    /// Their classes or targets; costs do not matter.
    pub objective: Objective<'a>,
}

/// Which part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Stage 1.
    Online,
    /// Stage 2.
    Batch,
}

/// One look, at the end of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Stage it belongs to.
    pub stage: Stage,
    /// Objective of the current iterate, a lower bound of the optimum, time and steps (samples visited).
    pub look: Round,
    /// Steps so far that changed θ.
    pub updates: u64,
    /// On the validation samples: share of right answers; mean squared error where the targets are numbers.
    pub validation: Option<f64>,
}

/// Coefficients and weights, where they stand and how they got there.
#[derive(Debug, Clone)]
pub struct Solution {
    /// A, sample after sample, one number per class (one for scalar losses).
    pub coefficients: Vec<f64>,
    /// β
    pub weights: Vec<f64>,
    /// P of the model, and D of `feasible`, from the kernels.
    pub certificate: Certificate,
    /// A dual feasible point, as a start for exact solvers.
    pub feasible: Vec<f64>,
    /// Why it stopped.
    pub status: Status,
    /// Samples visited.
    pub steps: u64,
    /// Steps that changed θ beside its scale.
    pub updates: u64,
    /// Where scores came from.
    pub storage: Storage,
    /// What the theorems promise.
    pub bounds: Bounds,
    /// One entry per epoch.
    pub history: Vec<Epoch>,
}

/// Trains by OBSCURE.
///
/// # Errors
/// If the norm is not a block norm with 1 < r ≤ 2, the problem asks for a bias, or a setting makes no sense.
///
/// # Panics
/// If the problem has not one target and cost per sample of the Gram.
pub fn obscure(
    gram: &Gram,
    norm: &Norm,
    objective: &Objective<'_>,
    settings: &StochasticSettings,
    limits: &Limits,
    validation: Option<&Validation<'_>>,
    observer: &dyn Observer,
) -> Result<Solution> {
    check_bias(objective)?;
    let block_norm = check_settings(norm, settings)?;
    check_method(objective, settings, &block_norm)?;
    assert_eq!(gram.n_rows(), objective.len(), "one target per sample");
    let task = Task {
        gram,
        norm,
        objective,
        settings,
        limits,
        validation,
    };
    let mut run = Run::new(task, block_norm, observer);
    let status = run.run();
    Ok(run.finish(status))
}
