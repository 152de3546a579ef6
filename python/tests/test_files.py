"""Model files, between this package and the program."""

import csv
import json
import subprocess

import numpy as np
import pandas as pd
import pytest

import multikernel as mk


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


CASES = {
    "default": ([], {}),
    "sparse": (["--norm", "lp:1", "--C", "5"], {"norm": "lp:1", "C": 5}),
    "two kernels": (
        ["--kernel", "rbf:width=mean*0.5|mean", "--kernel", "linear", "--tol", "1e-5"],
        {"kernels": ["rbf:width=mean*0.5|mean", "linear"], "tol": 1e-5},
    ),
    "logistic": (["--loss", "logistic", "--norm", "elastic:0.5"], {"loss": "logistic", "norm": "elastic:0.5"}),
    "balanced": (["--class-weight", "balanced", "--bias", "off"], {"class_weight": "balanced", "bias": "off"}),
    "obscure": (
        ["--solver", "obscure", "--epochs", "5", "--seed", "3"],
        {"solver": "obscure", "max_iter": 5, "random_state": 3},
    ),
    "ovr": (["--multiclass", "ovr"], {"multiclass": "ovr"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_bits_from_both(program, tmp_path, digits, case, classes):
    words, params = CASES[case]
    X, y, views = digits
    y = y % classes
    np.savez(tmp_path / "x.npz", **{name: X[:, columns] for name, columns in views.items()})
    np.save(tmp_path / "y.npy", y)
    run(
        program, "train", "--features", tmp_path / "x.npz", "--labels", tmp_path / "y.npy", "--model", tmp_path / "model.mk",
        "--no-baselines", *words,
    )  # fmt: skip
    theirs = mk.load(tmp_path / "model.mk")
    ours = mk.MKLClassifier(views=views, **params).fit(X, y)
    assert ours.kernel_names_ == theirs.kernel_names_
    for name in ["support_", "dual_coef_", "intercept_", "kernel_weights_", "kernel_norms_", "classes_"]:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for name in ["objective_", "dual_objective_", "duality_gap_", "converged_", "n_iter_"]:
        assert getattr(ours, name) == getattr(theirs, name), name
    new = {name: X[:, columns] for name, columns in views.items()}
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(new))


def test_precomputed_and_weights_have_the_same_bits(program, tmp_path, cancer):
    X, y = cancer
    X, y = X[:200], y[:200]
    K = mk.gram(X, ["rbf", "linear"])
    weight = 0.5 + np.arange(200) % 3
    np.save(tmp_path / "K.npy", np.ascontiguousarray(K))
    np.save(tmp_path / "y.npy", y / 2)
    np.save(tmp_path / "w.npy", weight)
    run(
        program, "train", "--gram", tmp_path / "K.npy", "--labels", tmp_path / "y.npy", "--model", tmp_path / "model.mk",
        "--sample-weight", tmp_path / "w.npy", "--task", "regress", "--no-baselines",
    )  # fmt: skip
    theirs = mk.load(tmp_path / "model.mk")
    ours = mk.MKLRegressor(kernels="precomputed").fit(K, y / 2, sample_weight=weight)
    assert isinstance(theirs, mk.MKLRegressor)
    np.testing.assert_array_equal(ours.dual_coef_, theirs.dual_coef_)
    by_name = {f"K_{m}": K[:, :, m] for m in range(2)}
    np.testing.assert_array_equal(ours.predict(K), theirs.predict(by_name))
    np.testing.assert_array_equal(ours.predict(K), theirs.predict(K))


def test_the_program_predicts_with_our_model(program, tmp_path, cancer):
    X, y = cancer
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(30)])
    labels = np.array(["bad", "good"])[y]
    model = mk.MKLClassifier(views={"a": "f1*", "b": ["f0", "f2"]}).fit(frame[:300], labels[:300])
    mk.save(model, tmp_path / "model.mk")
    frame.to_csv(tmp_path / "new.csv", index=False)
    run(
        program, "predict", "--model", tmp_path / "model.mk", "--features", tmp_path / "new.csv",
        "--view", "a=f1*", "--view", "b=f0,f2", "--out", tmp_path / "out.csv", "--scores",
    )  # fmt: skip
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == model.predict(frame).tolist()
    scores = np.array([float(row["score_good"]) for row in rows])
    np.testing.assert_allclose(scores, model.decision_function(frame), atol=1e-5)
    inspected = run(program, "inspect", tmp_path / "model.mk").stdout
    assert model.kernel_names_[0] in inspected
    again = mk.load(tmp_path / "model.mk")
    assert again.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))


def test_a_program_model_takes_tables_by_the_names_of_columns(program, tmp_path, cancer):
    X, y = cancer
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(30)])
    frame.assign(kind=np.array(["bad", "good"])[y]).to_csv(tmp_path / "train.csv", index=False)
    run(
        program, "train", "--features", tmp_path / "train.csv", "--label-column", "kind", "--scale", "standard",
        "--view", "a=f1*", "--view", "b=f0,f2", "--model", tmp_path / "model.mk", "--no-baselines",
    )  # fmt: skip
    model = mk.load(tmp_path / "model.mk")
    shuffled = frame[frame.columns[::-1]]
    assert (model.predict(shuffled) == np.array(["bad", "good"])[y]).mean() > 0.9
    assert sorted(set(model.kernel_groups_)) == ["a", "b"]


