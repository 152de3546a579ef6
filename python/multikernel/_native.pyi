"""The native module; private. Data goes in as tuples of plain values and NumPy arrays."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

Listener = Callable[[dict[str, Any]], object]
#: Names of the classes and the class of each sample, a value for each sample, or nothing.
Targets = tuple[list[str], NDArray[np.uint32]] | NDArray[np.float64] | None
Matrix = NDArray[np.float32] | NDArray[np.float64]
Part = (
    tuple[str, list[bytes]]
    | tuple[str, list[str], Matrix]
    | tuple[str, list[str], int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
)

class WarmStart: ...

class Alignments:
    def json(self, threads: int) -> str: ...

class Training(TypedDict):
    result: str
    notes: list[str]
    history: dict[str, NDArray[Any]]
    record: str
    alignments: Alignments | None
    start: WarmStart | None

class Views:
    def __new__(cls, parts: Sequence[Part]) -> Views: ...
    def with_matrices(self, names: list[str], matrices: Sequence[Matrix], training: bool) -> Views: ...
    def with_stack(self, names: list[str], stack: Matrix, axis: int, training: bool) -> Views: ...
    def part(self, rows: list[int], columns: list[int]) -> Views: ...
    def __len__(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...

class Kernels:
    def __new__(
        cls,
        views: Views,
        kernels: Sequence[str],
        indefinite: str = "error",
        seed: int = 0,
        threads: int = 1,
        listener: Listener | None = None,
    ) -> Kernels: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def groups(self) -> list[str]: ...
    @property
    def specs(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    def matrices(
        self, rows: Views | None = None, threads: int = 1, listener: Listener | None = None
    ) -> NDArray[np.float32]: ...
    def alignments(
        self, targets: Targets = None, threads: int = 1, listener: Listener | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]: ...
    def leave_one_out(
        self, targets: Targets, c: float, threads: int = 1, listener: Listener | None = None
    ) -> NDArray[np.float64]: ...
    def fit(
        self,
        targets: Targets,
        *,
        norm: str,
        c: float,
        solver: str,
        loss: str | None,
        multiclass: str,
        bias: str,
        class_weight: str | dict[str, float] | None,
        sample_weight: NDArray[np.float64] | None,
        tol: float,
        max_iter: int | None,
        seed: int,
        norm_matrix: Matrix | None = None,
        training_rows: tuple[list[int], int] | None = None,
        start: WarmStart | None = None,
        look: bool = False,
        threads: int = 1,
        listener: Listener | None = None,
    ) -> tuple[Model, Training]: ...

class Model:
    @staticmethod
    def load(path: str | PathLike[str]) -> Model: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def scores(
        self, views: Views, threads: int = 1, listener: Listener | None = None
    ) -> tuple[NDArray[np.float64], list[str]]: ...
    def set_training(self, json: str) -> None: ...
    def set_calibration(self, json: str | None) -> None: ...
    def evaluation(
        self,
        scores: NDArray[np.float64],
        classes: NDArray[np.int64] | None,
        values: NDArray[np.float64] | None,
        samples: str,
        seed: int = 0,
        threads: int = 1,
    ) -> str: ...
    def report_html(self) -> str: ...
    def description(self) -> str: ...
    @property
    def columns(self) -> NDArray[np.uint64]: ...
    @property
    def coefficients(self) -> NDArray[np.float64]: ...
    @property
    def biases(self) -> NDArray[np.float64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...

class Online:
    def __new__(
        cls,
        first: Views,
        kernels: Sequence[str],
        *,
        solver: str,
        norm: str,
        c: float,
        classes: list[str],
        budget: str | None = None,
        seed: int = 0,
        threads: int = 1,
        listener: Listener | None = None,
    ) -> Online: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Online: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Online: ...
    def to_bytes(self) -> bytes: ...
    def learn(
        self,
        views: Views,
        labels: list[str],
        again_from: int | None = None,
        threads: int = 1,
        listener: Listener | None = None,
    ) -> None: ...
    def begin_pass(self) -> None: ...
    def scores(self, views: Views, threads: int = 1, listener: Listener | None = None) -> NDArray[np.float64]: ...
    def snapshot(self) -> Model: ...
    def description(self) -> str: ...
    def carry(self, json: str) -> None: ...

def merge_copies(
    views: Views, targets: Targets, sample_weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.uint64], NDArray[np.float64]] | None: ...
def parse_kernels(spec: str) -> list[str]: ...
def spec_text(json: str) -> str: ...
def solvers() -> str: ...
def panic_on_purpose() -> None: ...
