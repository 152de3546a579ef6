mod rivals;
mod tables;

use super::*;
use crate::data::{Labels, Task, Views, digits};
use crate::gram::Options;
use crate::kernel::KernelSpec;
use crate::measure::{Truth, measure};
use crate::model::Scheme;
use crate::norm::Norm;
use crate::observe::Progress;
use crate::problem::Limits;
use crate::random::Random;
use crate::record::ResultObject;
use crate::solve::exact;
use std::ops::ControlFlow;

/// Digits of the classes named.
fn some_digits(wanted: &[&str], at_most: usize) -> (Views, Labels) {
    let data = digits().unwrap();
    let labels = data.labels.unwrap();
    let rows: Vec<usize> = (0..labels.len())
        .filter(|&i| wanted.contains(&labels.spelling(i)))
        .take(at_most)
        .collect();
    (data.views.select(&rows).unwrap(), labels.select(&rows))
}

fn kernels(specs: &[&str], views: &Views) -> KernelSet {
    let specs: Vec<KernelSpec> = specs
        .iter()
        .flat_map(|s| KernelSpec::parse(s).unwrap())
        .collect();
    KernelSet::new(&specs, views, &Options::default(), &()).unwrap()
}

fn targets(labels: &Labels) -> Targets {
    Targets::new(Some(labels), Task::Classify, labels.len()).unwrap()
}

/// Accuracy on every second sample after training on the others.
fn halves(wanted: &[&str], at_most: usize, mkl: &Mkl) -> (Fitted, f64) {
    let (views, labels) = some_digits(wanted, at_most);
    let (train, test): (Vec<usize>, Vec<usize>) = (0..labels.len()).partition(|i| i % 2 == 0);
    let set = kernels(&["rbf"], &views.select(&train).unwrap());
    let fitted = mkl
        .fit(&set, &targets(&labels.select(&train)), &())
        .unwrap();
    let scores = fitted.model.scores(&views.select(&test).unwrap()).unwrap();
    let truth = labels.select(&test).class_index(fitted.model.classes());
    let predictions = fitted.model.predictions(&scores);
    let metrics = measure(&predictions, &scores, Truth::Classes(&truth));
    assert!(metrics["auc"] > 0.99, "{metrics:?}");
    (fitted, metrics["accuracy"])
}

const ALL: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

#[test]
fn two_digits_are_told_apart() {
    let (fitted, accuracy) = halves(&["3", "8"], 400, &Mkl::default());
    assert!(accuracy > 0.97, "{accuracy}");
    assert_eq!(fitted.status, Status::Converged);
    assert!(fitted.relative_gap() <= 1e-3);
    assert_eq!(fitted.model.classes(), ["3", "8"]);
    assert!(
        fitted
            .kernels
            .iter()
            .all(|k| k.weights[0] >= 0.0 && k.group_norms[0] >= 0.0)
    );
}

#[test]
fn ten_digits_jointly() {
    let (fitted, accuracy) = halves(&ALL, 800, &Mkl::default());
    assert!(accuracy > 0.93, "{accuracy}");
    assert_eq!(fitted.model.scheme(), Scheme::Joint);
    assert_eq!((fitted.problems.len(), fitted.model.n_problems()), (1, 1));
    assert_eq!(fitted.model.n_scores(), 10);
    assert_eq!(fitted.model.loss().to_string(), "multiclass-hinge");
    assert!(fitted.kernels.iter().all(|k| k.weights.len() == 1));
    assert!(fitted.relative_gap() <= 1e-3);
    let said = |text: &str| fitted.notes.iter().any(|n| n.contains(text));
    assert!(said("10 classes: one problem for all of them"));
}

