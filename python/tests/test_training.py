"""What training gives, and how it is watched and stopped."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.svm import SVC, SVR

import multikernel as mk
from multikernel import _native


def test_one_kernel_is_a_support_vector_machine(cancer):
    X, y = cancer
    gamma = 0.02
    ours = mk.MKLClassifier(kernels=f"rbf:gamma={gamma}", C=2, tol=1e-8).fit(X[:300], y[:300])
    theirs = SVC(gamma=gamma, C=2, tol=1e-8).fit(X[:300], y[:300])
    np.testing.assert_allclose(ours.decision_function(X[300:]), theirs.decision_function(X[300:]), atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    ours = mk.MKLRegressor(kernels=f"rbf:gamma={gamma}", C=2, tol=1e-8).fit(X[:300], y[:300])
    theirs = SVR(gamma=gamma, C=2, tol=1e-8).fit(X[:300], y[:300])
    np.testing.assert_allclose(ours.predict(X[300:]), theirs.predict(X[300:]), atol=2e-3)


def test_attributes_belong_together(cancer):
    X, y = cancer
    model = mk.MKLClassifier(kernels=["linear", "rbf", "rbf:width=mean*4"]).fit(X, y)
    K = mk.gram(X, ["linear", "rbf", "rbf:width=mean*4"]).astype(float)
    combined = K @ model.kernel_weights_
    scores = combined[:, model.support_] @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3)
    assert model.dual_objective_ <= model.objective_
    assert model.duality_gap_ == pytest.approx((model.objective_ - model.dual_objective_) / model.objective_)
    a = model.dual_coef_[0]
    support = K[np.ix_(model.support_, model.support_)]
    norms = [b * np.sqrt(a @ support[:, :, m] @ a) for m, b in enumerate(model.kernel_weights_)]
    np.testing.assert_allclose(model.kernel_norms_, norms, rtol=1e-3)
    # lp:4/3: the weights have norm 1.
    assert (model.kernel_weights_ ** (4 / 3)).sum() == pytest.approx(1, rel=1e-3)
    history = model.history_
    assert set(history) == {"problem", "round", "seconds", "primal", "dual", "gap", "steps"}
    assert len(history["gap"]) == model.n_iter_ and history["gap"][-1] <= 1e-3


@pytest.mark.parametrize("solver", [s["name"] for s in mk.solvers()])
@pytest.mark.parametrize("y", ["two", "three", "real", "none"])
def test_every_solver(solver, y, digits):
    X, labels, views = digits
    X = X[:200]
    target = {"two": labels[:200] % 2, "three": labels[:200] % 3, "real": labels[:200] / 3, "none": None}[y]
    make = {"real": mk.MKLRegressor, "none": mk.MKLOneClass}.get(y, mk.MKLClassifier)
    of_classes = ("om2", "pa1", "omcl", "mc-mkl", "lp-beta")
    of_labels = ("best", "align", "alignf")
    if (solver in of_classes and y in ("real", "none")) or (solver in of_labels and y == "none"):
        with pytest.raises(ValueError, match="class|nothing to predict|none to align"):
            make(solver=solver, views=views).fit(X, target)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", mk.DataWarning)  # a product of 24 kernels is nearly diagonal
        model = make(solver=solver, views=views, C=5 if y != "none" else 0.05).fit(X, target)
    kernels = 25 if solver == "product" else 24
    assert model.kernel_weights_.shape[-1] == kernels and (model.kernel_weights_ >= 0).all()
    if y in ("two", "three"):
        assert model.score(X, target) > 0.9
    elif y == "real":
        assert model.score(X, target) > 0.8
    else:
        assert set(model.predict(X)) <= {-1, 1}


@pytest.mark.parametrize(
    "norm",
    ["lp:1", "lp:4/3", "lp:2", "lp:inf", "block:1.25", "block:auto", "elastic:0.5", "mixed", "matrix", "file"],
)
def test_every_norm(norm, cancer, tmp_path):
    X, y = cancer
    if norm in ("matrix", "file"):
        E = np.eye(6)
        np.save(tmp_path / "E.npy", E)
        norm = E if norm == "matrix" else f"noniso:{tmp_path / 'E.npy'}"
    model = mk.MKLClassifier(norm=norm, C=0.5).fit(X, y)
    assert model.converged_ and model.score(X, y) > 0.9
    if isinstance(norm, np.ndarray):
        again = mk.MKLClassifier(norm="lp:2", C=0.5).fit(X, y)
        assert model.objective_ == pytest.approx(again.objective_, rel=2e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "squared", "multiclass-hinge"])
def test_every_loss_of_classes(loss, cancer):
    X, y = cancer
    assert mk.MKLClassifier(loss=loss).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("loss", ["epsilon:0.01", "squared", "huber:0.5"])
def test_every_loss_of_values(loss, cancer):
    X, y = cancer
    assert mk.MKLRegressor(loss=loss).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("multiclass, problems", [("joint", None), ("ovr", 3), ("ovo", 3)])
def test_several_classes(multiclass, problems, digits):
    X, y, views = digits
    some = y < 3
    X, y = X[some], np.array(["zero", "one", "two"])[y[some]]
    model = mk.MKLClassifier(multiclass=multiclass, views=views, C=10).fit(X[::2], y[::2])
    assert model.classes_.tolist() == ["one", "two", "zero"]
    assert model.kernel_weights_.shape == ((24,) if problems is None else (problems, 24))
    assert model.decision_function(X).shape == (len(X), 3)
    assert model.dual_coef_.shape == (3, len(model.support_)) and model.intercept_.shape == (3,)
    assert model.score(X[1::2], y[1::2]) > 0.97
    with_bias = mk.MKLClassifier(bias=True, views=views).fit(X, y)
    assert with_bias.kernel_names_[-1] == "constant"


def test_class_weights(cancer):
    X, y = cancer
    weighted = mk.MKLClassifier(class_weight={0: 3.0}, tol=1e-7).fit(X, y)
    by_samples = mk.MKLClassifier(tol=1e-7).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(weighted.decision_function(X), by_samples.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kind", ["two", "many", "precomputed"])
def test_probabilities_are_calibrated(kind, digits):
    X, y, _ = digits
    y = y % 2 if kind != "many" else y
    train, test = np.arange(0, 500, 2), np.arange(1, 500, 2)
    data, new = X[train], X[test]
    model = mk.MKLClassifier(C=1, probability=True)
    if kind == "precomputed":
        K = mk.gram(X)
        model.kernels = "precomputed"
        data, new = K[np.ix_(train, train)], K[np.ix_(test, train)]
    model.fit(data, y[train])
    p = model.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert log_loss(y[test], p) < (0.3 if kind != "many" else 0.5)
    np.testing.assert_array_equal(p, model.fit(data, y[train]).predict_proba(new))
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(new))
    without = mk.MKLClassifier()
    assert not hasattr(without, "predict_proba")


def test_a_callback_is_told_and_may_stop(cancer):
    X, y = cancer
    told, thread = [], threading.get_ident()

    def listen(news):
        told.append(news)
        assert threading.get_ident() == thread

    mk.MKLClassifier(callback=listen, tol=1e-6).fit(X, y)
    rounds = [news for news in told if news.stage == "training" and news.round]
    assert [news.round for news in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1].gap < 1e-2 and rounds[0].primal >= rounds[0].dual
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        model = mk.MKLClassifier(callback=lambda news: news.round == 1, tol=1e-12).fit(X, y)
    assert not model.converged_ and model.predict(X).shape == y.shape


def test_an_exception_of_the_callback_arrives(cancer):
    def fail(news):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        mk.MKLClassifier(callback=fail, tol=1e-10).fit(*cancer)


@pytest.mark.parametrize("solver", ["exact", "obscure", "wrapper"])
def test_ctrl_c_stops_within_a_second(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = rng.integers(0, 2, 3000)  # noise: hard to fit
    training, sent = threading.Event(), []

    def hear(news):
        if news.stage == "training":
            training.set()

    model = mk.MKLClassifier(
        solver=solver, C=1000, tol=1e-12, max_iter=100000, kernels="rbf:width=mean*0.1|mean|mean*9", callback=hear
    )

    def interrupt():
        # Only once training has begun, and never into another test.
        if training.wait(60):
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    # A shell that runs the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
            thread.join()  # a fit that ended too early hears of it here
    finally:
        signal.signal(signal.SIGINT, before)
    waited = time.monotonic() - sent[0]
    assert waited < 1, f"{waited:.2f} s"


def test_other_threads_run_meanwhile(cancer):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 20)), rng.integers(0, 2, 1500)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.monotonic()
    mk.MKLClassifier(C=100, n_jobs=1).fit(X, y)
    took = time.monotonic() - begin
    done.set()
    thread.join()
    assert counted[0] > took * 50, "the GIL was held"


def test_a_panic_is_a_runtime_error():
    with pytest.raises(RuntimeError, match="this panic was asked for.*please report it"):
        _native.panic_on_purpose()


def test_what_deserves_a_look_is_a_warning():
    X = np.random.default_rng(0).normal(size=(50, 3))
    views = {"a": X, "constant": np.ones((50, 2))}
    with pytest.warns(mk.DataWarning, match="does not vary over the samples"):
        mk.MKLClassifier(kernels=["linear:normalize=multiplicative"]).fit(views, X[:, 0] > 0)


def test_a_path_is_the_fits_it_stands_for(cancer):
    X, y = cancer
    model = mk.MKLClassifier(tol=1e-6)
    path = model.path(X, y, C=[0.1, 1], norm=["lp:1", "lp:2"])
    assert path.norm == ["lp:1", "lp:1", "lp:2", "lp:2"] and path.C.tolist() == [0.1, 1, 0.1, 1]
    assert not hasattr(model, "kernel_weights_")
    first = mk.MKLClassifier(C=0.1, norm="lp:1", tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(path.kernel_weights[0], first.kernel_weights_)
    assert path.objective[0] == first.objective_, "the first training starts from nothing, as fit does"
    alone = mk.MKLClassifier(C=1, norm="lp:2", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(path.kernel_weights[3], alone.kernel_weights_, atol=2e-3)
    assert path.objective[3] == pytest.approx(alone.objective_, rel=2e-6)
    assert path.converged.all() and len(path) == 4
    back = model.path(X, y, C=[1, 0.1], norm=["lp:1", "lp:2"])
    assert back.C.tolist() == [1, 0.1, 1, 0.1], "in the order given, whatever the order of training"
    np.testing.assert_array_equal(back.objective[[1, 0, 3, 2]], path.objective)
    by_class = mk.MKLClassifier(multiclass="ovr").path(X[:90], np.arange(90) % 3, C=[1, 2])
    assert by_class.kernel_weights.shape == (2, 3, 6)
    assert len(mk.MKLOneClass().path(X, C=[0.01, 0.1])) == 2
    with pytest.warns(ConvergenceWarning, match="1 of 1 points"):
        mk.MKLClassifier(max_iter=1, tol=1e-7).path(X, y)


def test_a_path_starts_from_its_neighbours(cancer):
    X, y = cancer
    costs = np.geomspace(0.1, 100, 13)
    path = mk.MKLClassifier(tol=1e-4).path(X, y, C=costs)
    cold = [mk.MKLClassifier(C=c, tol=1e-4).fit(X, y) for c in costs]
    assert path.converged.all()
    np.testing.assert_allclose(path.objective, [one.objective_ for one in cold], rtol=2e-4)
    assert path.n_iter.sum() < sum(one.n_iter_ for one in cold)


def test_kernels_are_ranked(cancer, digits):
    X, y = cancer[0][:120], cancer[1][:120]
    names, errors = mk.rank_kernels(X, y, ["linear", "rbf"], C=0.5, views={"some": [0, 1], "all": list(range(30))})
    assert sorted(names) == ["all/linear", "all/rbf(mean)", "some/linear", "some/rbf(mean)"]
    assert (np.diff(errors) >= 0).all() and errors[0] < 0.1
    # by its definition: a least-squares SVM trained without each sample
    K = mk.gram(X, "linear")[:, :, 0].astype(float)
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    wrong = 0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        bordered = np.block(
            [[K[np.ix_(rest, rest)] + np.eye(len(rest)) / 0.5, np.ones((len(rest), 1))], [np.ones(len(rest)), 0]]
        )
        solved = np.linalg.solve(bordered, np.append(sign[rest], 0))
        wrong += sign[i] * (K[i, rest] @ solved[:-1] + solved[-1]) <= 0
    assert mk.rank_kernels(X, y, "linear", C=0.5)[1] == pytest.approx([wrong / len(y)])
    given = mk.gram(X, ["linear", "rbf"])
    by_matrix = mk.rank_kernels(given, y, "precomputed", C=0.5)
    assert len(by_matrix[0]) == 2
    np.testing.assert_allclose(by_matrix[1], mk.rank_kernels(X, y, ["linear", "rbf"], C=0.5)[1])
    numbers = mk.rank_kernels(X, X[:, 0] * 1.5, ["linear", "rbf:width=0.01"])
    assert numbers[0][0] == "x/linear" and numbers[1][0] < 0.1 < numbers[1][1]
    X, y, views = digits
    assert len(mk.rank_kernels(X[:100], y[:100], "linear", views=views)[0]) == len(views)
    with pytest.raises(ValueError, match="C: it is -1"):
        mk.rank_kernels(X[:100], y[:100], C=-1)
    with pytest.raises(ValueError, match="targets for"):
        mk.rank_kernels(X[:100], y[:90])


def test_alignment(cancer):
    X, y = cancer[0][:80], cancer[1][:80]
    K = mk.gram(X, ["linear", "rbf"])
    center = np.eye(80) - 1 / 80
    target = center @ (y[:, None] == y) @ center
    want = []
    for m in range(2):
        k = center @ K[:, :, m].astype(float) @ center
        want.append((k * target).sum() / np.linalg.norm(k) / np.linalg.norm(target))
    np.testing.assert_allclose(mk.alignment(K, y), want, rtol=1e-4)
    assert mk.alignment(K[:, :, 0], y) == pytest.approx(want[0], rel=1e-4)
    between = mk.alignment(K)
    assert between.shape == (2, 2) and between[0, 0] == pytest.approx(1, abs=1e-3)
