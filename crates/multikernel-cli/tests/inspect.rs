//! `multikernel inspect` and `demo` through the real binary.

mod common;

use common::{Folder, noise, stderr};
use std::io::Read;
use std::process::{Command, Stdio};

/// Two views of 60 samples of three classes; the first knows the class, the second does not.
fn samples(folder: &Folder) {
    folder.arrays("v.npz", &[("good", &[60, 3]), ("bad", &[60, 2])], |a, k| {
        let class = if a == 0 { (k / 3 % 3) as f32 } else { 0.0 };
        4.0 * class + noise(1000 * a + k)
    });
    let labels: Vec<&str> = (0..60).map(|i| ["red", "green", "blue"][i % 3]).collect();
    folder.write("y.txt", labels.join("\n"));
}

#[test]
fn data_kernels_and_alignments_are_shown() {
    let folder = Folder::new();
    samples(&folder);
    let text = folder.good(&[
        "inspect",
        "v.npz",
        "--labels",
        "y.txt",
        "--kernel",
        "rbf:width=mean|mean*2",
    ]);
    for expected in [
        "task classify, because the labels are words (3 different)",
        "60 samples, 3 classes (blue: 20, green: 20, red: 20)",
        "good/rbf(mean*2)",
        "alignment of pairs",
        "no warnings",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let result = folder.json(&["inspect", "v.npz", "--labels", "y.txt", "--kernel", "rbf"]);
    let alignment = |m: usize| {
        result["kernels"]["kernels"][m]["target_alignment"]
            .as_f64()
            .expect("number")
    };
    assert!(alignment(0) > 0.5 && alignment(1) < 0.2, "{result}");
    assert_eq!(result["task"], "classify");
    assert_eq!(
        result["data"]["target"]["counts"],
        serde_json::json!([20, 20, 20])
    );
}

#[test]
fn gram_files_are_recognised_and_warned_of() {
    let folder = Folder::new();
    let n = 40;
    folder.arrays("k.npz", &[("same", &[n, n]), ("none", &[n, n])], |a, k| {
        let identity = if k / n == k % n { 1.0 } else { 0.0 };
        if a == 0 { 3.0 } else { identity }
    });
    let output = folder.run(&["inspect", "k.npz"]);
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains("warning: kernel 'same' is numerically constant"),
        "{said}"
    );
    assert!(
        said.contains("warning: kernel 'none' is numerically the identity"),
        "{said}"
    );
    let result = folder.json(&["inspect", "k.npz"]);
    assert_eq!(
        result["warnings"].as_array().map(Vec::len),
        Some(2),
        "{result}"
    );
    assert_eq!(
        result["kernels"]["alignments"].as_array().map(Vec::len),
        Some(2)
    );
    // The same through a folder and the option.
    folder.good(&["gram", "--gram", "k.npz", "--out", "folder/"]);
    let again = folder.json(&["inspect", "--gram", "folder"]);
    assert_eq!(again["warnings"], result["warnings"]);
}

#[test]
fn what_gram_wrote_inspect_reads() {
    let folder = Folder::new();
    samples(&folder);
    folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "rbf",
        "--out",
        "k.npz",
    ]);
    let from_kernels = folder.json(&["inspect", "k.npz", "--labels", "y.txt"]);
    let from_data = folder.json(&["inspect", "v.npz", "--labels", "y.txt", "--kernel", "rbf"]);
    for m in 0..2 {
        let of = |r: &serde_json::Value| {
            r["kernels"]["kernels"][m]["target_alignment"]
                .as_f64()
                .expect("number")
        };
        assert!((of(&from_kernels) - of(&from_data)).abs() < 1e-6);
    }
}

#[test]
fn a_thousand_kernels_fit_on_a_screen_and_json_has_all() {
    let folder = Folder::new();
    samples(&folder);
    folder.write(
        "many.toml",
        format!(
            "[[kernel]]\nkind = \"rbf\"\nview = \"good\"\nwidth = {:?}\n",
            (1..=1000).collect::<Vec<_>>()
        ),
    );
    let arguments = [
        "inspect",
        "v.npz",
        "--labels",
        "y.txt",
        "--kernels",
        "many.toml",
    ];
    let text = folder.good(&arguments);
    assert!(text.lines().count() < 70, "{}", text.lines().count());
    assert!(
        text.contains("1000 kernels, the 30 best aligned with the labels"),
        "{text}"
    );
    let result = folder.json(&arguments);
    assert_eq!(
        result["kernels"]["kernels"].as_array().map(Vec::len),
        Some(1000)
    );
    assert_eq!(
        result["kernels"]["alignments"][999]
            .as_array()
            .map(Vec::len),
        Some(1000)
    );
}

#[test]
fn json_goes_to_a_file_whole() {
    let folder = Folder::new();
    samples(&folder);
    let text = folder.good(&["inspect", "v.npz", "--kernel", "linear", "--json", "r.json"]);
    assert!(text.contains("no targets"), "{text}");
    let written = std::fs::read_to_string(folder.path("r.json")).expect("written");
    let result: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(result["task"], "one-class");
    assert_eq!(folder.names(), ["r.json", "v.npz", "y.txt"]);
}

#[test]
fn demo_needs_nothing() {
    let folder = Folder::new();
    let text = folder.good(&["demo"]);
    for expected in [
        "10 classes jointly: 898 samples (899 more held out), 24 kernels",
        "share of all weights by group",
        "upper_left",
        "best single kernel",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(folder.names(), ["demo-report.html"]);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = Folder::new();
    samples(&folder);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("multikernel"))
        .args(["inspect", "v.npz", "--labels", "y.txt"])
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut said)
        .expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{said}");
    assert_eq!(said, "");
}

#[test]
fn no_progress_is_shown_where_nobody_watches() {
    let folder = Folder::new();
    let output = folder.run(&["demo"]);
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}
