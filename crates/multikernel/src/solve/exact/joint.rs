//! One score per class: the outer loop's work on coefficients of all classes together (`crammer_singer.rs`, `newton_multiclass.rs`).

use super::best_row::make_feasible;
use super::crammer_singer::{self, MulticlassState};
use super::newton::WeightModel;
use super::newton_multiclass;
use super::outer_loop::{CoarsePart, Rounds};
use super::work::{Accuracy, FIRST_GAP, InnerSolve, Work};
use super::{CombinedRows, Limits, Start, Status, multiclass};
use crate::gram::Gram;
use crate::math;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{MulticlassProblem, Objective, multiclass_risk};

/// The share of the gap of the whole problem that coefficients may have: row steps from a good start are cheap beside a round.
const INNER_SHARE: f64 = 0.1;
/// More accuracy than this share of the gap never pays.
const LEAST_INNER_SHARE: f64 = 1e-6;
/// The number of samples from which on a part of the samples is solved first.
const COARSE_FROM: usize = 800;

/// A problem with its coefficients and their margins.
pub(crate) struct Joint<'a> {
    problem: MulticlassProblem<'a>,
    state: MulticlassState,
    /// Whether rounding is taken out of the sums of rows that are given away, which are mixed with others then.
    rounds_off: bool,
}

impl<'a> Joint<'a> {
    /// A cold start.
    pub(crate) fn new(problem: MulticlassProblem<'a>) -> Self {
        let zeros = vec![0.0; problem.classes.len() * problem.n_classes];
        Joint {
            problem,
            state: MulticlassState::new(&zeros, &problem),
            rounds_off: false,
        }
    }

    /// The same for a search, which mixes the coefficients of several rounds.
    pub(super) fn for_search(problem: MulticlassProblem<'a>) -> Self {
        Joint {
            rounds_off: true,
            ..Joint::new(problem)
        }
    }

    fn make_feasible(&self, coefficients: &mut [f64]) {
        let MulticlassProblem {
            classes,
            costs,
            n_classes,
        } = self.problem;
        for ((row, &y), &cost) in coefficients.chunks_mut(n_classes).zip(classes).zip(costs) {
            make_feasible(row, y as usize, cost);
        }
    }
}

impl<'a> Work<'a> for Joint<'a> {
    fn objective(&self) -> Objective<'a> {
        Objective::Multiclass(self.problem)
    }

    fn coefficients(&self) -> Vec<f64> {
        let mut a = self.state.a.to_rows();
        if self.rounds_off {
            self.make_feasible(&mut a);
        }
        a
    }

    fn score(&mut self, rows: &mut CombinedRows<'_>, exact: bool) {
        if exact {
            let scores = rows.exact_products(&self.state.a.to_rows(), self.problem.n_classes);
            self.state.set_scores(scores, &self.problem);
        } else {
            self.state.add_up(rows, &self.problem);
        }
    }

    fn solve(
        &mut self,
        rows: &mut CombinedRows<'_>,
        _: Option<f64>,
        target: &dyn Fn(f64) -> f64,
        stop: &mut dyn FnMut() -> bool,
    ) -> InnerSolve {
        crammer_singer::solve(rows, &self.problem, &mut self.state, target, stop)
    }

    fn polish(&mut self, rows: &mut CombinedRows<'_>, target: f64, stop: &mut dyn FnMut() -> bool) {
        newton_multiclass::polish(rows, &self.problem, &mut self.state, target, stop);
    }

    fn settle(&mut self, rows: &CombinedRows<'_>, exact: bool, _: bool) -> Vec<f64> {
        if !exact {
            return self.state.scores(&self.problem);
        }
        let scores = rows.exact_products(&self.coefficients(), self.problem.n_classes);
        self.state.set_scores(scores.clone(), &self.problem);
        scores
    }

    fn model(
        &self,
        rows: &mut CombinedRows<'_>,
        kernels: Vec<usize>,
        _: bool,
    ) -> Option<WeightModel> {
        newton_multiclass::weight_model(rows, &self.problem, &self.state, kernels)
    }
}

impl<'a> Rounds<'a> for Joint<'a> {
    /// The solution of a quarter of the samples, at a sixteenth of the cost: good weights, and coefficients whose scores leave few samples
    /// to be looked at.
    fn coarse_start(
        &self,
        gram: &Gram,
        norm: &Norm,
        limits: &Limits,
        observer: &dyn Observer,
    ) -> Option<Start> {
        let n = gram.n_rows();
        if n < COARSE_FROM {
            return None;
        }
        let part = CoarsePart::new(gram, self.problem.costs, limits);
        let samples = part.samples.iter();
        let classes: Vec<u32> = samples.map(|&i| self.problem.classes[i]).collect();
        let problem = MulticlassProblem {
            classes: &classes,
            costs: &part.costs,
            ..self.problem
        };
        let solution = multiclass::solve(&part.gram, norm, &problem, &part.limits, None, observer);
        if solution.status != Status::Converged {
            return None;
        }
        let k = self.problem.n_classes;
        let mut coefficients = vec![0.0; n * k];
        for (&i, row) in part.samples.iter().zip(solution.coefficients.chunks(k)) {
            coefficients[i * k..(i + 1) * k].copy_from_slice(row);
        }
        Some(Start {
            coefficients,
            weights: solution.weights,
        })
    }

    fn begin(&mut self, mut coefficients: Vec<f64>) {
        self.make_feasible(&mut coefficients);
        self.state = MulticlassState::new(&coefficients, &self.problem);
    }

    fn accuracy(&self, _: &Gram, _: bool, tolerance: f64) -> Accuracy {
        Accuracy {
            share: INNER_SHARE,
            least_share: LEAST_INNER_SHARE,
            first_gap: FIRST_GAP,
            gap: f64::INFINITY,
            tolerance,
        }
    }

    fn rows<'g>(
        &self,
        gram: &'g Gram,
        weights: &[f64],
        memory: u64,
        _: bool,
        _: bool,
    ) -> CombinedRows<'g> {
        // Coefficients, margins and copies of them are held too.
        let numbers = self.problem.classes.len() * self.problem.n_classes;
        let memory = memory.saturating_sub(8 * 8 * numbers as u64);
        CombinedRows::on_demand(gram, weights, memory, &[])
    }

    fn primal(&self) -> f64 {
        let scores = self.state.scores(&self.problem);
        0.5 * math::dot(&self.coefficients(), &scores) + multiclass_risk(&self.problem, &scores)
    }

    /// The errors of the values are independent, so that the squares add up, and the risk has slope C_i for the samples that have a loss,
    /// or nearly: those with coefficients.
    fn rounding(&self, rows: &CombinedRows<'_>) -> f64 {
        let a = self.coefficients();
        let length = a.iter().map(|a| a * a).sum::<f64>().sqrt();
        let cost: f64 = a
            .chunks(self.problem.n_classes)
            .zip(self.problem.costs)
            .filter(|(row, _)| row.iter().any(|a| *a != 0.0))
            .map(|(_, cost)| cost)
            .sum();
        rows.rounding() * length * cost
    }
}
