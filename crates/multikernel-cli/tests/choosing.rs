//! `multikernel evaluate` and `tune`, probabilities and the stability of weights, through the real binary.

mod common;

use common::{Folder, TRAIN, number, stderr, two_views, with};
use serde_json::Value;

const TUNE: [&str; 13] = [
    "tune",
    "--features",
    "v.npz",
    "--labels",
    "v.txt",
    "--model",
    "best.mk",
    "--kernel",
    "rbf",
    "--C",
    "0.01,1",
    "--norm",
    "lp:1,lp:2",
];

#[test]
fn a_model_is_evaluated_with_intervals() {
    let folder = Folder::new();
    two_views(&folder, "v", 120, 0);
    two_views(&folder, "new", 90, 100_000);
    folder.good(&TRAIN);
    let evaluate = [
        "evaluate",
        "--model",
        "m.mk",
        "--features",
        "new.npz",
        "--labels",
        "new.txt",
    ];
    let result = folder.json(&evaluate);
    let accuracy = number(&result["metrics"]["accuracy"]);
    assert!(accuracy > 0.7, "{result}");
    for name in ["accuracy", "balanced_accuracy", "mcc", "auc"] {
        let found = &result["evaluation"]["metrics"][name];
        let (low, value, high) = (
            number(&found["low"]),
            number(&found["value"]),
            number(&found["high"]),
        );
        assert!(low < value && value < high, "{name}: {found}");
        assert_eq!(value, number(&result["metrics"][name]));
    }
    let cells: u64 = result["evaluation"]["confusion"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|row| row.as_array().into_iter().flatten())
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(cells, 90);
    assert_eq!(result["classes"], serde_json::json!(["no", "yes"]));
    // The same numbers every time, and as predict has them.
    let again = folder.json(&evaluate);
    assert_eq!(result["evaluation"], again["evaluation"]);
    let predicted = folder.json(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "new.npz",
        "--labels",
        "new.txt",
        "--out",
        "p.csv",
    ]);
    assert_eq!(number(&predicted["metrics"]["accuracy"]), accuracy);
    let text = folder.good(&evaluate);
    assert!(
        text.contains("95 % interval") && text.contains("true class ↓ predicted →"),
        "{text}"
    );
}

#[test]
fn regressions_tell_of_their_residuals() {
    let folder = Folder::new();
    folder.array("x.npy", &[60, 1], |k| k as f32 / 10.0);
    folder.write(
        "y.txt",
        (0..60)
            .map(|i| format!("{}.5\n", i / 10))
            .collect::<String>(),
    );
    folder.good(&[
        "train",
        "--features",
        "x.npy",
        "--labels",
        "y.txt",
        "--task",
        "regress",
        "--model",
        "m.mk",
    ]);
    let evaluate = [
        "evaluate",
        "--model",
        "m.mk",
        "--features",
        "x.npy",
        "--labels",
        "y.txt",
    ];
    let result = folder.json(&evaluate);
    assert!(number(&result["metrics"]["r2"]) > 0.8, "{result}");
    let residuals = &result["residuals"];
    assert!(number(&residuals["minimum"]) <= number(&residuals["median"]));
    assert_eq!(
        result["evaluation"]["residuals"].as_array().map(Vec::len),
        Some(60)
    );
    assert!(folder.good(&evaluate).contains("truth − prediction"));
    folder.write("words.txt", "a\n".repeat(60));
    let said = folder.bad(&[
        "evaluate",
        "--model",
        "m.mk",
        "--features",
        "x.npy",
        "--labels",
        "words.txt",
    ]);
    assert!(
        said.contains("labels: 'a' and others are no numbers"),
        "{said}"
    );
}

#[test]
fn evaluate_says_what_is_missing() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    folder.good(&TRAIN);
    let said = folder.bad(&["evaluate", "--model", "m.mk", "--features", "v.npz"]);
    assert!(
        said.contains("labels: there are none, and predictions are compared with them"),
        "{said}"
    );
    let said = folder.bad(&[
        "evaluate",
        "--model",
        "m.mk",
        "--features",
        "v.npz:bad",
        "--labels",
        "v.txt",
    ]);
    assert!(said.contains("'good'"), "{said}");
    let said = folder.bad(&[
        "evaluate",
        "--model",
        "none.mk",
        "--features",
        "v.npz",
        "--labels",
        "v.txt",
    ]);
    assert!(said.contains("none.mk"), "{said}");
}

