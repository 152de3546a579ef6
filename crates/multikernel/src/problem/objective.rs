//! What is asked of the scores: a loss of one score per sample, or one of a score per class.

use super::certificate::{self, Certificate, norm_terms};
use crate::gram::{Coefficients, Gram};
use crate::loss::multiclass;
use crate::norm::Norm;
use crate::problem::{
    MulticlassProblem, Problem, dual_linear, multiclass_dual_linear, multiclass_risk, risk,
};

/// Σ C_i ℓ(f_i, y_i) for one score per sample or one per class; only certificates look for a bias.
#[derive(Debug, Clone, Copy)]
pub enum Objective<'a> {
    /// Any loss of one score.
    Scalar(Problem<'a>),
    /// Crammer and Singer's loss of one score per class.
    Multiclass(MulticlassProblem<'a>),
}

/// A subgradient of a loss in the scores: other than zero for at most two classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gradient {
    entries: [(usize, f64); 2],
    len: usize,
}

impl Gradient {
    /// Where the loss asks for nothing.
    pub(crate) const NONE: Gradient = Gradient {
        entries: [(0, 0.0); 2],
        len: 0,
    };

    /// The classes with something to change, and their slopes.
    pub(crate) fn entries(&self) -> &[(usize, f64)] {
        &self.entries[..self.len]
    }

    pub(crate) fn is_none(&self) -> bool {
        self.len == 0
    }

    /// The slope of the only score; none where it is 0.
    pub(crate) fn scalar(slope: f64) -> Gradient {
        Gradient {
            entries: [(0, slope), (0, 0.0)],
            len: usize::from(slope != 0.0),
        }
    }

    /// The slopes of the multiclass hinge: −1 for the right class, 1 for its rival.
    pub(crate) fn multiclass(right: usize, rival: usize) -> Gradient {
        Gradient {
            entries: [(right, -1.0), (rival, 1.0)],
            len: 2,
        }
    }

    /// Σ slope².
    pub(crate) fn square(&self) -> f64 {
        self.entries().iter().map(|(_, z)| z * z).sum()
    }

    /// √Σ slope².
    pub(crate) fn length(&self) -> f64 {
        self.square().sqrt()
    }

    fn scaled(self, factor: f64) -> Gradient {
        Gradient {
            entries: self.entries.map(|(k, z)| (k, factor * z)),
            ..self
        }
    }
}

