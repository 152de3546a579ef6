"""Everything that X may be, and what is said where it is wrong."""

import inspect
import json
import warnings

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse

import multikernel as mk
from multikernel import _native, kernels


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_one_problem_in_many_forms(table):
    X, y = table
    cuts = {"a": [0, 1], "b": [2, 3, 4, 5]}
    views = {"a": X[:, :2], "b": X[:, 2:]}
    frame = pd.DataFrame(X, columns=["p0", "p1", "q0", "q1", "q2", "q3"])
    same = [
        (X, cuts),
        (X, {"a": slice(0, 2), "b": range(2, 6)}),
        (X, {"a": [True, True] + [False] * 4, "b": np.array([False] * 2 + [True] * 4)}),
        (X.tolist(), cuts),
        (views, None),
        (X.astype(np.float32).astype(float), cuts),
        (np.asfortranarray(X), cuts),
        (frame, {"a": ["p0", "p1"], "b": "q*"}),
        (frame, {"a": lambda X: ["p0", "p1"], "b": ["q0", "q1", "q2", "q3"]}),
        (polars.DataFrame(frame.to_dict("list")), {"a": ["p0", "p1"], "b": "q*"}),
        ({"a": sparse.csr_matrix(X[:, :2]).toarray(), "b": pd.DataFrame(X[:, 2:])}, None),
    ]
    want = None
    for data, cut in same:
        model = mk.MKLClassifier(views=cut).fit(data, y)
        assert model.kernel_groups_[0] == "a"
        found = model.decision_function(data)
        want = found if want is None else want
        np.testing.assert_array_equal(found, want)
    listed = mk.MKLClassifier().fit([X[:, :2], X[:, 2:]], y)
    np.testing.assert_array_equal(listed.decision_function([X[:, :2], X[:, 2:]]), want)
    assert listed.kernel_groups_[0] == "view_0"
    picked = mk.MKLClassifier(views=["b", "a"]).fit(views, y)
    assert picked.kernel_groups_[0] == "b"


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.dok_matrix])
def test_sparse_is_dense(make, table):
    X, y = table
    X = np.where(np.abs(X) < 1, 0, X)
    dense = mk.MKLClassifier(kernels=["linear", "rbf"], tol=1e-6).fit(X, y)
    thin = mk.MKLClassifier(kernels=["linear", "rbf"], tol=1e-6).fit(make(X), y)
    np.testing.assert_allclose(thin.decision_function(make(X)), dense.decision_function(X), atol=1e-3)
    both = mk.MKLClassifier(views={"a": [0, 1], "b": [2, 3]}).fit(make(X), y)
    assert both.predict(make(X)).shape == (80,)
    # A matrix whose column numbers are not sorted.
    shuffled = sparse.csr_matrix(X)
    for i in range(80):
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    shuffled.has_sorted_indices = False
    shuffled.has_canonical_format = False
    np.testing.assert_array_equal(thin.decision_function(shuffled), thin.decision_function(make(X)))


def test_strings():
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(60)]
    texts = [t[:10] + "GATTACA" + t[17:] if k % 2 else t for k, t in enumerate(texts)]
    y = np.arange(60) % 2
    plain = mk.MKLClassifier().fit(texts, y)
    assert plain.kernel_names_ == ["x/spectrum(3,spherical)", "x/weighted-degree(10,spherical)"]
    want = plain.decision_function(texts)
    for form in [np.array(texts), pd.Series(texts), tuple(texts), [t.encode() for t in texts], {"x": texts}]:
        np.testing.assert_array_equal(mk.MKLClassifier().fit(form, y).decision_function(form), want)
    frame = pd.DataFrame({"dna": texts, "n": rng.normal(size=60)})
    mixed = mk.MKLClassifier(views={"dna": "dna", "number": ["n"]}).fit(frame, y)
    assert mixed.kernel_groups_[:2] == ["dna", "dna"] and mixed.score(frame, y) > 0.9
    both = mk.MKLClassifier(kernels=[kernels.spectrum(k=[2, 3], view="dna"), "rbf:view=n"]).fit(
        {"dna": texts, "n": frame[["n"]]}, y
    )
    assert len(both.kernel_names_) == 3


def test_precomputed_in_every_form(table):
    X, y = table
    specs = ["linear", "rbf", "rbf:width=mean*4"]
    last = mk.gram(X, specs)
    new = mk.gram(X[:7], specs, reference=X)
    assert new.shape == (7, 80, 3)
    forms = [
        (last, new),
        (np.moveaxis(last, 2, 0), np.moveaxis(new, 2, 0)),
        ([last[:, :, m] for m in range(3)], [new[:, :, m] for m in range(3)]),
        ({f"k{m}": last[:, :, m] for m in range(3)}, {f"k{m}": new[:, :, m] for m in range(3)}),
        (last.astype(float), new.astype(float)),
    ]
    scores = []
    for train, test in forms:
        model = mk.MKLClassifier(kernels="precomputed").fit(train, y)
        scores.append(model.decision_function(test))
        np.testing.assert_array_equal(scores[-1], scores[0])
    raw = mk.MKLClassifier(kernels=specs).fit(X, y)
    np.testing.assert_allclose(scores[0], raw.decision_function(X[:7]), atol=5e-3)
    one = mk.MKLClassifier(kernels="precomputed").fit(last[:, :, 1], y)
    assert one.kernel_names_ == ["kernel_0"] and one.predict(new[:, :, 1]).shape == (7,)
    grouped = mk.MKLClassifier(
        kernels=[kernels.precomputed(f"kernel_{m}", group="ab"[m > 0]) for m in range(3)], norm="mixed", C=0.1
    ).fit(last, y)
    assert grouped.kernel_groups_ == ["a", "b", "b"]


