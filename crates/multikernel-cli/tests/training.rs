//! `multikernel train`, `predict`, `demo`, `solvers` and `inspect` of models through the real binary.

mod common;

use common::{Folder, noise, number, stderr, two_views, with};
use serde_json::Value;
use std::process::Stdio;

const LABELS: [&str; 3] = ["Rot, dunkel", "grün", "Blau"];

/// A feature of sample `i`: the class moves the first two columns, the third is noise.
fn feature(i: usize, column: usize, seed: usize) -> f32 {
    let class = i % 3;
    let mean = match column {
        0 => 4.0 * class as f32,
        1 => 4.0 * (class == 1) as u8 as f32,
        _ => 0.0,
    };
    mean + noise(seed + 10 * i + column)
}

/// A CSV file with an id, three features in the order given and a label of three classes.
fn table(folder: &Folder, name: &str, n: usize, seed: usize, columns: [usize; 3]) {
    let mut text = String::from("id,");
    text.push_str(&columns.map(|c| format!("x{c},")).concat());
    text.push_str("colour\n");
    for i in 0..n {
        let values = columns
            .map(|c| format!("{},", feature(i, c, seed)))
            .concat();
        text.push_str(&format!("s{i},{values}\"{}\"\n", LABELS[i % 3]));
    }
    folder.write(name, text);
}

/// The lines of a CSV file that 'predict' wrote.
fn lines(folder: &Folder, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path(name)).expect("predictions");
    text.lines().map(str::to_owned).collect()
}

const VIEWS: [&str; 9] = [
    "train",
    "--features",
    "v.npz",
    "--labels",
    "v.txt",
    "--model",
    "m.mk",
    "--kernel",
    "rbf",
];

#[test]
fn a_table_with_words_as_labels_comes_back_in_their_spelling() {
    let folder = Folder::new();
    table(&folder, "train.csv", 90, 0, [0, 1, 2]);
    table(&folder, "test.csv", 30, 50_000, [2, 0, 1]);
    let text = folder.good(&[
        "train",
        "--features",
        "train.csv",
        "--label-column",
        "colour",
        "--id-column",
        "id",
        "--scale",
        "standard",
        "--model",
        "m.mk",
        "--holdout",
        "0.2",
    ]);
    for expected in [
        "3 classes: one problem for all of them, with one set of kernel weights (joint)",
        "classify, 3 classes jointly: 72 samples (18 more held out), 6 kernels",
        "norm lp:4/3, loss multiclass-hinge, C 1, bias off, solver exact",
        "kernel weights\n",
        "█",
        "relative gap",
        "converged",
        "accuracy held out",
        "unweighted sum",
        "best single kernel",
        "model written to m.mk",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // Another file name, another order of the columns, and the label column still inside.
    let text = folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "test.csv",
        "--label-column",
        "colour",
        "--id-column",
        "id",
        "--out",
        "p.csv",
        "--scores",
    ]);
    assert!(text.contains("'test' as 'train'"), "{text}");
    assert!(text.contains("order of training"), "{text}");
    let accuracy = text
        .lines()
        .find(|l| l.starts_with("accuracy "))
        .expect("accuracy");
    let accuracy: f64 = accuracy[9..].parse().expect("number");
    let written = lines(&folder, "p.csv");
    assert_eq!(written.len(), 31);
    assert_eq!(
        written[0],
        "id,prediction,score_Blau,\"score_Rot, dunkel\",score_grün"
    );
    let right = (0..30)
        .filter(|&i| {
            let label = match LABELS[i % 3] {
                "Rot, dunkel" => "\"Rot, dunkel\"",
                plain => plain,
            };
            written[i + 1].starts_with(&format!("s{i},{label},"))
        })
        .count();
    assert!(right >= 27, "{written:?}");
    assert!(
        (accuracy - right as f64 / 30.0).abs() < 1e-4,
        "{accuracy} {right}"
    );
    // A column that training did not have is left out.
    let text = std::fs::read_to_string(folder.path("test.csv")).expect("text");
    let mut more = String::new();
    for (k, line) in text.lines().enumerate() {
        let values = &line[..line.rfind(",\"").or(line.rfind(',')).expect("a comma")];
        more.push_str(&format!(
            "{values},{}\n",
            if k == 0 { "extra" } else { "7" }
        ));
    }
    folder.write("more.csv", more);
    let text = folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "more.csv",
        "--id-column",
        "id",
        "--out",
        "q.csv",
        "--scores",
    ]);
    assert!(text.contains("left out ('extra')"), "{text}");
    assert_eq!(lines(&folder, "q.csv"), written);
    // Stdout holds the CSV alone.
    let out = folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "more.csv",
        "--id-column",
        "id",
        "--out",
        "-",
        "--scores",
    ]);
    assert_eq!(out.lines().collect::<Vec<_>>(), written);
    assert_eq!(
        folder.names(),
        [
            "m.mk",
            "more.csv",
            "p.csv",
            "q.csv",
            "test.csv",
            "train.csv"
        ]
    );
}

