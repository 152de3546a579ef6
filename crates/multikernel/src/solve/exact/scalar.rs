//! One score per sample: the outer loop's work on coefficients of a scalar loss (`smo.rs`, `newton_scalar.rs`).

use super::kernel_outputs::KernelOutputs;
use super::newton::{MOST_KERNELS, WeightModel};
use super::newton_scalar::{self, free_samples};
use super::outer_loop::{CoarsePart, Rounds};
use super::run::SolvedPoint;
use super::smo::{self, ScalarState, cold_start};
use super::work::{Accuracy, FIRST_GAP, InnerSolve, Work};
use super::{CombinedRows, Limits, Start, Status};
use crate::gram::Gram;
use crate::math;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Certificate, Objective, Problem, best_bias, from_scores, risk};

/// The share of the gap of the whole problem that coefficients may have.
const INNER_SHARE: f64 = 0.3;
/// The same where a row costs more than steps do, because many given kernels are read for it or many families looked up.
const INNER_SHARE_OF_EXPENSIVE_ROUNDS: f64 = 0.1;
/// The same for a start that was given: it needs few steps, and weights that follow rough coefficients away from where they were right
/// cost a round.
const INNER_SHARE_OF_WARM_ROUNDS: f64 = 0.03;
/// More accuracy than this share of the gap never pays.
const LEAST_INNER_SHARE: f64 = 1e-6;
/// More accuracy than this share of the tolerance never pays: near r = 1 the dual feels the root of the inner gap.
const LEAST_SHARE_OF_TOLERANCE: f64 = 0.1;
/// The first gap of a start that was given, whose weights are mostly good enough for the first round to be the last.
const WARM_GAP: f64 = 1e-3;
/// The number of samples from which on the weights start from those of a part of the samples.
const COARSE_FROM: usize = 2000;
/// Operations of its factor that a Newton step at r > 1 is worth for each value of a row that a round makes or goes through.
const NEWTON_SHARE: f64 = 32.0;

/// A problem with its coefficients and their scores.
pub(crate) struct Scalar<'a> {
    problem: Problem<'a>,
    state: ScalarState,
    /// K_m a of every kernel, where kernels must be read.
    outputs: Option<KernelOutputs>,
}

impl<'a> Scalar<'a> {
    /// A cold start whose scores come from combined rows.
    pub(crate) fn new(problem: Problem<'a>) -> Self {
        let a = cold_start(&problem);
        let scores = vec![0.0; a.len()];
        Scalar {
            problem,
            state: ScalarState { a, scores },
            outputs: None,
        }
    }

    /// The same with the outputs of every kernel, where those are worth their memory.
    pub(super) fn with_outputs(problem: Problem<'a>, gram: &Gram, memory: u64) -> Self {
        Scalar {
            outputs: KernelOutputs::new(gram, memory),
            ..Scalar::new(problem)
        }
    }
}

impl<'a> Work<'a> for Scalar<'a> {
    fn objective(&self) -> Objective<'a> {
        Objective::Scalar(self.problem)
    }

    fn coefficients(&self) -> Vec<f64> {
        self.state.a.clone()
    }

    fn score(&mut self, rows: &mut CombinedRows<'_>, exact: bool) {
        let state = &mut self.state;
        if let Some(outputs) = &mut self.outputs {
            outputs.follow(rows.gram(), &state.a);
            state.scores = outputs.scores(rows.weights());
        } else if exact {
            state.scores = rows.exact_product(&state.a);
        } else {
            state.scores.fill(0.0);
            rows.add_product(&state.a, &mut state.scores);
        }
    }

    fn solve(
        &mut self,
        rows: &mut CombinedRows<'_>,
        size: Option<f64>,
        target: &dyn Fn(f64) -> f64,
        stop: &mut dyn FnMut() -> bool,
    ) -> InnerSolve {
        let target = target(size.unwrap_or_else(|| self.primal()));
        let (problem, state) = (&self.problem, &mut self.state);
        smo::solve(rows, problem, state, target, u64::MAX, stop)
    }

    fn polish(&mut self, rows: &mut CombinedRows<'_>, target: f64, stop: &mut dyn FnMut() -> bool) {
        newton_scalar::polish(rows, &self.problem, &mut self.state, target, stop);
    }

    fn settle(&mut self, rows: &CombinedRows<'_>, exact: bool, moved: bool) -> Vec<f64> {
        let state = &mut self.state;
        if let Some(outputs) = &mut self.outputs {
            outputs.follow(rows.gram(), &state.a);
            state.scores = outputs.scores(rows.weights());
        } else if exact && moved {
            state.scores = rows.exact_product(&state.a);
        }
        state.scores.clone()
    }

    fn forms(&mut self, gram: &Gram) -> Vec<f64> {
        match &mut self.outputs {
            Some(outputs) => {
                outputs.follow(gram, &self.state.a);
                outputs.forms()
            }
            None => gram.quadratic_forms(self.objective().as_coefficients(&self.state.a)),
        }
    }

    fn model(
        &self,
        rows: &mut CombinedRows<'_>,
        kernels: Vec<usize>,
        exact: bool,
    ) -> Option<WeightModel> {
        let outputs = self.outputs.as_ref();
        let (problem, state) = (&self.problem, &self.state);
        newton_scalar::weight_model(rows, problem, state, kernels, outputs, exact)
    }

    fn keeps_outputs(&self) -> bool {
        self.outputs.is_some()
    }
}