def test_distances(table):
    X, y = table
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    given = mk.MKLClassifier(kernels="distance:width=mean").fit(D, y)
    raw = mk.MKLClassifier(kernels="rbf").fit(X, y)
    np.testing.assert_allclose(given.decision_function(D), raw.decision_function(X), atol=5e-3)


def test_functions_are_kernels(table):
    X, y = table

    def linear(A, B):
        return A @ B.T

    ours = mk.MKLClassifier(kernels=["linear", "rbf"], tol=1e-6).fit(X, y)
    theirs = mk.MKLClassifier(kernels=[linear, "rbf"], tol=1e-6).fit(X, y)
    assert theirs.kernel_names_ == ["linear", "x/rbf(mean)"]
    np.testing.assert_allclose(theirs.decision_function(X[:9]), ours.decision_function(X[:9]), atol=1e-3)
    views = {"a": X[:, :2], "b": X[:, 2:]}
    on_one = mk.MKLClassifier(kernels=[kernels.function(linear, view="a", name="mine", normalize="trace")]).fit(views, y)
    assert on_one.kernel_names_ == ["mine"] and on_one.kernel_groups_ == ["a"]
    seen = []

    def both(A, B):
        seen.append(sorted(A))
        return A["a"] @ B["a"].T + A["b"] @ B["b"].T

    on_all = mk.MKLClassifier(kernels=both).fit(views, y)
    assert on_all.predict(views).shape == (80,) and seen[0] == ["a", "b"]
    words = ["a", "bb", "ccc", "dd"] * 5
    lengths = mk.MKLClassifier(kernels=lambda A, B: np.outer([len(a) for a in A], [len(b) for b in B])).fit(
        words, [len(w) > 2 for w in words]
    )
    assert lengths.predict(["e" * 9, ""]).tolist() == [True, False]
    weighted = mk.MKLClassifier(kernels=[linear, "rbf"]).fit(X, y, sample_weight=np.arange(80) % 3)
    assert set(weighted.support_ % 3) <= {1, 2} and weighted.predict(X).shape == (80,)


@pytest.mark.parametrize(
    "change, X, error, sentence",
    [
        ({"kernels": "rfb"}, None, ValueError, "rbf"),
        ({"kernels": 3}, None, TypeError, "kernels: 3 is a int; give SPEC strings"),
        ({"kernels": []}, None, ValueError, "the list is empty"),
        ({"kernels": "spectrum"}, None, ValueError, "spectrum needs strings"),
        ({"kernels": kernels.rbf(width=-1)}, None, ValueError, "width must be"),
        ({"kernels": kernels.rbf(width="wide")}, None, ValueError, "width"),
        ({"kernels": lambda A, B: A}, None, ValueError, r"returned the shape \(80, 6\)"),
        ({"norm": "lp:0.5"}, None, ValueError, "norm"),
        ({"norm": 2}, None, TypeError, "norm: it is 2; give a word"),
        ({"norm": np.eye(3)}, None, ValueError, "kernels"),
        ({"C": -1}, None, ValueError, "C: it is -1; give a positive finite number"),
        ({"C": "1"}, None, TypeError, "C: it is '1'; give a number"),
        ({"solver": "magic"}, None, ValueError, "the solvers are auto, exact"),
        ({"loss": "epsilon"}, None, ValueError, "loss"),
        ({"multiclass": "both"}, None, ValueError, "give joint, ovr or ovo"),
        ({"bias": 3}, None, TypeError, "bias"),
        ({"class_weight": {5: 1}}, None, ValueError, "there is no class '5'"),
        ({"class_weight": "equal"}, None, ValueError, "class_weight: it is 'equal'"),
        ({"tol": 0}, None, ValueError, "tol"),
        ({"max_iter": 0}, None, ValueError, "max_iter: it is 0"),
        ({"callback": 1}, None, TypeError, "callback"),
        ({"views": {"a": [7]}}, None, ValueError, "names column 7, but X has 6 columns"),
        ({"views": {"a": []}}, None, ValueError, "has no columns"),
        ({"views": {"a": ["p"]}}, None, ValueError, "have no names"),
        ({"views": 3}, None, TypeError, "give a dictionary"),
        ({}, "nan", ValueError, "NaN"),
        ({}, "text", ValueError, "could not convert|strings"),
        ({}, {}, ValueError, "there are no views"),
        ({}, {"a": np.ones((80, 2)), "b": np.ones((79, 2))}, ValueError, "view 'b': it has 79 rows but view 'a' has 80"),
        ({"views": {"a": [0]}}, {"a": np.ones((80, 2))}, ValueError, "leave views out"),
        ({"kernels": "precomputed"}, None, ValueError, r"shape \(80, 6\).*square"),
        ({"kernels": "precomputed"}, np.ones((80, 4, 3)), ValueError, r"\(80, 4, 3\); give \(n, n, kernels\)"),
        ({"kernels": "precomputed"}, -np.eye(80), ValueError, "kernels='precomputed:indefinite=clip'"),
        ({"kernels": "precomputed"}, np.triu(np.ones((80, 80))), ValueError, "not symmetric"),
    ],
)
def test_wrong_input_is_a_sentence(table, change, X, error, sentence):
    good, y = table
    if isinstance(X, str):
        X = {"nan": np.full((80, 6), np.nan), "text": [["a", "b"]] * 80}[X]
    with pytest.raises(error, match=sentence):
        mk.MKLClassifier(**change).fit(good if X is None else X, y)


