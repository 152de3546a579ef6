//! Training and prediction that cannot be: status 1, one sentence, nothing left behind.

mod common;

use common::{Folder, noise};

fn expect(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
}

fn samples(folder: &Folder) {
    folder.arrays("v.npz", &[("a", &[20, 3]), ("b", &[20, 2])], |a, k| {
        noise(100 * a + k)
    });
    let labels: Vec<&str> = (0..20).map(|i| ["no", "yes"][i % 2]).collect();
    folder.write("y.txt", labels.join("\n"));
}

#[test]
fn values_that_training_cannot_have() {
    let folder = Folder::new();
    samples(&folder);
    folder.write("short.txt", "1\n2\n");
    folder.write("words.txt", "much\n".repeat(20));
    folder.write("minus.txt", "-1\n".repeat(20));
    let bad = |more: &[&str], parts: &[&str]| {
        let mut arguments = vec![
            "train",
            "--features",
            "v.npz",
            "--labels",
            "y.txt",
            "--model",
            "m.mk",
        ];
        arguments.extend(more);
        expect(&folder.bad(&arguments), parts);
    };
    bad(&["--norm", "l7"], &["l7", "lp:"]);
    bad(&["--norm", "lp:0.5"], &["0.5", "1 to inf"]);
    bad(&["--C", "0"], &["C", "0", "positive"]);
    bad(&["--C", "-3"], &["C", "-3", "positive"]);
    bad(&["--C", "abc"], &["C", "abc", "number"]);
    bad(&["--lambda", "-1"], &["lambda", "-1", "positive"]);
    bad(
        &["--C", "1", "--lambda", "1"],
        &["C and lambda", "one of them"],
    );
    bad(&["--tol", "0"], &["tol", "positive"]);
    bad(&["--max-seconds", "-1"], &["max-seconds"]);
    bad(&["--holdout", "1.5"], &["holdout", "1.5", "0.2"]);
    bad(&["--loss", "hing"], &["hing", "hinge"]);
    bad(&["--loss", "epsilon:0.1"], &["epsilon", "classify"]);
    bad(
        &["--solver", "magic"],
        &["magic", "exact", "wrapper", "interleaved"],
    );
    bad(&["--multiclass", "all"], &["all", "joint, ovr or ovo"]);
    bad(
        &["--multiclass", "joint", "--loss", "logistic"],
        &["loss logistic", "joint", "ovr"],
    );
    bad(
        &["--multiclass", "joint", "--solver", "interleaved"],
        &["solver interleaved", "joint"],
    );
    bad(&["--bias", "maybe"], &["maybe", "auto"]);
    bad(&["--class-weight", "red=2"], &["red", "'no'", "'yes'"]);
    bad(&["--class-weight", "yes"], &["yes", "balanced"]);
    bad(
        &["--sample-weight", "short.txt"],
        &["2 weights for 20 samples"],
    );
    bad(
        &["--sample-weight", "words.txt"],
        &["words.txt row 1", "much"],
    );
    bad(&["--sample-weight", "minus.txt"], &["row 1", "-1"]);
    bad(
        &["--sample-weight", "none.txt"],
        &["none.txt", "No such file"],
    );
    bad(
        &["--norm", "noniso:none.npy"],
        &["none.npy", "No such file"],
    );
    bad(&["--norm", "noniso:v.npz"], &["v.npz"]);
    bad(&["--tikhonov", "-2"], &["tikhonov", "-2"]);
    bad(
        &["--tikhonov", "1", "--solver", "wrapper"],
        &["tikhonov", "wrapper"],
    );
    bad(&["--task", "regress"], &["regress", "no"]);
    bad(
        &["--memory", "1MiB"],
        &["needs", "bytes", "allow more memory"],
    );
    expect(
        &folder.bad(&[
            "train",
            "--features",
            "v.npz",
            "--labels",
            "y.txt",
            "--model",
            "no/m.mk",
        ]),
        &["no/m.mk", "no folder"],
    );
}

#[test]
fn labels_that_cannot_be_learned() {
    let folder = Folder::new();
    samples(&folder);
    let train = |labels: &str| {
        folder.bad(&[
            "train",
            "--features",
            "v.npz",
            "--labels",
            labels,
            "--model",
            "m.mk",
        ])
    };
    folder.write("one.txt", "yes\n".repeat(20));
    expect(&train("one.txt"), &["same label", "'yes'", "one-class"]);
    folder.write("few.txt", "yes\nno\n");
    expect(&train("few.txt"), &["2 labels for 20 samples"]);
    folder.write("gap.txt", "yes\n\nno\n");
    expect(&train("gap.txt"), &["gap.txt", "line 2"]);
}

