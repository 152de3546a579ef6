//! `multikernel online` as its users meet it: streams in files and pipes, wrong lines, late labels, interruptions.

mod common;

use common::{Folder, stderr};
use multikernel::data::digits;
use multikernel::random::Random;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The digits as JSON lines in a seeded order, repeated to so many.
fn lines(count: usize, seed: u64) -> Vec<String> {
    let data = digits().expect("digits");
    let labels = data.labels.expect("labels");
    let mut order: Vec<usize> = (0..data.views.len()).collect();
    Random::new(seed).shuffle(&mut order);
    let all = order.iter().cycle().take(count).enumerate();
    all.map(|(t, &i)| {
        let mut line = serde_json::Map::new();
        line.insert("id".into(), t.into());
        for view in &data.views {
            if let multikernel::data::ViewData::Dense(x) = &view.data {
                line.insert(view.name.clone(), json!(x.row(i)));
            }
        }
        line.insert("label".into(), labels.spelling(i).into());
        Value::Object(line).to_string()
    })
    .collect()
}

fn stream(folder: &Folder, name: &str, lines: &[String]) {
    folder.write(name, lines.join("\n") + "\n");
}

fn parsed(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}

fn bytes(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.path(name)).expect("the state")
}

#[test]
fn every_example_gets_a_line_and_the_state_is_a_model() {
    let folder = Folder::new();
    stream(&folder, "s.jsonl", &lines(900, 1));
    let text = folder.good(&[
        "online",
        "s.jsonl",
        "--checkpoint",
        "state.mk",
        "--json",
        "result.json",
        "--scores",
        "--quiet",
    ]);
    let said = parsed(&text);
    assert_eq!(said.len(), 900);
    assert_eq!(said[0]["prediction"], Value::Null);
    assert_eq!(said[7]["id"], "7");
    assert_eq!(said[899]["line"], 900);
    assert!(said[899]["scores"].as_object().expect("scores").len() == 10);
    let wrong = said.iter().filter(|line| line["correct"] == false).count();
    let result: Value = serde_json::from_slice(&bytes(&folder, "result.json")).expect("JSON");
    assert_eq!(result["metrics"]["mistakes"], wrong as f64);
    assert_eq!(result["metrics"]["online_error"], wrong as f64 / 900.0);
    assert_eq!(result["solver"], "om2");
    assert_eq!(result["n_samples"], 900);
    assert!(result["relative_gap"].is_null());
    assert!(wrong < 300, "{wrong} mistakes");
    // the state is a model
    let test: Vec<String> = lines(1797, 1).split_off(900);
    let inspected = folder.json(&["inspect", "state.mk"]);
    assert_eq!(
        inspected["model"]["n_training"]
            .as_u64()
            .or(inspected["n_training"].as_u64()),
        Some(900)
    );
    let told = folder.good(&["inspect", "state.mk"]);
    assert!(told.contains("from a stream of 900 examples"), "{told}");
    let data = digits().expect("digits");
    folder.arrays(
        "new.npz",
        &[
            ("upper_left", &[2, 16]),
            ("upper_right", &[2, 16]),
            ("lower_left", &[2, 16]),
            ("lower_right", &[2, 16]),
        ],
        |view, k| match &data.views.iter().nth(view).expect("a view").data {
            multikernel::data::ViewData::Dense(x) => x.values()[k],
            _ => 0.0,
        },
    );
    let csv = folder.good(&[
        "predict",
        "--model",
        "state.mk",
        "--features",
        "new.npz",
        "--out",
        "-",
        "--quiet",
    ]);
    assert_eq!(csv, "prediction\n0\n1\n");
    drop(test);
}

