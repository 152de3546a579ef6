"""Descriptions of kernels.

Each function describes one kernel, or several at once where a field is a list::

    kernels.rbf(width=["mean*0.5", "mean", "mean*2"])      # three kernels on every view of numbers
    kernels.linear(view="pixels", normalize="spherical")   # one, on one view

A description without `view` stands for one kernel on every view that it can look at. Estimators take descriptions, SPEC
strings such as ``"rbf:width=mean|mean*2"``, functions, and lists of them.

Fields that every kernel has:

view : str or None
    The view it looks at.
name : str or None
    Its name in results; made from view, kind and fields if None.
group : str or None
    Its group, for the norm ``"mixed"`` and for reports; the view if None.
normalize : {"none", "spherical", "multiplicative", "trace", "center"} or None
    How its values are normalised, with statistics of the training samples.

Widths are numbers, or ``"mean"``, ``"mean*0.5"``, ``"median"``, ``"median*2"`` … of the distances between training samples.
"""

from __future__ import annotations

import itertools
import json
import numbers
from collections.abc import Callable
from typing import Any

from . import _native

__all__ = [
    "Kernel",
    "chi2",
    "distance",
    "function",
    "intersection",
    "laplacian",
    "linear",
    "poly",
    "precomputed",
    "product",
    "rbf",
    "spectrum",
    "sum",
    "weighted_degree",
]

_GIVEN = ("precomputed", "distance")


