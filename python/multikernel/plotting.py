"""Pictures of kernels and training; they need matplotlib (``pip install matplotlib``)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["plot_alignment", "plot_convergence", "plot_path", "plot_weights"]

_BAR = "#4878a8"
#: Lines of a path that are named.
_NAMED = 8


def _axes(ax: Any, width: float = 6.4, height: float = 4.0) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib; install it with: pip install matplotlib") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _short(name: str, length: int = 36) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


def plot_weights(estimator, ax=None, top: int | None = 30):
    """Draws the weights of the kernels of a fitted estimator as bars, the largest first.

    Parameters
    ----------
    estimator : estimator
        Fitted. Of several problems (ovr, ovo) the mean is drawn, and every problem as a dot.
    ax : matplotlib axes or None
        Where; None: a new figure.
    top : int or None, default=30
        How many; None: all.

    Returns
    -------
    matplotlib axes
    """
    each = np.atleast_2d(estimator.kernel_weights_)
    mean = each.mean(axis=0)
    order = np.argsort(-mean, kind="stable")[: len(mean) if top is None else top]
    ax = _axes(ax, height=1.1 + 0.22 * len(order))
    places = np.arange(len(order))
    ax.barh(places, mean[order], color=_BAR, height=0.75)
    if len(each) > 1:
        for row in each:
            ax.plot(row[order], places, ".", color="black", markersize=3, alpha=0.5)
    ax.set_yticks(places, [_short(estimator.kernel_names_[m]) for m in order], fontsize=8)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlabel("weight" if len(each) == 1 else "weight (mean; dots: problems)")
    left = len(mean) - len(order)
    if left > 0:
        rest = mean.sum() - mean[order].sum()
        ax.set_title(f"{left} more kernels weigh {rest:.3g} together", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_convergence(estimator, ax=None):
    """Draws the relative duality gap of a fitted estimator against time, a line for each problem.

    Parameters
    ----------
    estimator : estimator
        Fitted in this session (model files keep no history).
    ax : matplotlib axes or None
        Where; None: a new figure.

    Returns
    -------
    matplotlib axes
    """
    history = estimator.history_
    if len(history["gap"]) == 0:
        raise ValueError("history_: it is empty, as model files keep none; plot an estimator that was fitted here")
    ax = _axes(ax)
    for problem in np.unique(history["problem"]):
        own = history["problem"] == problem
        gap = np.where(np.isfinite(history["gap"][own]), history["gap"][own], np.nan)
        ax.plot(1e3 * history["seconds"][own], np.maximum(gap, 1e-16), ".-", color=_BAR, alpha=0.8)
    ax.axhline(estimator.tol, color="black", linewidth=0.8, linestyle=":")
    ax.annotate("tol", (1, estimator.tol), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
    ax.set_yscale("log")
    ax.set_xlabel("milliseconds")
    ax.set_ylabel("relative duality gap")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_error(estimator, ax=None):
    """Draws the average online error of a stream against the number of examples.

    Parameters
    ----------
    estimator : OnlineMKLClassifier
        Fitted.
    ax : matplotlib axes or None
        Where; None: a new figure.

    Returns
    -------
    matplotlib axes
    """
    history = estimator.history_
    ax = _axes(ax)
    examples = np.maximum(history["examples"].astype(float), 1)
    ax.plot(examples, 100 * history["mistakes"] / examples, color=_BAR)
    ax.set_xlabel("examples")
    ax.set_ylabel("mistakes so far, %")
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_path(path, ax=None):
    """Draws kernel weights against C, or their shares against the norm where only that changes.

    Parameters
    ----------
    path : Path
        What an estimator's ``path`` returned.
    ax : matplotlib axes or None
        Where; None: a new figure.

    Returns
    -------
    matplotlib axes
    """
    weights = path.kernel_weights
    if weights.ndim == 3:
        weights = weights.mean(axis=1)
    norms = list(dict.fromkeys(path.norm))
    several = len(np.unique(path.C)) > 1
    if several and len(norms) > 1:
        raise ValueError(
            f"path: it has {len(norms)} norms and {len(np.unique(path.C))} values of C; one picture shows one of them changing"
        )
    ax = _axes(ax)
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    largest = np.argsort(-shares.max(axis=0), kind="stable")
    # Weights of different norms have different sizes.
    weights = weights if several else shares
    places = path.C if several else np.arange(len(path))
    order = np.argsort(places, kind="stable")
    for rank, m in enumerate(largest):
        named = rank < _NAMED
        style = {"label": _short(path.kernel_names[m])} if named else {"color": "0.75", "linewidth": 0.8, "zorder": 1}
        ax.plot(places[order], weights[order, m], ".-", **style)
    if several:
        ax.set_xscale("log")
        ax.set_xlabel("C")
        ax.set_title(f"norm {norms[0]}", fontsize=9)
    else:
        ax.set_xticks(places, path.norm)
        ax.set_xlabel("norm")
        ax.set_title(f"C = {path.C[0]:g}", fontsize=9)
    ax.set_ylabel("weight" if several else "share of all weights")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=7, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_alignment(K, y=None, names=None, ax=None):
    """Draws the centred alignment between kernels, and with the targets.

    Parameters
    ----------
    K : array of shape (n, n, kernels) or (kernels, n, n), or list of matrices
        The kernels, for instance from `multikernel.gram`.
    y : array of shape (n,) or None
        Targets: then the first row shows the alignment with them.
    names : list of str or None
        Names of the kernels.
    ax : matplotlib axes or None
        Where; None: a new figure.

    Returns
    -------
    matplotlib axes
    """
    from ._gram import alignment

    between = alignment(K)
    m = len(between)
    labels = [_short(name) for name in names] if names is not None else [f"kernel_{k}" for k in range(m)]
    table = between
    if y is not None:
        table = np.vstack([np.atleast_1d(alignment(K, y)), between])
    ax = _axes(ax, 2.6 + 0.32 * m, 1.6 + 0.32 * len(table))
    # Kernels may be aligned against each other; zero is white on both sides.
    image = ax.imshow(table, vmin=-1, vmax=1, cmap="RdBu_r")
    rows = (["targets"] if y is not None else []) + labels
    ax.set_xticks(np.arange(m), labels, rotation=90, fontsize=8)
    ax.set_yticks(np.arange(len(rows)), rows, fontsize=8)
    if y is not None:
        ax.axhline(0.5, color="black", linewidth=1)
    if m <= 12:
        for (i, j), value in np.ndenumerate(table):
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=6, color="white" if abs(value) > 0.6 else "black")
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="centred alignment")
    return ax
