//! Settings that a solver or a task has no use for are refused or told, and what is told is true.

mod common;

use common::{Folder, TRAIN, stderr, table, two_views, with};

fn notes(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let text = folder.good(arguments);
    let notes = text.lines().filter_map(|line| line.strip_prefix("note: "));
    notes.map(str::to_owned).collect()
}

fn numbers(folder: &Folder) {
    let rows: Vec<String> = (0..30)
        .map(|i| format!("{},{},{}", i % 7, i % 5, 0.5 * f64::from(i % 7) + 0.25))
        .collect();
    folder.write("r.csv", format!("a,b,y\n{}\n", rows.join("\n")));
}

const REGRESS: [&str; 8] = [
    "train",
    "--features",
    "r.csv",
    "--label-column",
    "y",
    "--model",
    "m.mk",
    "--no-baselines",
];

#[test]
fn a_norm_that_is_not_used_is_told() {
    let folder = Folder::new();
    two_views(&folder, "v", 40, 0);
    let train = with(&TRAIN, &["--no-baselines"]);
    for solver in ["lp-beta", "omcl", "product", "sum", "average"] {
        let told = |norm: &str| {
            let all = notes(
                &folder,
                &with(&train, &["--solver", solver, "--norm", norm]),
            );
            let said = |note: &String| note.contains(&format!("the norm {norm} is not used"));
            all.iter().any(said)
        };
        assert!(told("lp:2"), "{solver}");
        assert!(!told("lp:4/3"), "{solver}: the default");
    }
}

#[test]
fn the_exponent_of_block_auto_is_told() {
    let folder = Folder::new();
    two_views(&folder, "v", 40, 0);
    let more = ["--no-baselines", "--norm", "block:auto"];
    let all = notes(&folder, &with(&TRAIN, &more));
    let wanted = "norm block:auto is block:2.0000 for 2 kernels";
    assert!(all.iter().any(|note| note == wanted), "{all:?}");
}

#[test]
fn steps_that_a_solver_does_not_take_are_refused() {
    let folder = Folder::new();
    two_views(&folder, "v", 40, 0);
    for (solver, option, remedy) in [
        ("pegasos", &["--eta", "3"][..], "give the solver obscure"),
        (
            "pegasos",
            &["--online-epochs", "3"],
            "give the solver obscure",
        ),
        ("om2", &["--eta", "3"], "give the solver obscure"),
        ("om2", &["--average"], "obscure or pegasos"),
        ("omcl", &["--replacement"], "obscure, pegasos, om2 or pa1"),
        ("exact", &["--replacement"], "obscure, pegasos, om2 or pa1"),
        ("exact", &["--epochs", "3"], "pegasos, om2, pa1 or omcl"),
    ] {
        let more = with(&["--solver", solver], option);
        let said = folder.bad(&with(&TRAIN, &more));
        assert!(
            said.contains(&format!("solver {solver} has none")) && said.contains(remedy),
            "{said}"
        );
    }
}

#[test]
fn averages_and_draws_of_obscure_change_its_model() {
    let folder = Folder::new();
    two_views(&folder, "v", 60, 0);
    let base = ["--no-baselines", "--solver", "obscure", "--epochs", "5"];
    let base = with(&TRAIN, &base);
    let of = |more: &[&str]| {
        let result = folder.json(&with(&base, more));
        common::number(&result["primal"])
    };
    let found = [
        of(&[]),
        of(&["--average"]),
        of(&["--average", "half"]),
        of(&["--replacement"]),
    ];
    for (k, value) in found.iter().enumerate() {
        assert!(value.is_finite() && *value > 0.0);
        assert!(!found[..k].contains(value), "{found:?}");
    }
}

#[test]
fn regression_has_no_classes() {
    let folder = Folder::new();
    numbers(&folder);
    let said = folder.bad(&with(&REGRESS, &["--multiclass", "ovr"]));
    assert!(
        said.contains("multiclass: the task regress has no classes; leave it out"),
        "{said}"
    );
    for solver in ["om2", "pa1"] {
        let said = folder.bad(&with(&REGRESS, &["--solver", solver]));
        assert!(
            said.contains("tell classes apart") && said.contains("the solver exact or obscure"),
            "{said}"
        );
    }
}

#[test]
fn what_certifies_nothing_is_not_strict() {
    let folder = Folder::new();
    table(&folder, "t.csv", 60, 7, [0, 1, 2]);
    let data = ["train", "--features", "t.csv", "--label-column", "colour"];
    let more = ["--id-column", "id", "--kernel", "rbf:width=mean|mean*2"];
    let train = with(&with(&data, &more), &["--model", "m.mk", "--no-baselines"]);
    for solver in ["lp-beta", "omcl"] {
        let output = folder.run(&with(&train, &["--solver", solver, "--strict"]));
        assert_eq!(
            output.status.code(),
            Some(3),
            "{solver}: {}",
            stderr(&output)
        );
    }
    let text = folder.good(&with(&train, &["--solver", "lp-beta"]));
    assert!(text.contains("3 classes with the same mixture"), "{text}");
    assert!(!text.contains("mean over"), "{text}");
}

