//! One run of a solver: its rounds, the best point that they have seen, when it ends and what it gives back.
//!
//! A point is (a, β). Its P(β, a) bounds the optimum from above and its D(a) from below, each by itself. So the run keeps the point with
//! the least P, which is the result whatever ends the run, and the coefficients with the largest D, which are its witness.
//!
//! Scores from rows in f32 make P uncertain by their rounding: what is given back is measured again by the kernels themselves.

use super::work::{InnerSolve, Work};
use super::{CombinedRows, Limits, Round, Solution, Status};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::{Observer, Progress};
use crate::problem::{Certificate, Objective, relative_gap};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How often the observer is asked inside of a round whether to stop.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// Coefficients and weights, and where they stand.
#[derive(Debug, Clone)]
pub(crate) struct SolvedPoint {
    /// a
    pub(crate) coefficients: Vec<f64>,
    /// β
    pub(crate) weights: Vec<f64>,
    /// q_m = aᵀK_m a
    pub(crate) forms: Vec<f64>,
    pub(crate) certificate: Certificate,
    /// Whether the certificate is that of the kernels themselves already.
    pub(crate) exact: bool,
}

/// What all solvers of this room keep from round to round.
pub(crate) struct SolverRun<'a> {
    pub(crate) gram: &'a Gram,
    pub(crate) norm: &'a Norm,
    pub(crate) objective: Objective<'a>,
    pub(crate) limits: Limits,
    observer: &'a dyn Observer,
    begin: Instant,
    asked: Instant,
    told_to_stop: bool,
    /// Working-set steps.
    pub(crate) steps: u64,
    history: Vec<Round>,
    /// The point of the last round.
    last: Option<Rc<SolvedPoint>>,
    /// The point with the least P.
    best: Option<Rc<SolvedPoint>>,
    /// The point with the largest D.
    witness: Option<Rc<SolvedPoint>>,
    /// Whether bounds of different rounds count together even where those of one point are near enough.
    pub(crate) joins_bounds: bool,
}

impl<'a> SolverRun<'a> {
    pub(crate) fn new(
        gram: &'a Gram,
        norm: &'a Norm,
        objective: Objective<'a>,
        limits: &Limits,
        observer: &'a dyn Observer,
    ) -> Self {
        let begin = Instant::now();
        SolverRun {
            gram,
            norm,
            objective,
            limits: *limits,
            observer,
            begin,
            asked: begin,
            told_to_stop: false,
            steps: 0,
            history: Vec::new(),
            last: None,
            best: None,
            witness: None,
            joins_bounds: false,
        }
    }

    /// Number of rounds so far.
    pub(crate) fn rounds(&self) -> usize {
        self.history.len()
    }

    /// |P| of the last round, the size of the objective for absolute accuracies.
    pub(crate) fn size(&self) -> Option<f64> {
        self.history.last().map(|round| round.primal.abs())
    }

    /// One round at fixed weights: coefficients from those that `work` holds to the gap that `target` gives for a primal objective.
    /// `exact` asks for scores from the kernels themselves. `again` goes on with what the objective turns out to be.
    pub(super) fn round<'w>(
        &mut self,
        work: &mut (impl Work<'w> + ?Sized),
        rows: &mut CombinedRows<'_>,
        exact: bool,
        again: bool,
        target: &dyn Fn(f64) -> f64,
    ) -> (Rc<SolvedPoint>, InnerSolve) {
        work.score(rows, exact);
        let size = self.size();
        let mut stop = || self.is_over();
        let mut inner = work.solve(rows, size, target, &mut stop);
        if again && !inner.stopped {
            let before = inner.steps;
            inner = work.solve(rows, size, target, &mut stop);
            inner.steps += before;
        }
        let gave_up = inner.gap > inner.target && !inner.stopped;
        if gave_up {
            work.polish(rows, inner.target, &mut stop);
        }
        let scores = work.settle(rows, exact, inner.steps > 0 || gave_up);
        let (coefficients, forms) = (work.coefficients(), work.forms(self.gram));
        let certificate =
            self.objective
                .certificate(self.norm, &coefficients, rows.weights(), &scores, &forms);
        self.steps += inner.steps;
        let point = SolvedPoint {
            coefficients,
            weights: rows.weights().to_vec(),
            forms,
            certificate,
            exact: exact && !work.keeps_outputs(),
        };
        (self.record(point), inner)
    }

