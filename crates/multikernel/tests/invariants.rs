//! What must hold for the exact solver whatever the numbers are: symmetries, LIBSVM's answer for one kernel, limits, and
//! hostile input.

mod common;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::conic::{Omega, Problem};
use common::given::{exact, exact_from, gram, gram_as, limits, norm, scalar};
use common::problems::{LOSSES, Random, kernels, problem};
use libsvm_rs::train::svm_train;
use libsvm_rs::{KernelType, SvmNode, SvmParameter, SvmProblem, SvmType};
use multikernel::gram::Indefinite;
use multikernel::observe::{Observer, Progress};
use multikernel::problem::{
    Certificate, Limits, MulticlassProblem, Objective, Solution, Start, Status, certify,
    certify_multiclass,
};
use multikernel::solve::exact::{interleaved, multiclass, solve, wrapper};
use multikernel::solve::search::{self, Method};

#[track_caller]
fn assert_close(x: f64, y: f64, tolerance: f64, what: &str) {
    assert!(
        (x - y).abs() <= tolerance * x.abs().max(y.abs()),
        "{what}: {x} and {y}"
    );
}

/// 24 samples, 4 kernels of which none are alike.
fn plain(loss: &str, r: f64, bias: bool) -> Problem {
    let mut random = Random(31);
    let n = 24;
    let mut all = Vec::new();
    while all.len() < 4 {
        for kernel in kernels(&mut random, n, 4) {
            let useful = kernel.iter().any(|k| *k != 0.0) && !all.contains(&kernel);
            if useful && all.len() < 4 {
                all.push(kernel);
            }
        }
    }
    let signs = loss != "squared" && loss != "epsilon:0.1";
    Problem {
        kernels: all,
        targets: (0..n)
            .map(|i| match signs {
                true if i % 3 == 0 => 1.0,
                true => -1.0,
                false => random.normal(),
            })
            .collect(),
        loss: loss.parse().unwrap(),
        costs: (0..n).map(|i| 1.0 + 0.25 * (i % 3) as f64).collect(),
        bias,
        omega: Omega::Block(r),
    }
}

fn cases() -> Vec<Problem> {
    let mut all = Vec::new();
    for loss in ["hinge", "logistic", "epsilon:0.1", "squared"] {
        for r in [1.0, 4.0 / 3.0, 2.0, 3.0] {
            all.push(plain(loss, r, true));
        }
        all.push(plain(loss, 1.25, false));
    }
    all
}

fn converged(problem: &Problem, tolerance: f64) -> Solution {
    let solution = exact(problem, &limits(tolerance));
    let what = format!("{} {:?}", problem.loss, problem.omega);
    assert_eq!(solution.status, Status::Converged, "{what}");
    assert!(solution.certificate.relative_gap() <= tolerance, "{what}");
    solution
}

fn scores(problem: &Problem, solution: &Solution) -> Vec<f64> {
    let n = problem.targets.len();
    (0..n)
        .map(|i| {
            let of_kernel = |m: usize| -> f64 {
                let row = &problem.kernels[m][i * n..(i + 1) * n];
                row.iter()
                    .zip(&solution.coefficients)
                    .map(|(k, a)| k * a)
                    .sum()
            };
            let f: f64 = (0..problem.kernels.len())
                .map(|m| solution.weights[m] * of_kernel(m))
                .sum();
            f + solution.certificate.bias
        })
        .collect()
}

