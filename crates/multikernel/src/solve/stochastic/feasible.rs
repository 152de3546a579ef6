//! A dual feasible point near coefficients that need not be feasible: the lower end of a stochastic result's certificate.
//!
//! Coefficients A are multiplied by one scalar τ, made feasible row by row, and multiplied again by the best scalar in [0, 1]:
//! every feasible set contains 0 and is convex, so that all of this stays feasible and D of the result is a true lower bound
//! of the optimum. P belongs to the weight vectors of A itself, D to this other point; both bound the same optimum.

use crate::norm::Norm;
use crate::problem::Objective;

/// Steps of a golden-section search: the interval shrinks to 1e-9 of itself.
const SEARCH: usize = 44;
/// τ is at most this multiple of what would be best without limits.
const FARTHEST: f64 = 4.0;

/// A feasible point.
#[derive(Debug, Clone)]
pub(super) struct FeasiblePoint {
    pub(super) coefficients: Vec<f64>,
    pub(super) dual: f64,
}

/// A point before it is written down.
enum Candidate {
    /// A multiple of A.
    Scaled { factor: f64, dual: f64 },
    /// Some of its rows are others.
    Fitted(FeasiblePoint),
}

/// What is known about A beside its entries.
#[derive(Debug)]
pub(super) struct FeasibleNear<'a> {
    pub(super) objective: &'a Objective<'a>,
    pub(super) norm: &'a Norm,
    pub(super) coefficients: &'a [f64],
    /// AᵀK_m A
    pub(super) forms: &'a [f64],
}

