//! Every solver, norm and way to tell several classes apart, through the real binary.

mod common;

use common::{Folder, TRAIN, digits, lines, number, table, two_views, with};

#[test]
fn all_solvers_and_norms_reach_what_they_promise() {
    let folder = Folder::new();
    two_views(&folder, "v", 50, 0);
    let plain = with(&TRAIN, &["--no-baselines", "--tol", "1e-4"]);
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
        number(&folder.json(&with(&TRAIN, &["--no-baselines", "--norm", "lp:1"]))["primal"]);
    for name in names {
        let result = folder.json(&with(&TRAIN, &["--no-baselines", "--solver", name]));
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
        0.5 + 0.5 * f32::from(u8::from((k / 40) % 40 == k % 40))
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
        &with(&TRAIN, &["--solver", "silp", "--norm", "lp:4/3"]),
        "solver silp does not solve lp:4/3; give lp:1, or the solver exact",
    );
    refused(
        &with(&TRAIN, &["--solver", "newton", "--norm", "mixed"]),
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
        let found = folder.json(&with(&TRAIN, &["--solver", "obscure", "--loss", loss]));
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
        let error = folder.bad(&with(&TRAIN, more));
        assert!(error.contains(says), "{error}");
    }
}
