//! Every word is looked at before any sample is read: its sentence comes first, even where the data does not exist.

mod common;
use common::Folder;

/// The sentence about these options of a command whose data is not there.
fn said(command: &[&str], more: &str) -> String {
    let folder = Folder::new();
    let mut arguments = command.to_vec();
    arguments.extend(more.split_whitespace());
    let said = folder.bad(&arguments);
    assert!(!said.contains("No such file"), "{more}: {said}");
    said
}

#[test]
fn words_of_a_training() {
    let train = [
        "train",
        "--features",
        "none.npy",
        "--labels",
        "none.txt",
        "--model",
        "m.mk",
    ];
    for (words, expected) in [
        ("--norm lp:x", "norm: 'x' is not an exponent"),
        ("--solver foo", "solver: 'foo' is not known"),
        ("--loss foo", "loss: 'foo' is not known"),
        ("--C -1", "C: it is -1; give a positive finite number"),
        ("--lambda -1", "lambda: it is -1"),
        ("--scale x", "scale: there is no scaling 'x'"),
        (
            "--class-weight a=-1",
            "class-weight: the weight of class 'a' is -1",
        ),
        ("--multiclass foo", "multiclass: 'foo' is not known"),
        ("--bias foo", "bias: 'foo' is not known"),
        ("--tol -1", "tol: the relative gap asked for is -1"),
        ("--max-seconds -1", "max-seconds: it is -1"),
        ("--holdout 2", "holdout: the share is 2"),
        (
            "--stability 1",
            "stability: one round or none tells nothing",
        ),
        (
            "--kernel foo",
            "kernel 'foo': there is no kind of kernel 'foo'",
        ),
        (
            "--kernel rbf:width=-1",
            "kernel 'rbf:width=-1': width is -1",
        ),
        ("--indefinite foo", "indefinite: 'foo' is not known"),
        ("--task foo", "task: there is no task 'foo'"),
        ("--view bad", "view: 'bad' has no '='"),
        (
            "--solver silp --norm lp:2",
            "norm: solver silp does not solve",
        ),
        ("--solver obscure --norm lp:1", "give block:R with 1 < R"),
        ("--solver wrapper --tikhonov 1", "tikhonov: solver wrapper"),
        (
            "--solver silp --start-epochs 5",
            "start-epochs: solver silp",
        ),
        (
            "--task regress --probabilities",
            "probabilities: the task regress",
        ),
        (
            "--task regress --multiclass ovr",
            "multiclass: the task regress",
        ),
        (
            "--task regress --loss hinge",
            "loss: hinge does not fit the task regress",
        ),
        (
            "--task one-class --bias on",
            "bias: with a bias one-class accepts everything",
        ),
        (
            "--task classify --multiclass joint --loss hinge",
            "multiclass: the loss hinge",
        ),
        (
            "--task regress --class-weight balanced",
            "class-weight: there are no classes",
        ),
    ] {
        let said = said(&train, words);
        assert!(said.contains(expected), "{words}: {said}");
    }
}

#[test]
fn words_of_a_search() {
    let tune = [
        "tune",
        "--features",
        "none.npy",
        "--labels",
        "none.txt",
        "--model",
        "m.mk",
    ];
    for (words, expected) in [
        ("--C 1,x", "C: 'x' is not a number"),
        ("--C 0", "C: it is 0"),
        ("--C 1,1", "C: 1 is there twice"),
        ("--norm lp:1,lp:x", "norm: 'x' is not an exponent"),
        ("--folds 1", "folds: there are 1"),
        ("--nested 1", "nested"),
        ("--metric foo", "metric: 'foo' is not known"),
        ("--metric auc --task regress", "metric: auc is for classes"),
        ("--rule foo", "rule: 'foo' is not known"),
        ("--kernel foo", "kernel 'foo'"),
        (
            "--solver silp --norm lp:2",
            "norm: solver silp does not solve",
        ),
        ("--holdout 2", "holdout: the share is 2"),
        (
            "--holdout 0.2 --fold-groups g.txt",
            "give --validation with samples of other groups, or --nested",
        ),
        ("--tol -1", "tol: the relative gap asked for is -1"),
    ] {
        let said = said(&tune, words);
        assert!(said.contains(expected), "{words}: {said}");
    }
}

#[test]
fn words_of_the_other_commands() {
    let gram = ["gram", "--features", "none.npy", "--out", "g.npz"];
    let inspect = ["inspect", "none.npy"];
    for command in [&gram[..], &inspect] {
        for (words, expected) in [
            ("--kernel foo", "kernel 'foo'"),
            ("--scale x", "scale: there is no scaling 'x'"),
            ("--indefinite foo", "indefinite: 'foo' is not known"),
            ("--task foo", "task: there is no task 'foo'"),
            ("--view bad", "view: 'bad' has no '='"),
        ] {
            let said = said(command, words);
            assert!(said.contains(expected), "{words}: {said}");
        }
    }
    assert!(said(&inspect, "--rank -1").contains("rank: it is -1"));
    let online = ["online", "--features", "none.csv", "--out", "out.jsonl"];
    for (words, expected) in [
        ("--solver foo", "solver: 'foo' does not learn from a stream"),
        ("--norm lp:1", "norm: the norm is lp:1"),
        ("--norm mixed", "norm: the norm is mixed"),
        (
            "--solver omcl --binary",
            "omcl: it combines the scores of all classes",
        ),
        ("--budget 0", "budget"),
        ("--kernel foo", "kernel 'foo'"),
    ] {
        let said = said(&online, words);
        assert!(said.contains(expected), "{words}: {said}");
    }
    let predict = [
        "predict",
        "--model",
        "none.mk",
        "--features",
        "none.npy",
        "--out",
        "p.csv",
    ];
    assert!(said(&predict, "--view bad").contains("view: 'bad' has no '='"));
    let report = ["report", "none.mk", "--out", "r.html"];
    assert!(said(&report, "--label-column y").contains("labels: there are no samples beside them"));
}
