//! The coefficients at fixed kernel weights: the one piece that all methods share which search among weights.
//!
//! Problem: for weights β the SVM of the combined kernel, J(β) = max over feasible a of d(a) − ½ Σ_m β_m q_m, q_m = aᵀK_m a,
//! for one score per sample or one per class. J is convex with ∂J/∂β_m = −½ q_m at the maximiser; any feasible a gives a
//! plane below it, J(β) ≥ d(a) − ½ Σ_m β_m q_m.
//!
//! Every call starts from the coefficients of the last one and goes to an accuracy tied to the gap of the whole problem,
//! which each call certifies: upper bound P(β, a), lower bound D(a). The bounds of different calls count together, since each
//! holds by itself; at the end both are recomputed from the kernels.
//!
//! Cost: per call one combined matrix, one product and one histogram of the pairs of support samples.

use super::crammer_singer::{self, State, make_feasible};
use super::rows::Rows;
use super::{
    FIRST_GAP, Limits, Look, Patience, Solution, Start, Status, cold_start, free, newton, polish,
    smo,
};
use crate::gram::{Coefficients, Gram};
use crate::norm::Norm;
use crate::observe::{Observer, Progress};
use crate::problem::{
    Certificate, MulticlassProblem, Objective, Problem, certify, certify_multiclass, dual_linear,
    from_scores, multiclass_dual_linear, multiclass_from_scores, relative_gap,
};
use std::time::Instant;

/// The inner accuracy as a share of the gap.
const INNER_SHARE: f64 = 0.1;
/// If a call does not lower the gap, the next ones are more exact, down to this share.
const LEAST_SHARE: f64 = 1e-4;

/// How exact the coefficients should be, for a gap of the whole problem and a primal objective.
fn accuracy(share: f64, gap: f64, tolerance: f64, primal: f64) -> f64 {
    share * gap.min(FIRST_GAP * primal).max(tolerance * primal)
}

/// A problem whose weights are searched for.
pub(crate) struct Svm<'a> {
    gram: &'a Gram,
    norm: &'a Norm,
    limits: Limits,
    observer: &'a dyn Observer,
    patience: Patience<'a>,
    begin: Instant,
    work: Work<'a>,
    rows: Option<Rows<'a>>,
    share: f64,
    /// The point with the least primal objective, and its value.
    best: Option<(f64, Start)>,
    /// The coefficients with the largest dual objective, and its value.
    witness: Option<(f64, Vec<f64>)>,
    steps: u64,
    history: Vec<Look>,
    status: Option<Status>,
}

