"""Weights of kernels for notebooks, and pages for browsers."""

from __future__ import annotations

import os
import tempfile
from html import escape
from pathlib import Path

import numpy as np

#: Kernels that are listed.
LISTED = 20


def weights(estimator) -> str:
    """A table of the largest weights with bars; empty before fit."""
    if not hasattr(estimator, "kernel_weights_"):
        return ""
    values = np.atleast_2d(estimator.kernel_weights_).mean(axis=0)
    order = np.argsort(-values, kind="stable")
    largest = max(float(values.max()), 1e-300)
    rows = []
    for m in order[:LISTED]:
        width = 100 * values[m] / largest
        rows.append(
            f"<tr><td style='text-align:left'>{escape(estimator.kernel_names_[m])}</td><td>{values[m]:.4f}</td>"
            "<td style='text-align:left;width:12em'>"
            f"<div style='background:#4878a8;height:0.8em;width:{width:.1f}%'></div></td></tr>"
        )
    more = len(values) - LISTED
    rest = f"<caption>… and {more} more</caption>" if more > 0 else ""
    status = "converged" if estimator.converged_ else "<b>not converged</b>"
    mean = ", mean over problems" if np.ndim(estimator.kernel_weights_) == 2 else ""
    return (
        "<div style='margin-top:0.5em'><table style='border-collapse:collapse'>"
        f"<thead><tr><th style='text-align:left'>kernel</th><th>weight{mean}</th><th></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody>{rest}</table>"
        f"<p>{status}, relative duality gap {estimator.duality_gap_:.1e}, {estimator.n_iter_} rounds, "
        f"{len(estimator.support_)} samples with coefficients</p></div>"
    )


def write(path: str | Path, page: str) -> None:
    """Writes a page under a temporary name, then renames it: the file is there whole or not at all."""
    path = Path(path)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".html", delete=False) as file:
        try:
            file.write(page)
            file.close()
            # Temporary files are for their owner only; a page is for whom the user's mask allows.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(file.name, 0o666 & ~mask)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