#[test]
fn ten_digits_by_ovr_and_ovo() {
    // Losses and solvers of one score leave one-vs-rest, which is said.
    let hinge = Mkl {
        loss: Some("hinge".parse().unwrap()),
        ..Mkl::default()
    };
    let (fitted, accuracy) = halves(&ALL, 1000, &hinge);
    assert!(accuracy > 0.93, "{accuracy}");
    assert_eq!(fitted.problems.len(), 10);
    assert!(fitted.relative_gap() <= 1e-3);
    assert!(
        fitted
            .notes
            .iter()
            .any(|n| n.contains("each class against the others (ovr), since the loss hinge"))
    );
    let ovo = Mkl {
        multiclass: Multiclass::OneVsOne,
        ..Mkl::default()
    };
    let (fitted, accuracy) = halves(&ALL, 800, &ovo);
    assert!(accuracy > 0.93, "{accuracy}");
    assert_eq!(fitted.model.scheme(), Scheme::OneVsOne);
    assert_eq!(fitted.problems.len(), 45);
}

#[test]
fn two_classes_jointly_are_half_the_problem_at_twice_the_cost() {
    let (views, labels) = some_digits(&["3", "8"], 80);
    let set = kernels(&["rbf", "linear:normalize=spherical"], &views);
    let exact = Mkl {
        tolerance: 1e-6,
        bias: Bias::Off,
        ..Mkl::default()
    };
    let joint = Mkl {
        multiclass: Multiclass::Joint,
        ..exact.clone()
    };
    let twice = Mkl { c: 2.0, ..exact };
    let joint = joint.fit(&set, &targets(&labels), &()).unwrap();
    let twice = twice.fit(&set, &targets(&labels), &()).unwrap();
    assert_eq!(joint.model.scheme(), Scheme::Joint);
    assert_eq!(joint.model.scores(&views).unwrap().names, ["3", "8"]);
    let (a, b) = (joint.certificate.primal, 0.5 * twice.certificate.primal);
    assert!((a - b).abs() < 2e-6 * a, "{a} {b}");
    let (a, b) = (
        joint.model.predict(&views).unwrap(),
        twice.model.predict(&views).unwrap(),
    );
    assert_eq!(a, b);
}

#[test]
fn the_bias_of_the_joint_problem_is_a_constant_kernel() {
    let (views, labels) = some_digits(&["3", "8", "9"], 90);
    let set = kernels(&["rbf:view=upper_left", "linear:view=lower_left"], &views);
    let mkl = Mkl {
        bias: Bias::On,
        ..Mkl::default()
    };
    let fitted = mkl.fit(&set, &targets(&labels), &()).unwrap();
    assert_eq!(fitted.status, Status::Converged);
    assert!(fitted.notes.iter().any(|n| n.contains("'constant'")));
    let constant = fitted.kernels.last().unwrap();
    assert_eq!((&constant.name[..], fitted.kernels.len()), ("constant", 3));
    let weight = constant.weights[0];
    assert!(weight > 0.0);
    // Σ_m β_m (K_m A) + β Σ A, by hand.
    let model = &fitted.model;
    assert!(model.has_bias());
    let mut expected = vec![0.0; 3];
    for row in model.coefficients().chunks(3) {
        expected
            .iter_mut()
            .zip(row)
            .for_each(|(b, a)| *b += weight * a);
    }
    for (bias, expected) in model.biases().iter().zip(&expected) {
        assert!((bias - expected).abs() < 1e-12);
    }
    let without = Mkl::default().fit(&set, &targets(&labels), &()).unwrap();
    assert!(fitted.certificate.dual < without.certificate.primal);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.scores(&views).unwrap(), model.scores(&views).unwrap());
    assert_eq!(again.biases(), model.biases());
}