#[test]
fn one_kernel_is_libsvm() {
    libsvm_rs::set_quiet(true);
    let mut random = Random(32);
    for (loss, svm_type) in [
        ("hinge", SvmType::CSvc),
        ("epsilon:0.1", SvmType::EpsilonSvr),
    ] {
        for c in [0.1, 1.0, 10.0] {
            for r in [1.0, 4.0 / 3.0, 2.0] {
                let n = 40;
                let kernel = kernels(&mut random, n, 3).pop().unwrap();
                let problem = Problem {
                    kernels: vec![kernel],
                    costs: vec![c; n],
                    targets: (0..n)
                        .map(|i| match svm_type {
                            SvmType::CSvc if i % 2 == 0 => 1.0,
                            SvmType::CSvc => -1.0,
                            _ => random.normal(),
                        })
                        .collect(),
                    ..plain(loss, r, true)
                };
                let instances: Vec<Vec<SvmNode>> = (0..n)
                    .map(|i| {
                        let row = &problem.kernels[0][i * n..(i + 1) * n];
                        let serial = [(0, (i + 1) as f64)].into_iter();
                        let values = row.iter().enumerate().map(|(j, k)| (j as i32 + 1, *k));
                        serial
                            .chain(values)
                            .map(|(index, value)| SvmNode { index, value })
                            .collect()
                    })
                    .collect();
                let parameter = SvmParameter {
                    svm_type,
                    kernel_type: KernelType::Precomputed,
                    c,
                    p: 0.1,
                    eps: 1e-9,
                    shrinking: false,
                    ..SvmParameter::default()
                };
                let libsvm = SvmProblem {
                    labels: problem.targets.clone(),
                    instances,
                };
                let model = svm_train(&libsvm, &parameter);
                let mut a = vec![0.0; n];
                for (at, sv) in model.sv.iter().enumerate() {
                    a[sv[0].value as usize - 1] = model.sv_coef[0][at];
                }
                // LIBSVM numbers classes by appearance: sample 0 is +1, so its signs are ours
                let gram = gram(&problem.kernels);
                let theirs = certify(&gram, &norm(&problem.omega), &scalar(&problem), &a, &[1.0]);
                let ours = converged(&problem, 1e-7);
                let what = format!("{loss} C {c} r {r}");
                assert_close(ours.certificate.dual, theirs.dual, 1e-6, &what);
                assert_close(ours.certificate.primal, theirs.dual, 1e-6, &what);
                let mine = scores(&problem, &ours);
                let bias = -model.rho[0];
                for (i, f) in mine.iter().enumerate() {
                    let row = &problem.kernels[0][i * n..(i + 1) * n];
                    let g = row.iter().zip(&a).map(|(k, a)| k * a).sum::<f64>() + bias;
                    // a bias anywhere in an interval may be right, then decisions near 0 are open
                    if svm_type == SvmType::CSvc && f.abs() > 1e-2 && g.abs() > 1e-2 {
                        assert_eq!(*f > 0.0, g > 0.0, "{what}: sample {i}, {f} and {g}");
                    }
                }
            }
        }
    }
}

#[test]
fn permuted_samples_and_kernels_permute_the_answer() {
    for problem in cases() {
        let n = problem.targets.len();
        let ours = converged(&problem, 1e-7);
        let order: Vec<usize> = (0..n).map(|i| (7 * i + 3) % n).filter(|i| *i < n).collect();
        assert_eq!(
            order
                .iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            n
        );
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
            targets: order.iter().map(|&i| problem.targets[i]).collect(),
            costs: order.iter().map(|&i| problem.costs[i]).collect(),
            ..problem.clone()
        };
        let other = converged(&shuffled, 1e-7);
        let what = format!("{} {:?}", problem.loss, problem.omega);
        assert_close(
            ours.certificate.primal,
            other.certificate.primal,
            2e-7,
            &what,
        );
        let (mine, theirs) = (scores(&problem, &ours), scores(&shuffled, &other));
        let size = mine.iter().fold(1.0f64, |a, b| a.max(b.abs()));
        for (k, &i) in order.iter().enumerate() {
            assert!(
                (mine[i] - theirs[k]).abs() < 0.02 * size,
                "{what}: score of sample {i}"
            );
        }
        let heaviest = ours.weights.iter().fold(0.0f64, |a, b| a.max(*b));
        for (w, v) in ours.weights.iter().zip(other.weights.iter().rev()) {
            assert!(
                (w - v).abs() < 0.02 * heaviest,
                "{what}: {:?} {:?}",
                ours.weights,
                other.weights
            );
        }
    }
}

#[test]
fn kernels_times_8_with_c_by_8_divide_the_objective() {
    for problem in cases() {
        let scaled = Problem {
            kernels: problem
                .kernels
                .iter()
                .map(|k| k.iter().map(|k| 8.0 * k).collect())
                .collect(),
            costs: problem.costs.iter().map(|c| c / 8.0).collect(),
            ..problem.clone()
        };
        let (one, other) = (converged(&problem, 1e-6), converged(&scaled, 1e-6));
        let what = format!("{} {:?}", problem.loss, problem.omega);
        assert_close(
            one.certificate.primal,
            8.0 * other.certificate.primal,
            2e-6,
            &what,
        );
        assert_close(
            one.certificate.dual,
            8.0 * other.certificate.dual,
            2e-6,
            &what,
        );
    }
}

