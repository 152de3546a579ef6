//! The coefficients at fixed kernel weights: the one piece that all methods share which search among weights.
//!
//! Problem: for weights β the SVM of the combined kernel, J(β) = max over feasible a of d(a) − ½ Σ_m β_m q_m, q_m = aᵀK_m a,
//! for one score per sample or one per class. J is convex with ∂J/∂β_m = −½ q_m at the maximiser; any feasible a gives a
//! plane below it, J(β) ≥ d(a) − ½ Σ_m β_m q_m.
//!
//! Every call starts from the coefficients of the last one and goes to an accuracy tied to the gap of the whole problem,
//! which each call certifies: upper bound P(β, a), lower bound D(a). The bounds of different calls count together, since each
//! holds by itself.
//!
//! Cost: per call one combined matrix, one product and one histogram of the pairs of support samples.

use super::joint::Joint;
use super::newton::{MOST_ON_SIMPLEX, kernels_that_matter};
use super::run::{SolvedPoint, SolverRun};
use super::scalar::Scalar;
use super::work::{Accuracy, FIRST_GAP, Work};
use super::{CombinedRows, Limits, Solution, Status};
use crate::gram::Gram;
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::Objective;
use std::rc::Rc;

/// The inner accuracy as a share of the gap.
const INNER_SHARE: f64 = 0.1;
/// If a call does not lower the gap, the next ones are more exact, down to this share.
const LEAST_SHARE: f64 = 1e-4;

/// A problem whose weights are searched for.
pub(crate) struct Svm<'a> {
    run: SolverRun<'a>,
    work: Box<dyn Work<'a> + 'a>,
    rows: Option<CombinedRows<'a>>,
    accuracy: Accuracy,
    status: Option<Status>,
}

/// What a call found: a plane below J, which it touches at the weights of the call.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    /// d(a), the dual without its quadratic part.
    pub(crate) linear: f64,
    /// The coefficients, and q_m.
    point: Rc<SolvedPoint>,
    /// Lower bound of J at these weights: d(a) − ½ Σ β q.
    pub(crate) value: f64,
}

impl Plane {
    /// a
    pub(crate) fn coefficients(&self) -> &[f64] {
        &self.point.coefficients
    }

    /// q_m
    pub(crate) fn forms(&self) -> &[f64] {
        &self.point.forms
    }
}

impl<'a> Svm<'a> {
    pub(crate) fn new(
        gram: &'a Gram,
        norm: &'a Norm,
        objective: Objective<'a>,
        limits: &Limits,
        observer: &'a dyn Observer,
    ) -> Self {
        let mut run = SolverRun::new(gram, norm, objective, limits, observer);
        run.joins_bounds = true;
        Svm {
            run,
            work: match objective {
                Objective::Scalar(problem) => Box::new(Scalar::new(problem)),
                Objective::Multiclass(problem) => Box::new(Joint::for_search(problem)),
            },
            rows: None,
            accuracy: Accuracy {
                share: INNER_SHARE,
                least_share: LEAST_SHARE,
                first_gap: FIRST_GAP,
                gap: f64::INFINITY,
                tolerance: limits.tolerance,
            },
            status: None,
        }
    }

    /// Solves for these weights; none when it is over: converged, out of time or rounds, or told to stop.
    pub(crate) fn at(&mut self, weights: &[f64]) -> Option<Plane> {
        if self.status.is_some() {
            return None;
        }
        let mut rows = CombinedRows::new(self.run.gram, weights, self.run.limits.memory);
        self.accuracy.gap = self.run.gap();
        let accuracy = self.accuracy;
        let target = |primal: f64| accuracy.target(primal);
        let work = &mut *self.work;
        let (point, inner) = self.run.round(work, &mut rows, true, false, &target);
        self.rows = Some(rows);
        self.accuracy.seen(self.run.gap());
        self.status = match self.relative_gap() <= self.tolerance() {
            true => Some(Status::Converged),
            false => self.run.ending(inner.stopped),
        };
        if self.status.is_some() {
            return None;
        }
        let linear = self.run.objective.dual_linear(&point.coefficients);
        let quadratic: f64 = weights.iter().zip(&point.forms).map(|(b, q)| b * q).sum();
        Some(Plane {
            linear,
            value: linear - 0.5 * quadratic,
            point,
        })
    }

    /// The relative gap of the best bounds so far.
    pub(crate) fn relative_gap(&self) -> f64 {
        self.run.relative_gap()
    }

    /// The relative gap asked for.
    pub(crate) fn tolerance(&self) -> f64 {
        self.run.limits.tolerance
    }

    /// How exact values of J are, about.
    pub(crate) fn accuracy(&self) -> f64 {
        let now = Accuracy {
            gap: self.run.gap(),
            ..self.accuracy
        };
        now.target(self.run.upper().abs())
    }

    /// The upper bound so far, P.
    pub(crate) fn bound(&self) -> f64 {
        self.run.upper()
    }

    /// A lower bound from other coefficients, which must be feasible; a convex combination of feasible ones is. True if it is over now.
    pub(crate) fn offer(&mut self, coefficients: Vec<f64>) -> bool {
        let a = self.run.objective.as_coefficients(&coefficients);
        let forms = self.run.gram.quadratic_forms(a);
        self.run.offer(coefficients, forms);
        if self.status.is_none() && self.relative_gap() <= self.tolerance() {
            self.status = Some(Status::Converged);
        }
        self.status.is_some()
    }

    /// Solves more exactly from here on; false if that is not possible any more.
    pub(crate) fn sharpen(&mut self) -> bool {
        self.accuracy.sharpen()
    }

    /// The minimiser on the simplex of the quadratic model of J around weights that were solved for last.
    pub(crate) fn newton_point(&mut self, weights: &[f64], forms: &[f64]) -> Option<Vec<f64>> {
        let kernels = kernels_that_matter(weights, forms, MOST_ON_SIMPLEX);
        let model = self.work.model(self.rows.as_mut()?, kernels, false)?;
        model.on_simplex(weights, forms)
    }

    /// The best point with its certificate. A method that finds no further weights ends before anyone told it to: then the status is that
    /// no further progress is possible.
    pub(crate) fn finish(self) -> Solution {
        self.run
            .finish(self.status.unwrap_or(Status::MaxIterations))
    }
}
