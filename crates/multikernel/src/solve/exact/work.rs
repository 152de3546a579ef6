//! Coefficients at fixed kernel weights: the piece that the outer loop, Kloft's wrapper and the methods that search among weights share.
//!
//! Problem: for weights β, max over feasible a of d(a) − ½ Σ_m β_m aᵀK_m a, for one score per sample (`scalar.rs`) or one per class
//! (`joint.rs`). [`Work`] is what either of them can do, [`Accuracy`] how exactly it should be done.

use super::CombinedRows;
use super::newton::WeightModel;
use crate::gram::Gram;
use crate::problem::Objective;

/// The gap of the whole problem is taken to be at most this share of the objective before it is known.
pub(super) const FIRST_GAP: f64 = 0.2;

/// What a solver of coefficients achieved at fixed weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InnerSolve {
    /// Working-set steps.
    pub(crate) steps: u64,
    /// Gap of the problem at fixed weights at the end.
    pub(crate) gap: f64,
    /// What it should be.
    pub(crate) target: f64,
    /// Someone asked to stop.
    pub(crate) stopped: bool,
}

/// A problem with its coefficients, which every solve starts from.
pub(crate) trait Work<'a> {
    /// What is asked of the scores.
    fn objective(&self) -> Objective<'a>;

    /// a
    fn coefficients(&self) -> Vec<f64>;

    /// Makes the scores of the coefficients for the kernel of `rows`: exactly, or from rows in f32.
    fn score(&mut self, rows: &mut CombinedRows<'_>, exact: bool);

    /// Steps on a working set until the gap is at most what `target` gives for a primal objective: for `size` where that is known.
    fn solve(
        &mut self,
        rows: &mut CombinedRows<'_>,
        size: Option<f64>,
        target: &dyn Fn(f64) -> f64,
        stop: &mut dyn FnMut() -> bool,
    ) -> InnerSolve;

    /// Newton steps on the coefficients that are free to move, where working-set steps have given up.
    fn polish(&mut self, rows: &mut CombinedRows<'_>, target: f64, stop: &mut dyn FnMut() -> bool);

    /// The scores of the coefficients reached, renewed where they must be exact and something has `moved`.
    fn settle(&mut self, rows: &CombinedRows<'_>, exact: bool, moved: bool) -> Vec<f64>;

    /// q_m = aᵀK_m a
    fn forms(&mut self, gram: &Gram) -> Vec<f64> {
        gram.quadratic_forms(self.objective().as_coefficients(&self.coefficients()))
    }

    /// How the value of the problem follows the weights of these kernels; none if that cannot be said. `exact` asks for K_m a in f64, which
    /// [`WeightModel::forms`] needs and steps do not.
    fn model(
        &self,
        rows: &mut CombinedRows<'_>,
        kernels: Vec<usize>,
        exact: bool,
    ) -> Option<WeightModel>;

    /// Whether scores come from outputs of every kernel that are kept up to date, which gather rounding.
    fn keeps_outputs(&self) -> bool {
        false
    }
}

/// How exact coefficients should be: a share of the gap of the whole problem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accuracy {
    /// Tighter wastes steps, looser stalls the gap.
    pub(crate) share: f64,
    /// More accuracy than this share never pays.
    pub(crate) least_share: f64,
    /// The gap is taken to be at most this share of the objective.
    pub(crate) first_gap: f64,
    /// The gap of the whole problem.
    pub(crate) gap: f64,
    /// The relative gap asked for.
    pub(crate) tolerance: f64,
}

impl Accuracy {
    /// The gap at fixed weights for a primal objective.
    pub(crate) fn target(&self, primal: f64) -> f64 {
        let most = self.first_gap * primal;
        self.share * self.gap.min(most).max(self.tolerance * primal)
    }

    /// A round has come to this gap. If it is hardly less than before, weights follow coefficients that are too rough to show the way.
    pub(crate) fn seen(&mut self, gap: f64) {
        let falls = gap < 0.9 * self.gap;
        if !falls {
            self.share = (0.5 * self.share).max(self.least_share);
        }
        self.gap = gap;
    }

    /// More exact from here on; false if that is not possible any more.
    pub(crate) fn sharpen(&mut self) -> bool {
        let possible = self.share > self.least_share;
        self.share = (0.1 * self.share).max(self.least_share);
        possible
    }
}
