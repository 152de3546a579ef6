//! The outer loop of exact MKL, the same for one score per sample and for one per class.
//!
//! Problem: min ½ Ω(g)² + Σ C_i ℓ (see `certificate`) in coefficients a and kernel weights β, for any norm Ω.
//!
//! States: a run begins *cold* or with a start that it is given. Large problems make a *coarse start*: the solution of a quarter of the
//! samples. A *round* moves the coefficients at fixed weights, warm started, to an accuracy tied to the current gap ([`Accuracy`]). Where
//! that comes to the gap asked for, the kernels themselves must *confirm* it: what rounded scores claim is doubted from then on if they do
//! not. Else the norm gives *new weights* (`weight_steps.rs`), which never raise the objective but for the accuracy of the coefficients.
//!
//! Stop: relative duality gap (P − D)/max(|P|, |D|) of the same (a, β). Whatever ends the run, its best point is the result (`run.rs`).
//!
//! Cost: per round one combined matrix or those of its rows that are asked for, one product and one histogram of the pairs of support
//! samples, for any number of kernels per statistic.

use super::newton::WeightModel;
use super::run::{SolvedPoint, SolverRun};
use super::weight_steps::WeightSteps;
use super::work::{Accuracy, Work};
use super::{CombinedRows, Limits, Solution, Start, Status};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Certificate, relative_gap};
use crate::random::Random;
use std::rc::Rc;

/// The size of a coarse start is that of the problem divided by this.
const COARSE_SHARE: usize = 4;
/// The gap of a coarse start: the optimum of some samples is no nearer to that of all.
const COARSE_TOLERANCE: f64 = 1e-2;
/// Rows in f32 are good enough where the tolerance is at least this many times their rounding.
const NOISY: f64 = 5.0;

/// What the outer loop asks of a kind of coefficients, beside the solve at fixed weights.
pub(super) trait Rounds<'a>: Work<'a> {
    /// A start from some of the samples; none where the problem is small.
    fn coarse_start(
        &self,
        gram: &Gram,
        norm: &Norm,
        limits: &Limits,
        observer: &dyn Observer,
    ) -> Option<Start>;

    /// Takes these coefficients in place of those of a cold start.
    fn begin(&mut self, coefficients: Vec<f64>);

    /// How exact the first round shall be, from a start that was given or not.
    fn accuracy(&self, gram: &Gram, given: bool, tolerance: f64) -> Accuracy;

    /// The rows of the `first` round or of a later one, from a start that was given or not.
    fn rows<'g>(
        &self,
        gram: &'g Gram,
        weights: &[f64],
        memory: u64,
        first: bool,
        given: bool,
    ) -> CombinedRows<'g>;

    /// The objective of coefficients and scores at hand.
    fn primal(&self) -> f64;

    /// How much of the objective is rounding when scores come from rows in f32.
    fn rounding(&self, rows: &CombinedRows<'_>) -> f64;

    /// What the kernels themselves say of a point whose scores are rounded.
    fn confirm(
        &self,
        norm: &Norm,
        point: &SolvedPoint,
        rows: &CombinedRows<'_>,
        _: u64,
    ) -> Certificate {
        let (a, objective) = (&point.coefficients, self.objective());
        let scores = rows.exact_products(a, objective.outputs());
        objective.certificate(norm, a, &point.weights, &scores, &point.forms)
    }

    /// Whether a Newton step on the weights costs less than the rounds that it saves, for a round of this many working-set steps.
    fn newton_pays(&self, _: &Gram, _: u64) -> bool {
        false
    }

    /// Moves the coefficients from a point to those that a model foretells for new weights; their quadratic forms if they are `wanted`. None
    /// where the coefficients stay.
    fn follow(
        &mut self,
        _: &Gram,
        _: &WeightModel,
        _: &SolvedPoint,
        _: &[f64],
        _: bool,
    ) -> Option<Vec<f64>> {
        None
    }
}

/// Solves the problem; `start` makes it a warm start.
pub(super) fn solve<'a>(
    gram: &'a Gram,
    norm: &'a Norm,
    work: &mut impl Rounds<'a>,
    limits: &Limits,
    start: Option<Start>,
    observer: &'a dyn Observer,
) -> Solution {
    let mut state = match start {
        None => State::Cold,
        Some(start) => State::Given(start),
    };
    let given = matches!(state, State::Given(_));
    let mut outer = OuterLoop {
        run: SolverRun::new(gram, norm, work.objective(), limits, observer),
        accuracy: work.accuracy(gram, given, limits.tolerance),
        steps: WeightSteps::new(gram, norm, limits.tolerance),
        weights: norm.initial_weights(gram.n_kernels()),
        work,
        given,
        doubted: false,
    };
    loop {
        state = match state {
            State::Cold => outer.cold(observer),
            State::Coarse(start) => outer.coarse(start),
            State::Given(start) => outer.begin(start),
            State::Round => outer.round(),
            State::Confirm(reached) => outer.confirm(reached),
            State::NewWeights(reached) => outer.new_weights(reached),
            State::Done(status) => return outer.run.finish(status),
        }
    }
}

/// Where a run is.
enum State<'a> {
    /// Nothing is known.
    Cold,
    /// Some of the samples have been solved for.
    Coarse(Start),
    /// Someone knows where to start.
    Given(Start),
    /// Coefficients are due.
    Round,
    /// The gap is reached if scores can be believed.
    Confirm(Reached<'a>),
    /// Weights are due.
    NewWeights(Reached<'a>),
    Done(Status),
}

/// What a round has come to.
struct Reached<'a> {
    rows: CombinedRows<'a>,
    point: Rc<SolvedPoint>,
    /// Working-set steps of the round.
    steps: u64,
    /// Whether the round was cut short.
    stopped: bool,
    /// Whether its scores are exact.
    exact: bool,
}

