//! Reports of models with everything, with nothing, with a thousand kernels, and from files that mean ill.
//!
//! The pages are kept in the folder `report-pages` of the tests' temporary folder, where the tests in a browser find them.

use multikernel::Model;
use multikernel::data::{Targets, digits};
use multikernel::gram::{KernelSet, Options};
use multikernel::kernel::KernelSpec;
use multikernel::online::{Online, StreamSettings};
use multikernel::random::Random;
use multikernel::record::{
    Alignment, CalibrationBin, Evaluation, Interval, Point, Record, ResultObject, Rounds, Shuffled,
    Stability, Tuning, Without,
};
use multikernel::train::{Mkl, Multiclass};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

const HOSTILE: &str =
    "\"><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>&amp;\u{202e}\u{0}";

/// A page, kept for the browser.
fn page(name: &str, model: &Model) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-pages");
    std::fs::create_dir_all(&folder).unwrap();
    let html = multikernel_report::html(model);
    std::fs::write(folder.join(format!("{name}.html")), &html).unwrap();
    html
}

/// A small model for these targets, with its true training value.
fn trained(targets: &Targets, multiclass: Multiclass) -> Model {
    let rows: Vec<usize> = (0..120).collect();
    let views = digits().unwrap().views.select(&rows).unwrap();
    let specs = KernelSpec::parse("rbf:width=mean*0.5|mean|mean*2").unwrap();
    let kernels = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
    let mkl = Mkl {
        multiclass,
        ..Mkl::default()
    };
    let fitted = mkl.fit(&kernels, targets, &()).unwrap();
    let mut result = ResultObject::new(&fitted);
    result.metrics.insert("train_accuracy".into(), 1.0);
    let training = Record::new(&fitted).beside(&result).unwrap();
    let mut model = fitted.model;
    model.set_training(training);
    model
}

fn of_names(names: &[&str]) -> Targets {
    let labels = digits().unwrap().labels.unwrap();
    Targets::Classes {
        names: names.iter().map(|&name| name.into()).collect(),
        index: (0..120)
            .map(|i| labels.spelling(i).parse::<u32>().unwrap() % names.len() as u32)
            .collect(),
    }
}

fn around(value: f64, by: f64) -> Interval {
    Interval {
        value,
        low: value - by,
        high: value + by,
    }
}