#[test]
fn the_result_object_has_the_documented_keys_and_no_others() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let result = folder.json(&with(&VIEWS, &["--holdout", "0.25", "--seed", "3"]));
    let mut keys: Vec<&String> = result.as_object().expect("an object").keys().collect();
    keys.sort();
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
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(result["status"], "converged");
    assert_eq!(result["task"], "classify");
    assert_eq!(result["norm"]["kind"], "lp");
    assert_eq!(result["objective_scale"], "sum");
    assert_eq!(result["seed"], 3);
    assert_eq!(result["n_samples"], 45);
    assert!(number(&result["relative_gap"]) <= 1e-3);
    assert!(number(&result["dual"]) <= number(&result["primal"]));
    let kernel = &result["kernels"][0];
    assert_eq!(kernel["name"], "good/rbf(mean)");
    assert_eq!(kernel["group"], "good");
    assert!(number(&kernel["weight"]) > number(&result["kernels"][1]["weight"]));
    assert!(number(&kernel["group_norm"]) > 0.0);
    for key in ["load", "kernels", "train", "total"] {
        assert!(number(&result["seconds"][key]) >= 0.0);
    }
    for key in [
        "train_accuracy",
        "accuracy",
        "balanced_accuracy",
        "mcc",
        "auc",
    ] {
        assert!(number(&result["metrics"][key]) <= 1.0, "{key}");
    }
    for key in ["sum", "best_single"] {
        assert!(number(&result["baselines"][key]["accuracy"]) <= 1.0);
    }
    assert_eq!(
        result["baselines"]["best_single"]["kernel"],
        "good/rbf(mean)"
    );
    let without = folder.json(&with(&VIEWS, &["--no-baselines"]));
    assert_eq!(without["baselines"], serde_json::json!({}));
    assert!(
        without["metrics"].get("accuracy").is_none(),
        "nothing was held out"
    );
}

#[test]
fn lambda_is_another_way_to_say_c() {
    let folder = Folder::new();
    two_views(&folder, "v", 50, 0);
    let quiet = ["--no-baselines", "--tol", "1e-6"];
    let one = folder.json(&with(&with(&VIEWS, &quiet), &["--C", "4"]));
    let other = folder.json(&with(&with(&VIEWS, &quiet), &["--lambda", "0.005"]));
    assert_eq!(number(&other["C"]), 4.0);
    for key in ["primal", "dual", "kernels", "bias", "n_support"] {
        assert_eq!(one[key], other[key], "{key}");
    }
    // Of those that are trained on, not of all.
    let held = folder.json(&with(
        &with(&VIEWS, &quiet),
        &["--lambda", "0.005", "--holdout", "0.2"],
    ));
    assert!((number(&held["C"]) - 5.0).abs() < 1e-9);
}

#[test]
fn weights_of_classes_and_samples_count_as_repetitions_would() {
    let folder = Folder::new();
    two_views(&folder, "v", 50, 0);
    let plain = with(&VIEWS, &["--no-baselines", "--tol", "1e-6"]);
    let base = number(&folder.json(&plain)["primal"]);
    let classes = folder.json(&with(&plain, &["--class-weight", "yes=3"]));
    let weights: Vec<&str> = (0..50).map(|i| ["1", "3"][i % 2]).collect();
    folder.write("w.txt", weights.join("\n"));
    let samples = folder.json(&with(&plain, &["--sample-weight", "w.txt"]));
    let (a, b) = (number(&classes["primal"]), number(&samples["primal"]));
    assert!((a - b).abs() <= 1e-9 * a, "{a} {b}");
    assert!(a > base * 1.01, "dearer errors cost more: {a} {base}");
    let balanced = folder.json(&with(&plain, &["--class-weight", "balanced"]));
    let c = number(&balanced["primal"]);
    assert!(
        (c - base).abs() <= 1e-9 * c,
        "the classes are of one size: {c} {base}"
    );
    // Weights follow their samples into the training part.
    folder.good(&with(
        &plain,
        &["--sample-weight", "w.txt", "--holdout", "0.3"],
    ));
}

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
        &VIEWS,
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