#[test]
fn a_duplicated_kernel_gets_its_twins_weight() {
    for mut problem in cases() {
        problem.kernels.push(problem.kernels[1].clone());
        let solution = converged(&problem, 1e-6);
        let weights = &solution.weights;
        // at r = 1 only the sum of the two counts, but nothing favours one of them
        assert_close(
            weights[1] + 1e-9,
            weights[4] + 1e-9,
            1e-6,
            &format!("{} {:?} {weights:?}", problem.loss, problem.omega),
        );
    }
}

#[test]
fn a_sample_with_weight_two_is_two_samples() {
    for problem in cases() {
        let n = problem.targets.len();
        let mut heavy = problem.clone();
        heavy.costs[5] *= 2.0;
        let twice: Vec<usize> = (0..n).chain([5]).collect();
        let doubled = Problem {
            kernels: problem
                .kernels
                .iter()
                .map(|k| {
                    let of_row = |&i: &usize| twice.iter().map(move |&j| k[i * n + j]);
                    twice.iter().flat_map(of_row).collect()
                })
                .collect(),
            targets: twice.iter().map(|&i| problem.targets[i]).collect(),
            costs: twice.iter().map(|&i| problem.costs[i]).collect(),
            ..problem.clone()
        };
        let (one, other) = (converged(&heavy, 1e-6), converged(&doubled, 1e-6));
        let what = format!("{} {:?}", problem.loss, problem.omega);
        assert_close(
            one.certificate.primal,
            other.certificate.primal,
            2e-6,
            &what,
        );
    }
}

