//! The papers' own algorithms, the Tikhonov form and the non-isotropic norm: against the exact solver and the oracle.

mod common;

use common::conic::{Omega, Problem};
use common::given::{exact, gram, limits, norm, scalar};
use common::problems::{LOSSES, Random, kernels, problem};
use multikernel::norm::Norm;
use multikernel::problem::{Limits, Start, Status};
use multikernel::solve::exact::{self, interleaved, tikhonov, wrapper};
use std::time::{Duration, Instant};

#[track_caller]
fn assert_close(x: f64, y: f64, tolerance: f64, what: &str) {
    assert!(
        (x - y).abs() <= tolerance * x.abs().max(y.abs()),
        "{what}: {x} and {y}"
    );
}

fn scalar_losses() -> impl Iterator<Item = &'static str> {
    LOSSES
        .into_iter()
        .filter(|loss| *loss != "multiclass-hinge")
}

fn block(random: &mut Random, loss: &str, r: f64) -> Problem {
    Problem {
        omega: Omega::Block(r),
        ..problem(random, loss)
    }
}

#[test]
fn the_published_algorithms_agree_with_the_exact_solver() {
    // 15: a kernel without output in the first round, by chance; 22 and 42: logistic coefficients at C = 1e4 exactly.
    for seed in [11, 15, 22, 42] {
        let mut random = Random(seed);
        for loss in scalar_losses() {
            for r in [1.05, 1.25, 4.0 / 3.0, 1.6, 2.0] {
                let problem = block(&mut random, loss, r);
                let what = format!("seed {seed} {loss} r {r} bias {}", problem.bias);
                let limits = limits(5e-7);
                let (gram, norm, scalar) = (
                    gram(&problem.kernels),
                    norm(&problem.omega),
                    scalar(&problem),
                );
                let exact = exact::solve(&gram, &norm, &scalar, &limits, None, &());
                for (name, other) in [
                    (
                        "wrapper",
                        wrapper::solve(&gram, &norm, &scalar, &limits, None, &()),
                    ),
                    (
                        "interleaved",
                        interleaved::solve(&gram, &norm, &scalar, &limits, None, &()),
                    ),
                ] {
                    let what = format!("{name} {what}");
                    assert_eq!(other.status, Status::Converged, "{what}");
                    let (x, y) = (exact.certificate, other.certificate);
                    assert!(y.relative_gap() <= 5e-7, "{what}: {y:?}");
                    assert_close(x.primal, y.primal, 1e-6, &what);
                    assert_close(x.dual, y.dual, 1e-6, &what);
                }
            }
        }
    }
}

#[test]
fn chunks_smaller_than_the_problem_reach_the_same_optimum() {
    let mut random = Random(12);
    let n = 150;
    for bias in [false, true] {
        let problem = Problem {
            kernels: kernels(&mut random, n, 4),
            targets: (0..n)
                .map(|i| if i % 3 == 0 { 1.0 } else { -1.0 })
                .collect(),
            loss: "hinge".parse().unwrap(),
            costs: vec![1.0; n],
            bias,
            omega: Omega::Block(4.0 / 3.0),
        };
        let (gram, norm, scalar) = (
            gram(&problem.kernels),
            norm(&problem.omega),
            scalar(&problem),
        );
        let limits = limits(1e-6);
        let exact = exact::solve(&gram, &norm, &scalar, &limits, None, &());
        let other = interleaved::solve(&gram, &norm, &scalar, &limits, None, &());
        assert_eq!(other.status, Status::Converged);
        assert_close(
            exact.certificate.primal,
            other.certificate.primal,
            2e-6,
            "n = 150",
        );
    }
}

