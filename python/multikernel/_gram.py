"""Kernel matrices, their alignments, and what each kernel predicts by itself, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from . import _data, _native
from ._prepare import called, positive
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
    count = threads(n_jobs)
    base, fitted = _fitted(reader, X if reference is None else reference, plan, views, random_state, count)
    rows = None
    if reference is not None:
        n = len(base.native)
        if plan.given:
            new = _data.read_matrices(reader, X, False, n, fitted.names)
        else:
            new = _data.read_features(reader, X, views, False)
        rows = new.native
        if plan.functions:
            crosses = [called(f, new.seen_by(f), base.seen_by(f), (len(rows), n)) for f in plan.functions]
            rows = rows.with_matrices([f.name for f in plan.functions], crosses, False)
    stack = np.moveaxis(fitted.matrices(rows, count), 0, 2)
    return (stack, fitted.names) if return_names else stack


def _fitted(
    reader: BaseEstimator, X: Any, plan: Plan, views: Any, seed: Any, count: int
) -> tuple[_data.Samples, _native.Kernels]:
    """The samples, and kernels fitted to them."""
    if plan.given:
        base = _data.read_matrices(reader, X, True, None, None)
    else:
        base = _data.read_features(reader, X, views, True)
    native = base.native
    if plan.functions:
        n = len(native)
        squares = [called(f, base.seen_by(f), base.seen_by(f), (n, n)) for f in plan.functions]
        native = native.with_matrices([f.name for f in plan.functions], squares, True)
    return base, _native.Kernels(native, plan.specs, plan.indefinite, int(seed), count, None)


def _targets(y: Any) -> Any:
    """Classes or values, as the library takes them."""
    y = column_or_1d(y)
    if type_of_target(y) in ("continuous",):
        return np.ascontiguousarray(y, dtype=np.float64)
    classes, index = np.unique(y, return_inverse=True)
    return [str(c) for c in classes], index.astype(np.uint32)


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
    own, between = fitted.alignments(None if y is None else _targets(y), count)
    if y is None:
        return between
    single = not isinstance(K, (dict, list, tuple)) and np.ndim(K) == 2
    return float(own[0]) if single else own


def rank_kernels(X, y, kernels=None, *, C=1.0, views=None, random_state=0, n_jobs=None):
    """Ranks kernels by what each predicts by itself.

    The leave-one-out error of a least-squares SVM with each kernel alone, in closed form (Cawley 2006): no training is
    repeated, and one inverse of a matrix serves all classes. It takes about n³ steps for each kernel, and says nothing about
    what kernels are worth together.

    Parameters
    ----------
    X : array, DataFrame, sparse matrix, list of strings, or dict or list of views
        The samples, as for the estimators.
    y : array of shape (n_samples,)
        Classes, or values of a regression.
    kernels : None, str, Kernel, callable or list of them
        As for the estimators.
    C : float, default=1.0
        The price of errors; the larger, the less each kernel's predictor is smoothed.
    views : dict or None
        As for the estimators.
    random_state : int, default=0
        Seed of the sample of pairs from which widths are chosen above 2000 samples.
    n_jobs : int or None
        Threads.

    Returns
    -------
    names : list of str
        The kernels, those that predict best first.
    errors : array of shape (kernels,)
        Their errors, in the same order: the share of wrong classes, or the mean squared error of values.

    See Also
    --------
    alignment : Another look at single kernels, which takes n² steps.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> names, errors = mk.rank_kernels(X, y, "rbf", views={"sepal": [0, 1], "petal": [2, 3]})
    >>> names[0].startswith("petal"), bool(errors[0] < 0.1 < errors[1])
    (True, True)
    """
    count = threads(n_jobs)
    cost = positive("C", C)
    _, fitted = _fitted(BaseEstimator(), X, Plan(kernels), views, random_state, count)
    errors = fitted.leave_one_out(_targets(y), cost, count)
    order = np.argsort(errors, kind="stable")
    return [fitted.names[m] for m in order], errors[order]