def test_wrong_targets_and_weights(table):
    X, y = table
    with pytest.raises(ValueError, match="80 samples"):
        mk.MKLClassifier().fit(X, y[:70])
    with pytest.raises(ValueError, match="NaN"):
        mk.MKLRegressor().fit(X, np.where(y, 1.0, np.nan))
    with pytest.raises(ValueError):
        mk.MKLRegressor().fit(X, ["a"] * 80)
    with pytest.raises(ValueError, match="there is 1 class"):
        mk.MKLClassifier().fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="79 weights for 80 samples"):
        mk.MKLClassifier().fit(X, y, sample_weight=np.ones(79))
    with pytest.raises(ValueError, match="row 3: the weight is -1"):
        mk.MKLClassifier().fit(X, y, sample_weight=[1, 1, -1] + [1] * 77)
    with pytest.raises(ValueError, match="class"):
        mk.MKLClassifier().fit(X, y, sample_weight=(y == 1).astype(float))


def test_new_samples_must_fit(table):
    X, y = table
    model = mk.MKLClassifier().fit({"a": X[:, :2], "b": X[:, 2:]}, y)
    with pytest.raises(ValueError, match="it has 3 columns, in training it had 2"):
        model.predict({"a": X[:, :3], "b": X[:, 2:]})
    with pytest.raises(ValueError, match="view 'b': the model needs it, but it is missing"):
        model.predict({"a": X[:, :2]})
    given = mk.MKLClassifier(kernels="precomputed").fit(mk.gram(X, ["rbf", "linear"]), y)
    with pytest.raises(ValueError, match="80 training samples"):
        given.predict(np.ones((5, 79, 2)))


def test_weights_count_as_copies(table):
    """The contract's check compares bits; here also that few copies leave the problem as it is."""
    X, y = table
    twice = np.r_[X, X[:10]]
    model = mk.MKLClassifier().fit(twice, np.r_[y, y[:10]])
    assert not any("copies" in note for note in model.notes_)
    zero = mk.MKLClassifier().fit(X, y, sample_weight=np.r_[np.zeros(5), np.ones(75)])
    assert any("trained on 75 of 80 samples" in note for note in zero.notes_)
    alone = mk.MKLClassifier(tol=1e-7).fit(X[5:], y[5:])
    zero = mk.MKLClassifier(tol=1e-7).fit(X, y, sample_weight=np.r_[np.zeros(5), np.ones(75)])
    np.testing.assert_allclose(zero.decision_function(X), alone.decision_function(X), atol=1e-4)
    assert zero.support_.min() >= 5 and np.array_equal(zero.support_, np.sort(zero.support_))
    balanced = mk.MKLClassifier(class_weight="balanced").fit(np.r_[X, X], np.r_[y, y])
    assert balanced.converged_ and any("trained on 80 of 160" in note for note in balanced.notes_)


def test_matrices_may_be_repaired(table):
    _, y = table
    K = np.eye(80)
    K[0, 0] = -5
    for how in ["clip", "shift"]:
        model = mk.MKLClassifier(kernels=f"precomputed:indefinite={how}").fit(K, y)
        assert model.predict(K).shape == (80,) and any("is indefinite" in note for note in model.notes_)
    almost = np.eye(80)
    almost[0, 1] = 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mk.MKLClassifier(kernels="precomputed").fit(almost, y)
    assert any("slightly asymmetric" in note for note in model.notes_)


def test_every_kind_of_kernel_is_described_as_in_the_table():
    for kind in json.loads(_native.kernel_kinds()):
        function = getattr(kernels, kind["name"].replace("-", "_"))
        assert kind["name"].replace("-", "_") in kernels.__all__
        assert kind["formula"].lower() in function.__doc__.lower(), kind["name"]
        parameters = inspect.signature(function).parameters
        assert ("view" in parameters) == (kind["looks_at"] in ("numbers", "strings"))
        for key in kind["keys"]:
            default = parameters[key["name"]].default
            if isinstance(default, (int, float)):
                assert default == float(key["default"]), (kind["name"], key)
            else:
                # A width that is None is the library's own default, and the names of a product must be given.
                assert default in (None, inspect.Parameter.empty)