/// A training value of `kernels` kernels in `groups` groups, with every part there is.
fn everything(
    kernels: usize,
    groups: usize,
    classes: usize,
    name: impl Fn(usize) -> String,
) -> Value {
    let mut random = Random::new(7);
    let mut weights: Vec<f64> = (0..kernels).map(|_| random.uniform().powi(6)).collect();
    for weight in weights.iter_mut().skip(2).step_by(3) {
        *weight = 0.0;
    }
    let total: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.iter().map(|w| w / total).collect();
    let few = kernels.min(30);
    let norms = ["lp:1", "lp:8/7", "lp:4/3", "lp:2", "lp:4", "lp:8", "lp:inf"];
    let costs: Vec<f64> = (-4..=4).map(|k| 10f64.powi(k)).collect();
    let points: Vec<Point> = (0..norms.len() * costs.len())
        .map(|k| {
            let (norm, cost) = (k / costs.len(), k % costs.len());
            let off = (norm as f64 - 2.0).powi(2) * 0.004 + (cost as f64 - 5.0).powi(2) * 0.011;
            let mean = 0.942 - off - 0.004 * random.uniform();
            Point {
                bank: 0,
                norm,
                cost,
                folds: vec![mean; 5],
                mean,
                standard_error: 0.008,
                converged: true,
            }
        })
        .collect();
    let chosen = 2 * costs.len() + 5;
    let rounds = 40;
    let record = Record {
        command: Some(
            "multikernel tune --features layers.npz --labels 'tumour types.csv' --label-column type --scale standard --kernel 'rbf:width=mean*0.5|mean|mean*2' --kernel linear:normalize=spherical --norm lp:1,lp:4/3,lp:2,lp:inf --C 0.1,1,10 --folds 5 --stability 200 --holdout 0.2 --model best.mk".into(),
        ),
        version: Some("0.1.0".into()),
        notes: vec![
            "labels are text with 10 distinct values: the task is classify".into(),
            "the mean distance of 3 views is over all pairs".into(),
        ],
        history: vec![Rounds {
            problem: String::new(),
            seconds: (0..rounds).map(|r| 0.02 * f64::from(r)).collect(),
            primal: (0..rounds).map(|r| 58.0 + 9.0 * (-0.25 * f64::from(r)).exp()).collect(),
            dual: (0..rounds).map(|r| 58.0 - 21.0 * (-0.22 * f64::from(r)).exp()).collect(),
            validation: Vec::new(),
        }],
        evaluation: Some(Evaluation {
            samples: "360 samples held out".into(),
            given: false,
            n: 360,
            level: 0.95,
            metrics: [
                ("accuracy", around(0.931, 0.026)),
                ("balanced_accuracy", around(0.927, 0.028)),
                ("mcc", around(0.921, 0.03)),
                ("auc", around(0.991, 0.006)),
            ]
            .map(|(name, interval)| (name.to_owned(), interval))
            .into(),
            confusion: Some(
                (0..classes)
                    .map(|t| {
                        (0..classes)
                            .map(|p| match (t, p) {
                                _ if t == p => 30 + t as u64 % 5,
                                (8, 1) => 5,
                                (3, 9) => 4,
                                _ if (t * 7 + p * 3) % 11 == 0 => 1,
                                _ => 0,
                            })
                            .collect()
                    })
                    .collect(),
            ),
            residuals: None,
            calibration: Some(
                (0..10)
                    .map(|k| CalibrationBin {
                        probability: 0.05 + 0.1 * f64::from(k),
                        observed: (0.05 + 0.1 * f64::from(k)).powf(1.15),
                        count: 5 + 8 * k as usize,
                    })
                    .collect(),
            ),
        }),
        alignment: Some(Alignment {
            samples: 400,
            targets: (0..kernels)
                .map(|m| (m % 17 != 5).then(|| 0.1 + 0.5 * shares[m].powf(0.2) * random.uniform()))
                .collect(),
            shown: (0..few).collect(),
            pairwise: (0..few)
                .map(|a| {
                    (0..few)
                        .map(|b| match a == b {
                            true => 1.0,
                            false if a % groups == b % groups => 0.9 - 0.02 * a.abs_diff(b) as f64,
                            false => 0.1,
                        })
                        .collect()
                })
                .collect(),
        }),
        stability: Some(Stability {
            method: "bootstrap".into(),
            rounds: 200,
            level: 0.95,
            shares: shares
                .iter()
                .map(|&share| Interval {
                    value: share,
                    low: (0.7 * share - 0.001).max(0.0),
                    high: 1.25 * share + 0.001,
                })
                .collect(),
            chosen: shares.iter().map(|s| (30.0 * s).min(1.0)).collect(),
            shuffled: Some(Shuffled {
                rounds: 200,
                mean: vec![1.0 / kernels as f64; kernels],
                p_value: shares.iter().map(|s| (1.0 / (1.0 + 4000.0 * s)).max(1.0 / 201.0)).collect(),
            }),
            without: Some(Without {
                metric: "accuracy".into(),
                all: 0.931,
                change: (0..kernels)
                    .map(|m| (m < 50).then(|| -0.2 * shares[m] + 0.002 * random.uniform()))
                    .collect(),
            }),
        }),
        tuning: Some(Tuning {
            metric: "accuracy".into(),
            folds: 5,
            rule: "one-standard-error".into(),
            norms: norms.map(str::to_owned).into(),
            costs,
            banks: vec![String::new()],
            points,
            chosen,
            agreement: 0.43,
            within_error: 6,
            nested: Some(around(0.926, 0.021)),
            seconds: 41.0,
        }),
    };
    let listed: Vec<Value> = (0..kernels)
        .map(|m| json!({"name": name(m), "group": format!("layer {}", m % groups), "weight": weights[m], "group_norm": 0.1}))
        .collect();
    record
        .beside(&json!({
            "status": "converged", "task": "classify", "solver": "exact", "multiclass": "joint",
            "norm": {"kind": "lp", "value": 1.3333}, "C": 10.0, "bias": null,
            "primal": 58.0213, "dual": 57.9872, "relative_gap": 5.9e-4, "objective_scale": "sum",
            "kernels": listed, "n_samples": 1437, "n_classes": classes, "n_support": 512, "iterations": rounds,
            "seconds": {"load": 0.4, "kernels": 1.2, "train": 2.5, "total": 75.1}, "peak_memory_bytes": 412_000_000,
            "metrics": {"train_accuracy": 0.998, "accuracy": 0.931, "balanced_accuracy": 0.927, "mcc": 0.921, "auc": 0.991},
            "baselines": {
                "sum": {"accuracy": 0.914, "train_accuracy": 0.99},
                "best_single": {"accuracy": 0.861, "train_accuracy": 0.93, "kernel": name(0)},
            },
            "seed": 0,
            "warnings": ["the scales of the kernels differ by a factor of 240 (variance 3.1e2 of 'linear' against 1.3e0 of 'rbf'), so the larger ones are favoured; consider normalize=multiplicative"],
        }))
        .unwrap()
}