impl Objective<'_> {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.costs().len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Scores per sample.
    pub fn outputs(&self) -> usize {
        match self {
            Objective::Scalar(_) => 1,
            Objective::Multiclass(problem) => problem.n_classes,
        }
    }

    /// Coefficients of the problem, row after row, for questions to the kernels.
    pub(crate) fn as_coefficients<'c>(&self, a: &'c [f64]) -> Coefficients<'c> {
        Coefficients::new(a, self.outputs())
    }

    /// The costs C_i.
    pub fn costs(&self) -> &[f64] {
        match self {
            Objective::Scalar(problem) => problem.costs,
            Objective::Multiclass(problem) => problem.costs,
        }
    }

    /// Σ C_i ℓ(f_i, y_i) of scores, row after row.
    pub fn risk(&self, scores: &[f64]) -> f64 {
        match self {
            Objective::Scalar(problem) => risk(problem, scores, 0.0),
            Objective::Multiclass(problem) => multiclass_risk(problem, scores),
        }
    }

    /// Σ −C_i ℓ*(−a_i/C_i, y_i) of coefficients, row after row; −∞ if they are not feasible.
    pub fn dual_linear(&self, coefficients: &[f64]) -> f64 {
        match self {
            Objective::Scalar(problem) => dual_linear(problem, coefficients),
            Objective::Multiclass(problem) => multiclass_dual_linear(problem, coefficients),
        }
    }

    /// The certificate when the scores f = K_β a and the quadratic forms aᵀK_m a are at hand, with the best bias.
    pub(crate) fn certificate(
        &self,
        norm: &Norm,
        coefficients: &[f64],
        weights: &[f64],
        scores: &[f64],
        forms: &[f64],
    ) -> Certificate {
        match self {
            Objective::Scalar(problem) => {
                certificate::from_scores(norm, problem, coefficients, weights, scores, forms)
            }
            Objective::Multiclass(problem) => certificate::multiclass_from_scores(
                norm,
                problem,
                coefficients,
                weights,
                scores,
                forms,
            ),
        }
    }

    /// The certificate from the kernels themselves, with the best bias.
    pub(crate) fn certify(
        &self,
        gram: &Gram,
        norm: &Norm,
        coefficients: &[f64],
        weights: &[f64],
    ) -> Certificate {
        match self {
            Objective::Scalar(problem) => {
                certificate::certify(gram, norm, problem, coefficients, weights)
            }
            Objective::Multiclass(problem) => {
                certificate::certify_multiclass(gram, norm, problem, coefficients, weights)
            }
        }
    }

    /// D of coefficients whose quadratic forms aᵀK_m a are at hand.
    pub(crate) fn dual(&self, norm: &Norm, coefficients: &[f64], forms: &[f64]) -> f64 {
        let no_weights = vec![0.0; forms.len()];
        self.dual_linear(coefficients) - norm_terms(norm, &no_weights, forms).1
    }

    /// Share of right answers of scores, row after row; mean squared error where the targets are numbers.
    pub(crate) fn quality(&self, scores: &[f64]) -> f64 {
        let rows = scores.chunks(self.outputs()).enumerate();
        let values = rows.map(|(i, row)| match self {
            Objective::Multiclass(problem) => {
                let right = problem.classes[i] as usize;
                let beaten = multiclass::violator(row, right).is_none_or(|k| row[k] < row[right]);
                f64::from(u8::from(beaten))
            }
            Objective::Scalar(problem) => problem.loss.right(row[0], problem.targets[i]),
        });
        values.sum::<f64>() / self.len().max(1) as f64
    }

    /// ℓ(f_i, y_i).
    pub(crate) fn loss(&self, i: usize, scores: &[f64]) -> f64 {
        match self {
            Objective::Scalar(problem) => problem.loss.value(scores[0], problem.targets[i]),
            Objective::Multiclass(problem) => {
                multiclass::value(scores, problem.classes[i] as usize)
            }
        }
    }

    /// `weight` times a subgradient of ℓ(f_i, y_i).
    pub(crate) fn gradient(&self, i: usize, scores: &[f64], weight: f64) -> Gradient {
        let gradient = match self {
            Objective::Scalar(problem) => {
                Gradient::scalar(problem.loss.subgradient(scores[0], problem.targets[i]))
            }
            Objective::Multiclass(problem) => {
                let right = problem.classes[i] as usize;
                match multiclass::subgradient(scores, right) {
                    None => Gradient::NONE,
                    Some(wrong) => Gradient::multiclass(right, wrong),
                }
            }
        };
        gradient.scaled(weight)
    }

    /// Bound of the length of a subgradient in the scores; none for the squared losses.
    pub(crate) fn lipschitz(&self) -> Option<f64> {
        match self {
            Objective::Scalar(problem) => problem.loss.lipschitz(),
            Objective::Multiclass(_) => Some(multiclass::LIPSCHITZ),
        }
    }

    /// Whether ℓ(u) ≥ 1 + u·∂ℓ(w) where ℓ(w) > 0, and w·∂ℓ(w) ≥ −1: what the bound of the updates of stage 1 asks for.
    pub(crate) fn counts_mistakes(&self) -> bool {
        match self {
            Objective::Scalar(problem) => problem.loss.counts_mistakes(),
            Objective::Multiclass(_) => true,
        }
    }

    /// The entry of row i that the dual's linear term looks at.
    pub(crate) fn own(&self, i: usize, row: &[f64]) -> f64 {
        match self {
            Objective::Scalar(_) => row[0],
            // rows sum to 0 but for rounding, and this is how `fit_row` restores the sum
            Objective::Multiclass(problem) => -others(row, problem.classes[i] as usize),
        }
    }

    /// What a row whose own entry is `own` adds to the dual after [`Objective::fit_row`].
    pub(crate) fn dual_term(&self, i: usize, own: f64) -> f64 {
        match self {
            Objective::Scalar(problem) => {
                let (c, y) = (problem.costs[i], problem.targets[i]);
                let (low, high) = problem.loss.feasible(c, y);
                problem.loss.dual_term(own.clamp(low, high), c, y)
            }
            Objective::Multiclass(problem) => own.min(problem.costs[i]),
        }
    }

    /// The largest factor by which the row may be multiplied and stay feasible; `own` as above.
    pub(crate) fn largest_factor(&self, i: usize, own: f64) -> f64 {
        let (low, high) = match self {
            Objective::Scalar(problem) => {
                problem.loss.feasible(problem.costs[i], problem.targets[i])
            }
            Objective::Multiclass(problem) => (0.0, problem.costs[i]),
        };
        if own > 0.0 {
            high / own
        } else if own < 0.0 {
            low / own
        } else {
            f64::INFINITY
        }
    }

    /// Makes row i feasible: a scalar is clipped, a row of several classes is shrunk as a whole, so that it still sums to 0.
    pub(crate) fn fit_row(&self, i: usize, row: &mut [f64]) {
        match self {
            Objective::Scalar(problem) => {
                let (low, high) = problem.loss.feasible(problem.costs[i], problem.targets[i]);
                row[0] = row[0].clamp(low, high);
            }
            Objective::Multiclass(problem) => {
                let (right, cost) = (problem.classes[i] as usize, problem.costs[i]);
                for (k, a) in row.iter_mut().enumerate() {
                    *a = if k == right { 0.0 } else { a.min(0.0) };
                }
                let own = -others(row, right);
                if own > cost {
                    row.iter_mut().for_each(|a| *a *= cost / own);
                }
                row[right] = (-others(row, right)).min(cost);
            }
        }
    }
}

