//! The oracle itself: its primal and dual agree, closed forms and special cases come out, and the library's own norms and
//! losses give its dual value.

mod common;

use common::conic::{Omega, Problem};
use common::problems::{EXPONENTS, LOSSES, Random, kernels, problem};
use multikernel::loss::{LossSpec, multiclass};
use multikernel::norm::Norm;

#[track_caller]
fn assert_close(x: f64, y: f64, what: &str) {
    assert!(
        (x - y).abs() <= 1e-7 * x.abs().max(y.abs()),
        "{what}: {x} and {y}"
    );
}

#[test]
fn primal_and_dual_agree_and_the_library_gives_the_same_dual() {
    let mut random = Random(1);
    for _ in 0..20 {
        for loss in LOSSES {
            let problem = problem(&mut random, loss);
            let optimum = problem.optimum();
            let what = format!("{loss} {:?}: primal and dual program", problem.omega);
            assert_close(problem.dual_program(optimum.value()), optimum.upper, &what);
            let (dual, rounding) = library_dual(&problem, &optimum.coefficients);
            let difference = (dual - optimum.lower).abs();
            assert!(
                difference <= 1e-9 * optimum.upper + rounding,
                "{loss} {:?}: {dual} and {}, rounding {rounding}",
                problem.omega,
                optimum.lower
            );
        }
    }
}

/// D(a) by the library's norm and loss, and how much of it may be rounding: a form aᵀKa that cancels to nearly 0 leaves the
/// root of the rounding of its terms in s, which counts in full for large r.
fn library_dual(problem: &Problem, a: &[f64]) -> (f64, f64) {
    let n = problem.targets.len();
    let outputs = a.len() / n;
    let norm = match &problem.omega {
        Omega::Block(r) => Norm::block(*r),
        Omega::Mixed(groups) => Norm::mixed(groups),
        Omega::Elastic(mu) => Norm::elastic(*mu),
    };
    let terms: f64 = (0..n)
        .map(|i| match problem.loss {
            LossSpec::Scalar(loss) => loss.dual_term(a[i], problem.costs[i], problem.targets[i]),
            LossSpec::MulticlassHinge => multiclass::dual_term(
                &a[i * outputs..][..outputs],
                problem.targets[i] as usize,
                problem.costs[i],
            ),
        })
        .sum();
    let form = |kernel: &[f64], a: &[f64]| -> f64 {
        let entries = (0..n * n).map(|at| (at / n, at % n, kernel[at]));
        entries
            .map(|(i, j, k)| {
                let products = (0..outputs).map(|o| a[i * outputs + o] * a[j * outputs + o]);
                k * products.sum::<f64>()
            })
            .sum()
    };
    let sizes: Vec<f64> = a.iter().map(|a| a.abs()).collect();
    let mut rounding = 0.0;
    let mut s = Vec::new();
    for kernel in &problem.kernels {
        let kernel_sizes: Vec<f64> = kernel.iter().map(|k| k.abs()).collect();
        s.push(form(kernel, a).max(0.0).sqrt());
        rounding += (f64::EPSILON * form(&kernel_sizes, &sizes)).sqrt();
    }
    let dual_norm = norm.unwrap().dual(&s);
    (terms - 0.5 * dual_norm * dual_norm, dual_norm * rounding)
}

#[test]
fn one_sample_has_a_closed_form() {
    // M copies of the kernel k act like the one kernel κ = k M^(2−2/r)
    for r in EXPONENTS {
        let m = 3;
        for (c, k) in [(0.3, 1.0), (2.0, 0.5), (50.0, 2.0)] {
            let kappa = k * f64::from(m).powf(2.0 - 2.0 / r);
            let square = |target: f64| 0.5 * c * target * target / (1.0 + c * kappa);
            let line = |target: f64| {
                if c * kappa >= target {
                    0.5 * target * target / kappa
                } else {
                    c * target - 0.5 * c * c * kappa
                }
            };
            for (loss, target, expected) in [
                ("hinge", -1.0, line(1.0)),
                ("one-class", 0.0, line(1.0)),
                ("epsilon:0.5", -3.0, line(2.5)),
                ("squared", 3.0, square(3.0)),
                ("huber:100", 3.0, square(3.0)),
                ("squared-hinge", 1.0, c / (1.0 + 2.0 * c * kappa)),
            ] {
                let problem = Problem {
                    kernels: vec![vec![k]; m as usize],
                    targets: vec![target],
                    loss: loss.parse().unwrap(),
                    costs: vec![c],
                    bias: false,
                    omega: Omega::Block(r),
                };
                assert_close(
                    problem.optimum().value(),
                    expected,
                    &format!("{loss} r {r} c {c} k {k}"),
                );
            }
        }
    }
}

#[test]
fn special_cases_of_one_problem_are_another() {
    let mut random = Random(5);
    for loss in LOSSES {
        let base = Problem {
            omega: Omega::Block(2.0),
            ..problem(&mut random, loss)
        };
        let count = base.kernels.len();
        let value = |omega: Omega| {
            Problem {
                omega,
                ..base.clone()
            }
            .optimum()
            .value()
        };
        let sum = (0..base.kernels[0].len())
            .map(|at| base.kernels.iter().map(|kernel| kernel[at]).sum())
            .collect();
        let sum_kernel = Problem {
            kernels: vec![sum],
            omega: Omega::Block(1.25),
            ..base.clone()
        };
        assert_close(
            value(Omega::Block(2.0)),
            sum_kernel.optimum().value(),
            &format!("{loss}: r = 2 is the sum kernel"),
        );
        assert_close(
            value(Omega::Mixed(vec![0; count])),
            value(Omega::Block(1.0)),
            &format!("{loss}: one group is r = 1"),
        );
        let alone = Omega::Mixed((0..count).collect());
        assert_close(
            value(alone),
            value(Omega::Block(f64::INFINITY)),
            &format!("{loss}: groups of one are r = ∞"),
        );
        assert_close(
            value(Omega::Elastic(0.0)),
            value(Omega::Block(1.0)),
            &format!("{loss}: μ = 0 is r = 1"),
        );
        assert_close(
            value(Omega::Elastic(1.0)),
            value(Omega::Block(2.0)),
            &format!("{loss}: μ = 1 is r = 2"),
        );
        let scaled = Problem {
            kernels: base
                .kernels
                .iter()
                .map(|kernel| kernel.iter().map(|k| 8.0 * k).collect())
                .collect(),
            costs: base.costs.iter().map(|c| c / 8.0).collect(),
            ..base.clone()
        };
        assert_close(
            scaled.optimum().value(),
            value(Omega::Block(2.0)) / 8.0,
            &format!("{loss}: kernels times 8, C by 8"),
        );
    }
}

#[test]
fn two_classes_jointly_are_half_the_binary_problem() {
    let mut random = Random(9);
    for r in EXPONENTS {
        let n = 20;
        let multiclass = Problem {
            kernels: kernels(&mut random, n, 3),
            targets: (0..n).map(|i| (i % 2) as f64).collect(),
            loss: LossSpec::MulticlassHinge,
            costs: vec![0.7; n],
            bias: false,
            omega: Omega::Block(r),
        };
        let binary = Problem {
            targets: multiclass
                .targets
                .iter()
                .map(|class| 1.0 - 2.0 * class)
                .collect(),
            loss: "hinge".parse().unwrap(),
            costs: vec![1.4; n],
            ..multiclass.clone()
        };
        assert_close(
            multiclass.optimum().value(),
            0.5 * binary.optimum().value(),
            &format!("r = {r}"),
        );
    }
}