const TEN: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Tags that are opened, one after the other.
fn tags(html: &str) -> impl Iterator<Item = &str> {
    html.split('<').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// What holds of every page: one script, nothing from elsewhere, every figure closed, no number that is none.
fn check(html: &str) {
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    assert_eq!(tags(html).filter(|tag| *tag == "script").count(), 1);
    assert!(!tags(html).any(|tag| matches!(tag, "img" | "iframe" | "object" | "embed" | "base")));
    for elsewhere in ["http://", "https://", " src=\"", "@import", "url("] {
        let body = html.split("<body>").nth(1).unwrap();
        assert!(!body.contains(elsewhere), "{elsewhere}");
    }
    for tag in [
        "section", "figure", "table", "svg", "g", "tr", "details", "ul", "div",
    ] {
        let opened = tags(html).filter(|t| *t == tag).count();
        let closed = html.matches(&format!("</{tag}>")).count();
        assert_eq!(opened, closed, "{tag}");
    }
    let body = html
        .split("<main>")
        .nth(1)
        .unwrap()
        .split("<script>")
        .next()
        .unwrap();
    assert!(!body.contains("NaN") && !body.contains("inf\""), "{body}");
}

/// Hostile text as it stands in a page, escaped.
fn report_text(text: &str) -> String {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    escaped
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace(['\u{202e}', '\u{0}'], "\u{fffd}")
}

#[test]
fn everything_is_on_the_page() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    model.set_training(everything(18, 3, 10, |m| {
        format!("layer {}/rbf(mean*{})", m % 3, m / 3)
    }));
    let html = page("everything", &model);
    check(&html);
    // Where an interval holds what the next best reaches, no difference is claimed.
    for text in [
        "10 classes told apart, <em>93.1\u{a0}%</em> right on samples never seen in training",
        "with 95\u{a0}% confidence between 90.5\u{a0}% and 95.7\u{a0}%",
        "≤ 0.059\u{a0}%",
        "12 of 18",
        "about equal",
        "1 warning",
        "layer 1/rbf(mean*5)",
        "p shuffled",
        "<b>8</b> taken for <b>1</b> (5)",
        "Calibration",
        "norm lp:4/3, C = 10",
        "5 other points are within one standard error",
        "nested cross-validation",
        "Alignment of pairs",
        "Relative gap, round by round",
        "<span>--features</span> <span>layers.npz</span>",
        "<span>&#39;tumour</span> <span>types.csv&#39;</span>",
        "What the words mean",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("could also say"));
    assert_eq!(
        html,
        multikernel_report::html(&model),
        "the same model gives the same page"
    );
}

#[test]
fn a_search_that_was_stopped_on_its_first_fold() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    let mut training = everything(18, 3, 10, |m| format!("kernel {m}"));
    training["tuning"]["folds"] = json!(1);
    model.set_training(training);
    let html = page("stopped-search", &model);
    check(&html);
    assert!(
        html.contains("tried on one fold of the samples, where the search was stopped, in 41 s.")
    );
    assert!(html.contains("One fold does not tell how sure that is."));
    assert!(!html.contains("(standard error)") && !html.contains("drawn anew"));
}