/// Σ of the row without the entry of one class.
fn others(row: &[f64], class: usize) -> f64 {
    let all = row.iter().enumerate();
    all.filter(|(k, _)| *k != class).map(|(_, a)| a).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fitted_rows_are_feasible_and_add_what_was_said(
            row in prop::collection::vec(-3.0..3.0f64, 4), cost in 0.0..2.0f64, class in 0u32..4
        ) {
            let mut row: Vec<f64> = row.iter().map(|a| -a.abs()).collect();
            let right = class as usize;
            row[right] = -others(&row, right) * (1.0 + 1e-13);
            let (classes, costs) = ([class], [cost]);
            let objective = Objective::Multiclass(MulticlassProblem {
                classes: &classes, n_classes: 4, costs: &costs,
            });
            let own = objective.own(0, &row);
            let factor = objective.largest_factor(0, own);
            let said = objective.dual_term(0, own);
            let whole = row.clone();
            objective.fit_row(0, &mut row);
            let adds = objective.dual_linear(&row);
            prop_assert!((adds - said).abs() <= 1e-12 * said.abs(), "{adds} instead of {said}");
            if factor >= 1.0 {
                let moved = row.iter().zip(&whole).fold(0.0f64, |x, (a, b)| x.max((a - b).abs()));
                prop_assert!(moved <= 1e-11, "a feasible row moved by {moved}");
            }
        }

        #[test]
        fn clipped_scalars_are_feasible(a in -5.0..5.0f64, cost in 0.0..2.0f64, positive: bool) {
            let y = if positive { 1.0 } else { -1.0 };
            for loss in crate::loss::Loss::one_of_each() {
                let (targets, costs) = ([y], [cost]);
                let objective = Objective::Scalar(Problem {
                    loss, targets: &targets, costs: &costs, bias: false,
                });
                let mut row = [a];
                let said = objective.dual_term(0, a);
                objective.fit_row(0, &mut row);
                prop_assert!(said.is_finite());
                prop_assert_eq!(said, objective.dual_linear(&row));
            }
        }
    }
}
