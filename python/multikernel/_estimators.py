"""The estimators."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, assert_all_finite, check_is_fitted, column_or_1d

from ._base import BaseMKL


def _required(estimator, y: Any) -> None:
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None")


class ByScores:
    """Classes by scores, of estimators that have `classes_` and `_scores`."""

    classes_: np.ndarray
    _scores: Callable[[Any], np.ndarray]

    def decision_function(self, X):
        """Scores of new samples.

        Parameters
        ----------
        X : like X of `fit`
            The samples; with precomputed kernels, the kernels between them (rows) and the training samples (columns).

        Returns
        -------
        array of shape (n,) for two classes (positive: the second), else (n, n_classes)
            For one-vs-one the number of pairs that a class wins, plus less than ½ by how clearly.
        """
        scores = self._scores(X)
        return _one_score(scores)[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Classes of new samples.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n,)
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[index]


class MKLClassifier(ByScores, ClassifierMixin, BaseMKL):
    """Multiple kernel learning for classification.

    Learns a weight for every kernel together with the predictor, as one convex problem ½Ω(‖w_1‖, …, ‖w_M‖)² + C Σ loss.

    Parameters
    ----------
    kernels : None, str, Kernel, callable or list of them
        The kernels: SPEC strings such as ``"rbf:width=mean*0.5|mean|mean*2"``, descriptions of `multikernel.kernels`, or
        functions ``f(A, B)`` that return a matrix. ``"precomputed"``: X holds kernel matrices
        (``"precomputed:indefinite=clip"``, ``shift`` or ``allow`` says what to do with matrices that are not positive
        semidefinite, which are refused otherwise). None: for each view a linear kernel on rows of unit length and five Gaussian
        kernels around the mean distance; for strings a spectrum and a weighted-degree kernel.
    norm : str or array, default="lp:4/3"
        How kernels share: ``"lp:P"`` on the kernel weights (1 sparse … ``inf`` unweighted sum), ``"block:R"`` on the group
        norms or ``"block:auto"``, ``"mixed"`` over groups, ``"elastic:MU"``, ``"noniso:FILE.npy"`` or a matrix.
    C : float, default=1.0
        Price of the loss.
    solver : str, default="auto"
        The algorithm; `multikernel.solvers` lists them.
    loss : str or None
        ``"hinge"``, ``"squared-hinge"``, ``"logistic"``, ``"squared"`` or ``"multiclass-hinge"``. None: hinge for two classes,
        multiclass-hinge for more.
    multiclass : {"auto", "joint", "ovr", "ovo"}, default="auto"
        Three or more classes: one problem with one set of weights (joint), each class against the others (ovr), or each pair
        (ovo). Auto: joint where loss and solver allow it, otherwise ovr, which `notes_` says.
    bias : {"auto", "on", "off"} or bool, default="auto"
        Whether there is a bias. Auto: on, except for the joint problem of several classes.
    class_weight : None, "balanced" or dict
        Weights of the classes.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int or None
        Largest number of rounds (of passes over the samples for the solvers obscure and pegasos). None: what is usual.
    views : dict or None
        Cuts views out of a table: ``{"shape": ["length", "width"], "colour": "c_*", "rest": slice(5, 9)}``.
    probability : bool, default=False
        Prepares `predict_proba` by training five times more, on four fifths of the samples each. They share the kernels,
        whose widths and normalisations come from all samples.
    random_state : int, RandomState or None
        Seed of everything random; None is 0.
    n_jobs : int or None
        Threads; None and -1: all processors. Results do not depend on it.
    verbose : bool, default=False
        Shows progress as a bar, in terminals and notebooks, and a line at the end.
    callback : callable or None
        Called with a `Progress` now and then; if it returns something true, training stops with what it has.

    Attributes
    ----------
    kernel_weights_ : array of shape (kernels,), or (problems, kernels) for ovr and ovo
        β: the combined kernel is Σ β·K.
    kernel_names_, kernel_groups_ : list of str
        Their names and groups.
    kernel_norms_ : array like `kernel_weights_`
        ‖w_m‖ of each kernel.
    objective_, dual_objective_, duality_gap_ : float
        Primal and dual objective, and their relative gap: how far the result may be from the optimum, at most.
    converged_ : bool
        Whether the gap is at most `tol`.
    n_iter_ : int
        Rounds of the solver.
    classes_ : array of shape (n_classes,)
        The classes.
    support_ : array of shape (n_support,)
        Rows of the training samples that have coefficients.
    dual_coef_ : array of shape (n_scores, n_support)
        Their coefficients.
    intercept_ : array of shape (n_scores,)
        Biases.
    history_ : dict of arrays
        Problem, round, seconds, primal, dual, gap and steps of every round.
    notes_ : list of str
        What was chosen automatically.
    n_features_in_, feature_names_in_
        As in scikit-learn, where X is one table.

    Notes
    -----
    A sample of weight w counts as w copies of it. Samples of weight 0 are left out, and where at least half of the samples are
    copies of others, each is written once with their number as its weight; `notes_` says so. Widths such as ``"mean"`` are
    then those of the samples that are left.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from multikernel import MKLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> halves = {"upper": range(32), "lower": range(32, 64)}
    >>> model = MKLClassifier(kernels="rbf:width=mean*0.5|mean", views=halves, C=10).fit(X[:600], y[:600])
    >>> model.kernel_names_
    ['upper/rbf(mean*0.5)', 'lower/rbf(mean*0.5)', 'upper/rbf(mean)', 'lower/rbf(mean)']
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    >>> bool(model.score(X[600:], y[600:]) > 0.93)
    True
    """

    _task = "classify"

    def __init__(
        self,
        kernels=None,
        norm="lp:4/3",
        C=1.0,
        solver="auto",
        loss=None,
        multiclass="auto",
        bias="auto",
        class_weight=None,
        tol=1e-3,
        max_iter=None,
        views=None,
        probability=False,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callback=None,
    ):
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.solver = solver
        self.loss = loss
        self.multiclass = multiclass
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.views = views
        self.probability = probability
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X, y, sample_weight=None):
        """Trains.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n, d), list of strings, or dict or list of views
            The samples. With precomputed kernels: a matrix, a list or dict of matrices, or an array (n, n, kernels)
            or (kernels, n, n).
        y : array of shape (n,)
            Their classes.
        sample_weight : array of shape (n,) or None
            Their weights.

        Returns
        -------
        MKLClassifier
            This estimator.
        """
        return self._fit(X, y, sample_weight)

    def _targets(self, y: Any, keep: bool):
        _required(self, y)
        if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iub"):
            # What is left out above takes as long as training on a hundred samples.
            y = column_or_1d(y, warn=True)
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y: there is {len(classes)} class ({', '.join(map(str, classes))}); to classify give samples of at least two "
                "classes, or take MKLOneClass"
            )
        if keep:
            self.classes_ = classes
        return [_spelled(c) for c in classes], index.astype(np.uint32)

    def _truth(self, y):
        _required(self, y)
        places = {c: k for k, c in enumerate(self.classes_.tolist())}
        given = np.asarray(column_or_1d(y)).tolist()
        return np.array([places.get(c, -1) for c in given], dtype=np.int64), None

    def _multiclass_word(self) -> str:
        if not isinstance(self.multiclass, str):
            raise TypeError(f"multiclass: it is {self.multiclass!r}; give 'auto', 'joint', 'ovr' or 'ovo'")
        return self.multiclass

    def _check_words(self) -> None:
        super()._check_words()
        weight = self.class_weight
        if weight is None or isinstance(weight, Mapping) or (isinstance(weight, str) and weight == "balanced"):
            return
        wrong = ValueError if isinstance(weight, str) else TypeError
        raise wrong(f"class_weight: it is {weight!r}; give None, 'balanced' or a dictionary {{class: weight}}")

    def _wants_probabilities(self) -> bool:
        return bool(self.probability)

    def _class_weight(self, targets, merged: bool):
        weight = self.class_weight
        if weight is None or (isinstance(weight, str) and not merged):
            return weight
        names, index = targets
        if isinstance(weight, str):
            # Copies that were merged still count.
            counts = np.bincount(index, minlength=len(names))
            return {name: len(index) / (len(names) * count) for name, count in zip(names, counts) if count}
        given = {_spelled(name): float(value) for name, value in weight.items()}
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"class_weight: there is no class '{unknown[0]}'; the classes are {', '.join(names)}")
        return given

    def _has_probabilities(self) -> bool:
        if not self.probability:
            raise AttributeError("predict_proba needs probability=True before fit")
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Probabilities of the classes of new samples.

        Scores are calibrated by 5-fold cross-validation in `fit`: by Platt's sigmoid for two classes, by a temperature for
        more. As with `sklearn.svm.SVC`, the likeliest class of two may differ from `predict` near the boundary.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n, n_classes)
        """
        check_is_fitted(self)
        probabilities = self._model.probabilities(self._scores(X))
        if probabilities is None:
            raise AttributeError("predict_proba needs probability=True before fit, and a fit that was not stopped")
        return probabilities

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n, n_classes)
        """
        return np.log(self.predict_proba(X))

    def __setstate__(self, state):
        # Pickles of earlier versions hold what makes probabilities beside the model.
        state = dict(state)
        calibration = state.pop("_calibration", None)
        super().__setstate__(state)
        if calibration is not None:
            self._model.set_calibration(json.dumps(calibration))

    def _own(self) -> dict[str, Any]:
        own = super()._own()
        own["classes_dtype"] = self.classes_.dtype.kind
        return own


class MKLRegressor(RegressorMixin, BaseMKL):
    """Multiple kernel learning for regression.

    Parameters
    ----------
    kernels, norm, C, solver, bias, tol, max_iter, views, random_state, n_jobs, verbose, callback
        As for `MKLClassifier`.
    loss : str or None
        ``"epsilon:EPS"``, ``"squared"`` or ``"huber:DELTA"``. None: ``"epsilon:0.1"``.

    Attributes
    ----------
    kernel_weights_, kernel_names_, kernel_groups_, kernel_norms_
        As for `MKLClassifier`.
    objective_, dual_objective_, duality_gap_, converged_, n_iter_
        As for `MKLClassifier`.
    support_, dual_coef_, intercept_, history_, notes_
        As for `MKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from multikernel import MKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = scale(X)
    >>> model = MKLRegressor(kernels=["linear", "rbf"], C=0.1, loss="squared").fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.45)
    True
    """

    _task = "regress"

    def __init__(
        self,
        kernels=None,
        norm="lp:4/3",
        C=1.0,
        solver="auto",
        loss=None,
        bias="auto",
        tol=1e-3,
        max_iter=None,
        views=None,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callback=None,
    ):
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.solver = solver
        self.loss = loss
        self.bias = bias
        self.tol = tol
        self.max_iter = max_iter
        self.views = views
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X, y, sample_weight=None):
        """Trains.

        Parameters
        ----------
        X : as for `MKLClassifier.fit`
            The samples.
        y : array of shape (n,)
            Their values.
        sample_weight : array of shape (n,) or None
            Their weights.

        Returns
        -------
        MKLRegressor
            This estimator.
        """
        return self._fit(X, y, sample_weight)

    def _truth(self, y):
        _required(self, y)
        return None, np.asarray(column_or_1d(y), dtype=np.float64)

    def _targets(self, y: Any, keep: bool):
        _required(self, y)
        if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iub"):
            y = column_or_1d(y, warn=True)
            y = _check_y(y, y_numeric=True, estimator=self)
        return np.ascontiguousarray(y, dtype=np.float64)

    def predict(self, X):
        """Values of new samples.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n,)
        """
        return self._scores(X)[:, 0]


class MKLOneClass(OutlierMixin, BaseMKL):
    """Multiple kernel learning for one class: which samples are unlike those of training.

    Parameters
    ----------
    kernels, norm, C, solver, tol, max_iter, views, random_state, n_jobs, verbose, callback
        As for `MKLClassifier`.

    Attributes
    ----------
    offset_ : float
        1, the score from which a sample counts as like those of training.
    kernel_weights_, kernel_names_, kernel_groups_, kernel_norms_
        As for `MKLClassifier`.
    objective_, dual_objective_, duality_gap_, converged_, n_iter_
        As for `MKLClassifier`.
    support_, dual_coef_, intercept_, history_, notes_
        As for `MKLClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLOneClass
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = MKLOneClass(kernels="rbf:width=4", C=0.1).fit(X)
    >>> model.predict([[0.0, 0.1], [9.0, 9.0]])
    array([ 1, -1])
    """

    _task = "one-class"

    def __init__(
        self,
        kernels=None,
        norm="lp:4/3",
        C=1.0,
        solver="auto",
        tol=1e-3,
        max_iter=None,
        views=None,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callback=None,
    ):
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.views = views
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    #: There is one loss, and no bias.
    loss = None
    bias = "auto"

    def fit(self, X, y=None, sample_weight=None):
        """Trains.

        Parameters
        ----------
        X : as for `MKLClassifier.fit`
            The samples.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,) or None
            Their weights.

        Returns
        -------
        MKLOneClass
            This estimator.
        """
        self._fit(X, None, sample_weight)
        self.offset_ = 1.0
        return self

    def _targets(self, y: Any, keep: bool):
        return None

    def score_samples(self, X):
        """Scores of new samples: at least `offset_` for those like the training samples.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n,)
        """
        return self._scores(X)[:, 0]

    def decision_function(self, X):
        """Scores less `offset_`: negative for outliers.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        """1 for samples like those of training, −1 for others.

        Parameters
        ----------
        X : like X of `fit`
            The samples.

        Returns
        -------
        array of shape (n,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


def _spelled(value: Any) -> str:
    """A class as the library and the program spell it."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _one_score(scores: np.ndarray) -> np.ndarray:
    """Two classes by one score, also where a joint problem gave each its own."""
    return scores if scores.shape[1] == 1 else scores[:, 1:2] - scores[:, 0:1]
