//! `multikernel report`, `completions` and `man` through the real binary, and what training keeps for a report.

mod common;

use common::{Folder, noise, stderr};
use serde_json::Value;

/// Two views, three classes that they tell.
fn samples(folder: &Folder, n: usize) {
    let class = |i: usize| (i % 3) as f32;
    folder.arrays(
        "x.npz",
        &[("shape", &[n, 2]), ("colour", &[n, 3])],
        |a, k| {
            let width = [2, 3][a];
            3.0 * class(k / width) * ((k % width) as f32 - 0.4) + noise(1000 * a + k)
        },
    );
    let labels: Vec<String> = (0..n)
        .map(|i| ["apple", "pear", "plum"][i % 3].into())
        .collect();
    folder.write("y.txt", labels.join("\n"));
}

fn train(folder: &Folder, more: &[&str]) {
    let mut arguments = vec![
        "train",
        "--features",
        "x.npz",
        "--labels",
        "y.txt",
        "--model",
        "m.mk",
    ];
    arguments.extend(more);
    folder.good(&arguments);
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path(name)).expect("the page")
}

#[test]
fn a_model_keeps_what_its_report_shows() {
    let folder = Folder::new();
    samples(&folder, 90);
    train(
        &folder,
        &["--holdout", "0.3", "--kernel", "rbf:width=mean*0.5|mean"],
    );
    let model = folder.json(&["inspect", "m.mk"]);
    let training = &model["training"];
    assert_eq!(
        training["command"],
        "multikernel train --features x.npz --labels y.txt --model m.mk --holdout 0.3 --kernel 'rbf:width=mean*0.5|mean'"
    );
    assert_eq!(training["version"], env!("CARGO_PKG_VERSION"));
    let list = |value: &Value| value.as_array().expect("a list").len();
    assert!(list(&training["notes"]) > 0);
    assert!(list(&training["history"][0]["primal"]) > 0);
    assert_eq!(list(&training["alignment"]["targets"]), 4);
    assert_eq!(list(&training["alignment"]["pairwise"]), 4);
    assert_eq!(
        training["status"], "converged",
        "the result object stands beside it"
    );
    assert_eq!(training["evaluation"]["n"], 27);

    let said = folder.good(&["report", "m.mk", "--out", "r.html"]);
    assert!(said.contains("report written to r.html"), "{said}");
    let page = read(&folder, "r.html");
    for text in [
        "3 classes told apart",
        "27 samples held out",
        "shape/rbf(mean)",
        "Alignment of pairs",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // The same model gives the same page, and an older one is replaced.
    folder.good(&["report", "m.mk", "--out", "r.html", "--quiet"]);
    assert_eq!(read(&folder, "r.html"), page);
}

#[test]
fn a_report_measures_the_model_on_data() {
    let folder = Folder::new();
    samples(&folder, 90);
    train(&folder, &["--no-baselines"]);
    let result = folder.json(&[
        "report",
        "m.mk",
        "--out",
        "r.html",
        "--features",
        "x.npz",
        "--labels",
        "y.txt",
    ]);
    assert_eq!(result["n_samples"], 90);
    let accuracy = result["metrics"]["accuracy"].as_f64().expect("a number");
    assert!(accuracy > 0.8);
    let page = read(&folder, "r.html");
    assert!(page.contains("90 samples of another file") && page.contains("Confusions"));
    // The short way, with the labels behind the files.
    folder.good(&[
        "report", "m.mk", "--data", "x.npz", "--labels", "y.txt", "--out", "s.html",
    ]);
    assert_eq!(read(&folder, "s.html"), page);
    folder.good(&[
        "report",
        "m.mk",
        "--out",
        "s.html",
        "--data",
        "--features",
        "x.npz",
        "--labels",
        "y.txt",
    ]);
    assert_eq!(read(&folder, "s.html"), page);
}

#[test]
fn a_model_of_given_matrices_is_measured_on_matrices() {
    let folder = Folder::new();
    samples(&folder, 60);
    folder.good(&[
        "gram",
        "--features",
        "x.npz",
        "--labels",
        "y.txt",
        "--kernel",
        "rbf",
        "--out",
        "g.npz",
    ]);
    folder.good(&[
        "train", "--gram", "g.npz", "--labels", "y.txt", "--model", "m.mk",
    ]);
    let result = folder.json(&[
        "report", "m.mk", "--data", "g.npz", "--labels", "y.txt", "--out", "r.html",
    ]);
    assert!(result["metrics"]["accuracy"].as_f64().expect("a number") > 0.8);
}

#[test]
fn a_stream_has_a_report() {
    let folder = Folder::new();
    let lines: String = (0..60)
        .map(|i| {
            format!(
                "{{\"x\":[{},{}],\"label\":\"{}\"}}\n",
                noise(i) + 4.0 * (i % 2) as f32,
                noise(99 + i),
                i % 2
            )
        })
        .collect();
    folder.write("s.jsonl", lines);
    folder.good(&[
        "online",
        "s.jsonl",
        "--kernel",
        "rbf:width=1",
        "--checkpoint",
        "state.mk",
    ]);
    folder.good(&["report", "state.mk", "--out", "r.html"]);
    let page = read(&folder, "r.html");
    assert!(page.contains("a stream of 60 examples") && page.contains("Mistakes along the stream"));
}

#[test]
fn wrong_reports_are_refused_in_a_sentence() {
    let folder = Folder::new();
    samples(&folder, 60);
    train(&folder, &["--no-baselines"]);
    folder.write("no.mk", "nothing");
    for (arguments, expected) in [
        (&["report", "no.mk", "--out", "r.html"][..], "no.mk"),
        (&["report", "absent.mk", "--out", "r.html"], "absent.mk"),
        (
            &["report", "m.mk", "--out", "no/r.html"],
            "there is no folder no",
        ),
        (
            &["report", "m.mk", "--out", "r.html", "--labels", "y.txt"],
            "there are no samples beside them",
        ),
        (
            &["report", "m.mk", "--out", "r.html", "--data", "x.npz"],
            "labels",
        ),
        (&["demo", "--out", "no/r.html"], "there is no folder no"),
        (
            &["man", "nonsense"],
            "there is no 'nonsense'; give one of demo, train",
        ),
    ] {
        let said = folder.bad(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    for arguments in [
        &["report"][..],
        &["report", "m.mk"],
        &["completions", "cmd.exe"],
        &["completions"],
    ] {
        assert_eq!(
            folder.run(arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn the_demo_explains_itself() {
    let folder = Folder::new();
    let said = folder.good(&["demo", "--out", "d.html"]);
    assert!(
        said.contains("report written to d.html; open it in a browser"),
        "{said}"
    );
    let page = read(&folder, "d.html");
    for text in [
        "10 classes told apart, <em>9",
        "899 samples held out",
        "upper_left",
        "all kernels with equal weights",
        "Confusions",
        "<span>demo</span>",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let quiet = folder.run(&["demo", "--quiet"]);
    assert!(quiet.status.success() && quiet.stdout.is_empty() && stderr(&quiet).is_empty());
    assert_eq!(folder.names(), ["d.html", "demo-report.html"]);
}

#[test]
fn shells_complete_commands_and_options() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = folder.good(&["completions", shell]);
        for word in ["multikernel", "train", "report", "holdout"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    // The shell itself must be able to read it.
    if let Ok(bash) = std::process::Command::new("bash")
        .arg("-n")
        .stdin(std::process::Stdio::piped())
        .spawn()
    {
        use std::io::Write;
        let mut bash = bash;
        let text = folder.good(&["completions", "bash"]);
        bash.stdin
            .take()
            .expect("piped")
            .write_all(text.as_bytes())
            .expect("read");
        assert!(bash.wait().expect("it ends").success());
    }
}

#[test]
fn every_command_has_a_manual_page_and_examples() {
    let folder = Folder::new();
    let page = folder.good(&["man"]);
    assert!(page.starts_with(".ie") && page.contains("multikernel\\-train(1)"));
    assert!(
        folder
            .good(&["man", "train"])
            .contains("multikernel\\-train")
    );
    assert!(folder.good(&["man", "--all", "man1"]).is_empty());
    let pages: Vec<String> = std::fs::read_dir(folder.path("man1"))
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert!(pages.contains(&"multikernel.1".to_owned()));
    for command in [
        "demo",
        "train",
        "tune",
        "predict",
        "evaluate",
        "online",
        "gram",
        "inspect",
        "report",
        "solvers",
        "completions",
        "man",
    ] {
        assert!(
            pages.contains(&format!("multikernel-{command}.1")),
            "{command}"
        );
        let help = folder.good(&["help", command]);
        assert!(
            help.contains("Examples:\n  multikernel"),
            "{command}: {help}"
        );
    }
    assert!(folder.good(&["--help"]).contains("Exit status"));
}
