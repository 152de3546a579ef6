"""scikit-learn's contract."""

import io
import pickle
import warnings

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import multikernel as mk


@parametrize_with_checks(
    [
        mk.MKLClassifier(),
        mk.MKLRegressor(),
        mk.MKLOneClass(),
        mk.MKLClassifier(multiclass="ovr", loss="squared-hinge"),
        mk.MKLRegressor(kernels="precomputed:indefinite=allow", loss="squared"),
        mk.OnlineMKLClassifier(),
        mk.OnlineMKLClassifier(solver="pa1", budget=200),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::multikernel.DataWarning")
def test_estimator_checks(estimator, check):
    check(estimator)


ESTIMATORS = [mk.MKLClassifier, mk.MKLRegressor, mk.MKLOneClass]


@pytest.mark.parametrize("make", [*ESTIMATORS, mk.OnlineMKLClassifier])
def test_arguments_are_the_documented_ones_in_order(make):
    import inspect

    every = (
        "kernels norm C solver loss multiclass bias class_weight tol max_iter views probability random_state n_jobs verbose "
        "callback"
    ).split()
    lacking = {
        mk.MKLClassifier: set(),
        mk.MKLRegressor: {"multiclass", "class_weight", "probability"},
        mk.MKLOneClass: {"loss", "multiclass", "bias", "class_weight", "probability"},
        mk.OnlineMKLClassifier: {"loss", "multiclass", "bias", "class_weight", "tol", "probability"},
    }[make]
    names = [name for name in inspect.signature(make).parameters if name != "budget"]
    assert names == [name for name in every if name not in lacking]
    assert make().get_params()["norm"] == ("block:auto" if make is mk.OnlineMKLClassifier else "lp:4/3")


def test_a_clone_is_equal_and_shares_no_kernel():
    model = mk.MKLClassifier(kernels=[mk.kernels.rbf(width=["mean", 2.0]), "linear"], C=3)
    copy = clone(model)
    assert copy.get_params(deep=False) == model.get_params(deep=False)
    assert copy.kernels[0] is not model.kernels[0]


def test_parameters_reach_into_kernels():
    one = mk.MKLClassifier(kernels=mk.kernels.rbf())
    assert one.set_params(kernels__width=2.5).kernels.specs() == ["rbf:width=2.5"]
    many = mk.MKLClassifier(kernels=[mk.kernels.linear(), mk.kernels.poly()])
    assert many.get_params()["kernels__1__degree"] == 2
    many.set_params(kernels__1__degree=3, kernels__0="rbf", C=7)
    assert many.kernels[1].specs() == ["poly:degree=3,coef0=1,gamma=1"] and many.kernels[0] == "rbf" and many.C == 7
    with pytest.raises(ValueError, match="no parameter 'kernels__2__width'"):
        many.set_params(kernels__2__width=1)
    with pytest.raises(ValueError, match="there is no field 'widht'"):
        one.set_params(kernels__widht=1)


def test_searches_reach_into_kernels(cancer):
    X, y = cancer
    search = GridSearchCV(
        mk.MKLClassifier(kernels=[mk.kernels.rbf(width="mean")]),
        {"kernels__0__width": ["mean*0.001", "mean"], "C": [1.0]},
        cv=3,
    ).fit(X[:200], y[:200])
    assert search.best_params_["kernels__0__width"] == "mean"
    assert search.best_estimator_.kernel_names_ == ["x/rbf(mean)"]


def test_pipeline_with_data_frames(cancer):
    X, y = cancer
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(30)])
    views = {"mean": "f0", "rest": "f2*"}
    pipe = make_pipeline(StandardScaler(), mk.MKLClassifier(views=views)).set_output(transform="pandas")
    pipe.fit(frame[:300], y[:300])
    assert list(pipe[-1].feature_names_in_) == list(frame.columns)
    assert pipe[-1].n_features_in_ == 30
    assert pipe.score(frame[300:], y[300:]) > 0.85
    with pytest.raises(ValueError, match="feature names should match"):
        pipe[-1].predict(frame.rename(columns={"f0": "g0"}))


