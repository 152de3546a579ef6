"""The results of several C and norms on the same kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Path:
    """What training gave for every combination of norm and C, norm by norm.

    Attributes
    ----------
    norm : list of str
        The norm of every point.
    C : array of shape (points,)
        The C of every point.
    kernel_names : list of str
        The kernels.
    kernel_weights : array of shape (points, kernels), or (points, problems, kernels) for ovr and ovo
        Their weights.
    objective, dual_objective, duality_gap : arrays of shape (points,)
        Primal and dual objective and their relative gap.
    n_support : array of shape (points,)
        Samples with a coefficient.
    n_iter : array of shape (points,)
        Rounds of the solver.
    converged : array of shape (points,)
        Whether tol was reached.
    """

    norm: list[str]
    C: np.ndarray
    kernel_names: list[str]
    kernel_weights: np.ndarray
    objective: np.ndarray
    dual_objective: np.ndarray
    duality_gap: np.ndarray
    n_support: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray

    @classmethod
    def _of(cls, names: list[str], points: list[tuple[str, float, dict]]) -> Path:
        results = [result for _, _, result in points]
        column = lambda key, default=np.nan: np.array([default if r[key] is None else r[key] for r in results])  # noqa: E731
        weights = [np.array([kernel["weight"] for kernel in r["kernels"]], dtype=float).T for r in results]
        names = [kernel["name"] for kernel in results[0]["kernels"]] if results else names
        return cls(
            norm=[norm for norm, _, _ in points],
            C=np.array([c for _, c, _ in points]),
            kernel_names=names,
            kernel_weights=np.array(weights),
            objective=column("primal"),
            dual_objective=column("dual", -np.inf),
            duality_gap=column("relative_gap", np.inf),
            n_support=column("n_support"),
            n_iter=column("iterations"),
            converged=np.array([r["status"] == "converged" for r in results]),
        )

    def __len__(self) -> int:
        return len(self.C)

    def plot(self, ax=None):
        """Draws the weights against C, or against the norm where only that changes.

        Parameters
        ----------
        ax : matplotlib axes or None
            Where; None: a new figure.

        Returns
        -------
        matplotlib axes
        """
        from .plotting import plot_path

        return plot_path(self, ax=ax)