#[test]
fn weight_two_is_the_sample_twice() {
    let (views, labels) = some_digits(&["1", "7"], 60);
    let rows: Vec<usize> = (0..60).chain([3, 10, 11]).collect();
    let mut weights = vec![1.0; 60];
    for i in [3, 10, 11] {
        weights[i] = 2.0;
    }
    let exact = Mkl {
        tolerance: 1e-7,
        max_rounds: 100_000,
        c: 0.05,
        ..Mkl::default()
    };
    // A width as a number: the mean distance would not be the same.
    let spec = [
        "rbf:width=300",
        "linear:view=upper_left,normalize=spherical",
    ];
    let twice = exact
        .fit(
            &kernels(&spec, &views.select(&rows).unwrap()),
            &targets(&labels.select(&rows)),
            &(),
        )
        .unwrap();
    let weighted = Mkl {
        sample_weight: Some(weights),
        ..exact.clone()
    };
    let once = weighted
        .fit(&kernels(&spec, &views), &targets(&labels), &())
        .unwrap();
    let difference = (twice.certificate.primal - once.certificate.primal).abs();
    assert!(difference < 1e-6 * once.certificate.primal, "{difference}");
    let (a, b) = (
        twice.model.decision_values(&views).unwrap(),
        once.model.decision_values(&views).unwrap(),
    );
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-2, "{a} {b}");
    }
    let unweighted = exact
        .fit(&kernels(&spec, &views), &targets(&labels), &())
        .unwrap();
    assert!(unweighted.certificate.primal < 0.99 * once.certificate.primal);
}

#[test]
fn class_weights_are_sample_weights() {
    let (views, labels) = some_digits(&["1", "7", "9"], 150);
    // More of the first class than of the others.
    let rows: Vec<usize> = (0..150)
        .filter(|&i| labels.spelling(i) == "1" || i % 3 == 0)
        .collect();
    let (views, labels) = (views.select(&rows).unwrap(), labels.select(&rows));
    let set = kernels(&["rbf"], &views);
    let targets = targets(&labels);
    let counts = targets.class_counts();
    let fit = |mkl: Mkl| mkl.fit(&set, &targets, &()).unwrap().certificate;
    let of = |weight: &dyn Fn(&str) -> f64| {
        (0..labels.len())
            .map(|i| weight(labels.spelling(i)))
            .collect::<Vec<f64>>()
    };
    let base = Mkl {
        c: 0.01,
        ..Mkl::default()
    };
    let given = fit(Mkl {
        class_weight: "7=3,9=0.5".parse().unwrap(),
        ..base.clone()
    });
    let sampled = fit(Mkl {
        sample_weight: Some(of(&|name| match name {
            "7" => 3.0,
            "9" => 0.5,
            _ => 1.0,
        })),
        ..base.clone()
    });
    assert_eq!(given, sampled);
    let balanced = fit(Mkl {
        class_weight: ClassWeight::Balanced,
        ..base.clone()
    });
    let n = labels.len() as f64;
    let sampled = fit(Mkl {
        sample_weight: Some(of(&|name| {
            let count = counts.iter().find(|c| c.0 == name).unwrap().1;
            n / (3.0 * count as f64)
        })),
        ..base.clone()
    });
    let difference = (balanced.primal - sampled.primal).abs();
    assert!(difference <= 1e-9 * balanced.primal, "{difference}");
    assert_ne!(fit(base), balanced);
}

#[test]
fn regression_and_one_class() {
    let (views, _) = some_digits(&["0", "1"], 120);
    let mut random = Random::new(1);
    let y: Vec<f64> = (0..120)
        .map(|i| match &views.get("upper_left").unwrap().data {
            crate::data::ViewData::Dense(x) => f64::from(x.row(i)[10]) + 0.1 * random.normal(),
            _ => unreachable!(),
        })
        .collect();
    let set = kernels(&["rbf", "linear:view=upper_left"], &views);
    for loss in ["epsilon:0.1", "squared", "huber:1"] {
        let mkl = Mkl {
            loss: Some(loss.parse().unwrap()),
            c: 10.0,
            ..Mkl::default()
        };
        let fitted = mkl.fit(&set, &Targets::Real(y.clone()), &()).unwrap();
        assert!(fitted.relative_gap() <= 1e-3, "{loss}");
        let scores = fitted.model.scores(&views).unwrap();
        let metrics = measure(&fitted.model.predictions(&scores), &scores, Truth::Real(&y));
        assert!(metrics["r2"] > 0.95, "{loss}: {metrics:?}");
    }
    let fitted = Mkl::default().fit(&set, &Targets::None, &()).unwrap();
    assert!(!fitted.model.has_bias());
    assert!(fitted.relative_gap() <= 1e-3);
    let scores = fitted.model.scores(&views).unwrap();
    let accepted = measure(&fitted.model.predictions(&scores), &scores, Truth::None)["accepted"];
    assert!(accepted > 0.3, "{accepted}");
    assert!(["inlier", "outlier"].contains(&&*fitted.model.predictions(&scores).text(0)));
}

