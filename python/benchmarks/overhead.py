"""What the Python layer costs beside the library: `fit` and `predict` of 100 samples, less what the library took.

Smallest of many repeats each: other programs only ever add time.

python python/benchmarks/overhead.py
"""

import time

import numpy as np

import multikernel as mk

REPEATS = 300


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    print("| threads | fit, ms | of it the library | overhead of fit | predict, ms |\n|---|---|---|---|---|")
    for threads in [1, 2]:
        model = mk.MKLClassifier(n_jobs=threads).fit(X, y)
        fits, library, predictions = [], [], []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            model.fit(X, y)
            fitted = time.perf_counter()
            model.predict(X)
            predictions.append(time.perf_counter() - fitted)
            fits.append(fitted - begin)
            library.append(model._result["seconds"]["total"])
        overhead = np.array(fits) - library
        numbers = [np.min(1e3 * np.array(values)) for values in (fits, library, overhead, predictions)]
        print(f"| {threads} | " + " | ".join(f"{value:.2f}" for value in numbers) + " |")


if __name__ == "__main__":
    main()
