"""Kernel matrices and their alignments as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from . import _data, _native
from ._prepare import called
from ._progress import threads
from .kernels import Plan


def gram(X, kernels=None, *, reference=None, views=None, return_names=False, random_state=0, n_jobs=None):
    """Kernel matrices.

    Parameters
    ----------
    X : array, DataFrame, sparse matrix, list of strings, or dict or list of views
        The samples of the rows, as for the estimators.
    kernels : None, str, Kernel, callable or list of them
        As for the estimators.
    reference : like X, or None
        The samples of the columns, and the training samples: widths and normalisations are theirs. None: X itself.
    views : dict or None
        As for the estimators.
    return_names : bool, default=False
        Also returns the names of the kernels.
    random_state : int, default=0
        Seed of the sample of pairs from which widths are chosen above 2000 samples.
    n_jobs : int or None
        Threads.

    Returns
    -------
    K : array of shape (rows, columns, kernels), float32
        Kernels last, as `MKLClassifier(kernels="precomputed")`, ``GridSearchCV`` and ``cross_val_score`` want it.
    names : list of str
        Only with `return_names`.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> K, names = mk.gram(X, ["linear", "rbf:width=2"], return_names=True)
    >>> K.shape, names
    ((3, 3, 2), ['x/linear', 'x/rbf(2)'])
    >>> K[:, :, 0]
    array([[1., 1., 0.],
           [1., 2., 2.],
           [0., 2., 4.]], dtype=float32)
    """
    plan = Plan(kernels)
    reader = BaseEstimator()
    read = _read_given if plan.given else lambda own, data, reset: _data.read_features(own, data, views, reset)
    base = read(reader, X if reference is None else reference, True)
    n = len(base.native)
    trained = base.native
    if plan.functions:
        squares = [called(f, base.seen_by(f), base.seen_by(f), (n, n)) for f in plan.functions]
        trained = trained.with_matrices([f.name for f in plan.functions], squares, True)
    count = threads(n_jobs)
    fitted = _native.Kernels(trained, plan.specs, plan.indefinite, int(random_state), count, None)
    rows = None
    if reference is not None:
        new = read(reader, X, False) if not plan.given else _data.read_matrices(reader, X, False, n, fitted.names)
        rows = new.native
        if plan.functions:
            crosses = [called(f, new.seen_by(f), base.seen_by(f), (len(rows), n)) for f in plan.functions]
            rows = rows.with_matrices([f.name for f in plan.functions], crosses, False)
    stack = np.moveaxis(fitted.matrices(rows, count), 0, 2)
    return (stack, fitted.names) if return_names else stack


def _read_given(own: Any, data: Any, reset: bool) -> _data.Samples:
    return _data.read_matrices(own, data, reset, None, None)


def alignment(K, y=None, *, n_jobs=None):
    """Centred alignment (Cortes, Mohri, Rostamizadeh 2012) of kernels with targets, or with each other.

    Parameters
    ----------
    K : array of shape (n, n), (n, n, kernels) or (kernels, n, n), or list of matrices
        The kernels between the samples.
    y : array of shape (n,) or None
        Classes or values. Classes are compared by the kernel that is 1 within a class and 0 between classes, values by y·y'.
    n_jobs : int or None
        Threads.

    Returns
    -------
    float, or array of shape (kernels,)
        With y: the alignment of each kernel, a number for a single matrix.
    array of shape (kernels, kernels)
        Without y: of each pair of kernels.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> y = np.array([1, 1, -1, -1])
    >>> round(mk.alignment(np.outer(y, y), y), 6)
    1.0
    """
    views = _data.read_matrices(BaseEstimator(), K, True, None, None).native
    count = threads(n_jobs)
    fitted = _native.Kernels(views, [], "allow", 0, count, None)
    targets = None
    if y is not None:
        y = column_or_1d(y)
        if type_of_target(y) in ("continuous",):
            targets = np.ascontiguousarray(y, dtype=np.float64)
        else:
            classes, index = np.unique(y, return_inverse=True)
            targets = ([str(c) for c in classes], index.astype(np.uint32))
    own, between = fitted.alignments(targets, count)
    if y is None:
        return between
    single = not isinstance(K, (dict, list, tuple)) and np.ndim(K) == 2
    return float(own[0]) if single else own