#[test]
fn a_model_that_was_just_trained() {
    let model = trained(&of_names(&["apple", "pear", "plum"]), Multiclass::Joint);
    let html = page("trained", &model);
    check(&html);
    for text in [
        "3 classes told apart",
        "in training",
        "--holdout 0.2",
        "--stability 200",
        "multikernel tune",
        "could also say",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn several_problems_have_weights_of_their_own() {
    let model = trained(&of_names(&["apple", "pear", "plum"]), Multiclass::OneVsRest);
    let html = page("problems", &model);
    check(&html);
    assert!(
        html.contains("means over 3 problems") && html.contains("Weights in each of the problems")
    );
}

#[test]
fn a_value_is_predicted() {
    let labels = digits().unwrap().labels.unwrap();
    let truth: Vec<f64> = (0..120).map(|i| labels.number(i).unwrap() + 0.5).collect();
    let mut model = trained(&Targets::Real(truth.clone()), Multiclass::Auto);
    let mut random = Random::new(3);
    let record = Record {
        evaluation: Some(Evaluation {
            samples: "120 samples of another file".into(),
            n: 120,
            level: 0.9,
            metrics: [
                ("r2".to_owned(), around(0.81, 0.05)),
                ("mae".to_owned(), around(0.7, 0.1)),
            ]
            .into(),
            residuals: Some(
                truth
                    .iter()
                    .map(|&t| (t, t + 1.2 * random.normal()))
                    .collect(),
            ),
            ..Evaluation::default()
        }),
        ..Record::of(model.training())
    };
    let training = record
        .beside(&json!({"status": "time-limit", "relative_gap": 0.02}))
        .unwrap();
    model.set_training(training);
    let html = page("value", &model);
    check(&html);
    for text in [
        "A value predicted with R² <em>0.810</em>",
        "Prediction against truth",
        "the time was up",
        "≤ 2.0\u{a0}%",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn samples_that_were_given_later_may_have_been_trained_on() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    let record = Record {
        evaluation: Some(Evaluation {
            samples: "120 samples of another file".into(),
            given: true,
            n: 120,
            level: 0.95,
            metrics: [("accuracy".to_owned(), around(0.9, 0.05))].into(),
            ..Evaluation::default()
        }),
        ..Record::of(model.training())
    };
    model.set_training(record.beside(&json!({})).unwrap());
    let html = page("given", &model);
    check(&html);
    assert!(html.contains("<em>90.0\u{a0}%</em> right on the samples given"));
    assert!(html.contains("if some of them were trained on"));
    for claim in [
        "never seen",
        "none of which",
        "unseen samples",
        "--no-baselines",
    ] {
        assert!(!html.contains(claim), "{claim}");
    }
}

#[test]
fn simpler_ways_are_compared_where_both_were_measured() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    let mut training = everything(4, 1, 10, |m| format!("kernel {m}"));
    let keys = training.as_object_mut().unwrap();
    keys.remove("evaluation");
    keys.insert("metrics".into(), json!({"train_accuracy": 0.999}));
    keys.insert(
        "baselines".into(),
        json!({"sum": {"train_accuracy": 0.998}}),
    );
    model.set_training(training);
    let html = page("nested", &model);
    check(&html);
    assert!(html.contains("<em>92.6\u{a0}%</em> right on samples never seen"));
    assert!(html.contains("Measured by nested cross-validation"));
    assert!(!html.contains("There are no samples to measure it on"));
    let panel = html.split("Beside simpler ways").nth(1).unwrap();
    let panel = panel.split("</figure>").next().unwrap();
    assert!(panel.contains("accuracy in training") && panel.contains("99.9"));
    assert!(!panel.contains("92.6"), "the search is no training");
}

#[test]
fn one_round_is_no_course_over_time() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    let rounds = |seconds: &[f64]| Rounds {
        problem: String::new(),
        seconds: seconds.to_vec(),
        primal: vec![2.0; seconds.len()],
        dual: vec![1.9; seconds.len()],
        validation: Vec::new(),
    };
    for (seconds, drawn) in [(&[0.1][..], false), (&[0.1, 0.2], true)] {
        let record = Record {
            history: vec![rounds(seconds)],
            ..Record::of(model.training())
        };
        model.set_training(record.beside(&json!({})).unwrap());
        let html = page("one-round", &model);
        check(&html);
        assert!(html.contains("Relative gap, round by round"));
        assert_eq!(html.contains("Objective over time"), drawn);
    }
}

#[test]
fn a_thousand_kernels() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    model.set_training(everything(1000, 20, 10, |m| format!("kernel {m:04}")));
    let html = page("thousand", &model);
    check(&html);
    assert!(html.contains("kernel 0999"));
    assert!(html.len() < 3 << 20, "{} bytes", html.len());
}

