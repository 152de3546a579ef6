"""The estimator of streams."""

from __future__ import annotations

import json
import warnings
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from . import _data, _html, _native, plotting
from ._base import OWN_KEY, DataWarning, KernelEstimator
from ._estimators import ByScores, _required, _spelled
from ._prepare import number
from ._progress import Listener, threads
from .kernels import Plan


class OnlineMKLClassifier(ByScores, ClassifierMixin, KernelEstimator):
    """Multiple kernel learning from a stream of examples.

    Every example is predicted, then learned; none has to be seen twice. `partial_fit` goes on where the last call ended, `fit`
    starts anew and may pass over the data several times.

    What kernels take from data, widths such as ``"mean"`` (all kernels of None have them) and factors of normalisations, is
    taken from the samples of the first call and stays as it is: give a few hundred there, at least two that differ. Kernels
    with numbers as widths, such as ``"rbf:width=10"``, may begin with a single sample. Scale features yourself, by statistics
    that stay as they are.

    Parameters
    ----------
    kernels : None, str, Kernel or list of them
        As for `MKLClassifier`; functions and precomputed matrices cannot follow a stream.
    norm : str, default="block:auto"
        How kernels share: ``"block:R"`` with 1 < R ≤ 2, ``"block:auto"``, which fits R to the number of kernels, or ``"lp:P"``
        with 1 < P.
    C : float, default=1.0
        Largest step of the solvers pa1 and omcl; the others do not use it.
    solver : str, default="auto"
        ``"om2"`` (auto; ``"om2:link=0.5"`` with ``norm="block:1.05"`` often errs less), ``"obscure"`` (its first stage;
        ``"obscure:eta=2"``), ``"pegasos"`` (``"pegasos:lambda=0.001"``), ``"pa1"`` (on the average kernel) or ``"omcl"`` (every
        kernel by itself, and a combiner).
    max_iter : int or None
        Passes over the data in `fit`; None: 1.
    views : dict or None
        As for `MKLClassifier`.
    random_state : int, RandomState or None
        Seed of width heuristics on many samples; None is 0.
    n_jobs, verbose, callback
        As for `MKLClassifier`. A callback that asks to stop raises RuntimeError; what was learned stays.
    budget : str, int or None
        The largest number of support vectors: ``"1000"``, ``"1000:oldest"``, ``"1000:smallest"`` or ``"1000:project"``. None:
        no bound.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes seen or named so far; new ones come behind the others.
    kernel_weights_, kernel_names_, kernel_groups_, kernel_norms_
        As for `MKLClassifier`, now.
    support_, dual_coef_, intercept_
        As for `MKLClassifier`, now; `support_` counts the examples of the stream.
    n_iter_ : int
        Passes over the data.
    mistakes_ : int
        Wrong predictions, each made before its label was seen, of all passes.
    online_error_ : float
        Their share in the stream itself, without repeated passes.
    history_ : dict of arrays
        Examples, mistakes up to there, and size of the support.
    notes_ : list of str
        What was chosen automatically.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from multikernel import OnlineMKLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OnlineMKLClassifier(views={"upper": range(32), "lower": range(32, 64)})
    >>> for start in range(0, 1500, 100):
    ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> bool(model.online_error_ < 0.15)
    True
    >>> bool(model.score(X[1500:], y[1500:]) > 0.9)
    True
    """

    def __init__(
        self,
        kernels=None,
        norm="block:auto",
        C=1.0,
        solver="auto",
        max_iter=None,
        views=None,
        random_state=None,
        n_jobs=None,
        verbose=False,
        callback=None,
        budget=None,
    ):
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.solver = solver
        self.max_iter = max_iter
        self.views = views
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.budget = budget

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_online")

    def fit(self, X, y):
        """Learns anew, passing over the data `max_iter` times.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n, d), list of strings, or dict or list of views
            The samples.
        y : array of shape (n,)
            Their classes.

        Returns
        -------
        OnlineMKLClassifier
            This estimator.
        """
        passes = 1 if self.max_iter is None else self.max_iter
        if not isinstance(passes, Integral) or passes < 1:
            raise ValueError(f"max_iter: it is {passes!r}; give a whole number of at least 1, or None")
        plan, settings = self._plan(), self._settings()
        samples, values = self._read(X, y, reset=True)
        if len(values) and len(np.unique(values)) < 2:
            raise ValueError("y: there is 1 class; to classify give samples of at least two classes")
        with Listener(self.verbose, self.callback) as listener:
            self._begin(plan, settings, samples, np.unique(values), listener)
            labels = [_spelled(value) for value in values]
            try:
                for pass_ in range(passes):
                    if pass_:
                        self._online.begin_pass()
                    again = 0 if pass_ else None
                    self._online.learn(samples.native, labels, again, threads(self.n_jobs), listener.hook())
            finally:
                self._tell()
        self._warn()
        return self

    def partial_fit(self, X, y, classes=None):
        """Learns more examples, in their order.

        The first call also chooses the widths of kernels and the factors of normalisations by its samples.

        Parameters
        ----------
        X : like X of `fit`
            The samples; in the first call at least two that differ, unless all kernels have numbers as widths.
        y : array of shape (n,)
            Their classes; new ones may appear.
        classes : array or None
            Classes that are known from the start, at the first call. They need not be named.

        Returns
        -------
        OnlineMKLClassifier
            This estimator.
        """
        first = not hasattr(self, "_online")
        plan, settings = self._plan(), self._settings()
        samples, values = self._read(X, y, reset=first)
        with Listener(self.verbose, self.callback) as listener:
            if first:
                self._begin(plan, settings, samples, np.unique(values if classes is None else classes), listener)
            self._add_classes(values)
            labels = [_spelled(value) for value in values]
            try:
                self._online.learn(samples.native, labels, None, threads(self.n_jobs), listener.hook())
            finally:
                self._tell()
        if first:
            self._warn()
        return self

    def _samples(self, X: Any, reset: bool) -> _data.Samples:
        views = None if reset else getattr(self, "_file_views", None)
        if views is None or _data.is_many(X) or _data.is_strings(X):
            return _data.read_features(self, X, self.views, reset)
        return _data.read_as_in_file(X, views)

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[_data.Samples, np.ndarray]:
        _required(self, y)
        samples = self._samples(X, reset)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != len(samples.native):
            raise ValueError(f"y: there are {len(y)} labels for {len(samples.native)} samples; give one for each sample")
        return samples, y

    def _plan(self) -> Plan:
        plan = Plan(self.kernels)
        if plan.given or plan.functions:
            what = "functions" if plan.functions else "precomputed matrices"
            raise ValueError(
                f"kernels: {what} cannot follow a stream, whose samples are not known beforehand; give kernels of features, "
                "or take MKLClassifier"
            )
        return plan

    def _settings(self) -> _native.OnlineSettings:
        """How to learn; every word is checked here, before anybody looks at data."""
        for name in ("norm", "solver"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name}: it is {getattr(self, name)!r}; give a word, see the documentation")
        return _native.OnlineSettings(
            solver=self.solver,
            norm=self.norm,
            c=number("C", self.C),
            budget=None if self.budget is None else str(self.budget),
        )

    def _begin(
        self,
        plan: Plan,
        settings: _native.OnlineSettings,
        samples: _data.Samples,
        classes: np.ndarray,
        listener: Listener,
    ) -> None:
        self.classes_ = classes
        self._file_views = None
        self._online = _native.Online(
            samples.native,
            plan.specs,
            settings,
            classes=[_spelled(c) for c in classes],
            seed=self._seed(),
            threads=threads(self.n_jobs),
            listener=listener.hook(),
        )

    def _add_classes(self, values: np.ndarray) -> None:
        """Classes that nobody had seen, in the order in which the library meets them."""
        known = {_spelled(c) for c in self.classes_}
        new = []
        for value in values:
            if _spelled(value) not in known:
                known.add(_spelled(value))
                new.append(value)
        if new:
            self.classes_ = np.concatenate([self.classes_, np.array(new, dtype=np.asarray(values).dtype)])

    def _tell(self) -> None:
        """Fitted attributes, as things stand."""
        state = json.loads(self._online.description())
        # an interrupted call may not have come to all of its new classes
        self.classes_ = self.classes_[: len(state["classes"])]
        self.kernel_names_ = [kernel["name"] for kernel in state["kernels"]]
        self.kernel_groups_ = [kernel["group"] for kernel in state["kernels"]]
        self.kernel_weights_ = np.array(state["weights"], dtype=float)
        norms = state["norms"]
        self.kernel_norms_ = np.full(len(self.kernel_weights_), np.nan) if norms is None else np.array(norms, dtype=float)
        self.n_iter_ = max(1, len(state["passes"]))
        self.mistakes_ = state["mistakes"]
        self.online_error_ = state["online_error"]
        curve = np.array(state["curve"], dtype=np.uint64).reshape(-1, 3)
        self.history_ = {"examples": curve[:, 0], "mistakes": curve[:, 1], "support": curve[:, 2]}
        self.notes_ = state["notes"]

    def _warn(self) -> None:
        for sentence in json.loads(self._online.description())["warnings"]:
            warnings.warn(sentence, DataWarning, stacklevel=3)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        samples = self._samples(X, reset=False)
        with Listener(self.verbose, None) as listener:
            return self._online.scores(samples.native, threads(self.n_jobs), listener.hook())

    @property
    def support_(self) -> np.ndarray:
        """Numbers of the examples that have coefficients."""
        check_is_fitted(self)
        return self._online.snapshot().columns.astype(np.intp)

    @property
    def dual_coef_(self) -> np.ndarray:
        """Their coefficients, (scores, examples)."""
        check_is_fitted(self)
        return np.ascontiguousarray(self._online.snapshot().coefficients.T)

    @property
    def intercept_(self) -> np.ndarray:
        """Zeros: streams are learned without a bias."""
        check_is_fitted(self)
        return self._online.snapshot().biases

    def save(self, path: str | Path) -> None:
        """Writes the state: a model file for the program's `predict`, and a state that `multikernel.load` goes on from.

        Parameters
        ----------
        path : str or Path
            The file, usually ``*.mk``. An older file of that name is replaced when the new one is complete.
        """
        check_is_fitted(self)
        carried = json.loads(self._online.description())["carried"]
        own = {**self._own(), "classes_dtype": self.classes_.dtype.kind}
        self._online.carry(json.dumps({**(carried if isinstance(carried, dict) else {}), OWN_KEY: own}))
        self._online.save(Path(path))

    def report(self, path: str | Path) -> None:
        """Writes a page for the browser: what was learned so far, and the mistakes along the stream.

        Parameters
        ----------
        path : str or Path
            The file, usually ``*.html``. It needs nothing from elsewhere, and may be sent around.
        """
        check_is_fitted(self)
        _html.write(path, self._online.snapshot().report_html())

    def plot_error(self, ax=None):
        """Draws the average online error against the number of examples.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where; None: a new figure.

        Returns
        -------
        matplotlib axes
        """
        check_is_fitted(self)
        return plotting.plot_error(self, ax=ax)