#[test]
fn csv_libsvm_and_json_say_the_same() {
    let folder = Folder::new();
    let mut random = Random::new(2);
    let (mut csv, mut json, mut libsvm) =
        (String::from("a,b,c,label\n"), String::new(), String::new());
    for _ in 0..300 {
        let y = random.below(3);
        let x: Vec<f32> = (0..3)
            .map(|d| (random.normal() * 0.3 + if d == y { 2.0 } else { 0.5 }).max(0.1) as f32)
            .collect();
        csv.push_str(&format!("{},{},{},c{y}\n", x[0], x[1], x[2]));
        json.push_str(&format!(
            "{}\n",
            json!({ "x": x, "label": format!("c{y}") })
        ));
        libsvm.push_str(&format!("c{y} 1:{} 2:{} 3:{}\n", x[0], x[1], x[2]));
    }
    folder.write("x.csv", csv);
    folder.write("x.jsonl", json);
    folder.write("x.libsvm", libsvm);
    let of = |file: &str| -> Vec<Value> {
        let text = folder.good(&["online", file, "--kernel", "rbf:width=1|4", "--quiet"]);
        parsed(&text)
            .iter()
            .map(|line| line["prediction"].clone())
            .collect()
    };
    let first = of("x.csv");
    assert_eq!(first.len(), 300);
    assert_eq!(first, of("x.jsonl"));
    assert_eq!(first, of("x.libsvm"));
    for solver in ["obscure", "pegasos", "pa1", "omcl"] {
        let result = folder.json(&[
            "online",
            "x.csv",
            "--solver",
            solver,
            "--out",
            "lines.jsonl",
            "--epochs",
            "3",
        ]);
        assert_eq!(result["solver"], solver);
        assert!(
            result["metrics"]["last_pass_error"]
                .as_f64()
                .expect("an error")
                < 0.1,
            "{solver}"
        );
        assert_eq!(result["passes"].as_array().expect("passes").len(), 3);
        assert_eq!(
            parsed(&String::from_utf8(bytes(&folder, "lines.jsonl")).expect("text")).len(),
            900
        );
    }
}

