"""From what users call X to the library's views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import validate_data

from . import _native

#: Name of the only view of a plain table.
ONLY_VIEW = "x"

_NUMBERS = [np.float64, np.float32]


def is_table(X: Any) -> bool:
    """A data frame of any library."""
    return hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def is_strings(X: Any) -> bool:
    """One string per sample."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(_is_text(x) for x in X)
    if hasattr(X, "ndim") and X.ndim == 1 and len(X) > 0:
        return all(_is_text(x) for x in X)
    return False


def is_named(X: Any) -> bool:
    """A dictionary; SciPy's sparse matrix of that name is none."""
    return isinstance(X, Mapping) and not sparse.issparse(X)


def is_many(X: Any) -> bool:
    """Several views: a dictionary, or a list of tables and matrices (and lists of strings, if not of them alone)."""
    if is_named(X):
        return True
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    tables = [is_table(x) or sparse.issparse(x) or getattr(x, "ndim", 0) == 2 for x in X]
    return any(tables) and all(table or is_strings(x) for table, x in zip(tables, X))


def dimensions(X: Any) -> int:
    """Number of axes."""
    return X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim


def count(data: Any) -> int:
    """Number of samples."""
    return data.shape[0] if hasattr(data, "shape") else len(data)


def take(data: Any, rows: np.ndarray) -> Any:
    """Some samples."""
    if is_named(data):
        return {name: take(view, rows) for name, view in data.items()}
    return _safe_indexing(data, rows)


class Samples:
    """Samples as the library sees them, and their views as functions see them."""

    def __init__(self, native: _native.Views, views: Mapping[str, Any]):
        self.native = native
        self.views = views

    def seen_by(self, function) -> Any:
        """What a function of the user is given."""
        if function.view is not None:
            if function.view not in self.views:
                known = ", ".join(self.views)
                raise ValueError(f"kernel '{function.name}': there is no view '{function.view}'; the views are {known}")
            return self.views[function.view]
        if len(self.views) == 1:
            return next(iter(self.views.values()))
        return dict(self.views)


def read_features(estimator, X: Any, cuts: Any, reset: bool) -> Samples:
    """Views of features: plain, cut out of a table, or several."""
    if is_many(X):
        if cuts is not None and not (is_named(X) and isinstance(cuts, (list, tuple))):
            raise ValueError(
                "views: X is a list or dictionary of views already; leave views out (or give a list of names to pick)"
            )
        named = dict(X) if is_named(X) else {f"view_{k}": x for k, x in enumerate(X)}
        if cuts is not None:
            missing = [name for name in cuts if name not in named]
            if missing:
                raise ValueError(f"views: X has no view '{missing[0]}'; its views are {', '.join(named)}")
            named = {name: named[name] for name in cuts}
        if not named:
            raise ValueError("X: there are no views; give at least one")
        return _samples({str(name): _checked(view, f"view '{name}'") for name, view in named.items()})
    if is_strings(X):
        return _samples({ONLY_VIEW: list(X)})
    if cuts is None:
        names = column_names(X)
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=_NUMBERS)
        return _samples({ONLY_VIEW: X}, {ONLY_VIEW: names})
    if not isinstance(cuts, Mapping) or not cuts:
        raise TypeError(f"views: {cuts!r} does not say which columns; give a dictionary {{name: columns}}")
    if is_table(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return _cut(X, cuts)
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=_NUMBERS)
    parts = {str(name): X[:, _columns(cut, X, None, name)] for name, cut in cuts.items()}
    return _samples(parts)


def read_as_in_file(X: Any, views: list[dict]) -> Samples:
    """A table for a model that the program trained: cut into its views by the names of their columns."""
    names = column_names(X)
    if names is not None and all(view["columns"] for view in views):
        return _cut(X, {view["name"]: view["columns"] for view in views})
    if len(views) > 1:
        listed = ", ".join(f"'{view['name']}'" for view in views)
        raise ValueError(
            f"X: the model looks at the views {listed}, and a table does not say which column is whose; give a data frame with "
            "the columns of training, or a dictionary of views"
        )
    X = check_array(X, accept_sparse="csr", dtype=_NUMBERS)
    name = views[0]["name"] if views else ONLY_VIEW
    return _samples({name: X}, {name: names})


def column_names(X: Any) -> list[str] | None:
    """The names of a table's columns, if all are words."""
    if not is_table(X):
        return None
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _cut(X: Any, cuts: Mapping[str, Any]) -> Samples:
    """Views out of the columns of a table."""
    names = column_names(X)
    parts, columns = {}, {}
    for name, cut in cuts.items():
        where = _columns(cut, X, names, name)
        part = _safe_indexing(X, where, axis=1)
        parts[str(name)] = _checked(part, f"view '{name}'")
        columns[str(name)] = None if names is None else [names[c] for c in where]
    return _samples(parts, columns)


