//! The cutting planes of Kloft, Brefeld, Sonnenburg, Laskov, Müller, Zien (NIPS 2009, section 3.1): SILP for lp:P.
//!
//! Problem: ℓp-norm MKL, 1 < p < ∞, as the semi-infinite program min t over ‖θ‖_p ≤ 1, θ ≥ 0 with t ≥ d(a) − ½ Σ_m θ_m q_m(a)
//! for every feasible a.
//! Round: the program with the planes found so far gives θ, the SVM at θ a new plane. The authors replace ‖θ‖_p^p by its
//! second-order expansion around the last θ and solve that again and again until θ stays; where it stays the expansion is
//! exact. Here the program with the ball itself is solved by its dual, which has a closed form:
//!   max over μ on the simplex of planes of Σ_i μ_i d_i − ½ ‖Σ_i μ_i q_i‖_{p*},  θ_m = (q_m/‖q‖_{p*})^{p*−1} for q = Σ_i μ_i q_i,
//! by steps that move μ from the worst plane in use to the best one, each to its exact optimum.
//! Stop: relative duality gap.
//! Cost: per round one SVM, and M times the number of planes for every step on μ.

use super::mix;
use crate::problem::relative_gap;
use crate::solve::exact::svm::{Plane, Svm};

/// Steps on μ for one round, at most.
const MOST_STEPS: usize = 3000;
/// The program is solved to this share of the gap of the whole problem.
const SHARE: f64 = 1e-2;
/// Halvings of the interval of a step.
const HALVINGS: usize = 50;

/// Searches from `weights` on the unit sphere of ‖·‖_p.
pub(super) fn search(svm: &mut Svm<'_>, mut weights: Vec<f64>, p: f64) {
    let mut program = Program {
        dual: p / (p - 1.0),
        planes: Vec::new(),
        mu: Vec::new(),
    };
    while let Some(at) = svm.at(&weights) {
        let value = at.value.abs();
        program.planes.push(at);
        program
            .mu
            .push(if program.mu.is_empty() { 1.0 } else { 0.0 });
        let (next, bound) = program.solve(SHARE * svm.relative_gap().min(1.0) * value);
        let moved = next
            .iter()
            .zip(&weights)
            .any(|(a, b)| (a - b).abs() > 1e-12);
        // The planes' own bound may be proven by the coefficients that belong to it.
        if relative_gap(svm.bound(), bound) <= svm.tolerance() || !moved {
            let mixed = mix(&program.planes, &program.mu);
            if svm.offer(mixed) || (!moved && !svm.sharpen()) {
                return;
            }
        }
        weights = next;
    }
}

struct Program {
    /// p* of the dual norm.
    dual: f64,
    planes: Vec<Plane>,
    mu: Vec<f64>,
}

impl Program {
    /// θ of the program, within `accuracy` of its optimum, and the value of its dual.
    fn solve(&mut self, accuracy: f64) -> (Vec<f64>, f64) {
        let m = self.planes[0].forms().len();
        let mut q = vec![0.0; m];
        for (plane, &mu) in self
            .planes
            .iter()
            .zip(&self.mu)
            .filter(|(_, mu)| **mu > 0.0)
        {
            q.iter_mut()
                .zip(plane.forms())
                .for_each(|(q, f)| *q += mu * f);
        }
        let mut theta = self.theta(&q);
        for _ in 0..MOST_STEPS {
            let slopes: Vec<f64> = self
                .planes
                .iter()
                .map(|plane| plane.linear - 0.5 * crate::math::dot(plane.forms(), &theta))
                .collect();
            let high = (0..slopes.len()).fold(0, |a, b| if slopes[b] > slopes[a] { b } else { a });
            let used = |k: &usize| self.mu[*k] > 0.0;
            let low = (0..slopes.len())
                .filter(used)
                .fold(high, |a, b| if slopes[b] < slopes[a] { b } else { a });
            let mean: f64 = slopes.iter().zip(&self.mu).map(|(s, mu)| s * mu).sum();
            if slopes[high] - mean <= accuracy || low == high {
                break;
            }
            let (up, down) = (&self.planes[high], &self.planes[low]);
            let forms = up.forms().iter().zip(down.forms());
            let change: Vec<f64> = forms.map(|(a, b)| a - b).collect();
            let step = self.exact_step(&q, &change, up.linear - down.linear, self.mu[low]);
            if step == 0.0 {
                break;
            }
            self.mu[high] += step;
            self.mu[low] = match step == self.mu[low] {
                true => 0.0,
                false => self.mu[low] - step,
            };
            q.iter_mut()
                .zip(&change)
                .for_each(|(q, c)| *q = (*q + step * c).max(0.0));
            theta = self.theta(&q);
        }
        let linear: f64 = self
            .planes
            .iter()
            .zip(&self.mu)
            .map(|(plane, mu)| mu * plane.linear)
            .sum();
        let value = linear - 0.5 * crate::math::dot(&q, &theta);
        (theta, value)
    }

    /// How far μ should move along a change of Σ μ q that gains `gain` in Σ μ d, at most to `most`.
    fn exact_step(&self, q: &[f64], change: &[f64], gain: f64, most: f64) -> f64 {
        // The slope along the step falls: its zero by halving.
        let slope = |step: f64| {
            let at: Vec<f64> = q
                .iter()
                .zip(change)
                .map(|(q, c)| (q + step * c).max(0.0))
                .collect();
            gain - 0.5 * crate::math::dot(change, &self.theta(&at))
        };
        if slope(most) >= 0.0 {
            return most;
        }
        let (mut left, mut right) = (0.0, most);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (left + right);
            if slope(middle) >= 0.0 {
                left = middle;
            } else {
                right = middle;
            }
        }
        left
    }

    /// The θ of the ball with the largest ⟨θ, q⟩; all alike where q is 0.
    fn theta(&self, q: &[f64]) -> Vec<f64> {
        let largest = q.iter().fold(0.0f64, |a, &b| a.max(b));
        if largest == 0.0 {
            let p = self.dual / (self.dual - 1.0);
            return vec![(q.len() as f64).powf(-1.0 / p); q.len()];
        }
        let sum: f64 = q.iter().map(|q| (q / largest).powf(self.dual)).sum();
        let size = sum.powf(1.0 / self.dual);
        q.iter()
            .map(|q| (q / largest / size).powf(self.dual - 1.0))
            .collect()
    }
}