#[test]
fn libsvm_text_may_use_fewer_columns_when_it_is_predicted() {
    let folder = Folder::new();
    let line = |i: usize| {
        let y = if i.is_multiple_of(2) { "+1" } else { "-1" };
        let x = if i.is_multiple_of(2) { 2.0 } else { -2.0 };
        format!("{y} 1:{} 3:{}\n", x + noise(i), noise(1000 + i))
    };
    folder.write("a.libsvm", (0..40).map(line).collect::<String>());
    folder.write("b.libsvm", "+1 1:2.5\n-1 1:-2.5\n");
    folder.good(&[
        "train",
        "--features",
        "a.libsvm",
        "--model",
        "m.mk",
        "--no-baselines",
    ]);
    let result = folder.json(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "b.libsvm",
        "--out",
        "p.csv",
    ]);
    assert_eq!(lines(&folder, "p.csv"), ["prediction", "+1", "-1"]);
    assert_eq!(number(&result["metrics"]["accuracy"]), 1.0);
}

#[test]
fn real_values_are_regressed() {
    let folder = Folder::new();
    folder.array("x.npy", &[80, 2], noise);
    let y: Vec<String> = (0..80)
        .map(|i| (3.0 * noise(2 * i) - noise(2 * i + 1) + 0.5).to_string())
        .collect();
    folder.write("y.txt", y.join("\n"));
    let train = [
        "train",
        "--features",
        "x.npy",
        "--labels",
        "y.txt",
        "--model",
        "m.mk",
    ];
    let result = folder.json(&with(
        &train,
        &["--C", "100", "--loss", "epsilon:0.05", "--holdout", "0.2"],
    ));
    assert_eq!(result["task"], "regress");
    assert!(
        number(&result["metrics"]["r2"]) > 0.95,
        "{}",
        result["metrics"]
    );
    assert!(number(&result["baselines"]["sum"]["mae"]) > 0.0);
    let text = folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "x.npy",
        "--labels",
        "y.txt",
        "--out",
        "p.csv",
        "--scores",
    ]);
    assert!(
        text.contains("R²") && text.contains("mean absolute error"),
        "{text}"
    );
    let written = lines(&folder, "p.csv");
    assert_eq!(written[0], "prediction,score");
    let first: f64 = written[1]
        .split(',')
        .next()
        .expect("value")
        .parse()
        .expect("number");
    assert!((first - y[0].parse::<f64>().expect("number")).abs() < 0.5);
    for loss in ["squared", "huber:0.5"] {
        let result = folder.json(&with(&train, &["--loss", loss, "--no-baselines"]));
        assert_eq!(result["status"], "converged", "{loss}");
    }
}

#[test]
fn without_labels_one_class_is_learned() {
    let folder = Folder::new();
    folder.array("x.npy", &[50, 2], noise);
    folder.array("far.npy", &[3, 2], |_| 40.0);
    let result = folder.json(&[
        "train",
        "--features",
        "x.npy",
        "--model",
        "m.mk",
        "--kernel",
        "rbf",
    ]);
    assert_eq!(result["task"], "one-class");
    assert_eq!(result["bias"], Value::Null);
    folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "far.npy",
        "--out",
        "p.csv",
    ]);
    assert_eq!(
        lines(&folder, "p.csv")[1..],
        ["outlier", "outlier", "outlier"]
    );
}

