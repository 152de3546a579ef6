//! Problems of one score per sample, solved one after another: two classes, a real value, one class, and the problems of
//! one-vs-rest and one-vs-one.

use super::fitting::{Fitting, Found};
use super::problems::ScalarProblem;
use super::solvers::Way;
use super::stochastic::Solved;
use super::{Mkl, Solver};
use crate::error::Result;
use crate::gram::{Coefficients, Gram};
use crate::loss::{Loss, LossSpec};
use crate::norm::Norm;
use crate::observe::{Observer, Progress};
use crate::problem::{Limits, Objective, Problem, Solution, Start, Status};
use crate::solve::{exact, search};
use std::time::Instant;

/// How each of them is solved.
pub(super) struct ScalarSetup<'a> {
    pub(super) loss: Loss,
    pub(super) bias: bool,
    pub(super) norm: &'a Norm,
    pub(super) solver: Solver,
    pub(super) limits: Limits,
}

impl Mkl {
    pub(super) fn fit_each(
        &self,
        fit: &mut Fitting<'_>,
        problems: &[ScalarProblem],
        mut setup: ScalarSetup<'_>,
    ) -> Result<Found> {
        let outputs = problems.len();
        let loss = LossSpec::Scalar(setup.loss);
        let mut found = Found::new(fit.gram.n_rows(), outputs, loss, setup.bias);
        for (k, problem) in problems.iter().enumerate() {
            if outputs > 1 {
                let told = fit.observer.progress(&Progress::Work {
                    stage: "problems of two classes",
                    done: k as u64,
                    total: outputs as u64,
                });
                if told.is_break() {
                    // What is left still gets a feasible point and its certificate, but no work.
                    setup.limits.deadline = Some(Instant::now());
                }
            }
            let own = problem.gram(fit.gram);
            let solved = self.solve_one(fit, (k, outputs), problem, &own, &setup)?;
            let mut solution = solved.solution;
            if solution.status == Status::Stopped {
                setup.limits.deadline = Some(Instant::now());
            }
            let forms = solution.forms.take().unwrap_or_else(|| {
                own.quadratic_forms(Coefficients::single(&solution.coefficients))
            });
            problem.scatter(&solution.coefficients, &mut found.coefficients, k, outputs);
            found.biases[k] = solution.certificate.bias;
            found.add(problem.name.clone(), solution, &forms, solved.validation);
        }
        Ok(found)
    }

    /// Solves the k-th of so many problems, on the kernels of its samples.
    fn solve_one(
        &self,
        fit: &mut Fitting<'_>,
        (k, outputs): (usize, usize),
        scalar: &ScalarProblem,
        own: &Gram,
        setup: &ScalarSetup<'_>,
    ) -> Result<Solved> {
        let (norm, limits) = (setup.norm, &setup.limits);
        let problem = scalar.problem(setup.loss, setup.bias);
        if setup.solver.is_stochastic() {
            let objective = Objective::Scalar(problem);
            let watched = fit.watched.filter(|_| outputs == 1);
            let (observer, notes) = (fit.observer, &mut fit.notes);
            return self.solve_stochastic(own, norm, &objective, watched, limits, observer, notes);
        }
        if let Some(mu) = self.tikhonov {
            // Cold: its scale is found on the way, and a start in the wrong scale is worse than none.
            let found =
                exact::tikhonov::solve(own, norm, &problem, mu, limits, None, fit.observer)?;
            return Ok(found.solution.into());
        }
        let start = || {
            let warm = self.start.as_ref()?;
            warm.scalar(k, outputs, scalar, own, norm, &problem, self.c)
        };
        Ok(solve(setup, own, &problem, start, fit.observer).into())
    }
}

fn solve(
    setup: &ScalarSetup<'_>,
    gram: &Gram,
    problem: &Problem<'_>,
    start: impl FnOnce() -> Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let (norm, limits) = (setup.norm, &setup.limits);
    match setup.solver.info().way {
        Way::OneScore(solve) => solve(gram, norm, problem, limits, start(), observer),
        Way::Search(method) => {
            let objective = Objective::Scalar(*problem);
            search::solve(method, gram, norm, &objective, limits, observer)
        }
        Way::Steps(_) | Way::Whole(_) => unreachable!("they go another way"),
    }
}