struct OuterLoop<'a, 'w, W> {
    run: SolverRun<'a>,
    work: &'w mut W,
    accuracy: Accuracy,
    steps: WeightSteps,
    weights: Vec<f64>,
    /// Whether someone knew where to start.
    given: bool,
    /// Whether rows in f32 have claimed what the kernels themselves deny.
    doubted: bool,
}

impl<'a, W: Rounds<'a>> OuterLoop<'a, '_, W> {
    fn cold(&mut self, observer: &dyn Observer) -> State<'a> {
        let (gram, norm, limits) = (self.run.gram, self.run.norm, &self.run.limits);
        match self.work.coarse_start(gram, norm, limits, observer) {
            Some(start) => State::Coarse(start),
            None => State::Round,
        }
    }

    fn coarse(&mut self, start: Start) -> State<'a> {
        self.accuracy.first_gap = COARSE_TOLERANCE;
        self.begin(start)
    }

    fn begin(&mut self, start: Start) -> State<'a> {
        self.work.begin(start.coefficients);
        self.weights = start.weights;
        State::Round
    }

    /// Coefficients for the weights at hand.
    fn round(&mut self) -> State<'a> {
        let Limits {
            memory, tolerance, ..
        } = self.run.limits;
        let first = self.run.rounds() == 0;
        let (gram, weights) = (self.run.gram, &self.weights);
        let mut rows = self.work.rows(gram, weights, memory, first, self.given);
        // Scores from rows rounded to f32 carry an error in proportion to a; exact ones to start with leave an error in
        // proportion to the change of a alone, which falls from round to round.
        let size = self.run.size().unwrap_or_else(|| self.work.primal());
        let exact = self.doubted
            || self.work.keeps_outputs()
            || tolerance * size < NOISY * self.work.rounding(&rows);
        let fixed = self.steps.are_fixed();
        let accuracy = self.accuracy;
        let target = |primal: f64| match fixed {
            true => 0.5 * tolerance * primal,
            false => accuracy.target(primal),
        };
        // Fixed weights need one round alone: another one would only make the same rows again.
        let again = fixed && first;
        let (point, inner) = self.run.round(self.work, &mut rows, exact, again, &target);
        let now = point.certificate;
        self.accuracy.seen(now.primal - now.dual);
        let reached = Reached {
            rows,
            point,
            steps: inner.steps,
            stopped: inner.stopped,
            exact,
        };
        if now.relative_gap() <= tolerance {
            return State::Confirm(reached);
        }
        match self.run.ending(reached.stopped) {
            Some(status) => State::Done(status),
            None => State::NewWeights(reached),
        }
    }

    /// The gap of rounded scores is believed only if the kernels themselves confirm it.
    fn confirm(&mut self, reached: Reached<'a>) -> State<'a> {
        let Reached { point, rows, .. } = &reached;
        let limits = self.run.limits;
        let believed = point.exact || !limits.confirm || {
            let confirmed = self.work.confirm(self.run.norm, point, rows, limits.memory);
            self.run.correct(confirmed);
            confirmed.relative_gap() <= limits.tolerance
        };
        if believed {
            return State::Done(Status::Converged);
        }
        self.doubted = true;
        match self.run.ending(reached.stopped) {
            Some(status) => State::Done(status),
            None => State::Round,
        }
    }

    fn new_weights(&mut self, mut reached: Reached<'a>) -> State<'a> {
        if self.steps.are_fixed() {
            let idle = reached.steps == 0;
            if idle && reached.exact {
                return State::Done(Status::MaxIterations);
            }
            self.doubted |= idle;
            return State::Round;
        }
        let (run, work, point) = (&mut self.run, &mut *self.work, &reached.point);
        let confirm = run.limits.confirm;
        let rows = &mut reached.rows;
        let model = self.steps.step(
            run.norm,
            point,
            &mut self.weights,
            |kernels| work.model(rows, kernels, !confirm),
            || work.newton_pays(run.gram, reached.steps),
        );
        let Some(model) = model else {
            return State::Round;
        };
        if let Some(forms) = work.follow(run.gram, &model, point, &self.weights, !confirm)
            && !confirm
        {
            // These coefficients may bound the optimum from below more tightly than those at hand, which may be good enough.
            let dual = run.offer(work.coefficients(), forms);
            if relative_gap(point.certificate.primal, dual) <= run.limits.tolerance {
                return State::Done(Status::Converged);
            }
        }
        State::Round
    }
}

/// Some of the samples, drawn at random, to start from: their numbers, their kernels, their costs, and limits for them.
pub(super) struct CoarsePart {
    pub(super) samples: Vec<usize>,
    pub(super) gram: Gram,
    pub(super) costs: Vec<f64>,
    pub(super) limits: Limits,
}

impl CoarsePart {
    /// Each of them counts for those that are left out, too.
    pub(super) fn new(gram: &Gram, costs: &[f64], limits: &Limits) -> CoarsePart {
        let n = gram.n_rows();
        let samples = Random::new(0).sample(n, n / COARSE_SHARE);
        let cost = |&i: &usize| COARSE_SHARE as f64 * costs[i];
        CoarsePart {
            gram: gram.copied_subset(&samples, limits.memory / 2),
            costs: samples.iter().map(cost).collect(),
            samples,
            limits: Limits {
                tolerance: limits.tolerance.max(COARSE_TOLERANCE),
                memory: limits.memory / 2,
                confirm: false,
                ..*limits
            },
        }
    }
}