#[test]
fn probabilities_are_written_by_class() {
    let folder = Folder::new();
    two_views(&folder, "v", 160, 0);
    two_views(&folder, "new", 120, 200_000);
    folder.good(&TRAIN);
    let predict = [
        "predict",
        "--model",
        "m.mk",
        "--features",
        "new.npz",
        "--out",
        "p.csv",
        "--probabilities",
    ];
    let said = folder.bad(&predict);
    assert!(
        said.contains(
            "this model was not calibrated and has no probabilities; train it with --probabilities"
        ),
        "{said}"
    );
    folder.good(&with(&TRAIN, &["--probabilities"]));
    folder.good(&predict);
    let text = std::fs::read_to_string(folder.path("p.csv")).expect("predictions");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("prediction,p_no,p_yes"));
    let mut right = 0.0;
    for (i, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let p: Vec<f64> = fields[1..]
            .iter()
            .map(|f| f.parse().expect("a number"))
            .collect();
        assert!((p[0] + p[1] - 1.0).abs() < 1e-9, "{line}");
        right += p[i % 2];
    }
    assert!(right / 120.0 > 0.6, "{right}");
    let result = folder.json(&[
        "evaluate",
        "--model",
        "m.mk",
        "--features",
        "new.npz",
        "--labels",
        "new.txt",
    ]);
    assert!(
        number(&result["metrics"]["calibration_error"]) < 0.15,
        "{result}"
    );
    let bins = result["evaluation"]["calibration"]
        .as_array()
        .expect("bins");
    let count: f64 = bins.iter().map(|bin| number(&bin["count"])).sum();
    assert_eq!(count, 120.0);
    folder.write(
        "numbers.txt",
        (0..160).map(|i| format!("{i}.5\n")).collect::<String>(),
    );
    let said = folder.bad(&[
        "train",
        "--features",
        "v.npz",
        "--labels",
        "numbers.txt",
        "--model",
        "n.mk",
        "--probabilities",
    ]);
    assert!(
        said.contains("probabilities: the task regress has no classes"),
        "{said}"
    );
}

#[test]
fn tune_chooses_and_keeps_how() {
    let folder = Folder::new();
    two_views(&folder, "v", 90, 0);
    let result = folder.json(&with(&TUNE, &["--folds", "3", "--nested", "2"]));
    let tuning = &result["tuning"];
    assert_eq!(tuning["points"].as_array().map(Vec::len), Some(4));
    assert_eq!(tuning["metric"], "accuracy");
    let chosen = tuning["chosen"].as_u64().expect("a position") as usize;
    let point = &tuning["points"][chosen];
    let best = tuning["points"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|p| number(&p["mean"]))
        .fold(0.0, f64::max);
    assert_eq!(number(&point["mean"]), best);
    let cost = &tuning["costs"][point["cost"].as_u64().expect("a position") as usize];
    assert_eq!(&result["C"], cost);
    assert!(number(&tuning["nested"]["low"]) <= number(&tuning["nested"]["value"]));
    assert_eq!(result["status"], "converged");
    // It stands in the model too, and the model predicts.
    let bytes = std::fs::read(folder.path("best.mk")).expect("the model");
    let model = multikernel::Model::from_bytes(&bytes).expect("a model");
    let kept = multikernel::record::Record::of(model.training());
    assert_eq!(kept.tuning.map(|t| t.points.len()), Some(4));
    folder.good(&[
        "predict",
        "--model",
        "best.mk",
        "--features",
        "v.npz",
        "--out",
        "p.csv",
    ]);
    let text = folder.good(&with(
        &TUNE,
        &[
            "--rule",
            "one-standard-error",
            "--metric",
            "auc",
            "--holdout",
            "0.2",
        ],
    ));
    assert!(
        text.contains("auc over 5 folds") && text.contains("chosen (*, one-standard-error)"),
        "{text}"
    );
    assert!(text.contains("(18 more held out)"), "{text}");
}

#[test]
fn tune_gives_the_same_for_any_number_of_threads() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let run = |threads: &str| {
        let mut result = folder.json(&with(
            &TUNE,
            &["--threads", threads, "--stability", "3", "--folds", "3"],
        ));
        result["tuning"]["seconds"] = 0.into();
        (
            result["tuning"].clone(),
            result["stability"].clone(),
            result["kernels"].clone(),
        )
    };
    assert_eq!(run("1"), run("3"));
}

