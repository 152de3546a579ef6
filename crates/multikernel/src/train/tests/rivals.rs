//! The systems that papers compare with, as a user calls them.

use super::*;

fn with(solver: &str) -> Mkl {
    Mkl {
        solver: solver.parse().unwrap(),
        c: 10.0,
        ..Mkl::default()
    }
}

/// 120 samples of three digits, 12 kernels in four groups.
fn problem() -> (KernelSet, Targets) {
    let (views, labels) = some_digits(&["3", "5", "8"], 120);
    let set = kernels(&["rbf:width=mean*0.5|mean|mean*2"], &views);
    (set, targets(&labels))
}

fn two_classes() -> (KernelSet, Targets) {
    let (views, labels) = some_digits(&["3", "8"], 100);
    let set = kernels(&["rbf:width=mean*0.5|mean|mean*2"], &views);
    (set, targets(&labels))
}

#[test]
fn sparse_solvers_reach_the_exact_objective() {
    for (set, targets, multiclass) in [
        (two_classes(), "auto"),
        (problem(), "joint"),
        (problem(), "ovr"),
        (problem(), "ovo"),
    ]
    .map(|((set, targets), multiclass)| (set, targets, multiclass))
    {
        let mkl = |solver: &str, norm: &str| Mkl {
            norm: norm.parse().unwrap(),
            multiclass: multiclass.parse().unwrap(),
            tolerance: 1e-4,
            ..with(solver)
        };
        let agree = |norm: &str, solvers: &[&str]| {
            let exact = mkl("exact", norm).fit(&set, &targets, &()).unwrap();
            for solver in solvers {
                let fitted = mkl(solver, norm).fit(&set, &targets, &()).unwrap();
                assert_eq!(fitted.status, Status::Converged, "{solver} {multiclass}");
                assert_eq!(fitted.solver.to_string(), *solver);
                let (a, b) = (exact.certificate.primal, fitted.certificate.primal);
                assert!(
                    (a - b).abs() <= 2e-4 * a,
                    "{solver} {multiclass}: {a} and {b}"
                );
                assert_eq!(fitted.problems.len(), exact.problems.len());
            }
        };
        agree("lp:1", &["silp", "simple", "hessian", "mirror"]);
        agree("mixed", &["mirror"]);
        agree("lp:4/3", &["sip", "newton"]);
        if multiclass == "joint" {
            agree("lp:1", &["mc-mkl"]);
        }
    }
}

#[test]
fn without_a_norm_solvers_take_theirs_and_say_so() {
    let (set, targets) = two_classes();
    for (solver, norm) in [("silp", "lp:1"), ("mirror", "mixed"), ("sip", "lp:4/3")] {
        let fitted = with(solver).fit(&set, &targets, &()).unwrap();
        assert_eq!(fitted.model.norm().to_string(), norm, "{solver}");
        let said = fitted
            .notes
            .iter()
            .any(|note| note.contains(&format!("the norm is {norm}")));
        assert_eq!(said, norm != "lp:4/3", "{:?}", fitted.notes);
    }
    // One group: the same solver is for lp:1.
    let one = kernels(&["rbf:group=all,width=mean*0.5|mean|mean*2"], set.views());
    let fitted = with("mirror").fit(&one, &targets, &()).unwrap();
    assert_eq!(fitted.model.norm().to_string(), "lp:1");
}

#[test]
fn mixed_norms_keep_every_group_where_sparse_ones_drop_some() {
    let (set, targets) = problem();
    let kept = |norm: &str| -> usize {
        let mkl = Mkl {
            norm: norm.parse().unwrap(),
            ..with("mirror")
        };
        let fitted = mkl.fit(&set, &targets, &()).unwrap();
        let largest = fitted
            .kernels
            .iter()
            .map(|k| k.weights[0])
            .fold(0.0, f64::max);
        let mut groups: Vec<&str> = fitted
            .kernels
            .iter()
            .filter(|k| k.weights[0] > 1e-3 * largest)
            .map(|k| k.group.as_str())
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups.len()
    };
    assert_eq!(kept("mixed"), 4);
    assert!(kept("lp:1") <= 4);
}

