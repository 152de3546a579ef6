//! Methods that search among the weights: against the conic oracle, against the exact solver, and against each other.

mod common;

use common::conic::{Omega, Optimum, Problem};
use common::given::{gram_as, limits, norm, scalar};
use common::problems::{LOSSES, Random, kernels, problem};
use multikernel::gram::Indefinite;
use multikernel::loss::LossSpec;
use multikernel::problem::{Limits, MulticlassProblem, Objective, Solution, Status};
use multikernel::solve::search::{self, Method};
use std::time::Instant;

const SPARSE: [Method; 4] = [
    Method::Mirror,
    Method::Silp,
    Method::Simple,
    Method::Hessian,
];

fn solve(method: Method, problem: &Problem, limits: &Limits) -> Solution {
    let gram = gram_as(&problem.kernels, Indefinite::Allow);
    let norm = norm(&problem.omega);
    let classes: Vec<u32> = problem.targets.iter().map(|y| *y as u32).collect();
    let objective = match problem.loss {
        LossSpec::Scalar(_) => Objective::Scalar(scalar(problem)),
        LossSpec::MulticlassHinge => Objective::Multiclass(MulticlassProblem {
            classes: &classes,
            n_classes: 3,
            costs: &problem.costs,
        }),
    };
    search::solve(method, &gram, &norm, &objective, limits, &())
}

/// The answer, whose bounds must enclose the optimum whether it converged or not.
#[track_caller]
fn bounded(method: Method, problem: &Problem, optimum: &Optimum, limits: &Limits) -> Solution {
    let solution = solve(method, problem, limits);
    let found = solution.certificate;
    let slack = 1e-7 * optimum.upper.abs();
    assert!(
        found.primal >= optimum.lower - slack && found.dual <= optimum.upper + slack,
        "{method:?} {} {:?}: {found:?} and [{}, {}]",
        problem.loss,
        problem.omega,
        optimum.lower,
        optimum.upper
    );
    assert!(solution.history.len() <= limits.max_rounds);
    solution
}

/// How far the objective is from the optimum.
fn excess(solution: &Solution, optimum: &Optimum) -> f64 {
    (solution.certificate.primal - optimum.lower) / optimum.upper.abs()
}

const PATIENT: Limits = Limits {
    tolerance: 5e-5,
    max_rounds: 5000,
    deadline: None,
    memory: u64::MAX,
    confirm: true,
};

#[test]
fn sparse_methods_agree_on_random_problems() {
    let mut random = Random(3);
    for _ in 0..13 {
        for loss in LOSSES {
            let mut problem = problem(&mut random, loss);
            problem.omega = Omega::Block(1.0);
            let optimum = problem.optimum();
            for method in SPARSE {
                let solution = bounded(method, &problem, &optimum, &PATIENT);
                assert!(
                    excess(&solution, &optimum) <= 1e-4,
                    "{method:?} {loss}, C {}: {:.1e} after {} rounds",
                    problem.costs[2],
                    excess(&solution, &optimum),
                    solution.history.len()
                );
            }
        }
    }
}

#[test]
fn methods_for_p_above_1_agree_on_random_problems() {
    let mut random = Random(4);
    for _ in 0..5 {
        for loss in LOSSES {
            let mut problem = problem(&mut random, loss);
            for p in [4.0 / 3.0, 2.0, 4.0] {
                problem.omega = Omega::Block(2.0 * p / (p + 1.0));
                let optimum = problem.optimum();
                for method in [Method::Sip, Method::Newton] {
                    let solution = bounded(method, &problem, &optimum, &PATIENT);
                    assert_eq!(
                        solution.status,
                        Status::Converged,
                        "{method:?} {loss} p = {p}: {:?} after {} rounds",
                        solution.certificate,
                        solution.history.len()
                    );
                }
            }
        }
    }
}

#[test]
fn mirror_descent_solves_problems_of_groups() {
    let mut random = Random(5);
    let (mut tried, mut near) = (0, 0);
    for _ in 0..5 {
        for loss in LOSSES {
            let mut problem = problem(&mut random, loss);
            let m = problem.kernels.len();
            problem.omega = Omega::Mixed((0..m).map(|k| k % 2).collect());
            let optimum = problem.optimum();
            let solution = bounded(Method::Mirror, &problem, &optimum, &limits(1e-4));
            // A group that is of no use at the optimum wants an infinite weight, towards which the alternation creeps.
            assert!(excess(&solution, &optimum) <= 2e-2, "{loss}");
            tried += 1;
            near += usize::from(solution.status == Status::Converged);
        }
    }
    assert!(4 * near >= 3 * tried, "{near} of {tried} converged");
}

#[test]
fn one_group_is_r_1_and_groups_of_one_are_r_infinite() {
    let mut random = Random(6);
    for loss in ["hinge", "squared", "multiclass-hinge"] {
        let mut problem = problem(&mut random, loss);
        problem.kernels = kernels(&mut Random(8), problem.targets.len(), 4);
        let limits = limits(1e-4);
        let close = |a: f64, b: f64| (a - b).abs() <= 2e-4 * a.abs();
        problem.omega = Omega::Mixed(vec![7; 4]);
        let grouped = solve(Method::Mirror, &problem, &limits).certificate.primal;
        problem.omega = Omega::Block(1.0);
        let sparse = solve(Method::Hessian, &problem, &limits).certificate.primal;
        assert!(close(grouped, sparse), "{loss}: {grouped} and {sparse}");
        problem.omega = Omega::Block(f64::INFINITY);
        let infinite = problem.optimum().value();
        problem.omega = Omega::Mixed((0..4).collect());
        let grouped = solve(Method::Mirror, &problem, &limits);
        let dual = grouped.certificate.dual;
        assert!(close(dual, infinite), "{loss}: {dual} and {infinite}");
    }
}

#[test]
fn kernels_that_say_nothing_are_no_obstacle() {
    let n = 12;
    let targets: Vec<f64> = (0..n)
        .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    let mut problem = Problem {
        kernels: vec![vec![0.0; n * n]; 3],
        targets,
        loss: "hinge".parse().unwrap(),
        costs: vec![1.0; n],
        bias: true,
        omega: Omega::Block(1.0),
    };
    for method in SPARSE {
        let solution = solve(method, &problem, &limits(1e-4));
        assert_eq!(solution.status, Status::Converged, "{method:?}");
        assert!((solution.certificate.primal - n as f64).abs() < 1e-9);
    }
    problem.omega = Omega::Block(4.0 / 3.0);
    for method in [Method::Sip, Method::Newton] {
        let solution = solve(method, &problem, &limits(1e-4));
        assert_eq!(solution.status, Status::Converged, "{method:?}");
    }
    problem.omega = Omega::Mixed(vec![0, 0, 1]);
    let solution = solve(Method::Mirror, &problem, &limits(1e-4));
    assert_eq!(solution.status, Status::Converged);
}

#[test]
fn a_search_stops_when_told() {
    let mut random = Random(9);
    let mut problem = problem(&mut random, "hinge");
    problem.omega = Omega::Block(1.0);
    problem.kernels = kernels(&mut random, problem.targets.len(), 5);
    let over = Limits {
        deadline: Some(Instant::now()),
        ..limits(1e-12)
    };
    for method in SPARSE {
        let solution = solve(method, &problem, &over);
        assert!(solution.history.len() <= 2, "{method:?}");
        assert!(solution.certificate.primal.is_finite());
    }
}
