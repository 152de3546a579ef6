//! Where results go: nothing is lost on the way, and what cannot be written is said before the work.

mod common;

use common::{Folder, TRAIN, stderr, table, two_views, with};

const PREDICT: [&str; 5] = ["predict", "--model", "m.mk", "--features", "t.csv"];

fn model(folder: &Folder) {
    table(folder, "t.csv", 60, 7, [0, 1, 2]);
    folder.good(&[
        "train",
        "--features",
        "t.csv",
        "--label-column",
        "colour",
        "--id-column",
        "id",
        "--kernel",
        "rbf",
        "--no-baselines",
        "--model",
        "m.mk",
    ]);
}

#[cfg(unix)]
#[test]
fn pipes_and_links_are_written_through() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = Folder::new();
    model(&folder);
    let more = ["--label-column", "colour", "--id-column", "id", "--out"];
    let predict = with(&PREDICT, &more);
    folder.good(&with(&predict, &["p.csv"]));
    let wanted = std::fs::read_to_string(folder.path("p.csv")).expect("predictions");

    folder.write("goal.csv", "old");
    std::fs::set_permissions(
        folder.path("goal.csv"),
        std::fs::Permissions::from_mode(0o640),
    )
    .expect("rights");
    symlink("goal.csv", folder.path("link.csv")).expect("a link");
    folder.good(&with(&predict, &["link.csv"]));
    assert!(folder.path("link.csv").is_symlink());
    let goal = folder.path("goal.csv");
    assert_eq!(std::fs::read_to_string(&goal).expect("goal"), wanted);
    let mode = std::fs::metadata(&goal).expect("goal").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).expect("what comes through")
    });
    folder.good(&with(&predict, &["pipe"]));
    assert_eq!(reader.join().expect("read"), wanted);
    let kind = std::fs::metadata(&pipe).expect("pipe").file_type();
    assert!(kind.is_fifo());
    // A pipe is not read as a file either, and not called empty.
    let said = folder.bad(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "pipe",
        "--out",
        "q.csv",
    ]);
    assert!(
        said.contains("pipe: this is a pipe or a device; save"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_written_is_said_before_the_work() {
    let folder = Folder::new();
    model(&folder);
    two_views(&folder, "v", 20, 0);
    let data = ["--features", "none.csv"];
    let commands: [&[&str]; 6] = [
        &["train", "--model", "x.mk"],
        &["tune", "--model", "x.mk"],
        &["predict", "--model", "m.mk", "--out", "x.csv"],
        &["evaluate", "--model", "m.mk"],
        &["gram", "--out", "x.npz"],
        &["inspect"],
    ];
    // The data does not exist: whoever speaks of the output has not looked at it yet.
    for command in commands {
        let command = with(command, &data);
        let said = folder.bad(&with(&command, &["--json", "no/r.json"]));
        assert!(said.contains("no/r.json: there is no folder no"), "{said}");
        let said = folder.bad(&with(&command, &["--json", "m.mk/r.json"]));
        assert!(
            said.contains("m.mk/r.json: m.mk is no folder but a file"),
            "{said}"
        );
    }
    for (option, command) in [
        ("--model", "train"),
        ("--model", "tune"),
        ("--history", "train"),
    ] {
        let more = [command, "--model", "x.mk", option, "/proc/x.mk"];
        let more = if option == "--model" {
            [more[0], more[1], more[4]].to_vec()
        } else {
            more.to_vec()
        };
        if cfg!(target_os = "linux") {
            let said = folder.bad(&with(&more, &data));
            assert!(said.contains("/proc/x.mk: no file can be made"), "{said}");
        }
    }
    let said = folder.bad(&["report", "m.mk", "--out", "no/r.html"]);
    assert!(said.contains("no/r.html: there is no folder no"), "{said}");
}

#[test]
fn what_is_read_is_not_overwritten() {
    let folder = Folder::new();
    model(&folder);
    two_views(&folder, "v", 20, 0);
    folder.write("w.txt", "1\n".repeat(20));
    std::fs::create_dir(folder.path("sub")).expect("a folder");
    folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "rbf",
        "--out",
        "g/",
    ]);
    let array = std::fs::read_dir(folder.path("g")).expect("g").next();
    let array = array.expect("one").expect("entry").file_name();
    let array = format!("g/{}", array.to_string_lossy());
    let v = ["--features", "v.npz", "--labels", "v.txt"];
    let named = ["train", "--features", "v.npz:good", "--labels", "v.txt"];
    let commands: Vec<Vec<&str>> = vec![
        with(&["train", "--model", "v.npz"], &v),
        with(&["train", "--model", "sub/../v.txt"], &v),
        with(&named, &["--model", "v.npz"]),
        with(&["train", "--model", "x.mk", "--history", "v.npz"], &v),
        with(
            &["train", "--model", "w.txt", "--sample-weight", "w.txt"],
            &v,
        ),
        with(&["tune", "--model", "x.mk", "--checkpoint", "v.npz"], &v),
        with(&["gram", "--out", "v.npz", "--kernel", "rbf"], &v),
        vec!["gram", "--gram", "g", "--out", &array],
        with(&PREDICT, &["--out", "t.csv"]),
        with(&PREDICT, &["--out", "m.mk"]),
        vec![
            "evaluate",
            "--model",
            "m.mk",
            "--features",
            "t.csv",
            "--json",
            "t.csv",
        ],
        vec!["inspect", "m.mk", "--json", "m.mk"],
        vec!["report", "m.mk", "--out", "m.mk"],
        vec!["online", "--features", "t.csv", "--checkpoint", "t.csv"],
        vec!["online", "--features", "t.csv", "--out", "t.csv"],
    ];
    let kept = ["v.npz", "v.txt", "w.txt", "t.csv", "m.mk"];
    let read = || kept.map(|name| std::fs::read(folder.path(name)).expect("kept"));
    let before = read();
    for command in &commands {
        let said = folder.bad(command);
        assert!(
            said.contains("is read by this command"),
            "{command:?}: {said}"
        );
    }
    assert!(read() == before, "an input was changed");
    let twice = folder.bad(&with(&TRAIN, &["--json", "./m.mk", "--no-baselines"]));
    assert!(twice.contains("names the same file"), "{twice}");
    // A model may be written over an older one.
    folder.good(&with(&TRAIN, &["--no-baselines"]));
}

#[test]
fn a_dash_is_stdout_or_said_not_to_be() {
    let folder = Folder::new();
    model(&folder);
    let page = folder.good(&["report", "m.mk", "--out", "-"]);
    assert!(page.starts_with("<!") && page.trim_end().ends_with("</html>"));
    let said = folder.bad(&["report", "m.mk", "--out", "-", "--json", "-"]);
    assert!(said.contains("one stdout"), "{said}");
    let data = ["--features", "t.csv", "--label-column", "colour"];
    let commands: [&[&str]; 4] = [
        &["train", "--model", "-"],
        &["tune", "--model", "-"],
        &["train", "--model", "x.mk", "--history", "-"],
        &["gram", "--out", "-"],
    ];
    for command in commands {
        let said = folder.bad(&with(command, &data));
        assert!(said.contains("cannot be written to stdout"), "{said}");
    }
    for command in ["train", "evaluate"] {
        let said = folder.bad(&[command, "--features", "-", "--model", "m.mk"]);
        assert!(said.contains("not read from stdin; save it"), "{said}");
    }
    let more = [
        "--id-column",
        "id",
        "--label-column",
        "colour",
        "--out",
        "-",
    ];
    let output = folder.run(&with(&PREDICT, &more));
    assert!(output.status.success(), "{}", stderr(&output));
}
