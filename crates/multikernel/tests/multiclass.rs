//! The exact solver of all classes together: against the conic oracle, against two classes, and in awkward places.

mod common;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::conic::{Omega, Problem, exact_in_f32};
use common::given::{exact, gram_as, limits, norm};
use common::problems::{EXPONENTS, Random, kernels};
use multikernel::gram::Indefinite;
use multikernel::loss::{Loss, LossSpec};
use multikernel::observe::{Observer, Progress};
use multikernel::problem::{
    Limits, MulticlassProblem, Solution, Start, Status, certify_multiclass,
};
use multikernel::solve::exact::multiclass;

fn n_classes(problem: &Problem) -> usize {
    1 + problem.targets.iter().fold(1.0, |a: f64, y| a.max(*y)) as usize
}

fn solve_from(
    problem: &Problem,
    limits: &Limits,
    start: Option<Start>,
    observer: &dyn Observer,
) -> Solution {
    let classes: Vec<u32> = problem.targets.iter().map(|y| *y as u32).collect();
    let joint = MulticlassProblem {
        classes: &classes,
        n_classes: n_classes(problem),
        costs: &problem.costs,
    };
    let gram = gram_as(&problem.kernels, Indefinite::Allow);
    let norm = norm(&problem.omega);
    let solution = multiclass::solve(&gram, &norm, &joint, limits, start, observer);
    let (a, weights) = (&solution.coefficients, &solution.weights);
    let again = certify_multiclass(&gram, &norm, &joint, a, weights);
    let found = solution.certificate;
    let witness = solution.witness.as_ref().unwrap_or(a);
    let bound = certify_multiclass(&gram, &norm, &joint, witness, weights);
    assert_eq!(
        bound.dual, found.dual,
        "the certificate is the kernels' own"
    );
    assert!((again.primal - found.primal).abs() <= 1e-12 * again.primal.abs());
    solution
}

fn solve(problem: &Problem, tolerance: f64) -> Solution {
    solve_from(problem, &limits(tolerance), None, &())
}

#[track_caller]
fn converged(problem: &Problem, tolerance: f64, what: &str) -> Solution {
    let solution = solve(problem, tolerance);
    assert_eq!(
        solution.status,
        Status::Converged,
        "{what} {:?}: {:?} after {} rounds",
        problem.omega,
        solution.certificate,
        solution.history.len()
    );
    solution
}

#[track_caller]
fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
    let size = a.abs().max(b.abs());
    assert!((a - b).abs() <= tolerance * size, "{what}: {a} and {b}");
}

/// Points in `classes` clusters that overlap, and kernels over them.
fn drawn(random: &mut Random, classes: usize, omega: impl Fn(usize) -> Omega) -> Problem {
    let n = 10 + random.below(7);
    let count = 2 + random.below(3);
    let kernels = kernels(random, n, count);
    let c = random.pick(&[1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3]);
    let weighted = random.unit() < 0.4;
    Problem {
        kernels,
        targets: (0..n).map(|i| (i % classes) as f64).collect(),
        loss: LossSpec::MulticlassHinge,
        costs: (0..n)
            .map(|i| match weighted {
                true => c * 0.5 * ((i / 2) % 4) as f64,
                false => c,
            })
            .collect(),
        bias: false,
        omega: omega(count),
    }
}