#[test]
fn tune_compares_banks_and_keeps_groups_together() {
    let folder = Folder::new();
    two_views(&folder, "v", 90, 0);
    folder.write("noise.toml", "[[kernel]]\nkind = \"rbf\"\nview = \"bad\"\n");
    folder.write("good.toml", "[[kernel]]\nkind = \"rbf\"\nview = \"good\"\n");
    folder.write(
        "groups.txt",
        (0..90)
            .map(|i| format!("patient {}\n", i / 5))
            .collect::<String>(),
    );
    let result = folder.json(&[
        "tune",
        "--features",
        "v.npz",
        "--labels",
        "v.txt",
        "--model",
        "b.mk",
        "--kernels",
        "noise.toml",
        "--kernels",
        "good.toml",
        "--C",
        "1",
        "--norm",
        "lp:2",
        "--fold-groups",
        "groups.txt",
    ]);
    assert_eq!(
        result["tuning"]["banks"],
        serde_json::json!(["noise.toml", "good.toml"])
    );
    assert_eq!(result["kernels"][0]["group"], "good");
    folder.write("few.txt", "a\nb\n");
    let said = folder.bad(&with(&TUNE, &["--fold-groups", "few.txt"]));
    assert!(
        said.contains("fold-groups: there are 2 groups for 90 samples"),
        "{said}"
    );
    let said = folder.bad(&with(
        &TUNE,
        &["--fold-groups", "groups.txt", "--holdout", "0.2"],
    ));
    assert!(
        said.contains("samples held out would be parted from others of their group"),
        "{said}"
    );
}

#[test]
fn a_search_is_kept_and_resumed() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let first = with(&TUNE, &["--checkpoint", "s.jsonl"]);
    let result = folder.json(&first);
    let lines = std::fs::read_to_string(folder.path("s.jsonl"))
        .expect("the checkpoint")
        .lines()
        .count();
    assert_eq!(lines, 1 + 4 * 5);
    let said = folder.bad(&first);
    assert!(
        said.contains("the checkpoint is there already; give --resume"),
        "{said}"
    );
    // Everything is known: the same choice, and nothing is added.
    let again = folder.json(&with(&first, &["--resume"]));
    assert_eq!(result["tuning"]["points"], again["tuning"]["points"]);
    let text = std::fs::read_to_string(folder.path("s.jsonl")).expect("the checkpoint");
    assert_eq!(text.lines().count(), lines);
    let said = folder.bad(&with(&first, &["--resume", "--folds", "3"]));
    assert!(
        said.contains(
            "s.jsonl: the checkpoint belongs to another search: the number of folds is not the same"
        ),
        "{said}"
    );
    folder.write("s.jsonl", "hello\n");
    let said = folder.bad(&with(&first, &["--resume"]));
    assert!(said.contains("this is not a checkpoint of tune"), "{said}");
}

