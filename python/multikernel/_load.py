"""Fitted estimators from model files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._base import OWN_KEY
from ._estimators import MKLClassifier, MKLOneClass, MKLRegressor
from ._online import OnlineMKLClassifier
from .kernels import Kernel, Plan

_ESTIMATORS = {cls._task: cls for cls in (MKLClassifier, MKLRegressor, MKLOneClass)}


def load(path: str | Path):
    """Reads a model file, written by `save` or by the program `multikernel`, as a fitted estimator.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    MKLClassifier, MKLRegressor, MKLOneClass or OnlineMKLClassifier
        By what the model was trained for. `history_` is empty; the state of a stream (of the program's
        `online --checkpoint`, or of `OnlineMKLClassifier.save`) goes on learning where it stood.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import multikernel as mk
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = mk.MKLClassifier().fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.mk"))
    ...     again = mk.load(os.path.join(folder, "model.mk"))
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    model = _native.Model.load(Path(path))
    told = json.loads(model.description())
    if _is_stream(Path(path)):
        return _stream(_native.Online.load(Path(path)), told)
    result = told["training"] if isinstance(told["training"], dict) else {}
    own = result.pop(OWN_KEY, None) or {}
    estimator = _ESTIMATORS[told["task"]]()
    known = estimator.get_params(deep=False)
    params = {"C": told["C"], "norm": told["norm"], "solver": result.get("solver", "auto"), "loss": told["loss"]}
    multiclass = result.get("multiclass")
    if multiclass is not None:
        params["multiclass"] = multiclass
    params.update(own.get("params", {}))
    estimator.set_params(**{name: value for name, value in params.items() if name in known})
    given = [view for view in told["views"] if view["given"]]
    if given:
        estimator.kernels = "precomputed"
    else:
        estimator.kernels = [Kernel(**kernel["spec"]) for kernel in told["kernels"]]
    estimator.views = own.get("views")
    estimator._adopt(model, _whole_result(model, told, result), _no_history(), None)
    estimator._functions = []
    estimator._kernel_plan = Plan("precomputed" if given else None)
    estimator._n_training = told["n_training"]
    estimator.notes_ = []
    _restore_features(estimator, told, own)
    if told["task"] == "classify":
        estimator.classes_ = _classes(told["classes"], own.get("classes_dtype"))
        if told["calibration"] is None and own.get("calibration") is not None:
            # Files of the first versions of this package held it among the package's own things.
            model.set_calibration(json.dumps(own["calibration"]))
        if told["calibration"] is not None or own.get("calibration") is not None:
            estimator.probability = True
    if told["task"] == "one-class":
        estimator.offset_ = 1.0
    return estimator


def _is_stream(path: Path) -> bool:
    """Whether a model file holds the state of a stream: a tensor more in the container's header."""
    with open(path, "rb") as file:
        return "online.state" in json.loads(file.read(int.from_bytes(file.read(8), "little")))


def _stream(online: _native.Online, told: dict) -> OnlineMKLClassifier:
    """A learner that goes on."""
    state = json.loads(online.description())
    carried = state["carried"] if isinstance(state["carried"], dict) else {}
    own = carried.get(OWN_KEY) or {}
    estimator = OnlineMKLClassifier()
    known = estimator.get_params(deep=False)
    params = {"norm": state["norm"], "solver": state["solver"], "budget": state["budget"]}
    params["C"] = state["C"] if state["C"] is not None else estimator.C
    params.update(own.get("params", {}))
    estimator.set_params(**{name: value for name, value in params.items() if name in known})
    estimator.kernels = [Kernel(**kernel["spec"]) for kernel in state["kernels"]]
    estimator.views = own.get("views")
    _restore_features(estimator, told, own)
    estimator._online = online
    estimator.classes_ = _classes(state["classes"], own.get("classes_dtype"))
    estimator._tell()
    return estimator


def _whole_result(model: _native.Model, told: dict, result: dict) -> dict:
    """The result object of the file; what is missing there is taken from the model."""
    weights = model.weights
    kernels = [
        {"name": k["name"], "group": k["group"], "weight": _one_or_many(weights[:, m]), "group_norm": float("nan")}
        for m, k in enumerate(told["kernels"])
    ]
    usual = {
        "status": "converged",
        "solver": "auto",
        "kernels": kernels,
        "primal": float("nan"),
        "dual": None,
        "relative_gap": None,
        "iterations": 0,
        "n_samples": told["n_training"],
        "warnings": [],
        "seconds": {"train": 0.0},
    }
    return {**usual, **result}


def _one_or_many(values: np.ndarray) -> Any:
    return float(values[0]) if len(values) == 1 else values.tolist()


def _no_history() -> dict[str, np.ndarray]:
    whole = {name: np.zeros(0, dtype=np.uint64) for name in ("problem", "round", "steps")}
    return {**whole, **{name: np.zeros(0) for name in ("seconds", "primal", "dual", "gap")}}


def _restore_features(estimator, told: dict, own: dict) -> None:
    """Names and number of features, so that new tables are checked as after `fit`."""
    if "n_features_in" in own:
        estimator.n_features_in_ = own["n_features_in"]
    if "feature_names_in" in own:
        estimator.feature_names_in_ = np.array(own["feature_names_in"], dtype=object)
    views = told["views"]
    if not own and not any(view["given"] for view in views):
        estimator._file_views = views
        if len(views) == 1 and views[0]["width"] is not None:
            estimator.n_features_in_ = views[0]["width"]


def _classes(names: list[str], kind: str | None) -> np.ndarray:
    """The classes as they were before they were spelled."""
    if kind == "b" or (kind is None and set(names) == {"false", "true"}):
        return np.array([name == "true" for name in names])
    if kind in ("U", "O", "S"):
        return np.array(names, dtype=object if kind == "O" else str)
    numbers: list[type] = [int, float] if kind in (None, "i", "u") else [float]
    for number in numbers:
        try:
            return np.array([number(name) for name in names])
        except ValueError:
            continue
    return np.array(names)