/// A problem, and its coefficients with their scores.
enum Work<'a> {
    Scalar(Problem<'a>, smo::Coefficients),
    Joint(MulticlassProblem<'a>, State),
}

/// What a call found.
#[derive(Debug, Clone)]
pub(crate) struct At {
    /// d(a), the dual without its quadratic part.
    pub(crate) linear: f64,
    /// q_m
    pub(crate) forms: Vec<f64>,
    /// Lower bound of J at these weights: d(a) − ½ Σ β q.
    pub(crate) value: f64,
}

impl<'a> Svm<'a> {
    pub(crate) fn new(
        gram: &'a Gram,
        norm: &'a Norm,
        objective: Objective<'a>,
        limits: &Limits,
        observer: &'a dyn Observer,
    ) -> Self {
        let n = gram.n_rows();
        let work = match objective {
            Objective::Scalar(problem) => {
                let a = cold_start(&problem);
                let scores = vec![0.0; n];
                Work::Scalar(problem, smo::Coefficients { a, scores })
            }
            Objective::Multiclass(problem) => {
                let state = State::new(&vec![0.0; n * problem.n_classes], &problem);
                Work::Joint(problem, state)
            }
        };
        Svm {
            gram,
            norm,
            limits: *limits,
            observer,
            patience: Patience::new(limits, observer),
            begin: Instant::now(),
            work,
            rows: None,
            share: INNER_SHARE,
            best: None,
            witness: None,
            steps: 0,
            history: Vec::new(),
            status: None,
        }
    }

    /// Solves for these weights; none when it is over: converged, out of time or rounds, or told to stop.
    pub(crate) fn at(&mut self, weights: &[f64]) -> Option<At> {
        if self.status.is_some() {
            return None;
        }
        let gram = self.gram;
        let n = gram.n_rows();
        let bound = self.gap();
        let (share, tolerance) = (self.share, self.limits.tolerance);
        let wanted = |primal: f64| accuracy(share, bound, tolerance, primal);
        let patience = &mut self.patience;
        let mut stop = || patience.is_over();
        let mut rows = Rows::new(gram.combine(weights), n, self.limits.memory);
        let stopped;
        let linear;
        let forms;
        let now = match &mut self.work {
            Work::Scalar(problem, state) => {
                state.scores = rows.exact_product(&state.a);
                let target = wanted(super::scale(problem, state, &self.history));
                let inner = smo::solve(&mut rows, problem, state, target, u64::MAX, &mut stop);
                if inner.gap > target && !inner.stopped {
                    // Steps on pairs have given up.
                    polish::polish(gram, weights, &rows, problem, state, target, &mut stop);
                }
                state.scores = rows.exact_product(&state.a);
                self.steps += inner.steps;
                stopped = inner.stopped;
                linear = dual_linear(problem, &state.a);
                forms = gram.quadratic_forms(Coefficients::single(&state.a));
                from_scores(self.norm, problem, &state.a, weights, &state.scores, &forms)
            }
            Work::Joint(problem, state) => {
                let classes = problem.n_classes;
                let a = state.a.to_rows();
                state.set_scores(rows.exact_products(&a, classes), problem);
                let inner = crammer_singer::solve(&mut rows, problem, state, &wanted, &mut stop);
                if inner.gap > inner.target && !inner.stopped {
                    // Steps on rows have given up.
                    free::polish(
                        gram,
                        weights,
                        &mut rows,
                        problem,
                        state,
                        inner.target,
                        &mut stop,
                    );
                }
                let mut a = state.a.to_rows();
                let whole = a.chunks_mut(classes).zip(problem.classes);
                for ((row, &y), &cost) in whole.zip(problem.costs) {
                    make_feasible(row, y as usize, cost);
                }
                let scores = rows.exact_products(&a, classes);
                self.steps += inner.steps;
                stopped = inner.stopped;
                linear = multiclass_dual_linear(problem, &a);
                forms = gram.quadratic_forms(Coefficients::new(&a, classes));
                multiclass_from_scores(self.norm, problem, &a, weights, &scores, &forms)
            }
        };
        // Small problems are solved before anyone looks at the clock.
        let stopped = stopped || self.patience.is_over();
        self.rows = Some(rows);
        self.keep(&now, weights);
        if self.gap() > 0.9 * bound {
            self.share = (0.5 * self.share).max(LEAST_SHARE);
        }
        self.history.push(Look {
            seconds: self.begin.elapsed().as_secs_f64(),
            primal: now.primal,
            dual: now.dual,
            steps: self.steps,
        });
        let told = self.observer.progress(&Progress::Round {
            round: self.history.len(),
            primal: now.primal,
            dual: now.dual,
        });
        self.status = if self.relative_gap() <= tolerance {
            Some(Status::Converged)
        } else if told.is_break() || self.patience.told_to_stop {
            Some(Status::Stopped)
        } else if stopped {
            Some(Status::TimeLimit)
        } else if self.history.len() >= self.limits.max_rounds {
            Some(Status::MaxIterations)
        } else {
            None
        };
        if self.status.is_some() {
            return None;
        }
        let quadratic: f64 = weights.iter().zip(&forms).map(|(b, q)| b * q).sum();
        Some(At {
            linear,
            forms,
            value: linear - 0.5 * quadratic,
        })
    }

    /// P − D of the best bounds.
    fn gap(&self) -> f64 {
        match (&self.best, &self.witness) {
            (Some(best), Some(witness)) => best.0 - witness.0,
            _ => f64::INFINITY,
        }
    }

    /// The relative gap of the best bounds so far.
    pub(crate) fn relative_gap(&self) -> f64 {
        match (&self.best, &self.witness) {
            (Some(best), Some(witness)) => relative_gap(best.0, witness.0),
            _ => f64::INFINITY,
        }
    }

    /// How exact values of J are, about.
    pub(crate) fn accuracy(&self) -> f64 {
        let size = self.best.as_ref().map_or(0.0, |best| best.0.abs());
        accuracy(self.share, self.gap(), self.limits.tolerance, size)
    }

    /// The upper bound so far, P.
    pub(crate) fn bound(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.0)
    }

    /// The coefficients of the last call.
    pub(crate) fn last(&self) -> Vec<f64> {
        self.coefficients()
    }

    /// A lower bound from other coefficients, which must be feasible; a convex combination of feasible ones is. True if it is over now.
    pub(crate) fn offer(&mut self, coefficients: Vec<f64>) -> bool {
        let weights = match &self.best {
            Some((_, best)) => best.weights.clone(),
            None => return false,
        };
        let dual = self.certificate(&coefficients, &weights).dual;
        if self.witness.as_ref().is_none_or(|(old, _)| dual > *old) {
            self.witness = Some((dual, coefficients));
        }
        if self.status.is_none() && self.relative_gap() <= self.limits.tolerance {
            self.status = Some(Status::Converged);
        }
        self.status.is_some()
    }

    /// The relative gap asked for.
    pub(crate) fn tolerance(&self) -> f64 {
        self.limits.tolerance
    }

    /// Solves more exactly from here on; false if that is not possible any more.
    pub(crate) fn sharpen(&mut self) -> bool {
        let possible = self.share > LEAST_SHARE;
        self.share = (0.1 * self.share).max(LEAST_SHARE);
        possible
    }

    /// The minimiser on the simplex of the quadratic model of J around weights that were solved for last.
    pub(crate) fn newton_point(&mut self, weights: &[f64], forms: &[f64]) -> Option<Vec<f64>> {
        let rows = self.rows.as_mut()?;
        match &self.work {
            Work::Scalar(problem, state) => {
                newton::newton_point(self.gram, rows, problem, state, weights, forms)
            }
            Work::Joint(problem, state) => {
                free::newton_point(self.gram, rows, problem, state, weights, forms)
            }
        }
    }

    fn coefficients(&self) -> Vec<f64> {
        match &self.work {
            Work::Joint(problem, state) => {
                let mut a = state.a.to_rows();
                let rows = a.chunks_mut(problem.n_classes).zip(problem.classes);
                for ((row, &y), &cost) in rows.zip(problem.costs) {
                    make_feasible(row, y as usize, cost);
                }
                a
            }
            Work::Scalar(_, state) => state.a.clone(),
        }
    }

    fn keep(&mut self, now: &Certificate, weights: &[f64]) {
        // A point that has no finite objective still is better than none.
        if self.best.as_ref().is_none_or(|best| now.primal < best.0) {
            let start = Start {
                coefficients: self.coefficients(),
                weights: weights.to_vec(),
            };
            self.best = Some((now.primal, start));
        }
        if self
            .witness
            .as_ref()
            .is_none_or(|(dual, _)| now.dual > *dual)
        {
            self.witness = Some((now.dual, self.coefficients()));
        }
    }

    fn certificate(&self, coefficients: &[f64], weights: &[f64]) -> Certificate {
        match &self.work {
            Work::Scalar(problem, _) => {
                certify(self.gram, self.norm, problem, coefficients, weights)
            }
            Work::Joint(problem, _) => {
                certify_multiclass(self.gram, self.norm, problem, coefficients, weights)
            }
        }
    }

    /// The best point with its certificate; where nothing was solved for, the start. A method that finds no further weights ends before
    /// anyone told it to: then the status is that no further progress is possible.
    pub(crate) fn finish(self) -> Solution {
        let (coefficients, weights) = match &self.best {
            Some((_, best)) => (best.coefficients.clone(), best.weights.clone()),
            None => (
                self.coefficients(),
                self.norm.initial_weights(self.gram.n_kernels()),
            ),
        };
        let mut certificate = self.certificate(&coefficients, &weights);
        let witness = self.witness.as_ref().map(|(_, witness)| witness);
        let witness = witness.filter(|w| **w != coefficients).cloned();
        if let Some(witness) = &witness {
            certificate.dual = self.certificate(witness, &weights).dual;
        }
        let status = match self.status {
            _ if certificate.relative_gap() <= self.limits.tolerance => Status::Converged,
            Some(Status::Converged) | None => Status::MaxIterations,
            Some(other) => other,
        };
        Solution {
            coefficients,
            weights,
            certificate,
            witness,
            status,
            steps: self.steps,
            history: self.history,
            forms: None,
        }
    }
}
