"""Probabilities from scores: Platt's sigmoid for two classes, a temperature for more."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, log_softmax, softmax


def fit(scores: np.ndarray, index: np.ndarray, weights: np.ndarray, n_classes: int) -> dict:
    """What turns scores of samples that were not trained on into probabilities.

    Two classes: p = 1/(1 + exp(−(slope·score + offset))) (Platt 1999, targets smoothed as there). More: the softmax of
    score/temperature. Both minimise the negative log-likelihood.
    """
    if n_classes == 2:
        one = index == 1
        ones, others = weights[one].sum(), weights[~one].sum()
        target = np.where(one, (ones + 1) / (ones + 2), 1 / (others + 2))
        scale = max(float(np.abs(scores).max()), 1e-12)
        unit = scores / scale

        def loss(x):
            z = x[0] * unit + x[1]
            value = -(weights * (target * log_expit(z) + (1 - target) * log_expit(-z))).sum()
            slope = weights * (expit(z) - target)
            return value, np.array([slope @ unit, slope.sum()])

        start = np.array([0.0, np.log((ones + 1) / (others + 1))])
        found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        return {"kind": "sigmoid", "slope": float(found.x[0] / scale), "offset": float(found.x[1])}
    scale = max(float(np.abs(scores - scores.mean(axis=1, keepdims=True)).max()), 1e-12)

    def negative(log_temperature):
        z = log_softmax(scores / (scale * np.exp(log_temperature)), axis=1)
        return -(weights * z[np.arange(len(index)), index]).sum()

    found = minimize_scalar(negative, bounds=(-7.0, 7.0), method="bounded", options={"xatol": 1e-9})
    return {"kind": "temperature", "temperature": float(scale * np.exp(found.x))}


def probabilities(calibration: dict, scores: np.ndarray) -> np.ndarray:
    """One row for each sample, one column for each class."""
    if calibration["kind"] == "sigmoid":
        second = expit(calibration["slope"] * scores + calibration["offset"])
        return np.column_stack([1 - second, second])
    return softmax(scores / calibration["temperature"], axis=1)