#[test]
fn at_p_1_they_say_how_far_they_came() {
    let mut random = Random(13);
    for loss in ["hinge", "squared"] {
        let problem = block(&mut random, loss, 1.0);
        let optimum = problem.optimum();
        let (gram, norm, scalar) = (
            gram(&problem.kernels),
            norm(&problem.omega),
            scalar(&problem),
        );
        let limits = Limits {
            max_rounds: 30,
            ..limits(1e-6)
        };
        for solve in [wrapper::solve, interleaved::solve] {
            let solution = solve(&gram, &norm, &scalar, &limits, None, &());
            let found = solution.certificate;
            let slack = 1e-7 * optimum.upper;
            assert!(found.primal >= optimum.lower - slack && found.dual <= optimum.upper + slack);
            let converged = solution.status == Status::Converged;
            assert_eq!(converged, found.relative_gap() <= limits.tolerance);
        }
    }
}

/// The least value of a unimodal function of ln x.
fn golden(mut low: f64, mut high: f64, at: impl Fn(f64) -> f64) -> (f64, f64) {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut x, mut y) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fx, mut fy) = (at(x), at(y));
    while high - low > 1e-4 {
        if fx < fy {
            (high, y, fy) = (y, x, fx);
            x = high - ratio * (high - low);
            fx = at(x);
        } else {
            (low, x, fx) = (x, y, fy);
            y = low + ratio * (high - low);
            fy = at(y);
        }
    }
    if fx < fy { (x, fx) } else { (y, fy) }
}

#[test]
fn the_tikhonov_form_is_solved_in_the_users_scale() {
    let mut random = Random(14);
    for (loss, r) in [
        ("hinge", 4.0 / 3.0),
        ("epsilon:0.1", 1.25),
        ("squared", 1.6),
        ("hinge", 1.0),
    ] {
        for mu in [1e-3, 0.5, 40.0] {
            // With C = 1e-3 the best τ is near 1e-7, and μτ² too small for the oracle to tell where.
            let drawn = block(&mut random, loss, r);
            let largest = drawn.costs.iter().fold(0.0f64, |a, b| a.max(*b));
            let problem = Problem {
                costs: drawn.costs.iter().map(|c| c / largest).collect(),
                ..drawn
            };
            let (gram, norm, scalar) = (
                gram(&problem.kernels),
                norm(&problem.omega),
                scalar(&problem),
            );
            let found =
                tikhonov::solve(&gram, &norm, &scalar, mu, &limits(1e-6), None, &()).unwrap();
            let what = format!("{loss} r {r} μ {mu}");
            let solution = &found.solution;
            assert_eq!(solution.status, Status::Converged, "{what}");
            assert!(solution.certificate.relative_gap() <= 1e-6, "{what}");
            // For fixed τ = ‖θ‖ the problem is the usual one with C = τC̃, divided by τ; the oracle searches τ blindly.
            let value = |x: f64| {
                let tau = x.exp();
                let usual = Problem {
                    costs: problem.costs.iter().map(|c| c * tau).collect(),
                    ..problem.clone()
                };
                usual.optimum().value() / tau + mu * tau * tau
            };
            let x = found.scale.ln();
            let (best, least) = golden(x - 1.5, x + 1.5, value);
            assert_close(solution.certificate.primal, least, 2e-6, &what);
            assert!((best - x).abs() < 0.05, "{what}: ln τ {best} and {x}");
            // eq. (3) itself, from the returned coefficients and weights
            let a = &solution.coefficients;
            let n = a.len();
            let form = |m: usize| -> f64 {
                let k = &problem.kernels[m];
                (0..n * n).map(|at| k[at] * a[at / n] * a[at % n]).sum()
            };
            let regulariser: f64 = (0..problem.kernels.len())
                .map(|m| 0.5 * solution.weights[m] * form(m))
                .sum();
            let p = r / (2.0 - r);
            let size = solution
                .weights
                .iter()
                .map(|w| w.powf(p))
                .sum::<f64>()
                .powf(1.0 / p);
            let risk: f64 = (0..n)
                .map(|i| {
                    let f: f64 = (0..problem.kernels.len())
                        .map(|m| {
                            let row = &problem.kernels[m][i * n..(i + 1) * n];
                            solution.weights[m] * row.iter().zip(a).map(|(k, a)| k * a).sum::<f64>()
                        })
                        .sum();
                    let t = f + solution.certificate.bias;
                    problem.costs[i] * scalar.loss.value(t, problem.targets[i])
                })
                .sum();
            let written_out = risk + regulariser + mu * size * size;
            assert_close(written_out, solution.certificate.primal, 1e-3, &what);
            let start = Start {
                coefficients: a.clone(),
                weights: solution.weights.clone(),
            };
            let again = tikhonov::solve(&gram, &norm, &scalar, mu, &limits(1e-5), Some(start), &())
                .unwrap();
            assert_eq!(again.solution.steps, 0, "{what}: a start at the optimum");
        }
    }
}

