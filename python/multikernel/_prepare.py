"""Samples, targets and weights on their way to training."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from . import _native
from ._data import Samples
from .kernels import Function, Plan


class Prepared:
    """Samples, targets and kernels, ready for training."""

    kernels: _native.Kernels

    def __init__(
        self,
        plan: Plan,
        settings: _native.Settings,
        samples: Samples,
        native: _native.Views,
        targets: _native.Targets,
        weights: np.ndarray | None,
    ):
        self.plan = plan
        self.settings = settings
        self.samples = samples
        self.native = native
        self.n = len(native)
        self.all_targets = self.targets = targets
        self.weights = weights
        #: Rows that are trained on; none: all.
        self.rows: np.ndarray | None = None
        self.merged = False

    def merge(self) -> None:
        """Leaves out samples of weight 0, and writes copies once where they are many."""
        if self.targets is not None and length(self.targets) != self.n:
            return  # said by the library
        found = _native.merge_copies(self.native, self.targets, self.weights)
        if found is None:
            return
        rows, weights = found
        rows = rows.astype(np.intp)
        self.merged = True
        self.native = self.native.part(rows.tolist(), rows.tolist())
        self.weights = weights
        if isinstance(self.targets, tuple):
            self.targets = (self.targets[0], np.ascontiguousarray(self.targets[1][rows]))
        elif self.targets is not None:
            self.targets = np.ascontiguousarray(self.targets[rows])
        self.rows = rows

    def by_place(self) -> bool:
        """Given matrices: new samples come with a column for every sample, also those left out."""
        return self.plan.given or bool(self.plan.functions)

    def training_rows(self) -> tuple[list[int], int] | None:
        if self.rows is None or not self.by_place():
            return None
        return self.rows.tolist(), self.n

    def notes(self) -> list[str]:
        if self.rows is None:
            return []
        return [
            f"trained on {len(self.rows)} of {self.n} samples: those of weight 0 are left out, and copies are one sample with "
            "their weights added up"
        ]


def length(targets) -> int:
    return len(targets[1]) if isinstance(targets, tuple) else len(targets)


def first(data: Any) -> Any:
    return next(iter(data.values())) if isinstance(data, Mapping) else data


def called(function: Function, rows: Any, columns: Any, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of a user's function, checked."""
    values = np.asarray(function.call(rows, columns))
    if values.shape != shape:
        raise ValueError(
            f"kernel '{function.name}': the function returned the shape {values.shape} for {shape[0]} and {shape[1]} samples; "
            f"it must return {shape}"
        )
    if values.dtype.kind not in "fiub":
        raise TypeError(f"kernel '{function.name}': the function returned {values.dtype} values; it must return numbers")
    return values.astype(np.float64, copy=False) if values.dtype != np.float32 else values


def number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (Real, np.number)):
        raise TypeError(f"{name}: it is {value!r}; give a number")
    return float(value)


def positive(name: str, value: Any) -> float:
    found = number(name, value)
    if not 0 < found < np.inf:
        raise ValueError(f"{name}: it is {value}; give a positive finite number")
    return found


def checked_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Checked by shape here, by value in the library. One weight for all is one weight each."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        return np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"sample_weight: Sample weights must be 1D array or scalar, the shape is {weights.shape}")
    if len(weights) != n:
        raise ValueError(f"sample_weight: there are {len(weights)} weights for {n} samples; give one for each sample")
    if not weights.any():
        raise ValueError("sample_weight: all weights are zero; give some sample a positive weight")
    return np.ascontiguousarray(weights)
