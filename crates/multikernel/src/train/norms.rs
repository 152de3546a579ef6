//! Which norm goes with which solver.

use super::solvers::Weights;
use super::{Mkl, Solver};
use crate::error::{Error, Result};
use crate::gram::Kernel;
use crate::norm::{Exponent, Norm, NormSpec};
use crate::solve::search::Method;
use std::collections::HashMap;

impl Mkl {
    /// The norm for kernels of these groups, and the solver that will run; `given` are weights that were chosen before.
    pub(super) fn norm_for(
        &self,
        groups: &[&str],
        given: Option<Vec<f64>>,
        notes: &mut Vec<String>,
    ) -> Result<(Norm, Solver)> {
        let sum = NormSpec::Lp(Exponent::new(f64::INFINITY)?);
        let solver = match self.solver {
            Solver::Auto => Solver::Exact,
            other => other,
        };
        if let Some(weights) = given {
            self.say_unused(&sum, notes);
            return Ok((Norm::fixed(weights)?, solver));
        }
        let spec = match (solver.info().weights, solver.method()) {
            (Weights::Sum, _) => {
                self.say_unused(&sum, notes);
                sum
            }
            (_, Some(method)) if self.norm == NormSpec::default() => usual(method, groups)
                .inspect(|usual| {
                    if *usual != self.norm {
                        notes.push(format!("solver {solver}: the norm is {usual}"));
                    }
                })?,
            _ => self.norm.clone(),
        };
        let numbers = match spec {
            NormSpec::Mixed => numbered(groups),
            _ => Vec::new(),
        };
        let norm = Norm::new(spec, groups.len(), &numbers, &self.matrix)?;
        if let (NormSpec::BlockAuto, Some(block)) = (norm.spec(), norm.as_block()) {
            notes.push(format!(
                "norm block:auto is block:{:.4} for {} kernels",
                block.r(),
                groups.len()
            ));
        }
        if let Some(method) = solver.method() {
            self.check_method(method, &norm)?;
        }
        Ok((norm, solver))
    }

    /// Whether the solver solves the norm that is usual. Training takes the solver's own norm for the usual one, since it cannot
    /// know whether anyone asked for that; who does know may ask here.
    pub fn check_usual_norm(&self) -> Result<()> {
        match self.solver.method() {
            None => Ok(()),
            Some(method) => {
                self.check_method(method, &Norm::new(NormSpec::default(), 0, &[], &[])?)
            }
        }
    }

    pub(super) fn check_method(&self, method: Method, norm: &Norm) -> Result<()> {
        let solver = self.solver;
        if !method.solves(norm) {
            return Err(Error::input(
                "norm",
                format!("solver {solver} does not solve {norm}"),
                match method {
                    Method::Mirror => {
                        "give mixed or lp:1, or the solver exact, which solves every norm"
                    }
                    Method::Silp | Method::Simple | Method::Hessian => {
                        "give lp:1, or the solver exact, which solves every norm"
                    }
                    Method::Sip | Method::Newton => {
                        "give lp:P with 1 < P < inf, or the solver exact, which solves every norm"
                    }
                },
            ));
        }
        Ok(())
    }

    /// Says that the solver has no use for a norm that was asked for.
    pub(super) fn say_no_norm(&self, notes: &mut Vec<String>) {
        if self.norm != NormSpec::default() {
            notes.push(format!(
                "solver {} has no norm; the norm {} is not used",
                self.solver, self.norm
            ));
        }
    }

    fn say_unused(&self, used: &NormSpec, notes: &mut Vec<String>) {
        if self.norm != *used && self.norm != NormSpec::default() {
            notes.push(format!(
                "solver {} is the norm {used}; the norm {} is not used",
                self.solver, self.norm
            ));
        }
    }

    /// The mixed norm is about groups: matrices that were given without any have none.
    pub(super) fn check_groups(&self, kernels: &[Kernel]) -> Result<()> {
        if self.norm != NormSpec::Mixed || kernels.len() < 2 {
            return Ok(());
        }
        let alone =
            |kernel: &Kernel| kernel.spec.kind.is_precomputed() && kernel.group == kernel.view();
        if !kernels.iter().all(alone) {
            return Ok(());
        }
        Err(Error::input(
            "norm mixed",
            format!("none of the {} given matrices has a group", kernels.len()),
            "name the group of each, such as `groups` a,a,b, or give another norm (block:inf if each is to be its own)",
        ))
    }
}

/// The norm that a method is for, where the user asked for none.
fn usual(method: Method, groups: &[&str]) -> Result<NormSpec> {
    let numbers = numbered(groups);
    let several =
        numbers.iter().any(|&g| g > 0) && numbers.iter().max().map_or(0, |g| g + 1) < groups.len();
    Ok(match method {
        Method::Mirror if several => NormSpec::Mixed,
        Method::Mirror | Method::Silp | Method::Simple | Method::Hessian => {
            NormSpec::Lp(Exponent::new(1.0)?)
        }
        Method::Sip | Method::Newton => NormSpec::default(),
    })
}

/// Groups by numbers, in the order in which they appear.
fn numbered(groups: &[&str]) -> Vec<usize> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    groups
        .iter()
        .map(|group| {
            let next = known.len();
            *known.entry(group).or_insert(next)
        })
        .collect()
}