impl<'a> Rounds<'a> for Scalar<'a> {
    /// Good weights from a quarter of the samples, at a sixteenth of the cost; none where there are no weights to learn.
    fn coarse_start(
        &self,
        gram: &Gram,
        norm: &Norm,
        limits: &Limits,
        observer: &dyn Observer,
    ) -> Option<Start> {
        if norm.fixes_weights() || gram.n_rows() < COARSE_FROM || gram.n_kernels() < 2 {
            return None;
        }
        let part = CoarsePart::new(gram, self.problem.costs, limits);
        let samples = part.samples.iter();
        let targets: Vec<f64> = samples.map(|&i| self.problem.targets[i]).collect();
        let problem = Problem {
            targets: &targets,
            costs: &part.costs,
            ..self.problem
        };
        let solution = super::solve(&part.gram, norm, &problem, &part.limits, None, observer);
        (solution.status == Status::Converged).then(|| Start {
            coefficients: self.coefficients(),
            weights: solution.weights,
        })
    }

    fn begin(&mut self, coefficients: Vec<f64>) {
        self.state.a = coefficients;
    }

    fn accuracy(&self, gram: &Gram, given: bool, tolerance: f64) -> Accuracy {
        Accuracy {
            share: match given {
                _ if self.keeps_outputs() => INNER_SHARE_OF_EXPENSIVE_ROUNDS,
                true => INNER_SHARE_OF_WARM_ROUNDS,
                false if gram.row_plan().is_expensive() => INNER_SHARE_OF_EXPENSIVE_ROUNDS,
                false => INNER_SHARE,
            },
            least_share: LEAST_INNER_SHARE.min(LEAST_SHARE_OF_TOLERANCE * tolerance),
            first_gap: match given {
                true => WARM_GAP.max(tolerance),
                false => FIRST_GAP,
            },
            gap: f64::INFINITY,
            tolerance,
        }
    }

    fn rows<'g>(
        &self,
        gram: &'g Gram,
        weights: &[f64],
        memory: u64,
        first: bool,
        given: bool,
    ) -> CombinedRows<'g> {
        if self.keeps_outputs() {
            if first {
                return CombinedRows::new(gram, weights, memory);
            }
            // Few samples move in later rounds: mostly those that are free now.
            let free = free_samples(&self.problem, &self.state.a);
            return CombinedRows::on_demand(gram, weights, memory, &free);
        }
        // From a good start, and after the first round, few samples move: most of the matrix would never be looked at.
        let mut rows = match given || !first {
            true => CombinedRows::on_demand(gram, weights, memory, &[]),
            false => CombinedRows::new(gram, weights, memory),
        };
        rows.hold_support(&self.state.a);
        rows
    }

    fn primal(&self) -> f64 {
        let ScalarState { a, scores } = &self.state;
        let bias = best_bias(&self.problem, scores);
        0.5 * math::dot(a, scores) + risk(&self.problem, scores, bias)
    }

    /// Near the optimum the risk changes by a_i times the error of score i, which is the sum of a_j times that of K_ij; these are
    /// independent, so that the squares add up.
    fn rounding(&self, rows: &CombinedRows<'_>) -> f64 {
        rows.rounding() * math::dot(&self.state.a, &self.state.a)
    }

    fn confirm(
        &self,
        norm: &Norm,
        point: &SolvedPoint,
        rows: &CombinedRows<'_>,
        memory: u64,
    ) -> Certificate {
        let (a, weights) = (&point.coefficients, &point.weights);
        // Outputs that were kept up to date have gathered round-off.
        match KernelOutputs::new(rows.gram(), memory) {
            Some(mut fresh) => {
                fresh.follow(rows.gram(), a);
                let (scores, forms) = (fresh.scores(weights), fresh.forms());
                from_scores(norm, &self.problem, a, weights, &scores, &forms)
            }
            None => {
                let scores = rows.exact_product(a);
                from_scores(norm, &self.problem, a, weights, &scores, &point.forms)
            }
        }
    }

    /// The factor of the free samples against rows of the support and steps on rows.
    fn newton_pays(&self, gram: &Gram, steps: u64) -> bool {
        let free = free_samples(&self.problem, &self.state.a).len() as f64;
        let kernels = gram.n_kernels().min(MOST_KERNELS) as f64;
        let support = self.state.a.iter().filter(|a| **a != 0.0).count();
        let rows = (support * gram.n_families()) as f64 + steps as f64;
        // The factors of the samples' matrix and of the kernels', and what leads from one to the other.
        let operations = free.powi(3) + 3.0 * free * kernels * (free + kernels) + kernels.powi(3);
        operations <= NEWTON_SHARE * rows * gram.n_rows() as f64
    }

    fn follow(
        &mut self,
        gram: &Gram,
        model: &WeightModel,
        point: &SolvedPoint,
        weights: &[f64],
        wanted: bool,
    ) -> Option<Vec<f64>> {
        // Coefficients of the logistic loss stay away from their bounds.
        let free = model.free.as_ref();
        let free = free.filter(|_| !self.problem.loss.stays_inside())?;
        let a = &point.coefficients;
        self.state.a = free.follow(model, &self.problem, a, &point.weights, weights);
        let known = match wanted {
            true if self.outputs.is_none() => {
                free.forms(model, gram, a, &self.state.a, &point.forms)
            }
            true => None,
            false => Some(Vec::new()),
        };
        Some(known.unwrap_or_else(|| self.forms(gram)))
    }
}