@pytest.mark.parametrize("labels", [[0, 1], [-1.0, 1.0], [True, False], ["a", "b"], [3, 1]], ids=lambda labels: str(labels))
def test_classes_come_back_as_they_were(tmp_path, labels):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    model = mk.MKLClassifier(probability=True, random_state=5).fit(X, y)
    model.save(tmp_path / "model.mk")
    again = mk.load(tmp_path / "model.mk")
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.random_state == 5 and again.probability
    assert again.n_features_in_ == 2
    with pytest.raises(ValueError, match="3 features"):
        again.predict(np.ones((2, 3)))


def test_cut_views_come_back(tmp_path, digits):
    X, y, views = digits
    for cut in [views, {"rows": slice(0, 16), "rest": range(16, 64)}]:
        model = mk.MKLRegressor(views=cut).fit(X[:100], y[:100])
        model.save(tmp_path / "model.mk")
        np.testing.assert_array_equal(mk.load(tmp_path / "model.mk").predict(X), model.predict(X))


def test_other_kinds_come_back(tmp_path):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("AC"), 12)) for _ in range(40)]
    model = mk.MKLOneClass(C=0.1).fit(texts)
    model.save(tmp_path / "model.mk")
    again = mk.load(tmp_path / "model.mk")
    assert isinstance(again, mk.MKLOneClass)
    np.testing.assert_array_equal(again.decision_function(texts), model.decision_function(texts))
    assert len(again.history_["gap"]) == 0


def test_a_fitted_loaded_model_can_be_fitted_again(tmp_path, cancer):
    X, y = cancer
    mk.MKLClassifier(kernels=["linear", "rbf"]).fit(X, y).save(tmp_path / "model.mk")
    again = mk.load(tmp_path / "model.mk").fit(X, y)
    assert again.score(X, y) > 0.95 and len(again.kernel_names_) == 2


def test_files_that_are_wrong(tmp_path, cancer):
    with pytest.raises(FileNotFoundError, match="none.mk"):
        mk.load(tmp_path / "none.mk")
    (tmp_path / "bad.mk").write_bytes(b"\x08\0\0\0\0\0\0\0not json")
    with pytest.raises(ValueError, match="bad.mk"):
        mk.load(tmp_path / "bad.mk")
    X, y = cancer
    by_function = mk.MKLClassifier(kernels=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match="is a Python function, which a model file cannot hold"):
        by_function.save(tmp_path / "model.mk")
    with pytest.raises(OSError):
        mk.MKLClassifier().fit(X, y).save(tmp_path / "no" / "model.mk")


def test_the_result_object_is_in_the_file(tmp_path, cancer):
    X, y = cancer
    model = mk.MKLClassifier().fit(X, y)
    model.save(tmp_path / "model.mk")
    told = json.loads(mk._native.Model.load(tmp_path / "model.mk").description())["training"]
    assert told["status"] == "converged" and told["n_samples"] == len(y) and told["seed"] == 0
    assert told["kernels"][0]["name"] == model.kernel_names_[0]


@pytest.mark.parametrize("classes", [2, 10])
def test_probabilities_are_the_same_in_both(program, tmp_path, digits, classes):
    X, y, _ = digits
    y = y % classes
    np.savez(tmp_path / "x.npz", x=X[:200].astype(np.float32))
    np.savez(tmp_path / "new.npz", x=X[200:260].astype(np.float32))
    np.save(tmp_path / "y.npy", y[:200])

    def by_program(model):
        run(
            program,
            "predict",
            "--model",
            model,
            "--features",
            tmp_path / "new.npz",
            "--out",
            tmp_path / "p.csv",
            "--probabilities",
        )
        lines = (tmp_path / "p.csv").read_text().splitlines()
        assert lines[0].split(",") == ["prediction", *(f"p_{c}" for c in range(classes))]
        return np.array([[float(p) for p in line.split(",")[1:]] for line in lines[1:]])

    run(
        program,
        "train",
        "--features",
        tmp_path / "x.npz",
        "--labels",
        tmp_path / "y.npy",
        "--model",
        tmp_path / "a.mk",
        "--probabilities",
        "--no-baselines",
    )
    loaded = mk.load(tmp_path / "a.mk")
    new = {"x": X[200:260].astype(np.float32)}
    np.testing.assert_allclose(loaded.predict_proba(new), by_program(tmp_path / "a.mk"), atol=1e-9)
    own = mk.MKLClassifier(probability=True).fit({"x": X[:200].astype(np.float32)}, y[:200])
    own.save(tmp_path / "b.mk")
    np.testing.assert_allclose(own.predict_proba(new), by_program(tmp_path / "b.mk"), atol=1e-9)
    np.testing.assert_array_equal(mk.load(tmp_path / "b.mk").predict_proba(new), own.predict_proba(new))