#[test]
fn models_that_are_none() {
    let folder = Folder::new();
    samples(&folder);
    folder.good(&[
        "train",
        "--features",
        "v.npz",
        "--labels",
        "y.txt",
        "--model",
        "m.mk",
        "--no-baselines",
    ]);
    let whole = std::fs::read(folder.path("m.mk")).expect("the model");
    folder.write("cut.mk", &whole[..whole.len() / 2]);
    folder.write("text.mk", "this is no model");
    folder.write("empty.mk", "");
    for name in ["cut.mk", "text.mk", "empty.mk"] {
        let said = folder.bad(&[
            "predict",
            "--model",
            name,
            "--features",
            "v.npz",
            "--out",
            "p.csv",
        ]);
        expect(&said, &[name, "model"]);
        expect(&folder.bad(&["inspect", name]), &[name, "model"]);
    }
    let said = folder.bad(&[
        "predict",
        "--model",
        "none.mk",
        "--features",
        "v.npz",
        "--out",
        "p.csv",
    ]);
    expect(&said, &["none.mk", "No such file"]);
    let said = folder.bad(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "v.npz",
        "--out",
        "p.csv",
        "--probabilities",
    ]);
    expect(&said, &["m.mk", "calibrated", "--scores"]);
    let said = folder.bad(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "v.npz",
        "--out",
        "-",
        "--json",
        "-",
    ]);
    expect(&said, &["stdout"]);
    let said = folder.bad(&[
        "predict",
        "--model",
        "m.mk",
        "--features",
        "v.npz",
        "--out",
        "no/p.csv",
    ]);
    expect(&said, &["no/p.csv", "no folder"]);
}

#[test]
fn new_samples_that_do_not_fit() {
    let folder = Folder::new();
    samples(&folder);
    folder.good(&[
        "train",
        "--features",
        "v.npz",
        "--labels",
        "y.txt",
        "--model",
        "m.mk",
        "--no-baselines",
    ]);
    let predict = |model: &str, kind: &str, file: &str| {
        folder.bad(&["predict", "--model", model, kind, file, "--out", "p.csv"])
    };
    expect(
        &predict("m.mk", "--features", "v.npz:a"),
        &["view 'b'", "missing", "'a'"],
    );
    folder.arrays("wide.npz", &[("a", &[4, 5]), ("b", &[4, 2])], |_, k| {
        noise(k)
    });
    expect(
        &predict("m.mk", "--features", "wide.npz"),
        &["view 'a'", "5 columns", "3"],
    );
    folder.arrays("other.npz", &[("c", &[4, 3])], |_, k| noise(k));
    expect(
        &predict("m.mk", "--features", "other.npz"),
        &["view 'a'", "missing", "'c'"],
    );

    folder.write(
        "t.csv",
        (0..20).fold("x,z,y\n".to_owned(), |text, i| {
            format!(
                "{text}{},{},{}\n",
                noise(i),
                noise(100 + i),
                ["no", "yes"][i % 2]
            )
        }),
    );
    folder.good(&[
        "train",
        "--features",
        "t.csv",
        "--label-column",
        "y",
        "--model",
        "t.mk",
        "--no-baselines",
    ]);
    folder.write("u.csv", "x,w\n1,2\n3,4\n");
    expect(&predict("t.mk", "--features", "u.csv"), &["'z'", "missing"]);

    folder.good(&[
        "gram",
        "--features",
        "v.npz",
        "--kernel",
        "linear",
        "--out",
        "k.npz",
    ]);
    folder.good(&[
        "train",
        "--gram",
        "k.npz",
        "--labels",
        "y.txt",
        "--model",
        "k.mk",
        "--no-baselines",
    ]);
    folder.arrays(
        "thin.npz",
        &[("a/linear", &[3, 7]), ("b/linear", &[3, 7])],
        |_, k| noise(k),
    );
    expect(
        &predict("k.mk", "--gram", "thin.npz"),
        &["(3, 7)", "20 training samples"],
    );
    expect(&predict("k.mk", "--features", "v.npz"), &["missing"]);
}
