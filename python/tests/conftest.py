"""What several tests need."""

import os
import pathlib

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def program():
    """The program, which `./test` builds before."""
    path = pathlib.Path(os.environ.get("MULTIKERNEL", ROOT / "target/debug/multikernel"))
    if not path.exists():
        pytest.skip("the program was not built (cargo build -p multikernel-cli)")
    return path


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    image = np.arange(64).reshape(8, 8)
    views = {
        "upper_left": image[:4, :4].ravel(),
        "upper_right": image[:4, 4:].ravel(),
        "lower_left": image[4:, :4].ravel(),
        "lower_right": image[4:, 4:].ravel(),
    }
    return X[:500], y[:500], {name: list(columns) for name, columns in views.items()}