#[test]
fn what_cannot_be_mixed_is_said_with_what_can() {
    let (set, classes) = two_classes();
    let numbers = Targets::Real((0..100).map(f64::from).collect());
    let refused = |mkl: Mkl, targets: &Targets, found: &str, remedy: &str| {
        let error = mkl.fit(&set, targets, &()).unwrap_err().to_string();
        assert!(error.contains(found) && error.contains(remedy), "{error}");
    };
    let normed = |solver: &str, norm: &str| Mkl {
        norm: norm.parse().unwrap(),
        ..with(solver)
    };
    refused(
        normed("silp", "lp:2"),
        &classes,
        "silp does not solve lp:2",
        "give lp:1",
    );
    refused(
        normed("sip", "lp:1"),
        &classes,
        "sip does not solve lp:1",
        "give lp:P with 1 < P < inf",
    );
    refused(
        normed("mirror", "lp:2"),
        &classes,
        "mirror does not solve lp:2",
        "give mixed or lp:1",
    );
    refused(
        with("lp-beta"),
        &numbers,
        "tells classes apart",
        "the solver exact",
    );
    refused(
        with("mc-mkl"),
        &numbers,
        "tells classes apart",
        "the solver silp",
    );
    refused(
        with("best"),
        &Targets::None,
        "nothing to predict",
        "give labels",
    );
    refused(
        with("align"),
        &Targets::None,
        "none to align kernels with",
        "average",
    );
    let pairs = |solver: &str| Mkl {
        multiclass: Multiclass::OneVsOne,
        ..with(solver)
    };
    refused(
        pairs("mc-mkl"),
        &classes,
        "joint problem of all classes",
        "silp",
    );
    refused(pairs("lp-beta"), &classes, "scores of pairs", "give joint");
    let views = crate::data::Views::new(
        ["a", "b"]
            .map(|name| crate::data::View {
                name: name.into(),
                columns: Vec::new(),
                data: crate::data::ViewData::Pairwise(
                    crate::data::Pairwise::new(100, 100, set.gram().kernel(0).matrix()).unwrap(),
                ),
            })
            .into(),
    )
    .unwrap();
    let given = kernels(&["precomputed"], &views);
    let error = normed("exact", "mixed")
        .fit(&given, &classes, &())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("none of the 2 given matrices has a group"),
        "{error}"
    );
}

#[test]
fn chosen_weights_are_certified() {
    let (set, targets) = problem();
    let m = set.kernels().len();
    for solver in ["average", "align", "alignf", "best"] {
        for bias in [Bias::Auto, Bias::On] {
            let fitted = Mkl {
                bias,
                ..with(solver)
            }
            .fit(&set, &targets, &())
            .unwrap();
            assert_eq!(fitted.status, Status::Converged, "{solver}");
            let total: f64 = fitted.kernels[..m].iter().map(|k| k.weights[0]).sum();
            assert!((total - 1.0).abs() < 1e-9, "{solver}: {total}");
        }
    }
    // A weight is the same as a scaled kernel: the average at C is the sum at C/M, but for the scale of the objective.
    let average = with("average").fit(&set, &targets, &()).unwrap();
    let sum = Mkl {
        c: 10.0 / m as f64,
        ..with("sum")
    }
    .fit(&set, &targets, &())
    .unwrap();
    let (a, b) = (
        average.certificate.primal / m as f64,
        sum.certificate.primal,
    );
    assert!((a - b).abs() <= 2e-3 * b, "{a} and {b}");
}

#[test]
fn the_best_kernel_is_the_informative_one() {
    let (views, labels) = some_digits(&["3", "8"], 100);
    let set = kernels(
        &["rbf:view=upper_left,width=1e-9", "rbf:view=lower_left"],
        &views,
    );
    let fitted = with("best").fit(&set, &targets(&labels), &()).unwrap();
    assert_eq!(fitted.kernels[0].weights, [0.0]);
    assert_eq!(fitted.kernels[1].weights, [1.0]);
    assert!(
        fitted
            .notes
            .iter()
            .any(|note| note.contains("is the best of 2 by 5 folds"))
    );
}

#[test]
fn the_product_kernel_is_the_entrywise_product() {
    let (views, labels) = some_digits(&["3", "8"], 60);
    let set = kernels(&["rbf:view=upper_left", "rbf:view=lower_left"], &views);
    let targets = targets(&labels);
    let fitted = with("product").fit(&set, &targets, &()).unwrap();
    assert_eq!(fitted.kernels.len(), 3);
    assert_eq!(fitted.kernels[2].weights, [1.0]);
    let direct = kernels(
        &[
            "rbf:view=upper_left,name=a",
            "rbf:view=lower_left,name=b",
            "product:of=a*b",
        ],
        &views,
    );
    let same = with("sum")
        .fit_kernels(&direct, &[2], &targets, &())
        .unwrap();
    assert_eq!(fitted.certificate.primal, same.certificate.primal);
    // A product of very narrow kernels knows each sample alone.
    let narrow = kernels(&["rbf:width=mean*0.05|mean*0.06|mean*0.07"], &views);
    let fitted = with("product").fit(&narrow, &targets, &()).unwrap();
    assert!(
        fitted
            .warnings
            .iter()
            .any(|w| w.contains("nearly diagonal")),
        "{:?}",
        fitted.warnings
    );
}