/// A start is scaled with τ, and a coefficient at its bound may then be a rounding outside, where no gap ever closes: each
/// solve of the usual problem went on until its rounds were used up.
#[test]
fn the_tikhonov_form_ends_from_any_start() {
    for seed in [32, 34, 39] {
        let mut random = Random(seed);
        for loss in ["hinge", "epsilon:0.1", "one-class"] {
            for r in [1.0, 1.25, 2.0] {
                let drawn = block(&mut random, loss, r);
                let largest = drawn.costs.iter().fold(0.0f64, |a, b| a.max(*b));
                let problem = Problem {
                    costs: drawn.costs.iter().map(|c| c / largest).collect(),
                    ..drawn
                };
                let (gram, norm, scalar) = (
                    gram(&problem.kernels),
                    norm(&problem.omega),
                    scalar(&problem),
                );
                let limits = || Limits {
                    max_rounds: 100_000,
                    deadline: Some(Instant::now() + Duration::from_secs(60)),
                    ..limits(1e-4)
                };
                let cold = tikhonov::solve(&gram, &norm, &scalar, 0.5, &limits(), None, &());
                let cold = cold.unwrap().solution;
                let all_at_the_bound = vec![1e3; cold.coefficients.len()];
                for (name, mu, scale, coefficients) in [
                    ("a larger price", 5.0, 1.0, &cold.coefficients),
                    ("a smaller price", 5e-3, 1.0, &cold.coefficients),
                    ("weights too large", 0.5, 1e3, &cold.coefficients),
                    ("coefficients outside", 0.5, 1.0, &all_at_the_bound),
                ] {
                    let start = Start {
                        coefficients: coefficients.clone(),
                        weights: cold.weights.iter().map(|w| w * scale).collect(),
                    };
                    let from = Some(start);
                    let warm = tikhonov::solve(&gram, &norm, &scalar, mu, &limits(), from, &());
                    let found = warm.unwrap().solution;
                    let what = format!("seed {seed} {loss} r {r} bias {} {name}", problem.bias);
                    assert_eq!(found.status, Status::Converged, "{what}");
                    assert!(
                        found.history.len() < 500,
                        "{what}: {} rounds",
                        found.history.len()
                    );
                }
            }
        }
    }
}

#[test]
fn tikhonov_refuses_what_has_no_meaning() {
    let problem = block(&mut Random(15), "hinge", 3.0);
    let gram = gram(&problem.kernels);
    let scalar = scalar(&problem);
    let try_it = |norm: Norm, mu: f64| {
        tikhonov::solve(&gram, &norm, &scalar, mu, &limits(1e-3), None, &()).is_err()
    };
    assert!(try_it(Norm::block(3.0).unwrap(), 1.0));
    assert!(try_it(Norm::elastic(0.5).unwrap(), 1.0));
    assert!(try_it(Norm::lp(2.0).unwrap(), 0.0));
    assert!(try_it(Norm::lp(2.0).unwrap(), f64::NAN));
    assert!(!try_it(Norm::lp(2.0).unwrap(), 1.0));
}