#[test]
fn a_start_at_the_optimum_is_the_end() {
    for problem in cases() {
        let solution = converged(&problem, 1e-6);
        let start = Start {
            coefficients: solution.coefficients.clone(),
            weights: solution.weights.clone(),
        };
        let again = exact_from(&problem, &limits(2e-6), Some(start), &());
        let what = format!("{} {:?}", problem.loss, problem.omega);
        assert_eq!(again.status, Status::Converged, "{what}");
        assert_eq!(again.history.len(), 1, "{what}");
        assert_eq!(again.steps, 0, "{what}");
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

#[track_caller]
fn assert_honest(problem: &Problem, solution: &Solution) {
    let gram = gram(&problem.kernels);
    let recomputed = |a: &[f64]| {
        let (norm, problem) = (norm(&problem.omega), scalar(problem));
        certify(&gram, &norm, &problem, a, &solution.weights)
    };
    let witness = solution.witness.as_ref();
    let expected = Certificate {
        dual: recomputed(witness.unwrap_or(&solution.coefficients)).dual,
        ..recomputed(&solution.coefficients)
    };
    assert_eq!(expected, solution.certificate);
    let optimum = problem.optimum();
    let slack = 1e-7 * optimum.upper;
    assert!(solution.certificate.primal >= optimum.lower - slack);
    assert!(solution.certificate.dual <= optimum.upper + slack);
}

#[test]
fn an_observer_and_a_deadline_stop_it_honestly() {
    let problem = plain("hinge", 1.25, true);
    for rounds in [1, 2] {
        let observer = StopAfter(rounds, AtomicUsize::new(0));
        let solution = exact_from(&problem, &limits(1e-12), None, &observer);
        assert_eq!(solution.status, Status::Stopped);
        assert_eq!(solution.history.len(), rounds);
        assert_honest(&problem, &solution);
    }
    let past = Limits {
        deadline: Some(Instant::now() - Duration::from_secs(1)),
        ..limits(1e-12)
    };
    let begin = Instant::now();
    let solution = exact(&problem, &past);
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert_eq!(solution.status, Status::TimeLimit);
    assert_honest(&problem, &solution);
    let few = Limits {
        max_rounds: 2,
        ..limits(1e-12)
    };
    let solution = exact(&problem, &few);
    assert_eq!(solution.status, Status::MaxIterations);
    assert_honest(&problem, &solution);
}

#[test]
fn rows_on_demand_give_the_same_optimum() {
    for problem in cases() {
        let stored = converged(&problem, 1e-6);
        let none = Limits {
            memory: 0,
            ..limits(1e-6)
        };
        let on_demand = exact(&problem, &none);
        let what = format!("{} {:?}", problem.loss, problem.omega);
        assert_eq!(on_demand.status, Status::Converged, "{what}");
        assert_close(
            stored.certificate.primal,
            on_demand.certificate.primal,
            2e-6,
            &what,
        );
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let n = 150;
    let problem = Problem {
        kernels: kernels(&mut Random(33), n, 5),
        targets: (0..n)
            .map(|i| if i % 3 == 0 { 1.0 } else { -1.0 })
            .collect(),
        costs: vec![2.0; n],
        ..plain("hinge", 4.0 / 3.0, true)
    };
    for r in [1.0, 4.0 / 3.0] {
        let problem = Problem {
            omega: Omega::Block(r),
            ..problem.clone()
        };
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let solution = pool.unwrap().install(|| exact(&problem, &limits(1e-5)));
            (
                solution.coefficients,
                solution.weights,
                solution.certificate,
            )
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(3));
    }
}

/// Finite, honest about its status, and soon.
#[track_caller]
fn assert_survived(problem: &Problem, what: &str) -> Solution {
    let begin = Instant::now();
    let gram = gram_as(&problem.kernels, Indefinite::Allow);
    let solution = solve(
        &gram,
        &norm(&problem.omega),
        &scalar(problem),
        &Limits {
            max_rounds: 50,
            ..limits(1e-6)
        },
        None,
        &(),
    );
    let seconds = begin.elapsed().as_secs_f64();
    let what = format!(
        "{what} {} {:?} bias {}",
        problem.loss, problem.omega, problem.bias
    );
    assert!(seconds < 20.0, "{what}: {seconds} s");
    let found = solution.certificate;
    let finite = solution.coefficients.iter().chain(&solution.weights);
    assert!(
        finite.into_iter().all(|x| x.is_finite()),
        "{what}: {solution:?}"
    );
    assert!(
        found.primal.is_finite() && found.bias.is_finite(),
        "{what}: {found:?}"
    );
    let small = found.relative_gap() <= 1e-6;
    assert_eq!(
        solution.status == Status::Converged,
        small,
        "{what}: {found:?}"
    );
    solution
}

const ALL: [&str; 7] = [
    "hinge",
    "squared-hinge",
    "logistic",
    "epsilon:0.1",
    "squared",
    "huber:0.5",
    "one-class",
];

fn hostile(change: impl Fn(&mut Problem), what: &str) {
    for loss in ALL {
        for r in [1.0, 4.0 / 3.0, 2.0, 3.0, f64::INFINITY] {
            for bias in [false, true] {
                if loss == "one-class" && bias {
                    continue;
                }
                let mut problem = plain(loss, r, bias);
                change(&mut problem);
                assert_survived(&problem, what);
            }
        }
    }
}

#[test]
fn huge_c() {
    hostile(|p| p.costs.iter_mut().for_each(|c| *c = 1e6), "C = 1e6");
}

#[test]
fn labels_all_alike() {
    hostile(|p| p.targets.fill(1.0), "labels all alike");
    for bias in [false, true] {
        let mut problem = plain("hinge", 4.0 / 3.0, bias);
        problem.targets.fill(-1.0);
        let solution = assert_survived(&problem, "labels all −1");
        assert_eq!(solution.status, Status::Converged);
    }
}

#[test]
fn one_sample_per_class() {
    hostile(
        |p| {
            let n = p.targets.len();
            p.kernels = p
                .kernels
                .iter()
                .map(|k| vec![k[0], k[1], k[n], k[n + 1]])
                .collect();
            p.targets = vec![1.0, -1.0];
            p.costs.truncate(2);
        },
        "one sample per class",
    );
}

#[test]
fn scales_far_apart() {
    hostile(
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
        |p| {
            let n = p.targets.len();
            for i in 0..n {
                p.kernels[0][i * n + i] -= 1.5;
            }
        },
        "one kernel indefinite",
    );
    hostile(
        |p| {
            let kernels = p.kernels.iter_mut();
            kernels.for_each(|k| k.iter_mut().for_each(|k| *k = -*k));
        },
        "all kernels negative, indefinite",
    );
}

#[test]
fn nothing_but_zeros() {
    hostile(
        |p| p.kernels.iter_mut().for_each(|k| k.fill(0.0)),
        "all kernels 0",
    );
    hostile(|p| p.costs.fill(0.0), "all costs 0");
}

/// Every solver's answer to the problem, by name.
fn all_answers(
    problem: &Problem,
    limits: &Limits,
    stop_after: usize,
) -> Vec<(&'static str, Solution)> {
    let (gram, norm) = (gram(&problem.kernels), norm(&problem.omega));
    let watch = || StopAfter(stop_after, AtomicUsize::new(0));
    let classes: Vec<u32> = problem.targets.iter().map(|y| *y as u32).collect();
    let joint = MulticlassProblem {
        classes: &classes,
        n_classes: 3,
        costs: &problem.costs,
    };
    let mut all = Vec::new();
    let objective = match problem.loss.scalar() {
        Some(_) => {
            let one = scalar(problem);
            for (name, solve) in [
                ("exact", solve as fn(&_, &_, &_, &_, _, &_) -> _),
                ("wrapper", wrapper::solve),
                ("interleaved", interleaved::solve),
            ] {
                // Chunks take long where coefficients may be large.
                if name == "interleaved" && problem.costs.iter().any(|c| *c > 10.0) {
                    continue;
                }
                all.push((name, solve(&gram, &norm, &one, limits, None, &watch())));
            }
            Objective::Scalar(one)
        }
        None => {
            let solution = multiclass::solve(&gram, &norm, &joint, limits, None, &watch());
            all.push(("joint", solution));
            Objective::Multiclass(joint)
        }
    };
    for (name, method) in [
        ("mirror", Method::Mirror),
        ("simple", Method::Simple),
        ("hessian", Method::Hessian),
        ("sip", Method::Sip),
        ("newton", Method::Newton),
    ] {
        if method.solves(&norm) {
            let solution = search::solve(method, &gram, &norm, &objective, limits, &watch());
            all.push((name, solution));
        }
    }
    all
}

#[test]
fn no_result_is_worse_than_an_earlier_round() {
    let mut random = Random(77);
    let mut earlier = 0;
    for draw in 0..120 {
        let mut problem = problem(&mut random, LOSSES[draw % LOSSES.len()]);
        if draw % 5 == 0 {
            problem.omega = Omega::Block(random.pick(&[1.0, 4.0 / 3.0, 3.0, f64::INFINITY]));
        }
        let rounds = 1 + draw % 7;
        // Every second run is stopped by its observer, every other one by the number of rounds.
        let (max_rounds, stop_after) = match draw % 2 {
            0 => (rounds, usize::MAX),
            _ => (40, rounds),
        };
        let limits = Limits {
            max_rounds,
            ..limits(1e-6)
        };
        for (name, solution) in all_answers(&problem, &limits, stop_after) {
            let what = format!("draw {draw}, {name}: {} {:?}", problem.loss, problem.omega);
            let (found, history) = (solution.certificate, &solution.history);
            let least = history.iter().fold(f64::INFINITY, |x, r| x.min(r.primal));
            let largest = history.iter().fold(f64::NEG_INFINITY, |x, r| x.max(r.dual));
            // Scores of a round may come from rows in f32, and each costs up to C of the rounding.
            let [steepness, length] = [&problem.costs, &solution.coefficients]
                .map(|values| values.iter().map(|v| v.abs()).sum::<f64>());
            let rounding = 1e-6 * least.abs() + f64::from(f32::EPSILON) * steepness * length;
            assert!(
                found.primal <= least + rounding,
                "{what}: {found:?} after {least}"
            );
            assert!(
                solution.status == Status::Converged || found.dual >= largest - rounding,
                "{what}: {found:?} after {largest}"
            );
            earlier += usize::from(history.last().is_some_and(|r| r.primal > least + rounding));
            assert_whole(&problem, &solution, &what);
        }
    }
    assert!(
        earlier > 10,
        "only {earlier} runs ended at a point that was not their best"
    );
}

/// The certificate is what the kernels say of the coefficients, the weights and the witness.
#[track_caller]
fn assert_whole(problem: &Problem, solution: &Solution, what: &str) {
    let (gram, norm) = (gram(&problem.kernels), norm(&problem.omega));
    let classes: Vec<u32> = problem.targets.iter().map(|y| *y as u32).collect();
    let joint = MulticlassProblem {
        classes: &classes,
        n_classes: 3,
        costs: &problem.costs,
    };
    let measured = |a: &[f64]| match problem.loss.scalar() {
        Some(_) => certify(&gram, &norm, &scalar(problem), a, &solution.weights),
        None => certify_multiclass(&gram, &norm, &joint, a, &solution.weights),
    };
    let (a, found) = (&solution.coefficients, solution.certificate);
    let size = 1e-9 * found.primal.abs() + 1e-15;
    assert!((measured(a).primal - found.primal).abs() <= size, "{what}");
    let witness = solution.witness.as_ref().unwrap_or(a);
    assert!(
        (measured(witness).dual - found.dual).abs() <= size,
        "{what}"
    );
}
