"""Multiple kernel learning with scikit-learn's interface.

Several kernels, one convex problem: estimators that learn a weight for every kernel together with the predictor, and say how
far they are from the optimum.

>>> import multikernel as mk
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> model = mk.MKLClassifier(views={"sepal": [0, 1], "petal": [2, 3]}).fit(X, y)
>>> bool(model.score(X, y) > 0.95)
True
"""

import json as _json
from importlib.metadata import version as _version

from . import _native, kernels, plotting
from ._base import DataWarning
from ._estimators import MKLClassifier, MKLOneClass, MKLRegressor
from ._gram import alignment, gram, rank_kernels
from ._load import load
from ._online import OnlineMKLClassifier
from ._path import Path
from ._progress import Progress
from .plotting import plot_alignment, plot_convergence, plot_path, plot_weights

__version__ = _version("multikernel")

__all__ = [
    "DataWarning",
    "MKLClassifier",
    "MKLOneClass",
    "MKLRegressor",
    "OnlineMKLClassifier",
    "Path",
    "Progress",
    "alignment",
    "gram",
    "kernels",
    "load",
    "plot_alignment",
    "plot_convergence",
    "plot_path",
    "plot_weights",
    "plotting",
    "rank_kernels",
    "save",
    "solvers",
]


def save(estimator, path):
    """Writes the model file of a fitted estimator; the same as its method `save`.

    Parameters
    ----------
    estimator : MKLClassifier, MKLRegressor, MKLOneClass or OnlineMKLClassifier
        Fitted.
    path : str or Path
        The file, usually ``*.mk``.
    """
    estimator.save(path)


def solvers():
    """The algorithms that `solver` may name.

    Returns
    -------
    list of dict
        Name, problem, paper, and what is certified.

    Examples
    --------
    >>> import multikernel as mk
    >>> [solver["name"] for solver in mk.solvers()][:2]
    ['auto', 'exact']
    """
    return _json.loads(_native.solvers())
