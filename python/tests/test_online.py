"""Streams."""

import json
import pickle
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import multikernel as mk

KERNELS = "rbf:width=400|1600"


def streamed(digits, **options):
    X, y, views = digits
    model = mk.OnlineMKLClassifier(kernels=KERNELS, views=views, **options)
    for start in range(0, 400, 64):
        model.partial_fit(X[start : min(start + 64, 400)], y[start : min(start + 64, 400)])
    return model, X, y


@pytest.mark.parametrize("solver", ["om2", "obscure:eta=1", "pegasos:lambda=0.01", "pa1", "omcl"])
def test_every_solver_learns_and_continues_from_files_and_pickles(digits, tmp_path, solver):
    model, X, y = streamed(digits, solver=solver)
    assert model.score(X[400:], y[400:]) > 0.75
    assert 0 < model.online_error_ < 0.5 and model.mistakes_ == round(400 * model.online_error_)
    assert len(model.kernel_weights_) == 8 and model.kernel_names_[0].startswith("upper_left/")
    model.save(tmp_path / "state.mk")
    copies = [mk.load(tmp_path / "state.mk"), pickle.loads(pickle.dumps(model))]
    scores = model.partial_fit(X[400:], y[400:]).decision_function(X)
    for copy in copies:
        assert isinstance(copy, mk.OnlineMKLClassifier) and copy.solver == solver
        assert copy.classes_.dtype == y.dtype
        np.testing.assert_array_equal(copy.partial_fit(X[400:], y[400:]).decision_function(X), scores)


def test_blocks_do_not_matter(digits):
    model, X, y = streamed(digits)
    once = mk.OnlineMKLClassifier(kernels=KERNELS, views=digits[2]).partial_fit(X[:400], y[:400])
    # classes came in another order: the first block names its own sorted
    order = [list(once.classes_).index(c) for c in model.classes_]
    np.testing.assert_array_equal(once.decision_function(X)[:, order], model.decision_function(X))
    np.testing.assert_array_equal(once.kernel_weights_, model.kernel_weights_)


def test_new_classes_come_behind_the_others(digits):
    X, y, views = digits
    even = y % 2 == 0
    model = mk.OnlineMKLClassifier(kernels=KERNELS, norm="lp:4/3", views=views).partial_fit(X[even], y[even])
    assert list(model.classes_) == [0, 2, 4, 6, 8]
    model.partial_fit(X[~even], y[~even])
    assert sorted(model.classes_) == list(range(10)) and list(model.classes_[:5]) == [0, 2, 4, 6, 8]
    assert model.decision_function(X).shape == (500, 10)
    assert set(model.predict(X)) == set(range(10))


def test_several_passes_come_near_the_exact_model(digits):
    X, y, views = digits
    online = mk.OnlineMKLClassifier(kernels=KERNELS, views=views, max_iter=20).fit(X[:300], y[:300])
    exact = mk.MKLClassifier(kernels=KERNELS, views=views).fit(X[:300], y[:300])
    assert online.n_iter_ == 20
    assert online.score(X[300:], y[300:]) > exact.score(X[300:], y[300:]) - 0.02


def test_a_budget_bounds_the_support(digits):
    model, X, y = streamed(digits, budget="50:project")
    assert len(model.support_) == 50 and model.dual_coef_.shape == (10, 50)
    assert model.score(X[400:], y[400:]) > 0.6
    with pytest.raises(ValueError, match="budget"):
        streamed(digits, budget="50:newest")


