//! `multikernel train`, `predict`, `demo` and `inspect` of models through the real binary.

mod common;

use common::{Folder, LABELS, TRAIN, lines, noise, number, stderr, table, two_views, with};
use serde_json::Value;
use std::process::Stdio;

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
    let result = folder.json(&with(&TRAIN, &["--holdout", "0.25", "--seed", "3"]));
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
    let without = folder.json(&with(&TRAIN, &["--no-baselines"]));
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
    let one = folder.json(&with(&with(&TRAIN, &quiet), &["--C", "4"]));
    let other = folder.json(&with(&with(&TRAIN, &quiet), &["--lambda", "0.005"]));
    assert_eq!(number(&other["C"]), 4.0);
    for key in ["primal", "dual", "kernels", "bias", "n_support"] {
        assert_eq!(one[key], other[key], "{key}");
    }
    // Of those that are trained on, not of all.
    let held = folder.json(&with(
        &with(&TRAIN, &quiet),
        &["--lambda", "0.005", "--holdout", "0.2"],
    ));
    assert!((number(&held["C"]) - 5.0).abs() < 1e-9);
}

#[test]
fn weights_of_classes_and_samples_count_as_repetitions_would() {
    let folder = Folder::new();
    two_views(&folder, "v", 50, 0);
    let plain = with(&TRAIN, &["--no-baselines", "--tol", "1e-6"]);
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
fn not_converged_is_said_and_strict_makes_it_count() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let late = with(
        &TRAIN,
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
    let fine = folder.run(&with(&TRAIN, &["--strict"]));
    assert_eq!(fine.status.code(), Some(0), "{}", stderr(&fine));
}

#[test]
fn a_model_tells_what_it_is() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    folder.good(&with(
        &TRAIN,
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
            &TRAIN,
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
    let silent = folder.run(&with(&TRAIN, &["--quiet"]));
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
