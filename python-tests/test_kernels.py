"""Kernel values of the program against scikit-learn's, on the same random data: equal to the round-off of f32."""

import os
import pathlib
import subprocess

import numpy as np
import pytest
from sklearn.metrics import pairwise

PROGRAM = os.environ.get("MULTIKERNEL", pathlib.Path(__file__).parents[1] / "target/debug/multikernel")
ROUND_OFF = 5e-6  # a few units of f32 after sums over the columns and an exponential


def gram(folder, features, *kernels):
    """The kernel matrices of the program, in the order of the kernels asked for."""
    np.save(folder / "x.npy", features)
    out = folder / "gram.npz"
    command = [PROGRAM, "gram", "--features", folder / "x.npy", "--out", out, "--quiet"]
    for m, kernel in enumerate(kernels):
        command += ["--kernel", f"{kernel},name=k{m}" if ":" in kernel else f"{kernel}:name=k{m}"]
    subprocess.run(command, check=True)
    with np.load(out) as arrays:
        return [arrays[f"k{m}"] for m in range(len(kernels))]


@pytest.mark.parametrize("shape", [(40, 3), (130, 57), (700, 200)])
@pytest.mark.parametrize("seed", [0, 1])
def test_agrees_with_scikit_learn(tmp_path, shape, seed):
    x = np.random.default_rng(seed).random(shape, dtype=np.float32)
    ours = gram(
        tmp_path, x,
        "linear",
        "poly:degree=3,gamma=0.01,coef0=1",
        "rbf:gamma=0.1",
        "rbf:width=2.5",
        "laplacian:gamma=0.05",
        "chi2:gamma=0.2",
        "intersection",
    )
    exact = x.astype(np.float64)
    theirs = [
        pairwise.linear_kernel(exact),
        pairwise.polynomial_kernel(exact, degree=3, gamma=0.01, coef0=1),
        pairwise.rbf_kernel(exact, gamma=0.1),
        pairwise.rbf_kernel(exact, gamma=1 / 2.5),
        pairwise.laplacian_kernel(exact, gamma=0.05),
        pairwise.chi2_kernel(exact, gamma=0.2),
        np.minimum(exact[:, None, :], exact[None, :, :]).sum(axis=2) if shape[0] < 500 else None,
    ]
    for k, want in zip(ours, theirs):
        assert k.dtype == np.float32
        if want is not None:
            np.testing.assert_allclose(k, want, rtol=ROUND_OFF, atol=ROUND_OFF * np.abs(want).max())


def test_mean_width_is_the_mean_over_pairs(tmp_path):
    x = np.random.default_rng(2).normal(size=(90, 11)).astype(np.float32)
    (k,) = gram(tmp_path, x, "rbf:width=mean*0.5")
    distances = pairwise.euclidean_distances(x.astype(np.float64), squared=True)
    mean = distances.sum() / (90 * 89)
    np.testing.assert_allclose(k, np.exp(-distances / (0.5 * mean)), atol=ROUND_OFF)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_distances_survive_an_offset(tmp_path, offset):
    """Squared distances by a matrix product lose digits when the data lies far from 0."""
    x = (np.random.default_rng(3).random((60, 20)) + offset).astype(np.float32)
    (k,) = gram(tmp_path, x, "rbf:gamma=0.3")
    np.testing.assert_allclose(k, pairwise.rbf_kernel(x.astype(np.float64), gamma=0.3), atol=ROUND_OFF)
