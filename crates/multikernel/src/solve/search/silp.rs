//! SILP (Sonnenburg, Rätsch, Schäfer, Schölkopf, JMLR 2006), and MC-MKL (Zien, Ong, ICML 2007), which is the same around an
//! SVM of all classes together.
//!
//! Problem: min over β on the simplex of J(β) (r = 1), as the semi-infinite program min t with t ≥ d(a) − ½ Σ_m β_m q_m(a)
//! for every feasible a.
//! Round: the linear program with the planes found so far gives β (eq. 12 there), the SVM at β a new plane (eq. 13).
//! Stop: relative duality gap. The linear program's value is a lower bound, which the mixture of coefficients that its dual
//! names proves; the paper's rule compares the same two numbers.
//! Cost: per round one SVM, and a linear program of M + 1 unknowns and one row per round, continued from the last one.

use super::mix;
use crate::problem::relative_gap;
use crate::solve::exact::svm::{Plane, Svm};
use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem, Solution, Variable};

/// Coefficients of a plane below this share of the largest count as none: a linear program cannot tell them apart.
const LEAST_COEFFICIENT: f64 = 1e-6;

/// Searches from `weights` on the simplex.
pub(super) fn search(svm: &mut Svm<'_>, mut weights: Vec<f64>) {
    let mut program: Option<Program> = None;
    let mut planes = Vec::new();
    while let Some(plane) = svm.at(&weights) {
        let program = program.get_or_insert_with(|| Program::new(weights.len(), &plane));
        let next = program.with_plane(&plane);
        planes.push(plane);
        let Some((next, bound)) = next else {
            return; // the linear program is beyond what floating point can do
        };
        let moved = next.iter().zip(&weights).any(|(a, b)| (a - b).abs() > 1e-9);
        // The program's own bound may be proven by the mixture of coefficients that belongs to it.
        if relative_gap(svm.bound(), bound) <= svm.tolerance() || !moved {
            let mixture = program.mixture();
            let proven = mixture.is_some_and(|mu| svm.offer(mix(&planes, &mu)));
            if proven || (!moved && !svm.sharpen()) {
                return;
            }
        }
        weights = next;
    }
}

/// The linear program: min t over β on the simplex and the planes.
struct Program {
    weights: Vec<Variable>,
    bound: Variable,
    /// Planes are divided by this, so that numbers are near 1.
    size: f64,
    planes: Vec<LinearExpr>,
    sides: Vec<f64>,
    /// ½q_m of every plane, in the same scale.
    halves: Vec<Vec<f64>>,
    solved: Option<Solution>,
}

impl Program {
    fn new(kernels: usize, first: &Plane) -> Self {
        // Variables of one problem have the same numbers in every problem that adds them in the same order.
        let (_, weights, bound) = Self::empty(kernels);
        Program {
            weights,
            bound,
            size: first.linear.abs().max(f64::MIN_POSITIVE),
            planes: Vec::new(),
            sides: Vec::new(),
            halves: Vec::new(),
            solved: None,
        }
    }

    fn empty(kernels: usize) -> (Problem, Vec<Variable>, Variable) {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let weights: Vec<Variable> = (0..kernels)
            .map(|_| problem.add_var(0.0, (0.0, 1.0)))
            .collect();
        let bound = problem.add_var(1.0, (f64::NEG_INFINITY, f64::INFINITY));
        let all = weights.iter().map(|&w| (w, 1.0));
        problem.add_constraint(all, ComparisonOp::Eq, 1.0);
        (problem, weights, bound)
    }

    /// The weights of the program with one more plane, and its value.
    fn with_plane(&mut self, at: &Plane) -> Option<(Vec<f64>, f64)> {
        let coefficient = |q: f64| 0.5 * q / self.size;
        let largest = at
            .forms()
            .iter()
            .fold(1.0f64, |a, &q| a.max(coefficient(q)));
        let mut plane = LinearExpr::empty();
        plane.add(self.bound, 1.0);
        for (&w, &q) in self.weights.iter().zip(at.forms()) {
            let value = coefficient(q);
            if value > LEAST_COEFFICIENT * largest {
                plane.add(w, value);
            }
        }
        self.planes.push(plane.clone());
        self.halves
            .push(at.forms().iter().map(|&q| coefficient(q)).collect());
        self.sides.push(at.linear / self.size);
        let continued = self.solved.take().and_then(|solution| {
            let side = self.sides.last().copied().unwrap_or(0.0);
            let outcome = solution
                .add_constraint(plane, ComparisonOp::Ge, side)
                .ok()?;
            outcome.into_solution().ok()
        });
        let solution = continued.or_else(|| self.solved_anew())?;
        let mut weights: Vec<f64> = self
            .weights
            .iter()
            .map(|&w| solution.var_value(w).max(0.0))
            .collect();
        let value = solution.objective() * self.size;
        self.solved = Some(solution);
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        let finite = weights.iter().all(|w| w.is_finite());
        finite.then_some((weights, value))
    }

    /// The dual: max over μ on the simplex of planes of Σ_i μ_i d_i − max_m Σ_i μ_i ½q_im.
    fn mixture(&self) -> Option<Vec<f64>> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let mu: Vec<Variable> = self
            .sides
            .iter()
            .map(|&side| problem.add_var(side, (0.0, 1.0)))
            .collect();
        let top = problem.add_var(-1.0, (0.0, f64::INFINITY));
        problem.add_constraint(mu.iter().map(|&v| (v, 1.0)), ComparisonOp::Eq, 1.0);
        for m in 0..self.weights.len() {
            let mut claim = LinearExpr::empty();
            claim.add(top, 1.0);
            for (&v, halves) in mu.iter().zip(&self.halves) {
                claim.add(v, -halves[m]);
            }
            problem.add_constraint(claim, ComparisonOp::Ge, 0.0);
        }
        let solution = problem.solve().ok()?.into_solution().ok()?;
        let mut values: Vec<f64> = mu.iter().map(|&v| solution.var_value(v).max(0.0)).collect();
        let total: f64 = values.iter().sum();
        values.iter_mut().for_each(|v| *v /= total);
        values.iter().all(|v| v.is_finite()).then_some(values)
    }

    fn solved_anew(&self) -> Option<Solution> {
        let (mut problem, ..) = Self::empty(self.weights.len());
        for (plane, &side) in self.planes.iter().zip(&self.sides) {
            problem.add_constraint(plane.clone(), ComparisonOp::Ge, side);
        }
        problem.solve().ok()?.into_solution().ok()
    }
}
