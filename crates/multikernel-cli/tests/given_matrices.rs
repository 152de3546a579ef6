//! Training on given matrices and predicting from them, through the real binary.

mod common;

use common::{Folder, TRAIN, lines, noise, number, two_views, with};

#[test]
fn a_clipped_matrix_trains_and_predicts_its_own_samples() {
    let folder = Folder::new();
    let n = 60;
    let class = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    // Two classes, and noise that no kernel has.
    folder.array("k.npy", &[n, n], |k| {
        let (i, j) = (k / n, k % n);
        class(i) * class(j) + noise(i.max(j) * n + i.min(j))
    });
    folder.array("rows.npy", &[7, n], |k| {
        let (i, j) = (k / n, k % n);
        class(i) * class(j) + noise(i.max(j) * n + i.min(j))
    });
    let labels: Vec<&str> = (0..n)
        .map(|i| if class(i) > 0.0 { "a" } else { "b" })
        .collect();
    folder.write("y.txt", labels.join("\n"));
    let options = ["--indefinite", "clip"];
    let train = [
        "train", "--gram", "k.npy", "--labels", "y.txt", "--model", "m.mk",
    ];
    assert!(
        folder
            .bad(&train)
            .contains("--indefinite clip, shift or allow")
    );
    let said = folder.good(&[&train[..], &options].concat());
    assert!(
        said.contains("negative eigenvalues were set to 0"),
        "{said}"
    );
    // Clipped once and for all: the same model comes of it, without a repair.
    let save = ["gram", "--gram", "k.npy", "--out", "clipped.npy"];
    let said = folder.good(&[&save[..], &options].concat());
    assert!(
        said.contains("negative eigenvalues were set to 0"),
        "{said}"
    );
    let again = [
        "train",
        "--gram",
        "clipped.npy",
        "--labels",
        "y.txt",
        "--model",
        "again.mk",
    ];
    folder.good(&again);
    let scores = |model: &str, gram: &str| -> Vec<f64> {
        folder.good(&[
            "predict", "--model", model, "--gram", gram, "--scores", "--out", "p.csv",
        ]);
        lines(&folder, "p.csv")
            .iter()
            .skip(1)
            .map(|line| {
                line.split(',')
                    .nth(1)
                    .expect("score")
                    .parse()
                    .expect("number")
            })
            .collect()
    };
    let trained = scores("again.mk", "clipped.npy");
    let projected = scores("m.mk", "k.npy");
    assert_eq!((trained.len(), projected.len()), (n, n));
    for (a, b) in trained.iter().zip(&projected) {
        assert!((a - b).abs() < 1e-2, "{a} {b}");
    }
    for (a, b) in scores("m.mk", "rows.npy").iter().zip(&projected) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    // Without clipping its rows are others.
    assert!(
        projected
            .iter()
            .zip(scores("again.mk", "k.npy"))
            .any(|(a, b)| (a - b).abs() > 0.1)
    );
}

#[test]
fn given_matrices_train_and_predict_by_name_or_order() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "rbf",
        "--kernel",
        "linear",
        "--out",
        "k.npz",
    ]);
    folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "rbf",
        "--kernel",
        "linear",
        "--out",
        "k.npy",
    ]);
    let train = |gram: &str, model: &str| {
        let text = folder.good(&[
            "train",
            "--gram",
            gram,
            "--labels",
            "v.txt",
            "--model",
            model,
            "--norm",
            "lp:1",
            "--no-baselines",
        ]);
        assert!(text.contains("4 kernels"), "{text}");
    };
    train("k.npz", "m.mk");
    train("k.npy", "n.mk");
    let predict = |gram: &str, model: &str, out: &str| {
        folder.good(&[
            "predict", "--model", model, "--gram", gram, "--scores", "--out", out,
        ]);
        lines(&folder, out)
    };
    let named = predict("k.npz", "m.mk", "a.csv");
    let numbered = predict("k.npy", "n.mk", "b.csv");
    assert_eq!(named.len(), 61);
    assert_eq!(named, numbered);
    // The same samples as features give the same scores, up to the rounding of stored kernels.
    folder.good(&with(
        &TRAIN,
        &["--kernel", "linear", "--norm", "lp:1", "--no-baselines"],
    ));
    folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "v.npz",
        "--scores",
        "--out",
        "c.csv",
    ]);
    for (given, own) in named.iter().zip(lines(&folder, "c.csv")).skip(1) {
        let score = |line: &str| {
            line.split(',')
                .nth(1)
                .expect("score")
                .parse::<f64>()
                .expect("number")
        };
        assert!((score(given) - score(&own)).abs() < 1e-2, "{given} {own}");
    }
}

#[test]
fn a_matrix_of_all_samples_serves_a_model_that_held_some_out() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "rbf",
        "--out",
        "k.npz",
    ]);
    let common = ["--labels", "v.txt", "--holdout", "0.3", "--no-baselines"];
    let matrix = folder.json(&with(
        &["train", "--gram", "k.npz", "--model", "a.mk"],
        &common,
    ));
    let kernels = ["--kernel", "rbf:view=good", "--kernel", "rbf:view=bad"];
    let features = with(
        &["train", "--features", "v.npz", "--model", "b.mk"],
        &common,
    );
    let features = folder.json(&with(&features, &kernels));
    assert_eq!(matrix["n_samples"], 42);
    assert_eq!(features["n_samples"], 42);
    folder.good(&[
        "predict", "--model", "a.mk", "--gram", "k.npz", "--labels", "v.txt", "--out", "p.csv",
    ]);
    let held = number(&matrix["metrics"]["accuracy"]);
    let training = number(&matrix["metrics"]["train_accuracy"]);
    let all = folder.json(&[
        "predict", "--model", "a.mk", "--gram", "k.npz", "--labels", "v.txt", "--out", "p.csv",
    ]);
    let expected = (42.0 * training + 18.0 * held) / 60.0;
    let accuracy = number(&all["metrics"]["accuracy"]);
    assert!((accuracy - expected).abs() < 1e-9, "{accuracy} {expected}");
}