#[test]
fn all_solvers_and_norms_reach_what_they_promise() {
    let folder = Folder::new();
    two_views(&folder, "v", 50, 0);
    let plain = with(&VIEWS, &["--no-baselines", "--tol", "1e-4"]);
    let exact = number(&folder.json(&plain)["primal"]);
    for solver in ["auto", "exact", "wrapper", "interleaved"] {
        let result = folder.json(&with(&plain, &["--solver", solver]));
        assert_eq!(result["status"], "converged", "{solver}");
        let primal = number(&result["primal"]);
        assert!(
            (primal - exact).abs() <= 2e-4 * exact,
            "{solver}: {primal} {exact}"
        );
    }
    let inf = number(&folder.json(&with(&plain, &["--norm", "lp:inf"]))["primal"]);
    let sum = folder.json(&with(&plain, &["--solver", "sum"]));
    assert!((number(&sum["primal"]) - inf).abs() <= 2e-4 * inf);
    assert_eq!(sum["norm"]["value"], "inf");
    folder.array("e.npy", &[2, 2], |k| if k % 3 == 0 { 2.0 } else { 0.5 });
    for norm in [
        "lp:1",
        "block:1.5",
        "block:auto",
        "block:3",
        "elastic:0.5",
        "mixed",
        "noniso:e.npy",
    ] {
        let result = folder.json(&with(&plain, &["--norm", norm]));
        assert_eq!(result["status"], "converged", "{norm}");
    }
    let priced = folder.json(&with(&plain, &["--tikhonov", "0.5"]));
    assert_eq!(priced["status"], "converged");
    let names = folder.good(&["solvers"]);
    for expected in [
        "exact",
        "wrapper",
        "interleaved",
        "Algorithm 2",
        "relative duality gap",
    ] {
        assert!(names.contains(expected), "{expected}: {names}");
    }
}

#[test]
fn every_solver_of_the_list_trains_and_predicts() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let listed = folder.json(&["solvers"]);
    let names: Vec<&str> = listed
        .as_array()
        .or(listed["solvers"].as_array())
        .expect("a list")
        .iter()
        .map(|solver| solver["name"].as_str().expect("a name"))
        .collect();
    assert!(names.len() >= 23, "{names:?}");
    let sparse =
        number(&folder.json(&with(&VIEWS, &["--no-baselines", "--norm", "lp:1"]))["primal"]);
    for name in names {
        let result = folder.json(&with(&VIEWS, &["--no-baselines", "--solver", name]));
        if name != "auto" {
            assert_eq!(result["solver"], name);
        }
        assert!(
            number(&result["metrics"]["train_accuracy"]) > 0.8,
            "{name}: {result}"
        );
        if ["silp", "simple", "hessian", "mirror"].contains(&name) {
            assert_eq!(result["norm"]["kind"], "lp", "{name}");
            let primal = number(&result["primal"]);
            assert!(
                (primal - sparse).abs() <= 2e-3 * sparse,
                "{name}: {primal} {sparse}"
            );
        }
        folder.good(&[
            "predict",
            "--model",
            "m.mk",
            "--features",
            "v.npz",
            "--out",
            "p.csv",
        ]);
        assert_eq!(lines(&folder, "p.csv").len(), 61, "{name}");
    }
}

#[test]
fn what_solvers_and_norms_cannot_do_together_is_one_sentence() {
    let folder = Folder::new();
    two_views(&folder, "v", 40, 0);
    folder.array("k.npy", &[2, 40, 40], |k| {
        f32::from(u8::from((k / 40) % 40 == k % 40))
    });
    let numbers: Vec<String> = (0..40).map(|i| format!("{}.5", i)).collect();
    folder.write("numbers.txt", numbers.join("\n"));
    let refused = |words: &[&str], sentence: &str| {
        let error = folder.bad(words);
        assert!(error.contains(sentence), "{error}");
        assert!(error.lines().count() <= 3, "{error}");
    };
    // The usual norm, asked for, is not another one.
    refused(
        &with(&VIEWS, &["--solver", "silp", "--norm", "lp:4/3"]),
        "solver silp does not solve lp:4/3; give lp:1, or the solver exact",
    );
    refused(
        &with(&VIEWS, &["--solver", "newton", "--norm", "mixed"]),
        "solver newton does not solve mixed; give lp:P with 1 < P < inf",
    );
    let given = [
        "train", "--gram", "k.npy", "--labels", "v.txt", "--model", "m.mk", "--norm", "mixed",
    ];
    refused(&given, "none of the 2 given matrices has a group");
    folder.good(&with(&given, &["--groups", "a,a"]));
    let regression = [
        "train",
        "--features",
        "v.npz",
        "--labels",
        "numbers.txt",
        "--model",
        "m.mk",
    ];
    refused(
        &with(&regression, &["--solver", "lp-beta"]),
        "it tells classes apart",
    );
    refused(
        &with(&regression, &["--solver", "mc-mkl"]),
        "give the solver silp",
    );
}

