"""What all estimators share: from X and targets to a trained model, and from a model to scores."""

from __future__ import annotations

import functools
import inspect
import json
import warnings
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _data, _html, _native, plotting
from ._path import Path as RegularisationPath
from ._prepare import Prepared, called, checked_weights, first, positive
from ._progress import Listener, threads
from .kernels import Kernel, Plan

#: Key of what only this package knows, in the JSON that a model file keeps.
OWN_KEY = "python"
#: Characters after which a parameter's value is cut in the command of a report: it may be a matrix.
LONGEST_VALUE = 300


class DataWarning(UserWarning):
    """Something in the data or kernels that deserves a look."""


def _json(value: Any) -> str:
    """JSON as others read it: it has no NaN and no infinity."""

    def finite(value: Any) -> Any:
        if isinstance(value, float):
            return value if np.isfinite(value) else None
        if isinstance(value, Mapping):
            return {key: finite(item) for key, item in value.items()}
        return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(finite(value), allow_nan=False)


@functools.cache
def _defaults(estimator: Any) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(estimator).parameters.items()}


def _call(estimator: BaseEstimator) -> str:
    """The call that made an estimator; its `repr` says the same, but takes as long as training on 100 samples."""
    kind: Any = type(estimator)
    given = []
    for name, default in _defaults(kind).items():
        value = getattr(estimator, name)
        if value is not default:
            text = " ".join(repr(value).split())
            if text != repr(default):
                given.append(f"{name}={text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + '…'}")
    return f"{kind.__name__}({', '.join(given)})"


