//! The exact solver against the conic oracle, for every loss and norm.

mod common;

use std::fmt::Write;

use common::conic::{Omega, Problem};
use common::given::{exact, exact_from, gram, limits, norm, scalar};
use common::problems::{EXPONENTS, LOSSES, Random, problem};
use multikernel::problem::{Certificate, Limits, Start, Status, certify};

/// The hardest of these problems takes four million; a hang would take more.
const MOST_STEPS: u64 = 20_000_000;

/// What is wrong with the answer, if anything.
fn complaint(problem: &Problem) -> Option<String> {
    let optimum = problem.optimum();
    let solution = exact(problem, &limits(1e-6));
    let found = solution.certificate;
    let slack = 1e-5 * optimum.upper.abs();
    let fine = solution.status == Status::Converged
        && (found.primal - optimum.upper).abs() <= slack
        && (found.dual - optimum.lower).abs() <= slack;
    (!fine || solution.steps > MOST_STEPS).then(|| {
        format!(
            "{} {:?} C {} n {} bias {}: {:?} after {} rounds, {} steps; \
             primal {:.9} dual {:.9} gap {:.1e} where [{:.9}, {:.9}] is right; weights {:.2?}",
            problem.loss,
            problem.omega,
            problem.costs.iter().fold(0.0f64, |a, b| a.max(*b)),
            problem.targets.len(),
            problem.bias,
            solution.status,
            solution.history.len(),
            solution.steps,
            found.primal,
            found.dual,
            found.relative_gap(),
            optimum.lower,
            optimum.upper,
            solution.weights,
        )
    })
}

/// All complaints at once, so that a family of failures is seen as one.
#[track_caller]
fn assert_all_fine(problems: impl Iterator<Item = Problem>) {
    let mut report = String::new();
    let (mut bad, mut all) = (0, 0);
    for problem in problems {
        all += 1;
        if let Some(complaint) = complaint(&problem) {
            bad += 1;
            writeln!(report, "{complaint}").unwrap();
        }
    }
    assert!(bad == 0, "{bad} of {all}:\n{report}");
}

/// Problems of all scalar losses with this norm.
fn with_norm(seed: u64, rounds: usize, omega: impl Fn(usize) -> Omega) -> Vec<Problem> {
    let mut random = Random(seed);
    let losses = LOSSES.iter().filter(|l| **l != "multiclass-hinge");
    let mut problems = Vec::new();
    for loss in losses {
        for _ in 0..rounds {
            let drawn = problem(&mut random, loss);
            let omega = omega(drawn.kernels.len());
            problems.push(Problem { omega, ..drawn });
        }
    }
    problems
}

fn check_block(r: f64) {
    let at = EXPONENTS.iter().position(|e| *e == r).unwrap() as u64;
    assert_all_fine(with_norm(100 + at, 5, |_| Omega::Block(r)).into_iter());
}

#[test]
fn block_norm_1() {
    check_block(1.0);
}

#[test]
fn block_norm_1_05() {
    check_block(1.05);
}

#[test]
fn block_norm_1_25() {
    check_block(1.25);
}

#[test]
fn block_norm_4_3() {
    check_block(4.0 / 3.0);
}

#[test]
fn block_norm_1_6() {
    check_block(1.6);
}

#[test]
fn block_norm_2() {
    check_block(2.0);
}

#[test]
fn block_norm_3() {
    check_block(3.0);
}

#[test]
fn block_norm_infinity() {
    check_block(f64::INFINITY);
}

#[test]
fn elastic_net() {
    assert_all_fine(with_norm(7, 3, |_| Omega::Elastic(0.3)).into_iter());
}

#[test]
fn mixed_norm() {
    assert_all_fine(with_norm(8, 3, |m| Omega::Mixed((0..m).map(|k| k % 2).collect())).into_iter());
}

#[test]
fn a_gap_that_nobody_confirmed_is_the_gap_of_the_kernels() {
    let mut random = Random(21);
    for loss in LOSSES {
        for memory in [0, u64::MAX] {
            let problem = problem(&mut random, loss);
            if problem.loss.scalar().is_none() {
                continue;
            }
            let unconfirmed = Limits {
                memory,
                confirm: false,
                ..limits(1e-3)
            };
            let cold = exact(&problem, &unconfirmed);
            let start = Start {
                coefficients: cold.coefficients.clone(),
                weights: cold.weights.clone(),
            };
            let warm = exact_from(&problem, &unconfirmed, Some(start), &());
            for solution in [cold, warm] {
                let (a, weights) = (&solution.coefficients, &solution.weights);
                let (gram, norm) = (gram(&problem.kernels), norm(&problem.omega));
                let of = |a: &[f64]| certify(&gram, &norm, &scalar(&problem), a, weights);
                let dual = of(solution.witness.as_ref().unwrap_or(a)).dual;
                let truth = Certificate { dual, ..of(a) };
                let forms = solution.forms.unwrap();
                let again = gram.quadratic_forms(multikernel::gram::Coefficients::single(a));
                assert_eq!(solution.status, Status::Converged, "{loss}");
                assert!(truth.relative_gap() <= 1.01e-3, "{loss}: {truth:?}");
                for (got, want) in forms.iter().zip(again) {
                    assert!(
                        (got - want).abs() <= 1e-6 * want.max(1e-6),
                        "{loss}: {got} {want}"
                    );
                }
            }
        }
    }
}