#[test]
fn several_classes_may_be_told_apart_in_pairs() {
    let folder = Folder::new();
    table(&folder, "t.csv", 60, 0, [0, 1, 2]);
    let train = [
        "train",
        "--features",
        "t.csv",
        "--label-column",
        "colour",
        "--id-column",
        "id",
        "--model",
        "m.mk",
        "--no-baselines",
    ];
    for (way, problems) in [("ovr", 3), ("ovo", 3)] {
        let result = folder.json(&with(&train, &["--multiclass", way]));
        assert_eq!(result["multiclass"], way);
        let weights = result["kernels"][0]["weight"].as_array().expect("a list");
        assert_eq!(weights.len(), problems);
        assert!(number(&result["metrics"]["train_accuracy"]) > 0.9);
    }
}

/// The digits as a .npz of two views, with labels.
fn digits(folder: &Folder, n: usize) {
    let data = multikernel::data::digits().expect("inside the library");
    let rows: Vec<usize> = (0..n).collect();
    let views = data.views.select(&rows).expect("rows");
    let columns = |v: usize| match &views.iter().nth(v).expect("a view").data {
        multikernel::data::ViewData::Dense(x) => x.values().to_vec(),
        _ => panic!("pixels"),
    };
    let (upper, lower) = (columns(0), columns(3));
    folder.arrays("d.npz", &[("a", &[n, 16]), ("b", &[n, 16])], |v, k| {
        [&upper, &lower][v][k]
    });
    let labels = data.labels.expect("labels").select(&rows);
    let targets =
        multikernel::data::Targets::new(Some(&labels), multikernel::data::Task::Classify, n);
    let Ok(multikernel::data::Targets::Classes { names, index }) = targets else {
        panic!("classes")
    };
    let labels: Vec<&str> = index.iter().map(|&c| names[c as usize].as_str()).collect();
    folder.write("y.txt", labels.join("\n"));
}