    /// Whether to stop inside of a round: by the clock, or because the observer says so.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now.duration_since(self.asked) >= ASKED_EVERY {
            self.asked = now;
            self.told_to_stop |= self.observer.progress(&Progress::Alive).is_break();
        }
        self.told_to_stop || self.is_late()
    }

    /// Whether the time is up.
    pub(crate) fn is_late(&self) -> bool {
        self.limits.deadline.is_some_and(|d| Instant::now() >= d)
    }

    /// Adds a round that has come to this point, and tells the observer.
    pub(crate) fn record(&mut self, point: SolvedPoint) -> Rc<SolvedPoint> {
        let Certificate { primal, dual, .. } = point.certificate;
        self.history.push(Round {
            seconds: self.begin.elapsed().as_secs_f64(),
            primal,
            dual,
            steps: self.steps,
        });
        let told = self.observer.progress(&Progress::Round {
            round: self.history.len(),
            primal,
            dual,
        });
        self.told_to_stop |= told.is_break();
        let point = Rc::new(point);
        self.last = Some(Rc::clone(&point));
        // Of points that are as good the later one is kept; one without a finite objective still is better than none.
        let least = self.best.as_ref().map(|best| best.certificate.primal);
        if least.is_none_or(|least| primal <= least || least.is_nan()) {
            self.best = Some(Rc::clone(&point));
        }
        self.keep_witness(&point);
        point
    }

    fn keep_witness(&mut self, point: &Rc<SolvedPoint>) {
        let now = point.certificate;
        let largest = self.witness.as_ref().map(|point| point.certificate.dual);
        if largest.is_none_or(|largest| now.dual >= largest || largest.is_nan()) {
            self.witness = Some(Rc::clone(point));
        }
    }

    /// What the kernels themselves say of the last point takes the place of what was believed.
    pub(crate) fn correct(&mut self, certificate: Certificate) {
        let Some(last) = &self.last else {
            return;
        };
        let point = Rc::new(SolvedPoint {
            certificate,
            exact: true,
            ..SolvedPoint::clone(last)
        });
        for kept in [&mut self.best, &mut self.witness] {
            if kept.as_ref().is_some_and(|kept| Rc::ptr_eq(kept, last)) {
                *kept = Some(Rc::clone(&point));
            }
        }
        self.last = Some(point);
    }

    /// A lower bound from coefficients that no round has come to, with their quadratic forms; the bound.
    pub(crate) fn offer(&mut self, coefficients: Vec<f64>, forms: Vec<f64>) -> f64 {
        let dual = self.objective.dual(self.norm, &coefficients, &forms);
        let certificate = Certificate {
            primal: f64::INFINITY,
            dual,
            risk: f64::INFINITY,
            bias: 0.0,
        };
        self.keep_witness(&Rc::new(SolvedPoint {
            coefficients,
            weights: Vec::new(),
            forms,
            certificate,
            exact: true,
        }));
        dual
    }

    /// The least P so far.
    pub(crate) fn upper(&self) -> f64 {
        let best = self.best.as_ref();
        best.map_or(f64::INFINITY, |best| best.certificate.primal)
    }

    /// The largest D so far.
    pub(crate) fn lower(&self) -> f64 {
        let witness = self.witness.as_ref();
        witness.map_or(f64::NEG_INFINITY, |point| point.certificate.dual)
    }

    /// P − D of the best bounds.
    pub(crate) fn gap(&self) -> f64 {
        self.upper() - self.lower()
    }

    /// The same relative to the objective.
    pub(crate) fn relative_gap(&self) -> f64 {
        relative_gap(self.upper(), self.lower())
    }

    /// Why a run ends that has not converged, if it does: `stopped` says that its last round was cut short.
    pub(crate) fn ending(&self, stopped: bool) -> Option<Status> {
        if self.told_to_stop {
            Some(Status::Stopped)
        } else if stopped || self.is_late() {
            Some(Status::TimeLimit)
        } else if self.history.len() >= self.limits.max_rounds {
            Some(Status::MaxIterations)
        } else {
            None
        }
    }

    /// The best point with its certificate and its witness.
    pub(crate) fn finish(mut self, status: Status) -> Solution {
        let (Some(best), Some(last)) = (self.best.take(), self.last.take()) else {
            unreachable!("every run comes to a point")
        };
        let believed = status == Status::Converged && !self.limits.confirm;
        let measured = |point: &SolvedPoint| match point.exact || believed {
            true => point.certificate,
            false => {
                let (a, weights) = (&point.coefficients, &point.weights);
                self.objective.certify(self.gram, self.norm, a, weights)
            }
        };
        let mut certificate = measured(&best);
        let mut point = best;
        if !Rc::ptr_eq(&point, &last) {
            let of_last = measured(&last);
            // A point whose own gap is the one asked for needs no witness, and none is better by more than that gap.
            let reached = status == Status::Converged
                && !self.joins_bounds
                && of_last.relative_gap() <= self.limits.tolerance;
            // Rounding may have made the earlier point look better than it is.
            if reached || of_last.primal <= certificate.primal {
                (point, certificate) = (last, of_last);
            }
        }
        let mut witness = None;
        let open = certificate.relative_gap() > self.limits.tolerance;
        let other = self.witness.take();
        let other = other.filter(|w| (open || self.joins_bounds) && !Rc::ptr_eq(w, &point));
        if let Some(other) = other {
            let a = &other.coefficients;
            let dual = match believed {
                true => other.certificate.dual,
                false => self.dual(a),
            };
            if dual > certificate.dual {
                certificate.dual = dual;
                witness = Some(a.clone());
            }
        }
        let point = Rc::unwrap_or_clone(point);
        let status = match status {
            Status::Stopped => Status::Stopped,
            _ if certificate.relative_gap() <= self.limits.tolerance => Status::Converged,
            Status::Converged => Status::MaxIterations,
            other => other,
        };
        Solution {
            coefficients: point.coefficients,
            weights: point.weights,
            certificate,
            witness,
            status,
            steps: self.steps,
            history: self.history,
            forms: Some(point.forms),
        }
    }

    /// D of coefficients from the kernels themselves.
    fn dual(&self, a: &[f64]) -> f64 {
        let forms = self.gram.quadratic_forms(self.objective.as_coefficients(a));
        self.objective.dual(self.norm, a, &forms)
    }
}
