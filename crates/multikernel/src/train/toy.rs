//! A toy: an SVM for fixed weights and a weight step, in turns. Only tests know it; the guide shows it as the way to add a
//! solver.

use super::solvers::{SolverInfo, Way};
use crate::gram::{Coefficients, Gram};
use crate::norm::Norm;
use crate::observe::Observer;
use crate::problem::{Limits, Problem, Solution, Start, Status, certify};
use crate::solve::exact;

pub(super) const TURNS: SolverInfo = SolverInfo {
    name: "turns",
    problem: "½Ω² + CΣℓ for every norm and loss",
    way: Way::OneScore(solve),
    ..SolverInfo::USUAL
};

fn solve(
    gram: &Gram,
    norm: &Norm,
    problem: &Problem<'_>,
    limits: &Limits,
    _start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let inner = Limits {
        tolerance: 0.1 * limits.tolerance,
        ..*limits
    };
    let mut weights = norm.initial_weights(gram.n_kernels());
    let mut rounds = 0;
    loop {
        let fixed = Norm::fixed(weights.clone()).expect("weight steps give finite weights");
        let svm = exact::solve(gram, &fixed, problem, &inner, None, observer);
        let certificate = certify(gram, norm, problem, &svm.coefficients, &weights);
        rounds += 1;
        let status = match certificate.relative_gap() <= limits.tolerance {
            true => Status::Converged,
            false => Status::MaxIterations,
        };
        if status == Status::Converged || rounds == limits.max_rounds {
            return Solution {
                certificate,
                weights,
                witness: None,
                status,
                forms: None,
                ..svm
            };
        }
        let forms = gram.quadratic_forms(Coefficients::single(&svm.coefficients));
        let s: Vec<f64> = forms.iter().map(|q| q.sqrt()).collect();
        norm.weights(&s, &mut weights);
    }
}