#[test]
fn wrong_lines_are_named_and_never_learned_from() {
    let folder = Folder::new();
    let good = lines(400, 3);
    stream(&folder, "good.jsonl", &good);
    let mut mixed = good.clone();
    let bad = [
        (3, "{\"upper_left\": [1, 2"),
        (50, "{}"),
        (51, "not json"),
        (120, r#"{"id": 9, "upper_left": [1], "label": 1}"#),
        (260, r#"{"id": "nobody", "label": "3"}"#),
        (300, r#"{"upper_left": [1e999], "label": 1}"#),
        (301, "\u{fffd}"),
    ];
    for (at, line) in bad {
        mixed.insert(at, line.to_owned());
    }
    // a line that only its values make wrong: chi2 needs values that are not negative
    let negative = good[9]
        .replacen("\"upper_left\":[", "\"upper_left\":[-", 1)
        .replace("[-0.0", "[-1.0");
    mixed.insert(200, negative);
    stream(&folder, "mixed.jsonl", &mixed);
    let kernels = ["--kernel", "chi2:width=10|50", "--kernel", "rbf:width=500"];
    let run = |file: &str, state: &str, more: &[&str]| {
        let mut arguments = vec!["online", file, "--checkpoint", state, "--quiet"];
        arguments.extend(kernels);
        arguments.extend(more);
        folder.run(&arguments)
    };
    let clean = run("good.jsonl", "clean.mk", &[]);
    assert!(clean.status.success(), "{}", stderr(&clean));
    let skipped = run(
        "mixed.jsonl",
        "skipped.mk",
        &["--skip-bad", "--json", "r.json"],
    );
    assert!(skipped.status.success(), "{}", stderr(&skipped));
    let result: Value = serde_json::from_slice(&bytes(&folder, "r.json")).expect("JSON");
    assert_eq!(result["stream"]["bad_lines"], 8);
    for number in [4, 51, 52, 121, 262, 302, 303] {
        assert!(
            stderr(&skipped).contains(&format!("mixed.jsonl line {number}")),
            "{}",
            stderr(&skipped)
        );
    }
    let strip = |output: &std::process::Output| -> Vec<(Value, Value)> {
        parsed(&String::from_utf8_lossy(&output.stdout))
            .iter()
            .map(|line| (line["prediction"].clone(), line["correct"].clone()))
            .collect()
    };
    assert_eq!(strip(&clean), strip(&skipped));
    let model = |name: &str| multikernel::Model::load(folder.path(name)).expect("a model");
    assert_eq!(
        model("clean.mk").coefficients(),
        model("skipped.mk").coefficients()
    );
    // fatal: what came before is kept, and the run can go on once the line is mended
    let failed = run("mixed.jsonl", "failed.mk", &[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        stderr(&failed).contains("mixed.jsonl line 4"),
        "{}",
        stderr(&failed)
    );
    assert_eq!(parsed(&String::from_utf8_lossy(&failed.stdout)).len(), 3);
    let again = run("mixed.jsonl", "failed.mk", &["--resume", "--skip-bad"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(
        model("failed.mk").coefficients(),
        model("clean.mk").coefficients()
    );
}

#[test]
fn half_a_row_of_csv_is_never_learned() {
    let folder = Folder::new();
    folder.write(
        "x.csv",
        "id,a,label\n1,2.5,x\n2,3.5,\"multi\nline\"\n3,1.5,\"x\"junk\n4,2.0,\"y\"\n",
    );
    let skip = ["--skip-bad", "--checkpoint", "s.mk", "--json", "r.json"];
    let arguments = [&["online", "x.csv", "--kernel", "rbf:width=1"], &skip[..]].concat();
    let output = folder.run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&bytes(&folder, "r.json")).expect("JSON");
    assert_eq!(result["stream"]["bad_lines"], 3);
    assert_eq!(result["n_samples"], 2);
    assert_eq!(result["classes"], json!(["x", "y"]));
    for (number, said) in [(3, "is not closed"), (4, "cells"), (5, "closing quote")] {
        let line = format!("x.csv line {number}: ");
        let said = stderr(&output)
            .lines()
            .any(|l| l.contains(&line) && l.contains(said));
        assert!(said, "{}", stderr(&output));
    }
    let failed = folder.run(&["online", "x.csv", "--kernel", "rbf:width=1"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("x.csv line 3: the quote before 'multi' is not closed"));
}

#[test]
fn labels_may_come_later() {
    let folder = Folder::new();
    let all = lines(300, 4);
    let mut late = Vec::new();
    for (t, line) in all.iter().enumerate() {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        let label = value["label"].take();
        if t % 3 == 0 {
            let object = value.as_object_mut().expect("an object");
            object.remove("label");
            late.push(value.to_string());
            late.push(json!({ "id": t, "label": label }).to_string());
        } else {
            value["label"] = label;
            late.push(value.to_string());
        }
    }
    stream(&folder, "now.jsonl", &all);
    stream(&folder, "late.jsonl", &late);
    let of = |file: &str, state: &str| {
        let kernels = ["--kernel", "rbf:width=400|1600"];
        let mut arguments = vec!["online", file, "--checkpoint", state, "--quiet"];
        arguments.extend(kernels);
        parsed(&folder.good(&arguments))
    };
    let (now, later) = (of("now.jsonl", "now.mk"), of("late.jsonl", "late.mk"));
    assert_eq!(later.len(), 400);
    // told at once or in the next line: the same
    let model = |name: &str| multikernel::Model::load(folder.path(name)).expect("a model");
    assert_eq!(
        model("now.mk").coefficients(),
        model("late.mk").coefficients()
    );
    let taught: Vec<&Value> = later
        .iter()
        .filter(|line| !line["correct"].is_null())
        .collect();
    assert_eq!(taught.len(), 300);
    for (now, later) in now.iter().zip(taught) {
        assert_eq!(
            (&now["id"], &now["correct"]),
            (&later["id"], &later["correct"])
        );
    }
}

#[test]
fn an_old_state_is_not_lost_and_options_must_fit() {
    let folder = Folder::new();
    stream(&folder, "s.jsonl", &lines(300, 5));
    folder.good(&["online", "s.jsonl", "--checkpoint", "state.mk", "--quiet"]);
    let before = bytes(&folder, "state.mk");
    assert!(
        folder
            .bad(&["online", "s.jsonl", "--checkpoint", "state.mk"])
            .contains("--resume")
    );
    let said = folder.bad(&[
        "online",
        "s.jsonl",
        "--checkpoint",
        "state.mk",
        "--resume",
        "--solver",
        "pa1",
    ]);
    assert!(said.contains("other options"), "{said}");
    folder.good(&[
        "online",
        "s.jsonl",
        "--checkpoint",
        "state.mk",
        "--resume",
        "--quiet",
    ]);
    assert_eq!(bytes(&folder, "state.mk"), before, "nothing new came");
    // what a solver does not use is told, as training tells it
    for solver in ["pa1", "omcl"] {
        let said = folder.good(&[
            "online", "s.jsonl", "--solver", solver, "--norm", "lp:2", "--out", "o.jsonl",
        ]);
        let note = format!("solver {solver} learns in no norm; the norm lp:2 is not used");
        assert!(said.contains(&note), "{said}");
        let said = folder.good(&["online", "s.jsonl", "--solver", solver, "--out", "o.jsonl"]);
        assert!(!said.contains("is not used"), "{said}");
    }
    for wrong in [
        vec!["online", "s.jsonl", "--solver", "exact"],
        vec!["online", "s.jsonl", "--norm", "lp:1"],
        vec!["online", "s.jsonl", "--budget", "many"],
        vec!["online", "s.jsonl", "--C", "3"],
        vec!["online", "nothing.jsonl"],
        vec!["online", "s.jsonl", "--kernel", "rbf:view=nowhere"],
        vec!["online", "s.jsonl", "--kernel", "rbf:normalize=center"],
        vec!["online", "s.jsonl", "--format", "xml"],
        vec!["online", "s.jsonl", "--skip-bad", "--view", "a=upper_*"],
        vec!["online", "-", "--epochs", "2"],
    ] {
        folder.bad(&wrong);
    }
}

/// A run with lines from a pipe: the lines it wrote, and what it said.
fn piped(folder: &Folder, arguments: &[&str], lines: &[String]) -> (Vec<Value>, String) {
    let mut command = folder.command(arguments);
    let output = command
        .write_stdin(lines.iter().map(|l| format!("{l}\n")).collect::<String>())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (parsed(&text), stderr(&output))
}

#[test]
fn where_the_input_ended_more_may_come() {
    let folder = Folder::new();
    let all = lines(900, 11);
    let kernel = ["--kernel", "rbf:width=mean|mean*2"];
    let with = |more: &[&'static str]| -> Vec<&'static str> {
        [&["online"][..], more, &kernel, &["--resume"]].concat()
    };
    stream(&folder, "s.jsonl", &all);
    folder.good(&with(&["s.jsonl", "--checkpoint", "whole.mk"]));
    folder.good(&with(&[
        "s.jsonl",
        "--checkpoint",
        "twice.mk",
        "--epochs",
        "2",
    ]));
    // a pipe that ends, and another one that begins behind it
    let mut arguments = with(&["--checkpoint", "pipe.mk"]);
    let (first, _) = piped(&folder, &arguments, &all[..400]);
    arguments.push("position");
    let (second, said) = piped(&folder, &arguments, &all[400..]);
    assert_eq!((first.len(), second.len()), (400, 500));
    assert_eq!(second[0]["line"], 401);
    assert!(
        said.contains("going on after line 400 of pass 1\n"),
        "{said}"
    );
    assert!(bytes(&folder, "pipe.mk") == bytes(&folder, "whole.mk"));
    // a file that grows
    for (state, whole, epochs) in [
        ("grown.mk", "whole.mk", "1"),
        ("grown2.mk", "twice.mk", "2"),
    ] {
        let mut written = 0;
        for (length, epochs) in [(400, "1"), (400, "1"), (700, "1"), (900, epochs)] {
            stream(&folder, "g.jsonl", &all[..length]);
            let arguments = [
                "g.jsonl",
                "--checkpoint",
                state,
                "--epochs",
                epochs,
                "--out",
                "o.jsonl",
            ];
            let said = folder.good(&with(&arguments));
            let nothing = said.contains("nothing came after line 400 of pass 1");
            assert_eq!(nothing, written == 400 && length == 400, "{said}");
            written = length;
        }
        assert!(bytes(&folder, state) == bytes(&folder, whole), "{state}");
    }
    // every line was answered once, and the second pass again
    let answers = parsed(&String::from_utf8(bytes(&folder, "o.jsonl")).expect("text"));
    assert_eq!(answers.len(), 900 + 900 + 900);
    // what comes behind several passes is new, and learned
    stream(&folder, "g.jsonl", &lines(950, 11));
    let result = folder.json(&with(&[
        "g.jsonl",
        "--checkpoint",
        "grown2.mk",
        "--epochs",
        "2",
        "--out",
        "p.jsonl",
    ]));
    assert_eq!(result["n_samples"], 950);
    assert_eq!(result["stream"]["position"], 950);
    assert_eq!(result["stream"]["passes"], 2);
    let answers = parsed(&String::from_utf8(bytes(&folder, "p.jsonl")).expect("text"));
    assert_eq!(answers.len(), 50);
}

#[test]
fn another_stream_or_other_kernels_are_no_way_to_go_on() {
    let folder = Folder::new();
    let all = lines(300, 12);
    stream(&folder, "s.jsonl", &all);
    stream(&folder, "short.jsonl", &all[..200]);
    stream(&folder, "behind.jsonl", &all[100..]);
    let first = ["online", "s.jsonl", "--checkpoint", "state.mk", "--quiet"];
    folder.good(&[&first[..], &["--kernel", "rbf:width=400"]].concat());
    let before = bytes(&folder, "state.mk");
    for (more, words) in [
        (
            vec!["short.jsonl"],
            "short.jsonl: it ends after line 200, but the state stands at line 300; give all lines again",
        ),
        (
            vec!["behind.jsonl"],
            "behind.jsonl line 1: it is not the example that the state began with",
        ),
        (
            vec!["s.jsonl", "--kernel", "linear"],
            "other kernels (rbf:width=400) than linear; give the same",
        ),
        (
            vec!["s.jsonl", "--scale", "standard"],
            "other scaling (none) than standard",
        ),
    ] {
        let mut arguments = vec!["online", "--checkpoint", "state.mk", "--resume", "start"];
        arguments.extend(more);
        let said = folder.bad(&arguments);
        assert!(said.contains(words), "{said}");
        assert!(bytes(&folder, "state.mk") == before);
    }
    let said = folder.bad(&[
        "online",
        "s.jsonl",
        "--checkpoint",
        "state.mk",
        "--resume",
        "position",
        "--epochs",
        "2",
    ]);
    assert!(said.contains("further passes need all lines"), "{said}");
    // none are named: those of the state
    let arguments = ["online", "s.jsonl", "--checkpoint", "state.mk", "--resume"];
    let output = folder.run(&arguments);
    assert!(output.status.success());
    assert!(
        stderr(&output).contains("the kernels of the state: rbf:width=400"),
        "{}",
        stderr(&output)
    );
    assert!(bytes(&folder, "state.mk") == before);
    // a refusal leaves the answers of the first run alone
    folder.write("o.jsonl", "kept");
    folder.bad(&[
        "online",
        "s.jsonl",
        "--checkpoint",
        "state.mk",
        "--out",
        "o.jsonl",
    ]);
    assert_eq!(bytes(&folder, "o.jsonl"), b"kept");
}

/// Starts a run, kills it after some time (if it still runs), and gives whether it had ended by itself.
fn run_and_kill(folder: &Folder, arguments: &[&str], after: Duration) -> bool {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("multikernel"))
        .args(arguments)
        .current_dir(folder.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begin = std::time::Instant::now();
    while begin.elapsed() < after {
        if let Some(status) = child.try_wait().expect("a status") {
            assert!(status.success(), "{status}");
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // SIGKILL: no handler runs
    child.kill().expect("killed");
    child.wait().expect("a status");
    false
}

/// Kills runs at random moments until so many kills have happened; then lets the run end. The states must be the same.
fn kills(examples: usize, wanted: usize, longest: Duration, seed: u64, more: &[&str]) {
    let folder = Folder::new();
    stream(&folder, "s.jsonl", &lines(examples, seed));
    let arguments = |state: &'static str| {
        let mut all = vec![
            "online",
            "s.jsonl",
            "--checkpoint",
            state,
            "--resume",
            "--quiet",
        ];
        all.extend(more);
        all
    };
    let whole = arguments("whole.mk:100");
    let begin = std::time::Instant::now();
    assert!(run_and_kill(&folder, &whole, Duration::from_secs(3600)));
    let usual = begin.elapsed();
    let longest = longest.min(usual.mul_f64(0.5));
    let mut random = Random::new(seed);
    let mut killed = 0;
    let mut runs = 0;
    while killed < wanted {
        runs += 1;
        assert!(runs < 20 * wanted, "runs end before they can be killed");
        let after = longest.mul_f64(random.uniform());
        match run_and_kill(&folder, &arguments("killed.mk:100"), after) {
            false => killed += 1,
            true => {
                // it got to the end: from the start again
                assert_eq!(bytes(&folder, "killed.mk"), bytes(&folder, "whole.mk"));
                std::fs::remove_file(folder.path("killed.mk")).expect("removed");
            }
        }
    }
    assert!(run_and_kill(
        &folder,
        &arguments("killed.mk:100"),
        Duration::from_secs(3600)
    ));
    assert!(
        bytes(&folder, "killed.mk") == bytes(&folder, "whole.mk"),
        "after {killed} kills"
    );
    println!(
        "{killed} kills in {runs} runs of a stream of {examples} examples ({usual:?} without kills): the same state"
    );
}

#[test]
fn kill_9_and_resume_end_in_the_same_bits() {
    kills(
        4000,
        8,
        Duration::from_millis(1500),
        6,
        &["--kernel", "rbf:width=mean*0.5|mean"],
    );
}

#[test]
fn kill_9_with_a_budget_and_passes() {
    let more = [
        "--budget",
        "150:project",
        "--epochs",
        "3",
        "--kernel",
        "rbf",
    ];
    kills(1500, 5, Duration::from_millis(1500), 7, &more);
}

/// The whole promise: run it with `cargo test -p multikernel-cli --test online --release -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn fifty_kills_of_a_stream_of_20000() {
    kills(
        20_000,
        50,
        Duration::from_millis(3000),
        8,
        &["--kernel", "rbf:width=mean*0.5|mean"],
    );
}

#[cfg(unix)]
#[test]
fn signals_end_a_run_cleanly_and_pipes_are_answered_at_once() {
    let folder = Folder::new();
    let all = lines(500, 9);
    for signal in ["-INT", "-TERM"] {
        let state = format!("state{signal}.mk");
        let arguments = [
            "online",
            "--checkpoint",
            &state,
            "--kernel",
            "rbf:width=400",
            "--quiet",
            "--json",
            "r.json",
        ];
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("multikernel"))
            .args(arguments)
            .current_dir(folder.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        let mut answer = String::new();
        for (t, line) in all.iter().take(300).enumerate() {
            writeln!(input, "{line}").expect("written");
            if t % 50 == 0 {
                // an answer comes although the pipe stays open
                loop {
                    answer.clear();
                    std::io::BufRead::read_line(&mut output, &mut answer).expect("a line");
                    let said: Value = serde_json::from_str(&answer).expect("JSON");
                    if said["line"] == t + 1 {
                        break;
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(killed.expect("kill").success());
        assert!(
            child.wait().expect("a status").success(),
            "{signal} ends it cleanly"
        );
        drop(input);
        let result: Value = serde_json::from_slice(&bytes(&folder, "r.json")).expect("JSON");
        assert_eq!(result["status"], "stopped");
        assert_eq!(result["stream"]["position"], 300);
        // the rest comes behind the position, and the state is that of the whole
        let mut rest = folder.command(&[
            "online",
            "--checkpoint",
            &state,
            "--kernel",
            "rbf:width=400",
            "--quiet",
            "--resume",
            "position",
        ]);
        rest.write_stdin(all[300..].join("\n")).assert().success();
        let name = format!("whole{signal}.mk");
        let mut whole = folder.command(&[
            "online",
            "--checkpoint",
            &name,
            "--kernel",
            "rbf:width=400",
            "--quiet",
        ]);
        whole.write_stdin(all.join("\n")).assert().success();
        assert!(bytes(&folder, &state) == bytes(&folder, &name));
    }
    assert!(Path::new("/").exists());
    // stopped before the first block was complete: there is nothing to keep, which the status tells
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("multikernel"))
        .args(["online", "--checkpoint", "early.mk"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    writeln!(input, "{}", all[0]).expect("written");
    std::thread::sleep(Duration::from_millis(500));
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill").success());
    let output = child.wait_with_output().expect("a status");
    drop(input);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!folder.path("early.mk").exists());
    let help = folder.good(&["--help"]);
    assert!(
        help.contains("130 stopped before there was a result"),
        "{help}"
    );
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_does_not_take_what_was_learned_with_it() {
    use std::io::BufRead;
    let folder = Folder::new();
    let all = lines(3000, 13);
    stream(&folder, "s.jsonl", &all);
    let arguments = ["online", "s.jsonl", "--kernel", "rbf:width=400"];
    let run = |more: &[&str]| folder.command(&[&arguments[..], more].concat());
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("multikernel"))
        .args(arguments)
        .args(["--checkpoint", "left.mk:100000", "--json", "r.json"])
        .current_dir(folder.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // as head does: a few lines, then nobody reads any more
    let mut answers = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut answer = String::new();
    answers.read_line(&mut answer).expect("a line");
    drop(answers);
    let output = child.wait_with_output().expect("a status");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("nobody reads the answers any more: stopped after line"),
        "{}",
        stderr(&output)
    );
    let result: Value = serde_json::from_slice(&bytes(&folder, "r.json")).expect("JSON");
    assert_eq!(result["status"], "stopped");
    let position = result["stream"]["position"].as_u64().expect("a position");
    assert!((1..3000).contains(&position), "{position}");
    assert_eq!(result["n_samples"], position);
    // from there it goes on to the state of a run that nobody left
    let rest = ["--checkpoint", "left.mk", "--resume", "--quiet"];
    run(&rest).assert().success();
    run(&["--checkpoint", "whole.mk", "--quiet"])
        .assert()
        .success();
    assert!(bytes(&folder, "left.mk") == bytes(&folder, "whole.mk"));
}

#[test]
fn theorem_1_is_told_for_a_comparator() {
    let folder = Folder::new();
    let mut random = Random::new(3);
    let mut csv = String::from("a,b,label\n");
    for _ in 0..200 {
        let y = random.below(3) as f64;
        let x = [y + 0.2 * random.normal(), -y + 0.2 * random.normal()];
        csv.push_str(&format!("{},{},c{y}\n", x[0], x[1]));
    }
    folder.write("x.csv", csv);
    folder.good(&[
        "train",
        "--features",
        "x.csv",
        "--label-column",
        "label",
        "--kernel",
        "rbf:width=1|3",
        "--norm",
        "block:1.5",
        "--bias",
        "off",
        "--C",
        "10",
        "--model",
        "u.mk",
        "--quiet",
        "--no-baselines",
    ]);
    let result = folder.json(&[
        "online",
        "x.csv",
        "--kernel",
        "rbf:width=1|3",
        "--norm",
        "block:1.5",
        "--comparator",
        "u.mk",
        "--out",
        "l.jsonl",
    ]);
    let bound = &result["mistake_bound"];
    let wrong = bound["wrong_rounds"].as_f64().expect("a count");
    assert!(wrong <= bound["bound"].as_f64().expect("a bound"));
    assert!(wrong >= result["metrics"]["mistakes"].as_f64().expect("a count") - 3.0);
}

#[test]
fn online_solvers_train_on_stored_data() {
    let folder = Folder::new();
    let data = digits().expect("digits");
    let labels = data.labels.expect("labels");
    let mut csv = String::new();
    for (v, view) in data.views.iter().enumerate() {
        let names = view
            .columns
            .iter()
            .enumerate()
            .map(|(c, _)| format!("v{v}_{c}"));
        csv.push_str(&names.collect::<Vec<_>>().join(","));
        csv.push(',');
    }
    csv.push_str("label\n");
    for i in 0..500 {
        for view in &data.views {
            if let multikernel::data::ViewData::Dense(x) = &view.data {
                x.row(i).iter().for_each(|v| csv.push_str(&format!("{v},")));
            }
        }
        csv.push_str(&format!("d{}\n", labels.spelling(i)));
    }
    folder.write("x.csv", csv);
    let cuts = [
        "--view", "a=v0_*", "--view", "b=v1_*", "--view", "c=v2_*", "--view", "d=v3_*",
    ];
    for (solver, certified) in [("om2", true), ("pa1", true), ("omcl", false)] {
        let mut arguments = vec![
            "train",
            "--features",
            "x.csv",
            "--label-column",
            "label",
            "--solver",
            solver,
            "--epochs",
            "5",
            "--holdout",
            "0.4",
            "--no-baselines",
            "--kernel",
            "rbf",
            "--model",
            "m.mk",
        ];
        arguments.extend(cuts);
        let result = folder.json(&arguments);
        assert_eq!(result["solver"], solver);
        assert!(
            result["metrics"]["accuracy"].as_f64().expect("accuracy") > 0.9,
            "{solver}"
        );
        assert_eq!(result["relative_gap"].is_number(), certified, "{solver}");
        folder.good(&["inspect", "m.mk"]);
        let mut again = vec![
            "predict",
            "--model",
            "m.mk",
            "--features",
            "x.csv",
            "--label-column",
            "label",
            "--out",
            "p.csv",
        ];
        again.extend(cuts);
        let predicted = folder.json(&again);
        assert!(
            predicted["metrics"]["accuracy"].as_f64().expect("accuracy") > 0.9,
            "{solver}"
        );
    }
    let listed = folder.good(&["solvers"]);
    for name in ["om2", "pa1", "omcl"] {
        assert!(listed.contains(name));
    }
    let said = folder.bad(&[
        "train",
        "--features",
        "x.csv",
        "--label-column",
        "label",
        "--solver",
        "om2",
        "--loss",
        "squared",
        "--model",
        "n.mk",
        "--multiclass",
        "ovr",
    ]);
    assert!(said.contains("hinge"), "{said}");
}