#[test]
fn all_classes_jointly_from_views_and_from_matrices() {
    let folder = Folder::new();
    digits(&folder, 300);
    let train = |from: &[&'static str], more: &[&'static str]| {
        let first = ["train", "--labels", "y.txt", "--model", "m.mk"];
        folder.json(&[&first, from, more].concat())
    };
    let views = ["--features", "d.npz", "--kernel", "rbf:width=mean*0.5|mean"];
    let joint = train(&views, &["--multiclass", "joint", "--holdout", "0.2"]);
    assert_eq!(joint["multiclass"], "joint");
    assert_eq!(joint["status"], "converged");
    assert_eq!(
        (&joint["n_classes"], &joint["n_samples"]),
        (&10.into(), &240.into())
    );
    assert!(joint["bias"].is_null());
    assert!(joint["kernels"][0]["weight"].is_number(), "{joint}");
    assert!(joint["kernels"][0]["group_norm"].is_number());
    assert!(number(&joint["metrics"]["accuracy"]) > 0.8, "{joint}");
    for baseline in ["sum", "best_single"] {
        assert!(number(&joint["baselines"][baseline]["accuracy"]) > 0.3);
    }
    let predict = ["predict", "--model", "m.mk", "--out", "p.csv", "--scores"];
    let labelled = ["--features", "d.npz", "--labels", "y.txt"];
    let text = folder.good(&with(&predict, &labelled));
    assert!(text.contains("accuracy 0.9"), "{text}");
    assert_eq!(lines(&folder, "p.csv")[0].split(',').count(), 11);
    let text = folder.good(&["inspect", "m.mk"]);
    assert!(text.contains("all classes jointly, no bias"), "{text}");

    // Classes that count more are believed more often; the objective grows with what they cost.
    let fast = "--no-baselines";
    let plain = train(&views, &[fast]);
    let heavy = train(&views, &["--class-weight", "0=5,1=5", fast]);
    assert_eq!(plain["multiclass"], "joint");
    assert!(number(&heavy["primal"]) > number(&plain["primal"]));
    let sum = train(&views, &["--solver", "sum", fast]);
    assert_eq!(
        (&sum["multiclass"], &sum["kernels"][0]["weight"]),
        (&"joint".into(), &1.0.into())
    );

    // A bias is one more kernel, which the result shows and prediction applies.
    let biased = train(&views, &["--bias", "on", fast]);
    let kernels = biased["kernels"].as_array().expect("a list");
    assert_eq!(kernels.len(), 5);
    assert_eq!(kernels[4]["name"], "constant");
    assert!(number(&kernels[4]["weight"]) > 0.0);
    assert_eq!(biased["bias"].as_array().expect("a list").len(), 10);
    let text = folder.good(&with(&predict, &labelled));
    assert!(text.contains("accuracy"), "{text}");
    let text = folder.good(&["inspect", "m.mk"]);
    assert!(text.contains("jointly, with a bias for each"), "{text}");

    // The same kernels as matrices.
    let gram = [
        "gram",
        "--features",
        "d.npz",
        "--kernel",
        "rbf:width=mean*0.5|mean",
    ];
    folder.good(&with(&gram, &["--out", "g.npz"]));
    let given = train(&["--gram", "g.npz"], &[fast, "--tol", "1e-4"]);
    assert_eq!(given["multiclass"], "joint");
    let (a, b) = (number(&given["primal"]), number(&plain["primal"]));
    assert!((a - b).abs() < 2e-3 * b, "{a} {b}");
    folder.good(&with(&predict, &["--gram", "g.npz"]));

    // What has one score per problem leaves one-vs-rest, and says so.
    for (option, word) in [("--loss", "logistic"), ("--solver", "wrapper")] {
        let text = folder.good(&[
            "train",
            "--labels",
            "y.txt",
            "--model",
            "m.mk",
            "--features",
            "d.npz",
            "--kernel",
            "rbf",
            fast,
            option,
            word,
        ]);
        assert!(text.contains("10 classes by ovr"), "{text}");
        assert!(text.contains("(ovr), since"), "{text}");
    }
}

#[test]
fn not_converged_is_said_and_strict_makes_it_count() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let late = with(
        &VIEWS,
        &["--max-seconds", "0", "--tol", "1e-9", "--no-baselines"],
    );
    let text = folder.good(&late);
    assert!(text.contains("NOT converged: the time was up"), "{text}");
    let output = folder.run(&with(&late, &["--strict", "--json", "r.json"]));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let written = std::fs::read_to_string(folder.path("r.json")).expect("the result");
    let result: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(result["status"], "time-limit");
    // The model is there and works.
    folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "v.npz",
        "--out",
        "p.csv",
    ]);
    let fine = folder.run(&with(&VIEWS, &["--strict"]));
    assert_eq!(fine.status.code(), Some(0), "{}", stderr(&fine));
}

#[test]
fn a_model_tells_what_it_is() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    folder.good(&with(
        &VIEWS,
        &[
            "--norm",
            "lp:1",
            "--scale",
            "good=standard",
            "--holdout",
            "0.2",
        ],
    ));
    let text = folder.good(&["inspect", "m.mk"]);
    for expected in [
        "model for the task classify, 2 classes (no, yes)",
        "norm lp:1, loss hinge, C 1",
        "trained by exact on 48 samples with 2 kernels, converged",
        "relative gap",
        "kernel weights",
        "of 60 training samples; new samples need",
        "standard",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let result = folder.json(&["inspect", "m.mk"]);
    assert_eq!(result["training"]["status"], "converged");
    assert_eq!(result["needed_views"][0]["name"], "good");
}

#[test]
fn same_input_same_model() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let mut scores = Vec::new();
    for threads in ["1", "2"] {
        folder.good(&with(
            &VIEWS,
            &["--threads", threads, "--holdout", "0.2", "--quiet"],
        ));
        folder.good(&[
            "predict",
            "--model",
            "m.mk",
            "--features",
            "v.npz",
            "--out",
            "p.csv",
            "--scores",
        ]);
        scores.push(lines(&folder, "p.csv"));
    }
    assert_eq!(scores[0], scores[1]);
    let silent = folder.run(&with(&VIEWS, &["--quiet"]));
    assert!(
        silent.stdout.is_empty() && silent.stderr.is_empty(),
        "{}",
        stderr(&silent)
    );
}