#[test]
fn searches_that_cannot_be_are_refused() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let data = ["tune", "--features", "v.npz", "--model", "b.mk"];
    let said = folder.bad(&data);
    assert!(said.contains("one-class has no labels"), "{said}");
    for (more, sentence) in [
        (vec!["--folds", "1"], "folds: there are 1; give at least 2"),
        (vec!["--metric", "r2"], "metric: r2 is for numbers"),
        (vec!["--metric", "beauty"], "metric: 'beauty' is not known"),
        (vec!["--rule", "worst"], "rule: 'worst' is not known"),
        (
            vec!["--stability", "1"],
            "stability: one round or none tells nothing",
        ),
        (vec!["--sample-weight", "v.txt"], "is not a number"),
    ] {
        let said = folder.bad(&with(&TUNE, &more));
        assert!(said.contains(sentence), "{more:?}: {said}");
    }
    let wrong = with(&data, &["--labels", "v.txt", "--C", "1,zero"]);
    assert!(folder.bad(&wrong).contains("C: 'zero' is not a number"));
    let output = folder.run(&with(&TUNE, &["--resume"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn the_stability_of_weights_is_shown_and_kept() {
    let folder = Folder::new();
    two_views(&folder, "v", 120, 0);
    let stable = with(
        &TRAIN,
        &["--stability", "9", "--holdout", "0.25", "--seed", "3"],
    );
    let result = folder.json(&stable);
    let found = &result["stability"];
    assert_eq!(found["method"], "bootstrap");
    assert_eq!(found["rounds"], 9);
    let kernels = result["kernels"].as_array().expect("kernels");
    let good = kernels
        .iter()
        .position(|k| k["group"] == "good")
        .expect("the kernel");
    assert!(number(&found["shares"][good]["low"]) > 0.5, "{found}");
    assert_eq!(number(&found["shuffled"]["p_value"][good]), 0.1);
    assert!(number(&found["without"]["change"][good]) < 0.0, "{found}");
    // What is held out has intervals, in the model.
    let model = multikernel::Model::load(folder.path("m.mk")).expect("a model");
    let kept = multikernel::record::Record::of(model.training());
    let judged = kept.evaluation.expect("samples were held out");
    let accuracy = judged.metrics["accuracy"];
    assert!(accuracy.low <= accuracy.value && accuracy.value <= accuracy.high);
    assert_eq!(accuracy.value, number(&result["metrics"]["accuracy"]));
    assert_eq!(
        (judged.n, judged.samples.as_str()),
        (30, "30 samples held out")
    );
    assert_eq!(kept.stability.map(|s| s.rounds), Some(9));
    let text = folder.good(&stable);
    assert!(
        text.contains("how sure the weights are (bootstrap, 9 rounds)"),
        "{text}"
    );
}

/// Trainings of a search that takes long enough to be stopped.
#[cfg(unix)]
struct LongSearch {
    folder: Folder,
    child: std::process::Child,
}

#[cfg(unix)]
impl LongSearch {
    fn start(more: &[&str]) -> Self {
        use std::process::Stdio;
        let folder = Folder::new();
        two_views(&folder, "v", 900, 0);
        let costs: Vec<String> = (1..400)
            .map(|k| format!("{}", f64::from(k) / 10.0))
            .collect();
        let costs = costs.join(",");
        let arguments = with(
            &[
                "tune",
                "--features",
                "v.npz",
                "--labels",
                "v.txt",
                "--model",
                "best.mk",
                "--norm",
                "lp:2,lp:4/3",
                "--C",
                &costs,
            ],
            more,
        );
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("multikernel"));
        command
            .args(arguments)
            .current_dir(folder.path("."))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        LongSearch { folder, child }
    }

    fn wait_until(&self, ready: impl Fn(&Self) -> bool) {
        use std::time::{Duration, Instant};
        let begin = Instant::now();
        while !ready(self) {
            assert!(
                begin.elapsed() < Duration::from_secs(120),
                "no training in two minutes"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ctrl-C, and what it said until its end.
    fn interrupt(self) -> (Folder, std::process::Output) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-INT", &id])
            .status();
        assert!(sent.expect("kill").success());
        let output = self.child.wait_with_output().expect("it ends");
        (self.folder, output)
    }
}

/// Ctrl-C ends a search, and the checkpoint keeps it.
#[cfg(unix)]
#[test]
fn a_search_that_is_stopped_keeps_what_it_had() {
    let search = LongSearch::start(&["--checkpoint", "s.jsonl", "--no-baselines"]);
    let lines = |folder: &Folder| {
        std::fs::read_to_string(folder.path("s.jsonl")).map_or(0, |text| text.lines().count())
    };
    search.wait_until(|search| lines(&search.folder) >= 12);
    let (folder, output) = search.interrupt();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(
        String::from_utf8_lossy(&output.stdout)
            .contains("the same command with --resume goes on from there")
    );
    assert_eq!(stderr(&output), "", "nothing is said against it");
    assert!(!folder.path("best.mk").exists());
    assert!(lines(&folder) >= 12);
}

/// Without a checkpoint the model is trained with the best of what was tried, however little that is.
#[cfg(target_os = "linux")]
#[test]
fn a_search_that_is_stopped_without_a_checkpoint_keeps_the_best() {
    let search = LongSearch::start(&["--json", "result.json"]);
    // The search has no sign of life but the time it works: 1 s of it is ten times what reading and kernels take.
    let worked = |search: &LongSearch| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", search.child.id()));
        let stat = stat.expect("it runs");
        let after_name = stat.rsplit(')').next().expect("the name");
        let ticks = after_name.split_whitespace().nth(11).expect("user time");
        ticks.parse::<u64>().expect("ticks") >= 100
    };
    search.wait_until(worked);
    let (folder, output) = search.interrupt();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("stopped: now training with the best of "),
        "{said}"
    );
    assert!(
        said.contains("--checkpoint FILE keeps a search that is stopped"),
        "{said}"
    );
    let result = std::fs::read_to_string(folder.path("result.json")).expect("the result");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    let tuning = &result["tuning"];
    let points = tuning["points"].as_array().expect("points").len();
    assert!((1..798).contains(&points), "{points} points");
    assert!((1.0..=5.0).contains(&number(&tuning["folds"])));
    assert_eq!(result["baselines"], serde_json::json!({}));
    folder.good(&[
        "predict",
        "--model",
        "best.mk",
        "--features",
        "v.npz",
        "--out",
        "p.csv",
    ]);
}
