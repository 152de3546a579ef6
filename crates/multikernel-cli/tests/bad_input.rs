//! Wrong input: one sentence, the right status, nothing left behind.

mod common;

use common::{Folder, noise, stderr};

/// Runs `gram` on features and expects a sentence with all of these parts.
fn features(folder: &Folder, file: &str, parts: &[&str]) {
    let said = folder.bad(&[
        "gram",
        "--features",
        file,
        "--kernel",
        "linear",
        "--out",
        "k.npz",
    ]);
    expect(&said, parts);
}

fn matrices(folder: &Folder, file: &str, parts: &[&str]) {
    let said = folder.bad(&["inspect", "--gram", file]);
    expect(&said, parts);
}

fn expect(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
}

/// A .npy file with this header text and so many bytes behind it.
fn npy(header: &str, bytes: usize) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(vec![0; bytes]);
    out
}

#[test]
fn numbers_that_are_none() {
    let folder = Folder::new();
    folder.array("nan.npy", &[5, 3], |k| if k == 7 { f32::NAN } else { 1.0 });
    features(&folder, "nan.npy", &["nan.npy", "row 3, column 2", "NaN"]);
    folder.array("inf.npy", &[5, 3], |k| {
        if k == 14 { f32::INFINITY } else { 1.0 }
    });
    features(&folder, "inf.npy", &["inf.npy", "row 5, column 3", "inf"]);
    folder.write("word.csv", "a,b\n1,2\n3,x\n");
    features(&folder, "word.csv", &["word.csv"]);
    folder.write("hole.csv", "a,b\n1,2\n3,\n");
    features(&folder, "hole.csv", &["hole.csv", "row 2", "b"]);
}

#[test]
fn files_that_are_not_what_they_say() {
    let folder = Folder::new();
    folder.write("empty.npy", "");
    features(&folder, "empty.npy", &["empty.npy"]);
    folder.write("empty.csv", "");
    features(&folder, "empty.csv", &["empty.csv"]);
    folder.write("ragged.csv", "a,b\n1,2\n3\n");
    features(&folder, "ragged.csv", &["ragged.csv", "row 2"]);
    folder.write("latin.csv", b"a,b\n1,2\n3,\xff\n");
    features(&folder, "latin.csv", &["latin.csv"]);
    folder.write("cut.npz", "PK\x03\x04 and then nothing");
    features(&folder, "cut.npz", &["cut.npz"]);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 4), }\n";
    folder.write("promise.npy", npy(header, 40));
    features(&folder, "promise.npy", &["promise.npy", "40"]);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000, 1000000000000000), }\n";
    folder.write("absurd.npy", npy(header, 40));
    features(&folder, "absurd.npy", &["absurd.npy"]);
    folder.write("x.docx", "hello");
    features(&folder, "x.docx", &["x.docx", ".docx"]);
    let said = folder.bad(&["gram", "--features", "nowhere.npy", "--out", "k.npz"]);
    expect(&said, &["nowhere.npy", "No such file"]);
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn matrices_that_are_no_kernels() {
    let folder = Folder::new();
    folder.array("flat.npy", &[5, 4], noise);
    matrices(&folder, "flat.npy", &["flat.npy", "5", "4"]);
    folder.array("skew.npy", &[5, 5], |k| k as f32);
    matrices(&folder, "skew.npy", &["skew.npy", "not symmetric", "row"]);
    folder.array("indefinite.npy", &[5, 5], |k| {
        if k / 5 == k % 5 { 0.1 } else { -1.0 }
    });
    let save = ["gram", "--gram", "indefinite.npy", "--out", "k.npz"];
    expect(
        &folder.bad(&save),
        &["indefinite", "not positive semidefinite", "--indefinite"],
    );
    folder.good(&[&save[..], &["--indefinite", "clip"]].concat());
    folder.good(&[&save[..], &["--indefinite", "shift"]].concat());
    folder.good(&[&save[..], &["--indefinite", "allow"]].concat());
    expect(
        &folder.bad(&[&save[..], &["--indefinite", "maybe"]].concat()),
        &["maybe", "clip", "shift"],
    );
    folder.arrays("sizes.npz", &[("a", &[5, 5]), ("b", &[6, 6])], |_, _| 1.0);
    matrices(&folder, "sizes.npz", &["6", "5"]);
}