class Kernel:
    """A kernel, or several of one kind.

    Made by the functions of this module. Its fields are parameters in the sense of scikit-learn, so that searches reach
    them: ``kernels__width`` of an estimator with one description, ``kernels__0__width`` with a list.

    Parameters
    ----------
    kind : str
        The word of SPEC strings: ``"rbf"``, ``"linear"`` …
    **fields
        The fields of that kind; a list makes several kernels, None leaves a field at what is usual.

    Examples
    --------
    >>> from multikernel import kernels
    >>> kernel = kernels.rbf(width=["mean", "mean*2"])
    >>> kernel
    kernels.rbf(width=['mean', 'mean*2'])
    >>> kernel.specs()
    ['rbf:width=mean', 'rbf:width=mean*2']
    >>> kernel.set_params(width=0.5).specs()
    ['rbf:width=0.5']
    """

    def __init__(self, kind: str, **fields: Any):
        self.kind = kind
        self._fields = dict(fields)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Kind and fields.

        Parameters
        ----------
        deep : bool, default=True
            Makes no difference: fields hold no estimators.

        Returns
        -------
        dict
            Names and values.
        """
        return {"kind": self.kind, **self._fields}

    def set_params(self, **params: Any) -> Kernel:
        """Changes fields.

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        Kernel
            This description.
        """
        for name, value in params.items():
            if name == "kind":
                self.kind = value
            elif name in self._fields:
                self._fields[name] = value
            else:
                known = ", ".join(self._fields)
                raise ValueError(f"kernel {self.kind}: there is no field '{name}'; the fields are {known}")
        return self

    def specs(self) -> list[str]:
        """The kernels as SPEC strings.

        Returns
        -------
        list of str
            One for each kernel.
        """
        return [_native.spec_text(each) for each in self._json()]

    def _json(self) -> list[str]:
        """Each kernel as JSON; the last field changes fastest."""
        fields = {name: value for name, value in self._fields.items() if value is not None}
        of = fields.pop("of", None)
        choices = [_choices(value) for value in fields.values()]
        every = []
        for values in itertools.product(*choices):
            spec = {"kind": self.kind, **dict(zip(fields, values))}
            if of is not None:
                spec["of"] = of.split("*") if isinstance(of, str) else list(of)
            every.append(json.dumps(spec))
        return every

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items() if value is not None)
        return f"kernels.{self.kind.replace('-', '_')}({fields})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.get_params() == other.get_params()

    __hash__ = None  # type: ignore[assignment]  # it can be changed


def _choices(value: Any) -> list[Any]:
    several = isinstance(value, (list, tuple)) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1)
    return [_plain(v) for v in value] if several else [_plain(value)]


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    return value


def linear(*, view=None, name=None, group=None, normalize=None) -> Kernel:
    """x·x'

    See the module for `view`, `name`, `group` and `normalize`.

    Examples
    --------
    >>> from multikernel import kernels
    >>> kernels.linear(normalize="spherical").specs()
    ['linear:normalize=spherical']
    """
    return Kernel("linear", view=view, name=name, group=group, normalize=normalize)


def poly(degree=2, coef0=1.0, gamma=1.0, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """(γ x·x' + c)^d

    Parameters
    ----------
    degree : int, default=2
        d
    coef0 : float, default=1
        c
    gamma : float, default=1
        γ
    view, name, group, normalize
        See the module.
    """
    return Kernel("poly", degree=degree, coef0=coef0, gamma=gamma, view=view, name=name, group=group, normalize=normalize)


def rbf(width=None, gamma=None, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """exp(−‖x−x'‖²/w), the Gaussian kernel

    Parameters
    ----------
    width : float or str or None
        w: a number, or ``"mean"`` (what None stands for), ``"mean*0.5"``, ``"median"`` …
    gamma : float or None
        1/w instead.
    view, name, group, normalize
        See the module.
    """
    return Kernel("rbf", width=width, gamma=gamma, view=view, name=name, group=group, normalize=normalize)


def laplacian(width=None, gamma=None, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """exp(−‖x−x'‖₁/w)

    Parameters are those of `rbf`.
    """
    return Kernel("laplacian", width=width, gamma=gamma, view=view, name=name, group=group, normalize=normalize)


def chi2(width=None, gamma=None, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """exp(−Σ(x−x')²/(x+x')/w), for histograms

    Parameters are those of `rbf`.
    """
    return Kernel("chi2", width=width, gamma=gamma, view=view, name=name, group=group, normalize=normalize)


def intersection(*, view=None, name=None, group=None, normalize=None) -> Kernel:
    """Σ min(x, x'), for histograms

    See the module for `view`, `name`, `group` and `normalize`.
    """
    return Kernel("intersection", view=view, name=name, group=group, normalize=normalize)


def spectrum(k=3, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """Dot product of k-mer counts, for strings

    Parameters
    ----------
    k : int, default=3
        Length of the k-mers.
    view, name, group, normalize
        See the module.
    """
    return Kernel("spectrum", k=k, view=view, name=name, group=group, normalize=normalize)


def weighted_degree(degree=10, shift=0, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """Matching k-mers at the same (or shifted) positions, k = 1…degree, for strings

    Parameters
    ----------
    degree : int, default=10
        Longest k-mer.
    shift : int, default=0
        Largest shift.
    view, name, group, normalize
        See the module.
    """
    return Kernel("weighted-degree", degree=degree, shift=shift, view=view, name=name, group=group, normalize=normalize)


def precomputed(matrix=None, *, name=None, group=None, normalize=None) -> Kernel:
    """A given kernel matrix

    Parameters
    ----------
    matrix : str or None
        Name of the matrix: its key, or ``"kernel_0"``, ``"kernel_1"`` … in a stack. None: every matrix.
    name, group, normalize
        See the module.
    """
    return Kernel("precomputed", **{"from": matrix}, name=name, group=group, normalize=normalize)


def distance(matrix=None, width=None, gamma=None, *, name=None, group=None, normalize=None) -> Kernel:
    """exp(−d/w) of a given distance matrix

    Parameters
    ----------
    matrix : str or None
        Name of the matrix: its key, or ``"kernel_0"``, ``"kernel_1"`` … in a stack. None: every matrix.
    width, gamma : float or str or None
        As in `rbf`.
    name, group, normalize
        See the module.
    """
    return Kernel("distance", **{"from": matrix}, width=width, gamma=gamma, name=name, group=group, normalize=normalize)


def product(of, *, name=None, group=None, normalize=None) -> Kernel:
    """The product of named kernels

    Parameters
    ----------
    of : list of str
        Their names.
    name, group, normalize
        See the module.

    Examples
    --------
    >>> from multikernel import kernels
    >>> both = [kernels.linear(name="a"), kernels.rbf(name="b"), kernels.product(["a", "b"])]
    >>> both[2].specs()
    ['product:of=a*b']
    """
    return Kernel("product", of=of, name=name, group=group, normalize=normalize)


def sum(of, *, name=None, group=None, normalize=None) -> Kernel:  # noqa: A001 - the kind's word
    """The sum of named kernels

    Parameters
    ----------
    of : list of str
        Their names.
    name, group, normalize
        See the module.
    """
    return Kernel("sum", of=of, name=name, group=group, normalize=normalize)


def function(call, *, view=None, name=None, group=None, normalize=None) -> Kernel:
    """A kernel that a Python function computes

    Parameters
    ----------
    call : callable
        ``call(A, B)`` returns the array of shape (rows of A, rows of B). It is given the data of the view, or of all views
        as a dictionary if there are several and `view` is None.
    view, name, group, normalize
        See the module.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier, kernels
    >>> def tanimoto(A, B):
    ...     both = A @ B.T
    ...     return both / (A.sum(1)[:, None] + B.sum(1) - both)
    >>> X = np.random.default_rng(0).integers(0, 2, (40, 30))
    >>> fitted = MKLClassifier(kernels=[kernels.function(tanimoto), "rbf"]).fit(X, X[:, 0])
    >>> fitted.kernel_names_
    ['tanimoto', 'x/rbf(mean)']
    """
    return Kernel("function", call=call, view=view, name=name, group=group, normalize=normalize)


class Plan:
    """What an estimator's `kernels` asks for."""

    def __init__(self, kernels: Any):
        self.indefinite = "error"
        self.specs: list[str] = []
        self.functions: list[Function] = []
        every = [] if kernels is None else list(kernels) if isinstance(kernels, (list, tuple)) else [kernels]
        if isinstance(kernels, (list, tuple)) and not every:
            raise ValueError("kernels: the list is empty; name at least one kernel, or give None for the usual ones")
        self.given = False
        for kernel in every:
            self._add(kernel)
        kinds = [json.loads(spec)["kind"] for spec in self.specs if spec]
        self.given = self.given or any(kind in _GIVEN for kind in kinds)
        names = [function.name for function in self.functions]
        for k, function in enumerate(self.functions):
            if names.index(function.name) < k:
                function.name = f"{function.name}_{k}"
            self.specs[function.place] = function.spec()
        _native.check_kernels(self.specs, self.indefinite)
        if self.given and self.functions:
            raise ValueError(
                "kernels: functions look at features, but other kernels are precomputed; compute all of them beforehand"
            )

    def _add(self, kernel: Any) -> None:
        if isinstance(kernel, str):
            if kernel == "precomputed" or kernel.startswith("precomputed:indefinite="):
                self.given = True
                _, _, self.indefinite = kernel.partition("=")
                self.indefinite = self.indefinite or "error"
                return
            self.specs.extend(_native.parse_kernels(kernel))
        elif isinstance(kernel, Kernel):
            if kernel.kind == "function":
                self._add_function(**kernel._fields)
            else:
                self.specs.extend(kernel._json())
        elif callable(kernel):
            self._add_function(call=kernel)
        else:
            raise TypeError(
                f"kernels: {kernel!r} is a {type(kernel).__name__}; give SPEC strings such as 'rbf:width=mean', descriptions "
                "of multikernel.kernels, functions, a list of them, 'precomputed' or None"
            )

    def _add_function(self, **fields: Any) -> None:
        self.functions.append(Function(place=len(self.specs), **fields))
        self.specs.append("")  # filled when the names of all functions are known


class Function:
    """A kernel that Python computes: a given matrix for the library."""

    def __init__(self, place: int, call: Callable, view=None, name=None, group=None, normalize=None):
        if not callable(call):
            raise TypeError(f"kernels.function: {call!r} cannot be called; give a function of two sets of samples")
        self.place = place
        self.call = call
        self.view = view
        self.name = name or getattr(call, "__name__", None) or type(call).__name__
        self.group = group
        self.normalize = normalize

    def spec(self) -> str:
        spec = {"kind": "precomputed", "from": self.name, "name": self.name}
        if self.group is not None or self.view is not None:
            spec["group"] = self.group or self.view
        if self.normalize is not None:
            spec["normalize"] = self.normalize
        return json.dumps(spec)