/// All complaints at once, so that a family of failures is seen as one.
#[track_caller]
fn check(seed: u64, count: usize, omega: impl Fn(usize) -> Omega) {
    let mut random = Random(seed);
    let mut report = String::new();
    for at in 0..count {
        let problem = drawn(&mut random, 3 + at % 3, &omega);
        let optimum = problem.optimum();
        let begin = Instant::now();
        let solution = solve(&problem, 1e-6);
        let seconds = begin.elapsed().as_secs_f64();
        let found = solution.certificate;
        let slack = 1e-5 * optimum.upper.abs();
        let fine = solution.status == Status::Converged
            && (found.primal - optimum.upper).abs() <= slack
            && (found.dual - optimum.lower).abs() <= slack;
        if !fine || seconds > 2.0 {
            report += &format!(
                "{at}: {:?} C {} n {} classes {}: {:?} after {} rounds, {} steps, {seconds:.2} s; primal {:.9} dual {:.9} \
                 gap {:.1e} where [{:.9}, {:.9}] is right; weights {:.2?}\n",
                problem.omega,
                problem.costs.iter().fold(0.0f64, |a, b| a.max(*b)),
                problem.targets.len(),
                n_classes(&problem),
                solution.status,
                solution.history.len(),
                solution.steps,
                found.primal,
                found.dual,
                found.relative_gap(),
                optimum.lower,
                optimum.upper,
                solution.weights,
            );
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

fn check_block(r: f64) {
    let at = EXPONENTS.iter().position(|e| *e == r).unwrap() as u64;
    check(200 + at, 8, |_| Omega::Block(r));
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
    check(300, 6, |_| Omega::Elastic(0.3));
}

#[test]
fn mixed_norm() {
    check(301, 6, |m| Omega::Mixed((0..m).map(|k| k % 2).collect()));
}

/// A problem without oddities.
fn plain(r: f64, classes: usize) -> Problem {
    let n = 24;
    let mut random = Random(11);
    let points: Vec<[f64; 2]> = (0..n)
        .map(|i| {
            let angle = (i % classes) as f64;
            [
                angle.cos() + 0.4 * random.normal(),
                angle.sin() + 0.4 * random.normal(),
            ]
        })
        .collect();
    let kernel = |width: f64| {
        let values: Vec<f64> = (0..n * n)
            .map(|at| {
                let (p, q) = (points[at / n], points[at % n]);
                let distance = (p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2);
                (-distance / width).exp()
            })
            .collect();
        exact_in_f32(&values)
    };
    Problem {
        kernels: vec![kernel(0.1), kernel(1.0), kernel(10.0)],
        targets: (0..n).map(|i| (i % classes) as f64).collect(),
        loss: LossSpec::MulticlassHinge,
        costs: (0..n).map(|i| 1.0 + (i % 5) as f64).collect(),
        bias: false,
        omega: Omega::Block(r),
    }
}

const SOME_EXPONENTS: [f64; 5] = [1.0, 1.25, 4.0 / 3.0, 2.0, 3.0];

#[test]
fn two_classes_are_half_the_binary_problem_at_twice_the_cost() {
    for r in SOME_EXPONENTS {
        let joint = plain(r, 2);
        let binary = Problem {
            targets: joint.targets.iter().map(|y| 2.0 * y - 1.0).collect(),
            costs: joint.costs.iter().map(|c| 2.0 * c).collect(),
            loss: LossSpec::Scalar(Loss::Hinge),
            ..joint.clone()
        };
        let what = format!("r {r}");
        let ours = converged(&joint, 1e-6, &what).certificate;
        let theirs = exact(&binary, &limits(1e-6)).certificate;
        assert_close(ours.primal, 0.5 * theirs.primal, 2e-6, &what);
        assert_close(ours.dual, 0.5 * theirs.dual, 2e-6, &what);
    }
}

#[test]
fn permuted_samples_classes_and_kernels_permute_the_answer() {
    for r in SOME_EXPONENTS {
        let problem = plain(r, 4);
        let n = problem.targets.len();
        let order: Vec<usize> = (0..n).map(|i| (7 * i + 3) % n).collect();
        let renamed = [2.0, 0.0, 3.0, 1.0];
        let shuffled = Problem {
            kernels: problem
                .kernels
                .iter()
                .rev()
                .map(|k| {
                    (0..n * n)
                        .map(|at| k[order[at / n] * n + order[at % n]])
                        .collect()
                })
                .collect(),
            targets: order
                .iter()
                .map(|&i| renamed[problem.targets[i] as usize])
                .collect(),
            costs: order.iter().map(|&i| problem.costs[i]).collect(),
            ..problem.clone()
        };
        let what = format!("r {r}");
        let (ours, other) = (
            converged(&problem, 1e-7, &what),
            converged(&shuffled, 1e-7, &what),
        );
        assert_close(
            ours.certificate.primal,
            other.certificate.primal,
            1e-6,
            &what,
        );
        let top = ours.weights.iter().fold(0.0f64, |a, b| a.max(*b));
        for (a, b) in ours.weights.iter().zip(other.weights.iter().rev()) {
            assert!((a - b).abs() <= 2e-2 * top, "{what}: {a} and {b}");
        }
    }
}

#[test]
fn a_start_at_the_optimum_is_the_end() {
    for r in SOME_EXPONENTS {
        let problem = plain(r, 3);
        let solution = converged(&problem, 1e-6, "");
        let start = Start {
            coefficients: solution.coefficients.clone(),
            weights: solution.weights.clone(),
        };
        let again = solve_from(&problem, &limits(2e-6), Some(start), &());
        assert_eq!(again.status, Status::Converged, "r {r}");
        assert_eq!((again.history.len(), again.steps), (1, 0), "r {r}");
    }
}

#[test]
fn a_start_from_another_c_is_made_feasible() {
    let problem = plain(4.0 / 3.0, 3);
    let solution = converged(&problem, 1e-6, "");
    let start = Start {
        coefficients: solution.coefficients,
        weights: solution.weights,
    };
    let cheaper = Problem {
        costs: problem.costs.iter().map(|c| 0.3 * c).collect(),
        ..problem
    };
    let warm = solve_from(&cheaper, &limits(1e-6), Some(start), &());
    let cold = converged(&cheaper, 1e-6, "");
    assert_eq!(warm.status, Status::Converged);
    assert_close(warm.certificate.primal, cold.certificate.primal, 2e-6, "");
}

#[test]
fn samples_that_cost_nothing_have_no_coefficients() {
    let mut problem = plain(4.0 / 3.0, 3);
    problem.costs[0] = 0.0;
    problem.costs[7] = 0.0;
    let solution = converged(&problem, 1e-6, "");
    for i in [0, 7] {
        let row = &solution.coefficients[3 * i..3 * i + 3];
        assert!(row.iter().all(|a| *a == 0.0), "{row:?}");
    }
}

struct StopAfter(usize, AtomicUsize);

impl Observer for StopAfter {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        if let Progress::Round { .. } = progress
            && self.1.fetch_add(1, Ordering::Relaxed) + 1 >= self.0
        {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn an_observer_and_a_deadline_stop_it_honestly() {
    let problem = plain(1.25, 3);
    let optimum = problem.optimum();
    let honest = |solution: &Solution| {
        assert!(solution.certificate.primal >= optimum.lower * (1.0 - 1e-7));
        assert!(solution.certificate.dual <= optimum.upper * (1.0 + 1e-7));
    };
    for rounds in [1, 2] {
        let observer = StopAfter(rounds, AtomicUsize::new(0));
        let solution = solve_from(&problem, &limits(1e-12), None, &observer);
        assert_eq!(solution.status, Status::Stopped);
        assert_eq!(solution.history.len(), rounds);
        honest(&solution);
    }
    let past = Limits {
        deadline: Some(Instant::now() - Duration::from_secs(1)),
        ..limits(1e-12)
    };
    let solution = solve_from(&problem, &past, None, &());
    assert_eq!(solution.status, Status::TimeLimit);
    honest(&solution);
}

#[test]
fn rows_on_demand_give_the_same_optimum() {
    for r in SOME_EXPONENTS {
        let problem = plain(r, 3);
        let stored = converged(&problem, 1e-6, "");
        let none = Limits {
            memory: 0,
            ..limits(1e-6)
        };
        let on_demand = solve_from(&problem, &none, None, &());
        assert_eq!(on_demand.status, Status::Converged, "r {r}");
        let (a, b) = (stored.certificate.primal, on_demand.certificate.primal);
        assert_close(a, b, 2e-6, "rows on demand");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let n = 600;
    for r in [1.0, 4.0 / 3.0] {
        let problem = Problem {
            kernels: kernels(&mut Random(33), n, 4),
            targets: (0..n).map(|i| (i % 7) as f64).collect(),
            costs: vec![2.0; n],
            ..plain(r, 3)
        };
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let solution = pool.unwrap().install(|| solve(&problem, 1e-3));
            assert_eq!(solution.status, Status::Converged, "r {r}");
            (
                solution.coefficients,
                solution.weights,
                solution.certificate,
            )
        };
        let one = with(1);
        assert!(one == with(2), "two threads");
        assert!(one == with(3), "three threads");
    }
}

/// Finite, honest about its status, and soon.
fn hostile(classes: usize, change: impl Fn(&mut Problem), what: &str) {
    for r in [1.0, 4.0 / 3.0, 2.0, 3.0, f64::INFINITY] {
        let mut problem = plain(r, classes);
        change(&mut problem);
        let begin = Instant::now();
        let few = Limits {
            max_rounds: 50,
            ..limits(1e-6)
        };
        let solution = solve_from(&problem, &few, None, &());
        let found = solution.certificate;
        let what = format!("{what}, r {r}: {found:?}");
        assert!(begin.elapsed().as_secs_f64() < 20.0, "{what}");
        let numbers = solution.coefficients.iter().chain(&solution.weights);
        assert!(numbers.into_iter().all(|x| x.is_finite()), "{what}");
        assert!(found.primal.is_finite(), "{what}");
        let small = found.relative_gap() <= 1e-6;
        assert_eq!(solution.status == Status::Converged, small, "{what}");
        if !what.contains("indefinite") {
            assert!(found.relative_gap() <= 1e-2, "{what}");
        }
    }
}

#[test]
fn huge_c() {
    hostile(3, |p| p.costs.fill(1e6), "C = 1e6");
}

#[test]
fn one_sample_per_class() {
    hostile(24, |_| {}, "one sample per class");
    hostile(
        3,
        |p| {
            let n = p.targets.len();
            let corner = |k: &Vec<f64>| (0..9).map(|at| k[at / 3 * n + at % 3]).collect();
            p.kernels = p.kernels.iter().map(corner).collect();
            p.targets.truncate(3);
            p.costs.truncate(3);
        },
        "three samples",
    );
}

#[test]
fn scales_far_apart() {
    hostile(
        3,
        |p| {
            p.kernels[0].iter_mut().for_each(|k| *k *= 1e-12);
            p.kernels[1].iter_mut().for_each(|k| *k *= 1e12);
        },
        "1e-12 beside 1e12",
    );
}

#[test]
fn indefinite_kernels() {
    hostile(
        3,
        |p| {
            let n = p.targets.len();
            (0..n).for_each(|i| p.kernels[0][i * n + i] -= 1.5);
        },
        "one kernel indefinite",
    );
    hostile(
        3,
        |p| {
            let values = p.kernels.iter_mut().flatten();
            values.for_each(|k| *k = -*k);
        },
        "all kernels negative, indefinite",
    );
}

#[test]
fn nothing_but_zeros() {
    hostile(
        3,
        |p| p.kernels.iter_mut().for_each(|k| k.fill(0.0)),
        "all kernels 0",
    );
    hostile(3, |p| p.costs.fill(0.0), "all costs 0");
    hostile(3, |p| p.targets.fill(1.0), "one class has all samples");
}

#[test]
fn many_classes() {
    let n = 408;
    let mut random = Random(5);
    let problem = Problem {
        kernels: kernels(&mut random, n, 3),
        targets: (0..n).map(|i| (i % 102) as f64).collect(),
        costs: vec![1.0; n],
        ..plain(4.0 / 3.0, 3)
    };
    converged(&problem, 1e-3, "102 classes");
}