#[test]
fn demo_learns() {
    let folder = Folder::new();
    let result = folder.json(&["demo"]);
    assert_eq!(result["status"], "converged");
    assert_eq!(result["kernels"].as_array().expect("kernels").len(), 24);
    let accuracy = number(&result["metrics"]["accuracy"]);
    assert!(accuracy > 0.97, "{accuracy}");
    assert!(accuracy > number(&result["baselines"]["best_single"]["accuracy"]));
    assert_eq!(folder.names(), ["demo-report.html"]);
}

/// Ctrl-C in the middle of training keeps the best model so far.
#[cfg(unix)]
#[test]
fn stopping_keeps_the_model() {
    let folder = Folder::new();
    let n = 1500;
    // Labels that no feature knows: hard to fit, so that training takes long.
    folder.array("x.npy", &[n, 20], noise);
    let labels: Vec<&str> = (0..n)
        .map(|i| ["a", "b"][usize::from(noise(77 + i) > 0.0)])
        .collect();
    folder.write("y.txt", labels.join("\n"));
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("multikernel"))
        .args([
            "train",
            "--features",
            "x.npy",
            "--labels",
            "y.txt",
            "--model",
            "m.mk",
        ])
        .args([
            "--C", "1e4", "--tol", "1e-14", "--norm", "lp:1.1", "--json", "-",
        ])
        .args([
            "--kernel",
            "linear",
            "--kernel",
            "rbf:width=mean*0.5|mean|mean*2|mean*4|mean*8",
        ])
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(sent.expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result");
    assert_eq!(result["status"], "stopped", "{}", stderr(&output));
    assert_eq!(result["baselines"], serde_json::json!({}));
    folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "x.npy",
        "--out",
        "p.csv",
    ]);
}