#[test]
fn labels_that_do_not_fit() {
    let folder = Folder::new();
    folder.array("x.npy", &[6, 2], noise);
    folder.write("y.txt", "a\nb\na\n");
    let said = folder.bad(&["inspect", "x.npy", "--labels", "y.txt"]);
    expect(&said, &["3", "6"]);
    folder.write("t.csv", "a,b\n1,2\n3,4\n");
    let said = folder.bad(&["inspect", "t.csv", "--label-column", "c"]);
    expect(&said, &["'c'"]);
    folder.write("words.txt", "a\nb\na\na\nb\na\n");
    let said = folder.bad(&[
        "inspect",
        "x.npy",
        "--labels",
        "words.txt",
        "--task",
        "regress",
    ]);
    expect(&said, &["regress"]);
}

#[test]
fn kernels_and_options_that_are_unknown() {
    let folder = Folder::new();
    folder.array("x.npy", &[6, 2], noise);
    let bad = |more: &[&str], parts: &[&str]| {
        let mut arguments = vec!["gram", "--features", "x.npy", "--out", "k.npz"];
        arguments.extend(more);
        expect(&folder.bad(&arguments), parts);
    };
    bad(&["--kernel", "rbv"], &["rbv", "rbf"]);
    bad(&["--kernel", "rbf:with=3"], &["with", "width"]);
    bad(&["--kernel", "rbf:width=-1"], &["-1"]);
    bad(&["--kernel", "rbf:view=z"], &["no view 'z'", "x"]);
    bad(&["--kernel", "spectrum"], &["strings"]);
    bad(&["--kernel", "product:of=a*b"], &["'a'"]);
    bad(&["--kernels", "none.toml"], &["none.toml", "No such file"]);
    bad(&["--scale", "big"], &["big", "standard"]);
    bad(&["--scale", "z=standard"], &["z"]);
    bad(&["--task", "guess"], &["guess", "classify"]);
    bad(&["--view", "v=a"], &["v"]);
    bad(
        &["--groups", "1,2"],
        &["2 groups for 0 precomputed kernels"],
    );
    folder.write("broken.toml", "[[kernel]]\nkind = \"rbf\"\nwidht = 3\n");
    bad(&["--kernels", "broken.toml"], &["broken.toml", "widht"]);
    expect(
        &folder.bad(&["gram", "--features", "x.npy", "--out", "k.txt"]),
        &["k.txt", ".npz"],
    );
    expect(
        &folder.bad(&["gram", "--features", "x.npy", "--out", "no/such/k.npz"]),
        &["no/such/k.npz"],
    );
    expect(
        &folder.bad(&["gram", "--out", "k.npz"]),
        &["no data is given"],
    );
    expect(&folder.bad(&["inspect"]), &["no data is given"]);
}

#[test]
fn wrong_usage_has_status_two_and_shows_the_way() {
    let folder = Folder::new();
    for arguments in [
        &["grum"][..],
        &["gram", "--out", "k.npz", "--widht", "3"],
        &["gram", "--features", "x.npy"],
        &["demo", "--threads", "0"],
        &["demo", "--memory", "much"],
        &[],
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains("--help") || stderr(&output).contains("Usage"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn help_has_examples() {
    let folder = Folder::new();
    for command in ["train", "predict", "gram", "inspect"] {
        let help = folder.good(&[command, "--help"]);
        assert!(
            help.contains("Examples:") && help.contains("--memory"),
            "{help}"
        );
    }
    assert!(folder.good(&["--help"]).contains("demo"));
}
