"""Progress while the library works."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import joblib


@dataclass(frozen=True)
class Progress:
    """What a callback is told.

    Attributes
    ----------
    stage : str
        What is being done: ``"training"`` for rounds of a solver, otherwise a phrase.
    done, total : int or None
        How much of the stage is done, where its amount is known.
    round : int or None
        The round of the solver.
    primal, dual, gap : float or None
        Primal and dual objective after the round, and their relative gap.
    """

    stage: str
    done: int | None = None
    total: int | None = None
    round: int | None = None
    primal: float | None = None
    dual: float | None = None
    gap: float | None = None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class Bar:
    """One line that is written over and over, in terminals and notebooks; nothing elsewhere."""

    #: Seconds between two drawings.
    PAUSE = 0.1
    WIDTH = 30

    def __init__(self):
        stream = sys.stderr
        self.shown = bool(getattr(stream, "isatty", bool)()) or _in_notebook()
        self.last = 0.0
        self.length = 0

    def __call__(self, news: Progress) -> None:
        now = time.monotonic()
        if not self.shown or now - self.last < self.PAUSE:
            return
        self.last = now
        if news.total:
            full = self.WIDTH * (news.done or 0) // news.total
            line = f"{news.stage} [{'#' * full}{' ' * (self.WIDTH - full)}] {100 * (news.done or 0) // news.total}%"
        else:
            line = f"{news.stage}: round {news.round}, relative gap {news.gap:.1e}"
        self._write(line)

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self.length))
        sys.stderr.flush()
        self.length = len(line)

    def clear(self) -> None:
        """Takes the line away."""
        if self.length:
            self._write("")
            sys.stderr.write("\r")
            self.length = 0


class Listener:
    """Hands news to the bar and to the user's function."""

    def __init__(self, verbose: bool | int, callback: Callable[[Progress], object] | None):
        if callback is not None and not callable(callback):
            raise TypeError(f"callback: {callback!r} cannot be called; give a function of one argument")
        self.bar = Bar() if verbose else None
        self.callback = callback

    def hook(self) -> Callable[[dict], bool] | None:
        """What the library calls; none if nobody listens."""
        return self if self.bar or self.callback else None

    def __call__(self, told: dict) -> bool:
        news = Progress(**told)
        if self.bar:
            self.bar(news)
        return bool(self.callback(news)) if self.callback else False

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.clear()


@functools.cache
def _processors() -> int:
    # Asking the system takes as long as checking X.
    return joblib.cpu_count()


def threads(n_jobs: int | None) -> int:
    """Threads to use: all processors by default, or what a parallel caller (joblib) leaves to each of its workers."""
    processors = _processors()
    if n_jobs is None:
        try:
            share = int(os.environ.get("OMP_NUM_THREADS", ""))
        except ValueError:
            share = processors
        return max(1, min(processors, share))
    if isinstance(n_jobs, bool) or int(n_jobs) != n_jobs or n_jobs == 0:
        raise ValueError(f"n_jobs: it is {n_jobs!r}; give a number of threads, -1 for all processors, or None")
    return int(n_jobs) if n_jobs > 0 else max(1, processors + 1 + int(n_jobs))