impl FeasibleNear<'_> {
    /// The best point found. `forms_of` gives XᵀK_m X of a feasible X, τ and X − τA.
    pub(super) fn point(
        &self,
        forms_of: impl FnOnce(&[f64], f64, &[f64]) -> Vec<f64>,
    ) -> FeasiblePoint {
        match self.search(usize::MAX, |x, scale, change| {
            Some(forms_of(x, scale, change))
        }) {
            Candidate::Scaled { factor, .. } => self.scaled(factor),
            Candidate::Fitted(point) => point,
        }
    }

    /// D of the best point found. `forms_of` as above; nothing is changed beside τ where more than `most_fitted` samples would need it, or
    /// where it gives nothing.
    pub(super) fn dual(
        &self,
        most_fitted: usize,
        forms_of: impl FnOnce(&[f64], f64, &[f64]) -> Option<Vec<f64>>,
    ) -> f64 {
        match self.search(most_fitted, forms_of) {
            Candidate::Scaled { dual, .. } => dual,
            Candidate::Fitted(point) => point.dual,
        }
    }

    fn search(
        &self,
        most_fitted: usize,
        forms_of: impl FnOnce(&[f64], f64, &[f64]) -> Option<Vec<f64>>,
    ) -> Candidate {
        let outputs = self.objective.outputs();
        let own: Vec<f64> = self
            .coefficients
            .chunks(outputs)
            .enumerate()
            .map(|(i, row)| self.objective.own(i, row))
            .collect();
        let size = self.dual_size(self.forms);
        let linear = |factor: f64| -> f64 {
            let terms = own.iter().enumerate();
            terms
                .map(|(i, a)| self.objective.dual_term(i, factor * a))
                .sum()
        };
        let value = |factor: f64| linear(factor) - 0.5 * factor * factor * size;
        // without limits: the scale at which the linear term and the norm balance; A of a good result has it at 1
        let most = FARTHEST * (linear(1.0) / size).abs().max(1.0);
        let most = if most.is_finite() { most } else { FARTHEST };

        let farthest = own
            .iter()
            .enumerate()
            .map(|(i, &a)| self.objective.largest_factor(i, a));
        let farthest: Vec<f64> = farthest.collect();
        let inside = farthest.iter().copied().fold(most, f64::min);
        let small = best(0.0, inside, value);
        let plain = Candidate::Scaled {
            factor: small,
            dual: value(small),
        };
        let free = best(0.0, most, value);
        if free <= inside || farthest.iter().filter(|f| **f < free).count() > most_fitted {
            return plain;
        }
        let fitted = self.fitted(free);
        let change: Vec<f64> = fitted
            .iter()
            .zip(self.coefficients)
            .map(|(x, a)| x - free * a)
            .collect();
        let Some(forms) = forms_of(&fitted, free, &change) else {
            return plain;
        };
        let point = self.shrunk(fitted, &forms);
        if point.dual > value(small) {
            Candidate::Fitted(point)
        } else {
            plain
        }
    }

    /// Ω*(s)².
    fn dual_size(&self, forms: &[f64]) -> f64 {
        let s: Vec<f64> = forms.iter().map(|q| q.max(0.0).sqrt()).collect();
        self.norm.dual(&s).powi(2)
    }

    /// factor·A with every row made feasible.
    fn fitted(&self, factor: f64) -> Vec<f64> {
        let mut x: Vec<f64> = self.coefficients.iter().map(|a| factor * a).collect();
        for (i, row) in x.chunks_mut(self.objective.outputs()).enumerate() {
            self.objective.fit_row(i, row);
        }
        x
    }

    /// factor·A, feasible but for rounding.
    fn scaled(&self, factor: f64) -> FeasiblePoint {
        let coefficients = self.fitted(factor);
        let dual = self.objective.dual_linear(&coefficients)
            - 0.5 * factor * factor * self.dual_size(self.forms);
        FeasiblePoint { coefficients, dual }
    }

    /// The best multiple of a feasible point.
    fn shrunk(&self, mut x: Vec<f64>, forms: &[f64]) -> FeasiblePoint {
        let outputs = self.objective.outputs();
        let own: Vec<f64> = x
            .chunks(outputs)
            .enumerate()
            .map(|(i, row)| self.objective.own(i, row))
            .collect();
        let size = self.dual_size(forms);
        let factor = best(0.0, 1.0, |factor| {
            let terms = own.iter().enumerate();
            let linear: f64 = terms
                .map(|(i, a)| self.objective.dual_term(i, factor * a))
                .sum();
            linear - 0.5 * factor * factor * size
        });
        x.iter_mut().for_each(|x| *x *= factor);
        for (i, row) in x.chunks_mut(outputs).enumerate() {
            self.objective.fit_row(i, row);
        }
        let dual = self.objective.dual_linear(&x) - 0.5 * factor * factor * size;
        FeasiblePoint {
            coefficients: x,
            dual,
        }
    }
}

/// The largest value of a concave function on an interval, by golden section; the ends are tried too.
fn best(low: f64, high: f64, value: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (low, high);
    let (mut x, mut y) = (b - ratio * (b - a), a + ratio * (b - a));
    let (mut at_x, mut at_y) = (value(x), value(y));
    for _ in 0..SEARCH {
        if at_x < at_y {
            (a, x, at_x) = (x, y, at_y);
            y = a + ratio * (b - a);
            at_y = value(y);
        } else {
            (b, y, at_y) = (y, x, at_x);
            x = b - ratio * (b - a);
            at_x = value(x);
        }
    }
    let candidates = [(low, value(low)), (high, value(high)), (x, at_x), (y, at_y)];
    let best = candidates
        .into_iter()
        .filter(|(_, v)| !v.is_nan())
        .reduce(|best, c| if c.1 > best.1 { c } else { best });
    best.map_or(low, |(x, _)| x)
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn the_search_finds_the_top_inside_and_at_the_ends() {
        assert!((best(0.0, 4.0, |x| -(x - 1.3f64).powi(2)) - 1.3).abs() < 1e-7);
        assert_eq!(best(0.0, 4.0, |x| x), 4.0);
        assert_eq!(best(0.0, 4.0, |x| -x), 0.0);
        assert_eq!(best(0.0, 0.0, |x| x), 0.0);
    }
}