#[test]
fn a_model_that_is_worse_than_none_is_warned_of() {
    // Pegasos-MKL's first steps have length 1/λ, which the slopes of the squared loss have no bound against.
    let (views, labels) = some_digits(&["3", "8"], 100);
    let values = (0..labels.len()).map(|i| 1000.0 + labels.number(i).unwrap());
    let targets = Targets::Real(values.collect());
    let set = kernels(&["rbf"], &views);
    let mut mkl = Mkl {
        solver: Solver::Pegasos,
        loss: Some("squared".parse().unwrap()),
        ..Mkl::default()
    };
    mkl.stochastic.epochs = 2;
    let found = mkl.fit(&set, &targets, &()).unwrap();
    assert!(
        found.warnings[0].contains("that of a model that knows nothing: do not use this one"),
        "{:?}",
        found.warnings
    );
    mkl.solver = Solver::Exact;
    mkl.max_rounds = 1;
    let found = mkl.fit(&set, &targets, &()).unwrap();
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn solver_sum_is_the_norm_lp_inf() {
    let (views, labels) = some_digits(&["3", "8"], 100);
    let set = kernels(&["rbf"], &views);
    let fit = |mkl: Mkl| mkl.fit(&set, &targets(&labels), &()).unwrap();
    let sum = fit(Mkl {
        solver: Solver::Sum,
        norm: "lp:2".parse().unwrap(),
        ..Mkl::default()
    });
    let lp = fit(Mkl {
        norm: "lp:inf".parse().unwrap(),
        ..Mkl::default()
    });
    assert_eq!(sum.certificate, lp.certificate);
    assert!(sum.kernels.iter().all(|k| k.weights == [1.0]));
    assert!(
        sum.notes
            .iter()
            .any(|n| n.contains("the norm lp:2 is not used"))
    );
}

#[test]
fn mixed_groups_are_the_kernels_groups() {
    let (views, labels) = some_digits(&["3", "8"], 80);
    let set = kernels(&["rbf:width=mean*0.5|mean*2"], &views);
    let mkl = Mkl {
        norm: "mixed".parse().unwrap(),
        ..Mkl::default()
    };
    let fitted = mkl.fit(&set, &targets(&labels), &()).unwrap();
    // The order of the kernels: first width on each of the four views, then the second.
    let norm = Norm::mixed(&[0, 1, 2, 3, 0, 1, 2, 3]).unwrap();
    let signs: Vec<f64> = (0..labels.len())
        .map(|i| if labels.spelling(i) == "8" { 1.0 } else { -1.0 })
        .collect();
    let problem = crate::problem::Problem {
        loss: crate::loss::Loss::Hinge,
        targets: &signs,
        costs: &vec![1.0; signs.len()],
        bias: true,
    };
    let limits = Limits {
        tolerance: 1e-3,
        max_rounds: 1000,
        deadline: None,
        memory: u64::MAX,
        confirm: true,
    };
    let direct = exact::solve(set.gram(), &norm, &problem, &limits, None, &());
    assert_eq!(direct.certificate, fitted.certificate);
    let weights: Vec<f64> = fitted.kernels.iter().map(|k| k.weights[0]).collect();
    assert_eq!(direct.weights, weights);
}

/// Stops at the first round.
struct Impatient;
impl Observer for Impatient {
    fn progress(&self, progress: &Progress<'_>) -> ControlFlow<()> {
        match progress {
            Progress::Round { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn stopping_is_a_status_and_every_problem_has_its_certificate() {
    let (views, labels) = some_digits(&["3", "8", "9"], 90);
    let set = kernels(&["rbf"], &views);
    let targets = targets(&labels);
    let exact = Mkl {
        tolerance: 1e-12,
        multiclass: Multiclass::OneVsRest,
        ..Mkl::default()
    };
    let fitted = exact.fit(&set, &targets, &Impatient).unwrap();
    assert_eq!(fitted.status, Status::Stopped);
    assert_eq!(fitted.problems.len(), 3);
    assert!(
        fitted
            .problems
            .iter()
            .all(|p| p.certificate.primal >= p.certificate.dual)
    );
    let late = Mkl {
        max_seconds: Some(0.0),
        ..exact.clone()
    };
    let fitted = late.fit(&set, &targets, &()).unwrap();
    assert_eq!(fitted.status, Status::TimeLimit);
    assert!(fitted.model.predict(&views).is_ok());
    let short = Mkl {
        max_rounds: 1,
        ..exact
    };
    assert_eq!(
        short.fit(&set, &targets, &()).unwrap().status,
        Status::MaxIterations
    );
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (views, labels) = some_digits(&["3", "8", "9"], 150);
    let file = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let set = kernels(&["rbf"], &views);
            let fitted = Mkl::default().fit(&set, &targets(&labels), &()).unwrap();
            (
                fitted.model.to_bytes().unwrap(),
                fitted.model.decision_values(&views).unwrap(),
            )
        })
    };
    assert_eq!(file(1), file(3));
}

#[test]
fn result_objects_have_the_stable_keys() {
    let (views, labels) = some_digits(&["3", "8", "9"], 60);
    let set = kernels(&["rbf"], &views);
    let mkl = Mkl {
        norm: "lp:inf".parse().unwrap(),
        multiclass: Multiclass::OneVsRest,
        ..Mkl::default()
    };
    let joint = Mkl {
        multiclass: Multiclass::Auto,
        ..mkl.clone()
    };
    let joint = joint.fit(&set, &targets(&labels), &()).unwrap();
    let joint = serde_json::to_value(ResultObject::new(&joint)).unwrap();
    assert_eq!(joint["multiclass"], "joint");
    assert!(joint["kernels"][0]["weight"].is_number());
    assert!(joint["bias"].is_null());
    let fitted = mkl.fit(&set, &targets(&labels), &()).unwrap();
    let object = serde_json::to_value(ResultObject::new(&fitted)).unwrap();
    let mut keys: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = vec![
        "status",
        "task",
        "solver",
        "multiclass",
        "norm",
        "C",
        "bias",
        "primal",
        "dual",
        "relative_gap",
        "objective_scale",
        "kernels",
        "n_samples",
        "n_classes",
        "n_support",
        "iterations",
        "seconds",
        "peak_memory_bytes",
        "metrics",
        "baselines",
        "seed",
        "warnings",
    ];
    keys.sort_unstable();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(
        object["norm"],
        serde_json::json!({"kind": "lp", "value": "inf"})
    );
    assert_eq!(object["status"], "converged");
    assert_eq!(object["multiclass"], "ovr");
    assert_eq!(object["task"], "classify");
    assert_eq!(object["kernels"][0]["weight"].as_array().unwrap().len(), 3);
    assert_eq!(object["bias"].as_array().unwrap().len(), 3);
    let two = Mkl::default()
        .fit(&set, &Targets::Real((0..60).map(f64::from).collect()), &())
        .unwrap();
    let object = serde_json::to_value(ResultObject::new(&two)).unwrap();
    assert!(object["kernels"][0]["weight"].is_number());
    assert!(object["bias"].is_number());
    assert!(object["multiclass"].is_null());
    assert!((object["norm"]["value"].as_f64().unwrap() - 4.0 / 3.0).abs() < 1e-15);
}

#[test]
fn wrong_values_are_said_at_the_door() {
    let (views, labels) = some_digits(&["3", "8"], 20);
    let set = kernels(&["rbf:view=upper_left"], &views);
    let two = targets(&labels);
    let base = Mkl::default;
    let says = |mkl: Mkl, targets: &Targets, text: &str| {
        let error = mkl.fit(&set, targets, &()).unwrap_err().to_string();
        assert_eq!(error, text);
    };
    says(
        Mkl { c: 0.0, ..base() },
        &two,
        "C: it is 0; give a positive finite number",
    );
    says(
        Mkl {
            c: f64::INFINITY,
            ..base()
        },
        &two,
        "C: it is inf; give a positive finite number",
    );
    says(
        Mkl {
            tolerance: f64::NAN,
            ..base()
        },
        &two,
        "tol: the relative gap asked for is NaN; give a positive finite number such as 1e-3",
    );
    says(
        Mkl {
            max_seconds: Some(-1.0),
            ..base()
        },
        &two,
        "max-seconds: it is -1; give a number of seconds that is not negative",
    );
    says(
        Mkl {
            max_rounds: 0,
            ..base()
        },
        &two,
        "the largest number of rounds: it is 0; give at least 1",
    );
    let weights = |w: Vec<f64>| Mkl {
        sample_weight: Some(w),
        ..base()
    };
    says(
        weights(vec![1.0; 19]),
        &two,
        "sample-weight: there are 19 weights for 20 samples; give one weight for each sample, in the same order",
    );
    for bad in [-1.0, f64::NAN] {
        let mut list = vec![1.0; 20];
        list[4] = bad;
        says(
            weights(list),
            &two,
            &format!(
                "sample-weight row 5: the weight is {bad}; give finite numbers that are not negative"
            ),
        );
    }
    says(
        weights(vec![0.0; 20]),
        &two,
        "sample-weight: all weights are 0; give some sample a positive weight",
    );
    let none_of_3 = (0..20)
        .map(|i| f64::from(u8::from(labels.spelling(i) != "3")))
        .collect();
    says(
        weights(none_of_3),
        &two,
        "class '3': all its samples have weight 0; give some of them a positive weight, or remove the class",
    );
    let classes = |text: &str| Mkl {
        class_weight: text.parse().unwrap(),
        ..base()
    };
    says(
        classes("3=1,x=2"),
        &two,
        "class-weight: there is no class 'x'; the classes are '3', '8'",
    );
    says(
        classes("3=-2"),
        &two,
        "class-weight: the weight of class '3' is -2; give finite numbers that are not negative",
    );
    says(
        classes("balanced"),
        &Targets::None,
        "class-weight: there are no classes to weigh; leave it out, or take the task classify",
    );
    let loss = |text: &str| Mkl {
        loss: Some(text.parse().unwrap()),
        ..base()
    };
    says(
        loss("epsilon:0.1"),
        &two,
        "loss: epsilon:0.1 does not fit the task classify; give hinge, squared-hinge, logistic or squared",
    );
    says(
        loss("hinge"),
        &Targets::Real(vec![0.5; 20]),
        "loss: hinge does not fit the task regress; give epsilon:EPS, squared, huber:DELTA or absolute",
    );
    says(
        loss("hinge"),
        &Targets::None,
        "loss: hinge does not fit the task one-class; one-class has its own loss: leave it out",
    );
    let with = |multiclass: Multiclass, mkl: Mkl| Mkl { multiclass, ..mkl };
    says(
        with(Multiclass::OneVsRest, loss("multiclass-hinge")),
        &two,
        "loss: multiclass-hinge belongs to the joint problem of all classes; give hinge, squared-hinge, logistic or squared with ovr or ovo",
    );
    says(
        with(Multiclass::Joint, loss("hinge")),
        &two,
        "multiclass: the loss hinge has one score per problem, the joint problem has one for every class; give ovr or ovo, or leave loss, solver and tikhonov at what is usual",
    );
    let wrapper = Mkl {
        solver: Solver::Wrapper,
        ..loss("multiclass-hinge")
    };
    says(
        wrapper,
        &two,
        "loss: multiclass-hinge has a score for every class, solver wrapper has one score per problem; leave out one of the two",
    );
    says(
        Mkl {
            bias: Bias::On,
            ..base()
        },
        &Targets::None,
        "bias: with a bias one-class accepts everything, whatever the data; give auto or off",
    );
    says(
        base(),
        &Targets::Real(vec![1.0; 3]),
        "labels: there are 3 labels for 20 samples; give one label for each sample, in the same order",
    );
    let mut y = vec![1.0; 20];
    y[7] = f64::NAN;
    says(
        base(),
        &Targets::Real(y),
        "labels row 8: the value is NaN; give a finite number, or remove the sample",
    );
    let of = |names: &[&str], index: Vec<u32>| Targets::Classes {
        names: names.iter().map(|&n| n.to_owned()).collect(),
        index,
    };
    says(
        base(),
        &of(&["a"], vec![0; 20]),
        "labels: there is only one class, 'a'; give samples of at least two classes, or take the task one-class",
    );
    says(
        base(),
        &of(&["a", "b"], vec![0; 20]),
        "class 'b': no training sample belongs to it; give some, or leave the class out",
    );
    says(
        base(),
        &of(&["a", "b"], vec![2; 20]),
        "labels row 1: the class has number 2 but there are 2 classes; give a name for every class",
    );
}

#[test]
fn words_are_read() {
    let error = |text: Result<Multiclass>| text.unwrap_err().to_string();
    assert!(error("x".parse()).contains("give joint, ovr or ovo"));
    assert_eq!("joint".parse::<Multiclass>().unwrap(), Multiclass::Joint);
    assert!(error("x".parse()).contains("'x' is not known"));
    assert_eq!("exact".parse::<Solver>().unwrap(), Solver::Exact);
    assert!("magic".parse::<Solver>().is_err());
    assert_eq!("off".parse::<Bias>().unwrap(), Bias::Off);
    let given: ClassWeight = "a=b=2, c=1".parse().unwrap();
    assert_eq!(
        given,
        ClassWeight::Given([("a=b".into(), 2.0), ("c".into(), 1.0)].into())
    );
    for bad in ["a", "a=x", "a=1,a=2", ""] {
        assert!(bad.parse::<ClassWeight>().is_err(), "{bad}");
    }
}

#[test]
fn the_exact_solver_may_start_from_obscure() {
    let (views, labels) = some_digits(&["3", "8", "9"], 150);
    let set = kernels(&["rbf", "linear:normalize=spherical"], &views);
    let cold = Mkl {
        tolerance: 1e-6,
        ..Mkl::default()
    };
    let warm = Mkl {
        start_epochs: 20,
        ..cold.clone()
    };
    let cold = cold.fit(&set, &targets(&labels), &()).unwrap();
    let warm = warm.fit(&set, &targets(&labels), &()).unwrap();
    assert!(warm.notes.iter().any(|n| n.contains("from obscure")));
    assert_eq!(warm.status, Status::Converged);
    let (a, b) = (cold.certificate.primal, warm.certificate.primal);
    assert!((a - b).abs() <= 2e-6 * a, "{a} {b}");
    // what cannot start from it says so
    let binary = some_digits(&["3", "8"], 60);
    let mkl = Mkl {
        start_epochs: 3,
        ..Mkl::default()
    };
    let set = kernels(&["rbf"], &binary.0);
    let error = mkl.fit(&set, &targets(&binary.1), &()).unwrap_err();
    assert!(error.to_string().contains("joint"), "{error}");
}

#[test]
fn auto_is_exact_where_that_fits() {
    let joint = super::problems::JointProblem {
        classes: (0..30_000).map(|i| i % 100).collect(),
        n_classes: 100,
        costs: vec![1.0; 30_000],
    };
    let norm = |text: &str| Norm::new(text.parse().unwrap(), 3, &[], &[]).unwrap();
    for (text, memory, expected) in [
        ("lp:4/3", 1 << 30, Solver::Exact),
        ("lp:4/3", 1 << 27, Solver::Obscure),
        // which obscure cannot do
        ("lp:1", 1 << 27, Solver::Exact),
    ] {
        let mut notes = Vec::new();
        let solver = super::joint::choose_solver(&joint, &norm(text), memory, &mut notes);
        assert_eq!(solver, expected, "{text} {memory}");
        assert!(
            notes[0].contains(&format!("auto: {expected}")),
            "{}",
            notes[0]
        );
    }
}

#[test]
fn coefficients_stop_exactly_at_their_bounds() {
    // Few of one class and a small price: nearly all coefficients end at a bound, and one that passed it by a rounding would
    // make the dual point infeasible.
    let (views, labels) = some_digits(&["3", "8"], 120);
    let rows: Vec<usize> = (0..labels.len())
        .filter(|&i| labels.spelling(i) == "3" || i % 3 == 0)
        .collect();
    let set = kernels(
        &["rbf:width=mean*0.5|mean|mean*2"],
        &views.select(&rows).unwrap(),
    );
    let targets = targets(&labels).select(&rows);
    let mut random = crate::random::Random::new(1);
    for norm in ["lp:1", "lp:4/3", "lp:2"] {
        for k in 0..60 {
            // bounds of all kinds
            let weights = (0..rows.len()).map(|_| 0.5 + random.uniform()).collect();
            let mkl = Mkl {
                norm: norm.parse().unwrap(),
                c: 10f64.powf(-3.0 + f64::from(k) / 30.0),
                sample_weight: Some(weights),
                ..Mkl::default()
            };
            let fitted = mkl.fit(&set, &targets, &()).unwrap();
            assert_eq!(fitted.status, Status::Converged, "{norm}, C {}", mkl.c);
        }
    }
}

#[test]
fn a_group_without_output_does_not_stop_mixed_norms() {
    // Labels at random: the coefficients leave the linear kernel's space, whose weight would be infinite.
    for seed in 3..6 {
        let mut random = crate::random::Random::new(seed);
        let values = (0..80 * 10).map(|_| random.normal() as f32).collect();
        let views = crate::data::Views::new(vec![crate::data::View {
            name: "x".into(),
            columns: Vec::new(),
            data: crate::data::ViewData::Dense(crate::data::Dense::new(80, 10, values).unwrap()),
        }])
        .unwrap();
        let index: Vec<u32> = (0..80).map(|_| random.below(2) as u32).collect();
        let targets = Targets::Classes {
            names: vec!["a".into(), "b".into()],
            index,
        };
        let set = kernels(
            &["linear:group=a", "rbf:group=b", "rbf:group=b,width=mean*4"],
            &views,
        );
        for c in [1.0, 10.0] {
            let mkl = Mkl {
                norm: "mixed".parse().unwrap(),
                c,
                max_rounds: 100,
                ..Mkl::default()
            };
            let fitted = mkl.fit(&set, &targets, &()).unwrap();
            let gap = fitted.relative_gap();
            // Where the rounding of kernels in f32 is in the way a little more is left; it was 0.4 to 1.
            assert!(gap <= 3e-3, "seed {seed}, C {c}: {gap}");
            if seed == 3 {
                assert_eq!(fitted.status, Status::Converged, "C {c}: {gap}");
                assert!(fitted.iterations < 100, "{} rounds", fitted.iterations);
            }
        }
    }
}