def test_the_program_learns_the_same(digits, tmp_path, program):
    model, X, y = streamed(digits)
    views = digits[2]
    lines = (
        json.dumps({**{name: X[i, columns].tolist() for name, columns in views.items()}, "label": str(y[i])})
        for i in range(400)
    )
    (tmp_path / "stream.jsonl").write_text("\n".join(lines))
    command = [program, "online", "--features", "stream.jsonl", "--kernel", KERNELS]
    command += ["--checkpoint", "state.mk", "--out", "said.jsonl", "--json", "result.json", "--quiet"]
    command += ["--classes", ",".join(str(c) for c in model.classes_)]
    subprocess.run(command, cwd=tmp_path, check=True)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["metrics"]["mistakes"] == model.mistakes_
    # and Python goes on from what it wrote
    loaded = mk.load(tmp_path / "state.mk")
    named = {name: X[:, columns] for name, columns in views.items()}
    np.testing.assert_array_equal(loaded.decision_function(named), model.decision_function(X))
    loaded.partial_fit({name: view[400:] for name, view in named.items()}, y[400:])
    model.partial_fit(X[400:], y[400:])
    np.testing.assert_array_equal(loaded.decision_function(named), model.decision_function(X))


@pytest.mark.parametrize("cuts", [[], ["--view", "u=a,b", "--view", "v=c,d"]])
def test_goes_on_from_the_programs_state_on_plain_tables(cuts, tmp_path, program):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    frame, y = pd.DataFrame(X[order], columns=list("abcd")), y[order]
    frame.assign(label=y).to_csv(tmp_path / "s.csv", index=False)
    command = [program, "online", "s.csv", *cuts, "--checkpoint", "state.mk", "--out", "said.jsonl", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True)
    model = mk.load(tmp_path / "state.mk")
    assert (model.predict(frame) == y).mean() > 0.9
    before = model.decision_function(frame)
    assert (model.partial_fit(frame, y).decision_function(frame) != before).any()
    if cuts:
        with pytest.raises(ValueError, match="'u', 'v'.*data frame"):
            model.predict(frame.to_numpy())
    else:
        values = frame.to_numpy()
        assert (model.partial_fit(values, y).predict(values) == y).mean() > 0.9
    # the other way: the program has no position in a stream that Python read
    mk.OnlineMKLClassifier(kernels="rbf:width=1").partial_fit(frame, y).save(tmp_path / "python.mk")
    command = [program, "online", "s.csv", "--checkpoint", "python.mk", "--resume"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 1 and "python.mk" in told.stderr and "position" in told.stderr and "go on in" in told.stderr


def test_what_cannot_follow_a_stream_says_so(digits):
    X, y, _ = digits
    with pytest.raises(NotFittedError):
        mk.OnlineMKLClassifier().predict(X)
    for kernels in ("precomputed", lambda a, b: a @ b.T):
        with pytest.raises(ValueError, match="cannot follow a stream"):
            mk.OnlineMKLClassifier(kernels=kernels).partial_fit(X, y)
    with pytest.raises(ValueError, match="does not learn from a stream"):
        mk.OnlineMKLClassifier(solver="exact").partial_fit(X, y)
    with pytest.raises(ValueError, match="norm"):
        mk.OnlineMKLClassifier(norm="lp:1").partial_fit(X, y)
    with pytest.raises(ValueError, match="there is 1 sample; begin with at least two samples that differ"):
        mk.OnlineMKLClassifier().partial_fit(X[:1], y[:1])
    mk.OnlineMKLClassifier(kernels="rbf:width=100").partial_fit(X[:1], y[:1])
    for solver in ["auto", "pa1", "omcl", "pegasos"]:
        for C in [0, -1.0, float("nan"), float("inf")]:
            with pytest.raises(ValueError, match="C: it is .*; give a positive finite number"):
                mk.OnlineMKLClassifier(solver=solver, C=C).partial_fit(X, y)
    with pytest.raises(ValueError, match="labels for"):
        mk.OnlineMKLClassifier().partial_fit(X, y[:-1])


def test_the_error_is_drawn(digits):
    pytest.importorskip("matplotlib").use("Agg")
    model, _, _ = streamed(digits)
    line = model.plot_error().lines[0]
    assert abs(line.get_ydata()[-1] / 100 - model.online_error_) < 0.01