#[test]
fn obscure_and_pegasos_train_watch_and_predict() {
    let folder = Folder::new();
    digits(&folder, 300);
    let first = [
        "train",
        "--features",
        "d.npz",
        "--labels",
        "y.txt",
        "--model",
        "m.mk",
        "--no-baselines",
    ];
    let train = |more: &[&'static str]| folder.json(&with(&first, more));
    let watched = ["--holdout", "0.2", "--epochs", "8", "--history", "h.csv"];
    for (solver, epochs) in [("obscure", 9), ("pegasos", 8)] {
        let solver_option: &'static [&'static str] = match solver {
            "obscure" => &["--solver", "obscure", "--norm", "block:1.5"],
            _ => &["--solver", "pegasos", "--norm", "block:1.5"],
        };
        let found = train(&with(solver_option, &watched));
        assert_eq!(found["solver"], solver);
        assert_eq!(found["multiclass"], "joint");
        assert_eq!(found["iterations"], epochs);
        assert!(number(&found["primal"]) >= number(&found["dual"]));
        assert!(number(&found["metrics"]["accuracy"]) > 0.8, "{found}");
        let history = lines(&folder, "h.csv");
        assert_eq!(history.len(), epochs + 1);
        let last: Vec<&str> = history[epochs].split(',').collect();
        let (primal, watched) = (last[3].parse::<f64>(), last[7].parse::<f64>());
        let accuracy = number(&found["metrics"]["accuracy"]);
        assert!((primal.expect("a number") - number(&found["primal"])).abs() < 1e-6);
        assert!((watched.expect("a number") - accuracy).abs() < 1e-9);
    }
    let text = folder.good(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "d.npz",
        "--labels",
        "y.txt",
        "--out",
        "p.csv",
    ]);
    assert!(text.contains("accuracy 0.9"), "{text}");
    // The same seed gives the same model, another one another.
    let seeded =
        |seed: &'static str| train(&["--solver", "obscure", "--epochs", "3", "--seed", seed]);
    let (one, again, other) = (seeded("1"), seeded("1"), seeded("2"));
    assert_eq!(one["primal"], again["primal"]);
    assert_ne!(one["primal"], other["primal"]);
    // Enough epochs come near the exact optimum, whose dual bounds it from below.
    let exact = train(&["--norm", "block:1.5", "--C", "0.1"]);
    let near = train(&[
        "--solver",
        "obscure",
        "--norm",
        "block:1.5",
        "--C",
        "0.1",
        "--epochs",
        "150",
    ]);
    assert!(number(&near["primal"]) >= number(&exact["dual"]));
    assert!(
        number(&near["primal"]) < 1.05 * number(&exact["primal"]),
        "{near}"
    );

    // One score per sample: every loss, no bias.
    two_views(&folder, "v", 60, 0);
    for loss in ["hinge", "squared-hinge", "logistic", "squared"] {
        let found = folder.json(&with(&VIEWS, &["--solver", "obscure", "--loss", loss]));
        assert!(found["bias"].is_null() || found["bias"] == 0.0, "{found}");
        assert!(number(&found["metrics"]["train_accuracy"]) > 0.8, "{loss}");
        assert!(number(&found["primal"]) >= number(&found["dual"]));
    }
    for (more, says) in [
        (&["--epochs", "3"][..], "epochs: solver auto has none"),
        (&["--solver", "obscure", "--norm", "lp:1"], "1 < R ≤ 2"),
        (
            &["--solver", "obscure", "--bias", "on"],
            "bias: solver obscure has none",
        ),
        (&["--solver", "obscure", "--eta", "-1"], "eta: it is -1"),
    ] {
        let error = folder.bad(&with(&VIEWS, more));
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn other_samples_tell_what_the_model_is_worth() {
    let folder = Folder::new();
    table(&folder, "train.csv", 60, 0, [0, 1, 2]);
    // their columns stand in another order
    table(&folder, "other.csv", 30, 5000, [2, 0, 1]);
    let arguments = [
        "train",
        "--features",
        "train.csv",
        "--id-column",
        "id",
        "--label-column",
        "colour",
        "--model",
        "m.mk",
        "--validation",
        "other.csv",
        "--solver",
        "obscure",
        "--epochs",
        "5",
        "--history",
        "h.csv",
    ];
    let result = folder.json(&arguments);
    assert_eq!(result["n_samples"], 60);
    let accuracy = number(&result["metrics"]["accuracy"]);
    assert!(accuracy > 0.8, "{accuracy}");
    let history = lines(&folder, "h.csv");
    let last = history[6].rsplit(',').next().unwrap();
    let told = folder.json(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "other.csv",
        "--id-column",
        "id",
        "--label-column",
        "colour",
        "--out",
        "p.csv",
    ]);
    assert_eq!(number(&told["metrics"]["accuracy"]), accuracy);
    assert!(
        (last.parse::<f64>().unwrap() - accuracy).abs() < 1e-12,
        "{last}"
    );

    // matrices, with labels in a file of their own
    folder.arrays("k.npz", &[("a", &[20, 20])], |_, k| {
        ((k / 20) % 2 == (k % 20) % 2) as u8 as f32 + (k / 20 == k % 20) as u8 as f32
    });
    folder.arrays("c.npz", &[("a", &[4, 20])], |_, k| {
        ((k / 20) % 2 == (k % 20) % 2) as u8 as f32
    });
    folder.write("y.txt", "no\nyes\n".repeat(10));
    folder.write("z.txt", "no\nyes\nno\nyes\n");
    let given = [
        "train",
        "--gram",
        "k.npz",
        "--labels",
        "y.txt",
        "--model",
        "g.mk",
        "--validation",
        "c.npz",
    ];
    let result = folder.json(&with(&given, &["--validation-labels", "z.txt"]));
    assert_eq!(number(&result["metrics"]["accuracy"]), 1.0);

    folder.write("z.txt", "no\nyes\nmaybe\nyes\n");
    let error = folder.bad(&with(&given, &["--validation-labels", "z.txt"]));
    assert!(
        error.contains("validation") && error.contains("row 3") && error.contains("maybe"),
        "{error}"
    );
    let error = folder.bad(&given);
    assert!(
        error.contains("validation") && error.contains("labels"),
        "{error}"
    );
    folder.write("z.txt", "no\nyes\n");
    let error = folder.bad(&with(&given, &["--validation-labels", "z.txt"]));
    assert!(error.contains("validation"), "{error}");
}