def test_cross_validation_of_precomputed_kernels_is_that_of_raw_data(cancer):
    X, y = cancer[0][:150], cancer[1][:150]
    kernels = ["linear", "rbf:width=20", "rbf:width=60"]
    raw = cross_val_predict(mk.MKLClassifier(kernels=kernels, tol=1e-5), X, y, cv=3, method="decision_function")
    K = mk.gram(X, kernels)
    assert K.shape == (150, 150, 3)
    given = cross_val_predict(mk.MKLClassifier(kernels="precomputed", tol=1e-5), K, y, cv=3, method="decision_function")
    # The kernels are equal to the rounding of f32, the solutions to tol.
    np.testing.assert_allclose(given, raw, atol=0.02)
    search = GridSearchCV(mk.MKLClassifier(kernels="precomputed"), {"C": [0.01, 1.0], "norm": ["lp:1", "lp:2"]}, cv=3).fit(K, y)
    assert search.best_score_ > 0.9
    assert search.predict(K).shape == (150,)


def test_weights_are_routed(cancer):
    X, y = cancer[0][:120], cancer[1][:120]
    weight = np.where(y == 1, 1.0, 5.0)
    seen = []

    class Watched(mk.MKLClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    with sklearn.config_context(enable_metadata_routing=True):
        model = Watched().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        cross_val_score(model, X, y, cv=3, params={"sample_weight": weight}, scoring=scorer)
    assert len(seen) == 3 and all(len(w) == 80 for w in seen)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_pickles_predict_the_same_bits(cancer, dumps):
    X, y = cancer
    for model in [mk.MKLClassifier(), mk.MKLRegressor(), mk.MKLOneClass(C=0.1)]:
        model.fit(X[:100], y[:100])
        again = pickle.loads(dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
        assert again.get_params() == model.get_params()
    fitted = mk.MKLClassifier(kernels=[lambda A, B: A @ B.T, "rbf"]).fit(X[:100], y[:100])
    again = cloudpickle.loads(cloudpickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_joblib_of_processes_and_of_threads(cancer, tmp_path):
    X, y = cancer[0][:120], cancer[1][:120]
    alone = cross_val_score(mk.MKLClassifier(), X, y, cv=3)
    for backend in ["loky", "threading"]:
        with joblib.parallel_backend(backend, n_jobs=2):
            np.testing.assert_array_equal(cross_val_score(mk.MKLClassifier(), X, y, cv=3, n_jobs=2), alone)
    model = mk.MKLClassifier().fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(X), model.predict(X))


def test_results_do_not_depend_on_threads(cancer):
    X, y = cancer
    one, two = (mk.MKLClassifier(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    for wrong in [0, 1.5, True]:
        with pytest.raises(ValueError, match="n_jobs"):
            mk.MKLClassifier(n_jobs=wrong).fit(X[:50], y[:50])


def test_random_state_is_the_seed(cancer):
    X, y = cancer

    def fit(seed):
        return mk.MKLClassifier(solver="obscure", random_state=seed, max_iter=3).fit(X[:200], y[:200]).dual_coef_

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(fit(None), fit(0))
        np.testing.assert_array_equal(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)))
        assert fit(0).shape != fit(1).shape or not np.array_equal(fit(0), fit(1))


def test_not_fitted_and_not_converged(cancer):
    X, y = cancer
    with pytest.raises(NotFittedError):
        mk.MKLClassifier().predict(X)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is \d.*after 1 rounds.*tol is 1e-06.*raise max_iter"):
        model = mk.MKLClassifier(max_iter=1, tol=1e-6).fit(X, y)
    assert not model.converged_ and model.n_iter_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mk.MKLClassifier().fit(X, y).converged_


def test_verbose_says_how_it_went(cancer, capsys):
    X, y = cancer
    mk.MKLClassifier(verbose=True).fit(X, y)
    out, error = capsys.readouterr()
    assert "converged" in out and "relative gap" in out
    assert error == "", "a bar is for terminals and notebooks"


def test_the_bar_is_drawn_in_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    from multikernel._progress import Listener

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Listener(True, None) as listener:
        listener({"stage": "computing kernels", "done": 1, "total": 2})
        listener.bar.last = 0
        listener({"stage": "training", "round": 3, "primal": 2.0, "dual": 1.0, "gap": 0.5})
    drawn = terminal.getvalue()
    assert "computing kernels [###############               ] 50%" in drawn
    assert "training: round 3, relative gap 5.0e-01" in drawn
    assert drawn.endswith("\r")