#[test]
fn lp_beta_mixes_svms() {
    let (views, labels) = some_digits(&["3", "5", "8"], 240);
    let (train, test): (Vec<usize>, Vec<usize>) = (0..240).partition(|i| i % 2 == 0);
    let set = kernels(&["rbf"], &views.select(&train).unwrap());
    let fit = |multiclass: Multiclass| {
        let mkl = Mkl {
            multiclass,
            ..with("lp-beta")
        };
        let fitted = mkl
            .fit(&set, &targets(&labels.select(&train)), &())
            .unwrap();
        let again = Model::from_bytes(&fitted.model.to_bytes().unwrap()).unwrap();
        let scores = again.scores(&views.select(&test).unwrap()).unwrap();
        assert_eq!(
            scores.values,
            fitted
                .model
                .scores(&views.select(&test).unwrap())
                .unwrap()
                .values
        );
        let truth = labels.select(&test).class_index(again.classes());
        let metrics = measure(&again.predictions(&scores), &scores, Truth::Classes(&truth));
        (fitted, metrics["accuracy"])
    };
    let (beta, accuracy) = fit(Multiclass::Auto);
    assert!(accuracy > 0.9, "{accuracy}");
    assert!(beta.certificate.primal.is_nan() && beta.relative_gap().is_infinite());
    assert_eq!(beta.model.scheme(), Scheme::Joint);
    let total: f64 = beta.kernels.iter().map(|k| k.weights[0]).sum();
    assert!((total - 1.0).abs() < 1e-9);
    let (by_class, accuracy) = fit(Multiclass::OneVsRest);
    assert!(accuracy > 0.9, "{accuracy}");
    assert_eq!(by_class.model.scheme(), Scheme::OneVsRest);
    for k in 0..3 {
        let total: f64 = by_class
            .kernels
            .iter()
            .map(|kernel| kernel.weights[k])
            .sum();
        assert!((total - 1.0).abs() < 1e-9);
    }
    // One kernel: the mixture is that kernel's SVM.
    let (set, targets) = two_classes();
    let alone = with("lp-beta")
        .fit_kernels(&set, &[4], &targets, &())
        .unwrap();
    let svm = with("sum").fit_kernels(&set, &[4], &targets, &()).unwrap();
    assert_eq!(alone.model.coefficients(), svm.model.coefficients());
    assert_eq!(alone.model.biases(), svm.model.biases());
}

#[test]
fn leave_one_out_is_what_leaving_out_gives() {
    let (views, labels) = some_digits(&["3", "8"], 16);
    let set = kernels(&["rbf:view=upper_left", "linear:view=lower_left"], &views);
    let values: Vec<f64> = (0..16)
        .map(|i| f64::from(u8::from(labels.spelling(i) == "8")) + 0.1 * i as f64)
        .collect();
    let found =
        crate::train::baseline::leave_one_out(set.gram(), &Targets::Real(values.clone()), 3.0, &())
            .unwrap();
    for (m, found) in found.iter().enumerate() {
        let mut sum = 0.0;
        for out in 0..16 {
            let rows: Vec<usize> = (0..16).filter(|&i| i != out).collect();
            let part = set.part(&rows, u64::MAX, u64::MAX).unwrap();
            let mkl = Mkl {
                loss: Some("squared".parse().unwrap()),
                c: 3.0,
                tolerance: 1e-12,
                ..with("sum")
            };
            let fitted = mkl
                .fit_kernels(
                    &part,
                    &[m],
                    &Targets::Real(values.clone()).select(&rows),
                    &(),
                )
                .unwrap();
            let predicted = fitted
                .model
                .scores(&views.select(&[out]).unwrap())
                .unwrap()
                .values[0];
            sum += (predicted - values[out]).powi(2);
        }
        // kernels are held in f32
        assert!(
            (found - sum / 16.0).abs() < 1e-3 * found,
            "{found} and {}",
            sum / 16.0
        );
    }
    let classes =
        crate::train::baseline::leave_one_out(set.gram(), &targets(&labels), 3.0, &()).unwrap();
    assert!(classes.iter().all(|e| (0.0..=1.0).contains(e)));
    let none =
        crate::train::baseline::leave_one_out(set.gram(), &Targets::None, 3.0, &()).unwrap_err();
    assert!(
        none.to_string()
            .contains("there is not one for each sample")
    );
}