#[test]
fn a_stream_says_what_it_has() {
    let data = digits().unwrap();
    let labels = data.labels.unwrap();
    let rows: Vec<usize> = (0..300).collect();
    let views = data.views.select(&rows).unwrap();
    let specs = KernelSpec::parse("rbf:width=mean").unwrap();
    let mut online = Online::new(StreamSettings::default(), &specs, &views).unwrap();
    let told: Vec<Option<&str>> = rows.iter().map(|&i| Some(labels.spelling(i))).collect();
    online.learn(&views, &told).unwrap();
    let html = page("stream", &online.snapshot().unwrap());
    check(&html);
    for text in [
        "along the stream",
        "a stream of 300 examples",
        "Mistakes along the stream",
        "no certificate",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn a_model_without_a_past() {
    let mut model = trained(&of_names(&["a", "b"]), Multiclass::Auto);
    model.set_training(Value::Null);
    let html = page("bare", &model);
    check(&html);
    assert!(html.contains("a and b told apart") && html.contains("not recorded"));
}

#[test]
fn names_that_mean_ill_stay_names() {
    let other = format!("{HOSTILE}2");
    let mut model = trained(&of_names(&[HOSTILE, &other, "c"]), Multiclass::Joint);
    let mut training = everything(18, 3, 3, |m| format!("{HOSTILE}{m}"));
    // Every text in it, whatever it is for.
    fn spoil(value: &mut Value) {
        match value {
            Value::String(text) => *text = HOSTILE.into(),
            Value::Array(list) => list.iter_mut().for_each(spoil),
            Value::Object(keys) => keys.values_mut().for_each(spoil),
            _ => {}
        }
    }
    for (key, value) in training.as_object_mut().unwrap() {
        if key != "kernels" {
            spoil(value);
        }
    }
    training["metrics"] = json!({HOSTILE: 0.5, "accuracy": 0.9});
    training["evaluation"]["metrics"][HOSTILE] = json!({"value": 1, "low": 0, "high": 2});
    model.set_training(training);
    let html = page("hostile", &model);
    check(&html);
    assert!(html.matches(&report_text(HOSTILE)).count() > 30);
    assert!(!html.contains("<script>window") && !html.contains("<img"));
}

#[test]
fn numbers_that_do_not_fit_break_nothing() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    let mut training = everything(18, 3, 10, |m| format!("kernel {m}"));
    for (key, value) in [
        (
            "/stability/shares",
            json!([{"value": null, "low": 1e308, "high": -1e308}]),
        ),
        ("/stability/chosen", json!([])),
        ("/stability/shuffled/p_value", json!([null, 3])),
        ("/stability/without/change", json!([null])),
        ("/evaluation/confusion", json!([[1, 2], [3]])),
        (
            "/alignment/shown",
            json!([0, 99, 17, 18_446_744_073_709_551_615u64]),
        ),
        ("/alignment/pairwise", json!([[1.0, null], []])),
        ("/tuning/chosen", json!(12345)),
        ("/tuning/costs", json!([null, 1e308])),
        ("/history/0/primal", json!([1e308, -1e308, null])),
        ("/history/0/dual", json!([1])),
        ("/relative_gap", json!(-1e300)),
        ("/kernels/0/weight", json!(1e308)),
        ("/kernels/1/weight", json!([1e308, 1e308])),
        ("/kernels/2/weight", json!(-4)),
        ("/kernels/3/weight", json!("much")),
    ] {
        *training.pointer_mut(key).unwrap() = value;
    }
    model.set_training(training);
    check(&page("misfits", &model));
}

/// Any JSON of a few levels.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z<>&\"]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,6}", inner, 0..4)
                .prop_map(|keys| Value::Object(keys.into_iter().collect())),
        ]
    })
}

#[test]
fn any_training_value_gives_a_page() {
    let mut model = trained(&of_names(&TEN), Multiclass::Joint);
    let whole = everything(9, 3, 10, |m| format!("kernel {m}"));
    let mut places = Vec::new();
    fn walk(value: &Value, at: &str, places: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(keys) => keys
                .iter()
                .map(|(key, value)| (key.clone(), value))
                .collect(),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(k, v)| (k.to_string(), v))
                .collect(),
            _ => Vec::new(),
        };
        for (key, child) in children {
            let place = format!("{at}/{key}");
            walk(child, &place, places);
            places.push(place);
        }
    }
    walk(&whole, "", &mut places);
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(300)
        },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let model = std::cell::RefCell::new(&mut model);
    let changes = prop::collection::vec((0..places.len(), any_json()), 1..6);
    runner
        .run(&changes, |changes| {
            let mut training = whole.clone();
            for (place, value) in changes {
                // An earlier change may have taken the place away.
                if let Some(found) = training.pointer_mut(&places[place]) {
                    *found = value;
                }
            }
            let mut model = model.borrow_mut();
            model.set_training(training);
            check(&multikernel_report::html(&model));
            Ok(())
        })
        .unwrap();
}