#[test]
fn large_numbers_are_short() {
    let folder = Folder::new();
    two_views(&folder, "v", 20, 0);
    for (c, shown) in [("1e-300", "C 1e-300,"), ("1e300", "C 1e300,")] {
        let more = ["--no-baselines", "--C", c, "--max-seconds", "1"];
        let text = folder.good(&with(&TRAIN, &more));
        assert!(text.contains(shown), "{text}");
    }
    let text = folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "rbf",
        "--out",
        "g.npz",
    ]);
    let header = text
        .lines()
        .find(|line| line.contains("array"))
        .expect("a table");
    let row = text.lines().last().expect("a kernel");
    assert_eq!(header.find("kernel"), row.find("rbf:"), "{text}");
}

#[test]
fn labels_are_told_apart_as_they_are_written() {
    let folder = Folder::new();
    folder.array("x.npy", &[20, 2], common::noise);
    let train = |labels: [&str; 3], more: &[&str]| {
        let labels: Vec<&str> = (0..20).map(|i| labels[i % 3]).collect();
        folder.write("y.txt", labels.join("\n"));
        let base = ["train", "--features", "x.npy", "--labels", "y.txt"];
        let base = with(&base, &["--model", "m.mk", "--no-baselines"]);
        let notes = notes(&folder, &with(&base, more)).join("\n");
        let result = folder.json(&with(&base, more));
        (notes, common::number(&result["n_classes"]))
    };
    let large = ["10000000000000000", "10000000000000001", "3"];
    let (notes, classes) = train(large, &[]);
    assert!(notes.contains("task classify") && classes == 3.0, "{notes}");
    let (notes, classes) = train(["01", "1", "2"], &[]);
    assert!(
        notes.contains("digits behind a zero") && classes == 3.0,
        "{notes}"
    );
    let (notes, classes) = train(["1", "1.0", "2"], &[]);
    assert!(notes.contains("'1.0' is '1'") && classes == 2.0, "{notes}");
    folder.write("w.txt", format!("1\nnan\n{}", "1\n".repeat(18)));
    folder.write("y.txt", "a\nb\n".repeat(10));
    let base = ["train", "--features", "x.npy", "--labels", "y.txt"];
    let said = folder.bad(&with(
        &base,
        &["--model", "n.mk", "--sample-weight", "w.txt"],
    ));
    assert!(said.contains("w.txt row 2: the number is nan"), "{said}");
}

#[test]
fn a_byte_that_is_no_text_is_called_so() {
    let folder = Folder::new();
    for (row, place) in [
        (&b"1,\xff2,a\n3,4,b\n"[..], "row 1"),
        (b"1,2,a\n3,\xa04,b\n", "row 2"),
    ] {
        folder.write("t.csv", [b"u,v,y\n", row].concat());
        let base = ["train", "--features", "t.csv", "--label-column", "y"];
        let said = folder.bad(&with(&base, &["--model", "m.mk"]));
        assert!(
            said.contains(place) && said.contains("column 'v': the cell is not UTF-8"),
            "{said}"
        );
    }
}

#[test]
fn a_training_that_was_ended_goes_on() {
    let folder = Folder::new();
    common::digits(&folder, 150);
    let base = [
        "train",
        "--features",
        "d.npz",
        "--labels",
        "y.txt",
        "--model",
    ];
    let base = with(&base, &["m.mk", "--no-baselines", "--tol", "1e-6"]);
    let kept = with(&base, &["--checkpoint", "run.json"]);
    let whole = common::number(&folder.json(&base)["primal"]);
    let ended = folder.good(&with(&kept, &["--max-seconds", "0"]));
    assert!(ended.contains("--resume goes on from there"), "{ended}");
    let text = folder.good(&with(&kept, &["--resume"]));
    assert!(
        text.contains("goes on from run.json") && text.contains("converged"),
        "{text}"
    );
    let resumed = folder.json(&with(&kept, &["--resume"]));
    assert_eq!(resumed["status"], "converged");
    let primal = common::number(&resumed["primal"]);
    assert!((primal - whole).abs() <= 2e-6 * whole, "{primal} {whole}");
    // Without a checkpoint there, it begins from nothing.
    folder.good(&with(&base, &["--checkpoint", "other.json", "--resume"]));
    let said = folder.bad(&with(&kept, &["--solver", "obscure"]));
    assert!(
        said.contains("solver obscure always starts from nothing"),
        "{said}"
    );
    let said = folder.bad(&with(&kept, &["--resume", "--holdout", "0.5"]));
    assert!(
        said.contains("run.json: it belongs to 150 training samples"),
        "{said}"
    );
    let output = folder.run(&with(&base, &["--resume"]));
    assert_eq!(output.status.code(), Some(2), "a checkpoint is needed");
}