class KernelEstimator(BaseEstimator):
    """What estimators of batches and of streams share: parameters of kernels, and looking at weights."""

    kernels: Any
    views: Any
    random_state: Any

    # ---- parameters -------------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator, and of the descriptions among its kernels.

        Parameters
        ----------
        deep : bool, default=True
            Also ``kernels__width`` …, and ``kernels__0``, ``kernels__0__width`` … where `kernels` is a list.

        Returns
        -------
        dict
            Names and values.
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.kernels, (list, tuple)):
            for place, kernel in enumerate(self.kernels):
                params[f"kernels__{place}"] = kernel
                if isinstance(kernel, Kernel):
                    for name, value in kernel.get_params().items():
                        params[f"kernels__{place}__{name}"] = value
        return params

    def set_params(self, **params: Any):
        """Changes parameters; see `get_params` for the names.

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        object
            This estimator.
        """
        if "kernels" in params:
            super().set_params(kernels=params.pop("kernels"))
        if isinstance(self.kernels, (list, tuple)):
            inner = {name: value for name, value in params.items() if name.startswith("kernels__")}
            every = list(self.kernels)
            # Whole kernels before their fields.
            for name in sorted(inner, key=lambda name: name.count("__")):
                _, place, *field = name.split("__", 2)
                if not place.isdigit() or int(place) >= len(every) or (field and not isinstance(every[int(place)], Kernel)):
                    raise ValueError(f"there is no parameter '{name}'; get_params() lists them")
                if field:
                    every[int(place)].set_params(**{field[0]: params.pop(name)})
                else:
                    every[int(place)] = params.pop(name)
            if inner:
                self.kernels = every
        return super().set_params(**params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = self._looks_at_matrices()
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = not given
        return tags

    def _looks_at_matrices(self) -> bool:
        try:
            return Plan(self.kernels).given
        except (TypeError, ValueError):
            return False  # said when it is fitted

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        if isinstance(self.random_state, Integral) and int(self.random_state) >= 0:
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def plot_weights(self, ax=None, top: int | None = 30):
        """Draws the weights of the kernels as bars.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where; None: a new figure.
        top : int or None, default=30
            How many of the largest; None: all.

        Returns
        -------
        matplotlib axes
        """
        return plotting.plot_weights(self, ax=ax, top=top)

    def _own(self) -> dict[str, Any]:
        """What the model does not say itself and is needed to load it as this estimator."""
        params = {}
        for name, value in super().get_params(deep=False).items():
            if name in ("callback", "kernels", "views"):
                continue
            if isinstance(value, np.generic):
                value = value.item()
            if isinstance(value, (str, int, float, bool)) or value is None:
                params[name] = value
        cuts = None
        if isinstance(self.views, Mapping) and hasattr(self, "n_features_in_"):
            width = np.empty((0, self.n_features_in_))
            names = getattr(self, "feature_names_in_", None)
            if not any(callable(cut) for cut in self.views.values()):
                cuts = {str(name): _data._columns(cut, width, names, name) for name, cut in self.views.items()}
        own: dict[str, Any] = {"estimator": type(self).__name__, "params": params, "views": cuts}
        if hasattr(self, "n_features_in_"):
            own["n_features_in"] = int(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            own["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        return own

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + _html.weights(self)

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += _html.weights(self)
        return bundle


class BaseMKL(KernelEstimator):
    """Common part of the estimators of batches."""

    _task: str

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    # ---- training ---------------------------------------------------------------------------------------------------

    def _settings(self) -> _native.Settings:
        """What to train; every word is checked here, before anybody looks at data."""
        self._check_words()
        norm, matrix = self.norm, None
        if isinstance(norm, np.ndarray):
            norm, matrix = "lp:2", np.asarray(norm, dtype=np.float64)
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ValueError(f"norm: the array has the shape {matrix.shape}; give a matrix (kernels, kernels)")
        elif isinstance(norm, str) and norm.startswith("noniso:"):
            norm, matrix = "lp:2", np.asarray(np.load(norm.partition(":")[2]), dtype=np.float64)
        return _native.Settings(
            task=self._task,
            norm=norm,
            norm_matrix=matrix,
            c=positive("C", self.C),
            solver=self.solver,
            loss=self.loss,
            multiclass=self._multiclass_word(),
            bias={True: "on", False: "off"}[self.bias] if isinstance(self.bias, bool) else self.bias,
            tol=positive("tol", self.tol),
            max_iter=None if self.max_iter is None else int(self.max_iter),
            seed=self._seed(),
        )

    def _check_words(self) -> None:
        """What is of the wrong kind; what a word means is the library's to know."""
        words = {
            "norm": isinstance(self.norm, (str, np.ndarray)),
            "solver": isinstance(self.solver, str),
            "loss": self.loss is None or isinstance(self.loss, str),
            "bias": isinstance(self.bias, (str, bool)),
        }
        for name, right in words.items():
            if not right:
                raise TypeError(
                    f"{name}: it is {getattr(self, name)!r}; give a word, see the documentation of {type(self).__name__}"
                )
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 1):
            raise ValueError(f"max_iter: it is {self.max_iter!r}; give a whole number of at least 1, or None")

    def _multiclass_word(self) -> str:
        return "auto"

    def _wants_probabilities(self) -> bool:
        return False

    def _class_weight(self, targets, merged: bool) -> str | dict[str, float] | None:
        return None

    def _read(self, X: Any, plan: Plan, reset: bool) -> _data.Samples:
        if plan.given:
            if reset:
                return _data.read_matrices(self, X, True, None, None)
            return _data.read_matrices(self, X, False, self._n_training, self.kernel_names_)
        return _data.read_features(self, X, self.views, reset)

    def _prepare(self, X: Any, y: Any, sample_weight, listener: Listener, keep: bool) -> Prepared:
        """Everything before training: views, functions' matrices, copies merged, kernels computed."""
        plan = Plan(self.kernels)
        settings = self._settings()
        count = threads(self.n_jobs)
        samples = self._read(X, plan, reset=True)
        n = len(samples.native)
        if n < 2:
            raise ValueError(f"X: there is {n} sample; give at least two")
        targets = self._targets(y, keep)
        weights = checked_weights(sample_weight, n)
        native = samples.native
        if plan.functions:
            matrices = []
            for function in plan.functions:
                seen = samples.seen_by(function)
                matrices.append(called(function, seen, seen, (n, n)))
            native = native.with_matrices([f.name for f in plan.functions], matrices, True)
        prepared = Prepared(plan, settings, samples, native, targets, weights)
        prepared.merge()
        prepared.kernels = _native.Kernels(prepared.native, plan.specs, plan.indefinite, self._seed(), count, listener.hook())
        return prepared

    def _train(self, prepared: Prepared, listener: Listener, settings: _native.Settings, **wishes: Any):
        """Model, result object, and what else is known of the training."""
        model, training = prepared.kernels.fit(
            prepared.targets,
            settings,
            class_weight=self._class_weight(prepared.all_targets, prepared.merged),
            sample_weight=prepared.weights,
            training_rows=prepared.training_rows(),
            threads=threads(self.n_jobs),
            listener=listener.hook(),
            **wishes,
        )
        result = {**json.loads(training["result"]), **json.loads(training["record"])}
        return model, result, training

    def _fit(self, X: Any, y: Any, sample_weight):
        with Listener(self.verbose, self.callback) as listener:
            prepared = self._prepare(X, y, sample_weight, listener, keep=True)
            model, result, training = self._train(
                prepared, listener, prepared.settings, look=True, probability=self._wants_probabilities()
            )
            self._adopt(model, result, training["history"], None if prepared.by_place() else prepared.rows)
            self._alignments = training["alignments"]
            self.notes_ = prepared.native.notes + prepared.notes() + training["notes"]
            result["notes"] = self.notes_
            result["command"] = f"{_call(self)}.fit({'X' if self._task == 'one-class' else 'X, y'})"
            self._file_views = None
            self._functions = prepared.plan.functions
            self._kernel_plan = prepared.plan
            self._n_training = prepared.n
            if self._functions:
                kept = model.columns.astype(np.intp)
                self._reference = [_data.take(prepared.samples.seen_by(f), kept) for f in self._functions]
        self._warn(result)
        if self.verbose:
            print(
                f"{type(self).__name__}: {result['status']} after {self.n_iter_} rounds, relative gap {self.duality_gap_:.1e}, "
                f"{len(self.support_)} of {result['n_samples']} samples have coefficients, {result['seconds']['train']:.2f} s"
            )
        return self

    def _adopt(self, model: _native.Model, result: dict, history: dict, rows: np.ndarray | None) -> None:
        """Fitted attributes."""
        self._model = model
        self._result = result
        self._alignments = None
        kernels = result["kernels"]
        self.kernel_names_ = [kernel["name"] for kernel in kernels]
        self.kernel_groups_ = [kernel["group"] for kernel in kernels]
        # One row for each kernel, or one number.
        self.kernel_weights_ = np.array([kernel["weight"] for kernel in kernels], dtype=float).T
        self.kernel_norms_ = np.array([kernel["group_norm"] for kernel in kernels], dtype=float).T
        self.objective_ = result["primal"]
        self.dual_objective_ = -np.inf if result["dual"] is None else result["dual"]
        self.duality_gap_ = np.inf if result["relative_gap"] is None else result["relative_gap"]
        self.converged_ = result["status"] == "converged"
        self.n_iter_ = result["iterations"]
        self.history_ = history
        columns = model.columns.astype(np.intp)
        columns = columns if rows is None else rows[columns]
        coefficients = model.coefficients
        having = np.flatnonzero((coefficients != 0).any(axis=1))
        having = having[np.argsort(columns[having], kind="stable")]
        self.support_ = columns[having]
        self.dual_coef_ = np.ascontiguousarray(coefficients[having].T)
        self.intercept_ = model.biases

    def _warn(self, result: dict) -> None:
        for sentence in result["warnings"]:
            warnings.warn(sentence, DataWarning, stacklevel=4)
        if result["status"] == "converged":
            return
        why = {
            "max-iterations": "the rounds are done or no further progress was possible",
            "time-limit": "the time was up",
            "stopped": "the callback asked to stop",
        }[result["status"]]
        stochastic = result["solver"] in ("obscure", "pegasos")
        remedy = (
            "raise max_iter (epochs), or take solver='exact', which reaches tol"
            if stochastic
            else "raise max_iter or tol, scale the features, or lower C"
        )
        warnings.warn(
            f"not converged: the relative duality gap is {self.duality_gap_:.1e} after {self.n_iter_} rounds, tol is "
            f"{self.tol:g} ({why}); {remedy}",
            ConvergenceWarning,
            stacklevel=4,
        )

    # ---- prediction -------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """(samples, scores)"""
        check_is_fitted(self)
        samples = self._read_new(X)
        native = samples.native
        needed = {view["name"] for view in json.loads(self._model.description())["views"]} if self._functions else set()
        names, matrices = [], []
        for function, reference in zip(self._functions, getattr(self, "_reference", [])):
            if function.name in needed:
                seen = samples.seen_by(function)
                shape = (len(native), _data.count(first(reference)))
                names.append(function.name)
                matrices.append(called(function, seen, reference, shape))
        if names:
            native = native.with_matrices(names, matrices, False)
        with Listener(self.verbose, None) as listener:
            scores, _ = self._model.scores(native, threads(self.n_jobs), listener.hook())
        return scores

    def _read_new(self, X: Any) -> _data.Samples:
        views = getattr(self, "_file_views", None)
        if views is None or _data.is_many(X) or _data.is_strings(X):
            return self._read(X, self._kernel_plan, reset=False)
        return _data.read_as_in_file(X, views)

    # ---- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the model file that the program `multikernel` reads and writes, too.

        Parameters
        ----------
        path : str or Path
            The file, usually ``*.mk``. An older file of that name is replaced when the new one is complete.
        """
        check_is_fitted(self)
        if self._functions:
            raise ValueError(
                f"kernel '{self._functions[0].name}' is a Python function, which a model file cannot hold; pickle the "
                "estimator, or train on precomputed matrices"
            )
        self._model.set_training(_json({**self._whole_result(), OWN_KEY: self._own()}))
        self._model.save(Path(path))

    def _whole_result(self) -> dict:
        """The result object with how the kernels resemble each other, which is computed when it is first asked for."""
        # Estimators that were pickled before this was put off have it already.
        if getattr(self, "_alignments", None) is not None:
            self._result["alignment"] = json.loads(self._alignments.json(threads(self.n_jobs)))
            self._alignments = None
        return self._result

    def __getstate__(self):
        # What is not computed yet cannot be pickled.
        if hasattr(self, "_result"):
            self._whole_result()
        return super().__getstate__()

    # ---- looking ----------------------------------------------------------------------------------------------------

    def report(self, path: str | Path, X=None, y=None) -> None:
        """Writes a page for the browser: what was learned, how well, how certain, and how to get it again.

        Parameters
        ----------
        path : str or Path
            The file, usually ``*.html``. It needs nothing from elsewhere, and may be sent around.
        X, y
            Samples that were not trained on and their targets, to say what the model is worth, with intervals. None: the page
            says what is known without them.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.model_selection import train_test_split
        >>> from sklearn.preprocessing import scale
        >>> from multikernel import MKLClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X, X_test, y, y_test = train_test_split(scale(X), y, random_state=0)
        >>> model = MKLClassifier().fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(os.path.join(folder, "report.html"), X_test, y_test)
        """
        check_is_fitted(self)
        training = dict(self._whole_result())
        if X is not None:
            scores = self._scores(X)
            classes, values = self._truth(y)
            samples = f"{len(scores)} samples"
            told = self._model.evaluation(scores, classes, values, samples, self._seed(), threads(self.n_jobs))
            training["evaluation"] = json.loads(told)
        self._model.set_training(_json(training))
        _html.write(path, self._model.report_html())

    def _truth(self, y) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Positions among the classes, or values."""
        return None, None

    def path(self, X, y=None, *, C=None, norm=None, sample_weight=None) -> RegularisationPath:
        """Trains for every combination of several C and norms on kernels that are computed once.

        Each training starts from the one for the next smaller C, or from the norm before, which saves about half of the work;
        every point reaches `tol` by itself.

        Parameters
        ----------
        X, y
            As for `fit`.
        C : sequence of float or None
            Values of C; None: that of this estimator.
        norm : sequence of str or None
            Norms; None: that of this estimator.
        sample_weight : array of shape (n_samples,) or None
            As for `fit`.

        Returns
        -------
        Path
            Kernel weights, objectives and gaps of every combination; it can draw itself (``plot``).

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from multikernel import MKLClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> path = MKLClassifier().path(scale(X), y, norm=["lp:1", "lp:2"])
        >>> path.norm
        ['lp:1', 'lp:2']
        >>> path.kernel_weights.shape
        (2, 6)
        """
        listed = lambda values, own: [own] if values is None else [values] if np.ndim(values) == 0 else list(values)  # noqa: E731
        points: list[tuple[str, float, dict]] = []
        costs = [positive("C", one_c) for one_c in listed(C, self.C)]
        settings = self._settings()
        # Every norm is looked at before the data is.
        grid = {one_norm: [settings.at(one_norm, cost) for cost in costs] for one_norm in map(str, listed(norm, self.norm))}
        with Listener(self.verbose, self.callback) as listener:
            prepared = self._prepare(X, y, sample_weight, listener, keep=False)
            names = prepared.kernels.names
            smallest = None
            for one_norm, each in grid.items():
                # From small C to large, each from the one before; the first from that of the norm before.
                start, found = smallest, dict[int, dict]()
                for k in np.argsort(costs, kind="stable"):
                    _, result, training = self._train(prepared, listener, each[k], start=start)
                    start = training["start"]
                    smallest = start if not found else smallest
                    found[k] = result
                points.extend((one_norm, costs[k], found[k]) for k in range(len(costs)))
        path = RegularisationPath._of(names, points)
        left = np.flatnonzero(~path.converged)
        if len(left):
            worst = left[np.argmax(path.duality_gap[left])]
            warnings.warn(
                f"not converged: {len(left)} of {len(path)} points, the worst (norm {path.norm[worst]}, C {path.C[worst]:g}) "
                f"with a relative duality gap of {path.duality_gap[worst]:.1e}, tol is {self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return path

    def plot_convergence(self, ax=None):
        """Draws the relative duality gap against time.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where; None: a new figure.

        Returns
        -------
        matplotlib axes
        """
        return plotting.plot_convergence(self, ax=ax)

    def plot_path(self, X, y=None, *, C=None, norm=None, ax=None):
        """Trains for several C or norms (see `path`) and draws the weights against them.

        Parameters
        ----------
        X, y, C, norm
            As for `path`.
        ax : matplotlib axes or None
            Where; None: a new figure.

        Returns
        -------
        matplotlib axes
        """
        return plotting.plot_path(self.path(X, y, C=C, norm=norm), ax=ax)