/// The oracle's value with the one kernel Σ θ_m K_m.
fn with_weights(problem: &Problem, theta: &[f64]) -> f64 {
    let n2 = problem.kernels[0].len();
    let sum = (0..n2).map(|at| {
        problem
            .kernels
            .iter()
            .zip(theta)
            .map(|(k, t)| t * k[at])
            .sum()
    });
    Problem {
        kernels: vec![sum.collect()],
        omega: Omega::Block(2.0),
        ..problem.clone()
    }
    .optimum()
    .value()
}

#[test]
fn the_non_isotropic_norm_finds_the_best_weights_on_its_ellipsoid() {
    let matrices: [&[f64]; 4] = [
        &[1.0, 0.4, 0.4, 2.0],
        &[1.0, -0.6, -0.6, 1.0],
        &[1.0, 0.3, 0.1, 0.3, 1.5, 0.2, 0.1, 0.2, 0.8],
        &[1.0, -0.4, 0.1, -0.4, 1.0, -0.3, 0.1, -0.3, 0.8],
    ];
    let mut random = Random(16);
    for matrix in matrices {
        let m = matrix.len().isqrt();
        for loss in ["hinge", "squared"] {
            let drawn = block(&mut random, loss, 2.0);
            let problem = Problem {
                kernels: kernels(&mut random, drawn.targets.len(), m),
                ..drawn
            };
            let norm = Norm::non_isotropic("E.npy", matrix, m).unwrap();
            let gram = gram(&problem.kernels);
            let solution = exact::solve(&gram, &norm, &scalar(&problem), &limits(1e-6), None, &());
            let what = format!("{loss} {matrix:?}");
            assert_eq!(solution.status, Status::Converged, "{what}");
            let primal = solution.certificate.primal;
            assert_close(
                with_weights(&problem, &solution.weights),
                primal,
                1e-5,
                &format!("{what}: the value of its weights"),
            );
            // No direction of θ, scaled to the ellipsoid θᵀE⁻¹θ = 1, is better, and small moves are not much worse.
            let mut best_near = f64::INFINITY;
            for trial in 0..60 {
                let direction: Vec<f64> = (0..m)
                    .map(|k| {
                        if trial < 30 {
                            random.unit()
                        } else {
                            (solution.weights[k] + 0.02 * random.normal()).max(0.0)
                        }
                    })
                    .collect();
                let length = ellipsoid_length(matrix, &direction);
                let theta: Vec<f64> = direction.iter().map(|t| t / length).collect();
                let value = with_weights(&problem, &theta);
                assert!(
                    value >= primal * (1.0 - 2e-6),
                    "{what}: {theta:?} gives {value}, below {primal}"
                );
                best_near = best_near.min(value);
            }
            assert_close(best_near, primal, 1e-3, &what);
        }
    }
}

/// √(θᵀE⁻¹θ) by Gaussian elimination.
fn ellipsoid_length(matrix: &[f64], theta: &[f64]) -> f64 {
    let n = theta.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row = matrix[i * n..(i + 1) * n].to_vec();
            row.push(theta[i]);
            row
        })
        .collect();
    for i in 0..n {
        let pivot = rows[i].clone();
        for (j, row) in rows.iter_mut().enumerate() {
            if j != i {
                let factor = row[i] / pivot[i];
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    (0..n)
        .map(|i| theta[i] * rows[i][n] / rows[i][i])
        .sum::<f64>()
        .sqrt()
}

#[test]
fn exact_and_oracle_agree_where_the_papers_algorithms_are_compared() {
    // guards the tests above: without it all solvers could be wrong alike
    let mut random = Random(17);
    let problem = block(&mut random, "hinge", 4.0 / 3.0);
    let optimum = problem.optimum();
    let found = exact(&problem, &limits(1e-6)).certificate;
    assert_close(found.primal, optimum.value(), 2e-6, "primal");
    assert_close(found.dual, optimum.value(), 2e-6, "dual");
}