def _columns(cut: Any, X: Any, names: Any, view: str) -> list[int]:
    """Positions of the columns that a cut names."""
    width = X.shape[1]
    if callable(cut):
        cut = cut(X)
    if isinstance(cut, slice) and all(bound is None or isinstance(bound, (int, np.integer)) for bound in (cut.start, cut.stop)):
        found = list(range(width)[cut])
    elif isinstance(cut, range):
        found = list(cut)
    else:
        cut = [cut] if _is_text(cut) or np.ndim(cut) == 0 else list(cut)
        if len(cut) == width and all(isinstance(c, (bool, np.bool_)) for c in cut):
            found = [k for k, wanted in enumerate(cut) if wanted]
        else:
            found = []
            for column in cut:
                if not isinstance(column, str):
                    found.append(int(column))
                    continue
                if names is None:
                    raise ValueError(f"views: view '{view}' names the column '{column}', but the columns of X have no names")
                known = list(names)
                if column in known:
                    found.append(known.index(column))
                elif column.endswith("*"):
                    found.extend(k for k, name in enumerate(known) if name.startswith(column[:-1]))
                else:
                    raise ValueError(f"views: view '{view}' names the column '{column}', which X does not have")
    wrong = [c for c in found if not -width <= c < width]
    if wrong:
        raise ValueError(f"views: view '{view}' names column {wrong[0]}, but X has {width} columns (counted from 0)")
    if not found:
        raise ValueError(f"views: view '{view}' has no columns; name at least one")
    return [c % width for c in found]


def _checked(data: Any, name: str) -> Any:
    """A view of numbers as an array or CSR matrix, or a list of strings."""
    if is_strings(data):
        return list(data)
    if is_table(data) and data.shape[1] == 1:
        column = data.iloc[:, 0] if hasattr(data, "iloc") else data[:, 0]
        if is_strings(column):
            return list(column)
    return check_array(data, accept_sparse="csr", dtype=_NUMBERS, input_name=name)


def _samples(views: dict[str, Any], columns: Mapping[str, Any] | None = None) -> Samples:
    parts: list[tuple] = []
    for name, data in views.items():
        names = (columns or {}).get(name)
        names = [] if names is None else [str(c) for c in names]
        if isinstance(data, list):
            parts.append((name, [s.encode() if isinstance(s, str) else s for s in data]))
        elif sparse.issparse(data):
            data = data.tocsr(copy=True) if not data.has_canonical_format else data
            data.sum_duplicates()
            starts, indices = data.indptr.astype(np.int64), data.indices.astype(np.int64)
            parts.append((name, names, data.shape[1], starts, indices, data.data.astype(np.float32)))
        else:
            parts.append((name, names, data))
    return Samples(_native.Views(parts), views)


def read_matrices(estimator, X: Any, reset: bool, training: int | None, names: list[str] | None) -> Samples:
    """Given matrices: one, a list or dictionary of them, or a stack. `training` counts the training samples once known."""
    empty = _native.Views([])
    is_training = training is None
    if is_named(X) or (isinstance(X, (list, tuple)) and len(X) > 0 and all(dimensions(x) == 2 for x in X)):
        named = dict(X) if is_named(X) else {f"kernel_{m}": x for m, x in enumerate(X)}
        matrices = [check_array(x, dtype=_NUMBERS, input_name=f"kernel matrix '{name}'") for name, x in named.items()]
        return Samples(empty.with_matrices([str(name) for name in named], matrices, is_training), {})
    if sparse.issparse(X) or dimensions(X) != 3:
        X = validate_data(estimator, X, reset=reset, dtype=_NUMBERS)
        if is_training and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X: with precomputed kernels it has the shape {X.shape}; a kernel between training samples must be square "
                "(n, n), several kernels an array (n, n, kernels) or a list"
            )
        return Samples(empty.with_matrices(["kernel_0"], [X], is_training), {})
    X = check_array(np.asarray(X), dtype=_NUMBERS, allow_nd=True, input_name="X")
    axis = _kernel_axis(X.shape, training, None if names is None else len(names))
    stack = [f"kernel_{m}" for m in range(X.shape[axis])]
    return Samples(empty.with_stack(stack, X, axis, is_training), {})


def _kernel_axis(shape: tuple[int, ...], training: int | None, kernels: int | None) -> int:
    """Which axis of a stack counts kernels; the last one where both could."""
    if training is None:
        last, first = shape[0] == shape[1], shape[1] == shape[2]
        right = "(n, n, kernels) or (kernels, n, n)"
    else:
        last = shape[1] == training and kernels in (None, shape[2])
        first = shape[2] == training and kernels in (None, shape[0])
        right = f"(new samples, {training} training samples, kernels) or (kernels, new samples, {training} training samples)"
    if last:
        return 2
    if first:
        return 0
    raise ValueError(f"X: the stack of kernels has the shape {shape}; give {right}")
