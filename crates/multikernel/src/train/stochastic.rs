//! Stochastic solvers behind the same door as the others.

use super::Mkl;
use super::solvers::Way;
use crate::data::Targets;
use crate::error::{Error, Result};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, MulticlassProblem, Objective, Problem, Round, Solution};
use crate::solve::stochastic::{Method, StochasticSettings, Storage, Validation, obscure};

/// Samples that are watched while a solver learns from others.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// All kernels between them (rows) and the training samples (columns), as [`KernelSet::cross`](crate::gram::KernelSet::cross)
    /// gives them.
    pub gram: &'a Gram,
    /// What is true of them; classes numbered as in training.
    pub targets: &'a Targets,
}

/// A solution, and what its rounds were worth on samples that were watched.
pub(super) struct Solved {
    pub(super) solution: Solution,
    pub(super) validation: Vec<f64>,
}

impl From<Solution> for Solved {
    fn from(solution: Solution) -> Self {
        Solved {
            solution,
            validation: Vec::new(),
        }
    }
}

impl Mkl {
    /// Runs OBSCURE or Pegasos-MKL.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call, and every argument is another noun"
    )]
    pub(super) fn solve_stochastic(
        &self,
        gram: &Gram,
        norm: &Norm,
        objective: &Objective<'_>,
        watched: Option<&Watched<'_>>,
        limits: &Limits,
        observer: &dyn Observer,
        notes: &mut Vec<String>,
    ) -> Result<Solved> {
        let mut settings = StochasticSettings {
            method: Method::Obscure,
            ..self.stochastic.clone()
        };
        if let Way::Steps(set_up) = self.solver.info().way {
            set_up(&mut settings, self.c);
        }
        let watched_objective = match watched {
            Some(watched) => Some(objective_of(watched, objective)?),
            None => None,
        };
        let validation = watched.zip(watched_objective.as_ref());
        let own;
        let validation = match validation {
            None => None,
            Some((watched, of)) => {
                own = Validation {
                    gram: watched.gram,
                    objective: of.as_objective(objective),
                };
                Some(&own)
            }
        };
        let found = obscure(
            gram, norm, objective, &settings, limits, validation, observer,
        )?;
        if found.storage == Storage::OnTheFly {
            notes.push("scores are computed when asked for, since memory cannot hold them".into());
        }
        if let Some(excess) = found.bounds.excess.filter(|e| e.is_finite()) {
            notes.push(format!(
                "a bound, not a certificate: by OBSCURE's Theorem 3 its mean objective exceeds the optimum by at most {excess:.3e} in the mean over draws with replacement (R = {:.3e}, L = {:.3e})",
                found.bounds.radius, found.bounds.gradient
            ));
        }
        if let Some(updates) = found.bounds.online_updates {
            notes.push(format!(
                "a bound: by Theorem 4 stage 1 makes at most {updates:.0} updates"
            ));
        }
        Ok(Solved {
            validation: found.history.iter().filter_map(|e| e.validation).collect(),
            solution: Solution {
                coefficients: found.coefficients,
                weights: found.weights,
                certificate: found.certificate,
                witness: None,
                status: found.status,
                steps: found.steps,
                history: found.history.iter().map(|e| e.look).collect::<Vec<Round>>(),
                forms: None,
            },
        })
    }
}

/// Targets of watched samples in the form of the training problem.
struct Truth {
    classes: Vec<u32>,
    targets: Vec<f64>,
    costs: Vec<f64>,
}

impl Truth {
    fn as_objective<'a>(&'a self, like: &Objective<'a>) -> Objective<'a> {
        match like {
            Objective::Multiclass(problem) => Objective::Multiclass(MulticlassProblem {
                classes: &self.classes,
                costs: &self.costs,
                ..*problem
            }),
            Objective::Scalar(problem) => Objective::Scalar(Problem {
                targets: &self.targets,
                costs: &self.costs,
                ..*problem
            }),
        }
    }
}

fn objective_of(watched: &Watched<'_>, like: &Objective<'_>) -> Result<Truth> {
    let n = watched.gram.n_rows();
    let (classes, targets) = match (watched.targets, like) {
        (Targets::Classes { index, .. }, Objective::Multiclass(_)) => (index.clone(), Vec::new()),
        (Targets::Classes { index, .. }, Objective::Scalar(_)) => {
            let sign = |&y: &u32| if y == 1 { 1.0 } else { -1.0 };
            (Vec::new(), index.iter().map(sign).collect())
        }
        (Targets::Real(values), _) => (Vec::new(), values.clone()),
        (Targets::None, _) => (Vec::new(), vec![0.0; n]),
    };
    if classes.len().max(targets.len()) != n {
        return Err(Error::input(
            "validation",
            format!(
                "there are {} targets for {n} samples",
                classes.len().max(targets.len())
            ),
            "give one for each sample",
        ));
    }
    Ok(Truth {
        classes,
        targets,
        costs: vec![1.0; n],
    })
}
