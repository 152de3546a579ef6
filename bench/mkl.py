"""Exact MKL beside what scikit-learn needs for the kernels alone, on MNIST odd/even with 50 Gaussian kernels, in one run.

Called by bench/mkl. Ours is timed by the program given as --ours (raw pixels to certified model, median of three).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ours", required=True, help="the program bench_mkl")
parser.add_argument("--mnist", required=True, help="folder of MNIST's IDX files")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--quick", action="store_true", help="small sizes: does everything run?")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)  # read when NumPy is imported, so before it

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

N, WIDTHS = (500, 5) if options.quick else (4000, 50)


def seconds(job, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peers():
    folder = pathlib.Path(options.mnist)
    x = np.fromfile(folder / "train-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 784)[:N] / np.float32(255)
    y = np.fromfile(folder / "train-labels-idx1-ubyte", np.uint8, offset=8)[:N] % 2
    widths = [1.2**m for m in range(WIDTHS)]

    def called_again_and_again():
        for width in widths:
            rbf_kernel(x, gamma=1 / width)

    def distances_once():
        t = euclidean_distances(x, squared=True)
        for width in widths:
            np.exp(t / np.float32(-width))

    total = sum(rbf_kernel(x, gamma=1 / width) for width in widths)
    return {
        f"scikit-learn: {WIDTHS} × rbf_kernel, n = {N} (no training)": seconds(called_again_and_again),
        f"NumPy: the same, distances once": seconds(distances_once),
        f"scikit-learn: one SVC on the given sum kernel, n = {N}": seconds(lambda: SVC(kernel="precomputed", C=1, cache_size=1000).fit(total, y)),
    }


def main():
    theirs = peers()
    command = [options.ours, options.mnist, "--threads", str(options.threads)] + ["--quick"] * options.quick
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    jobs = [json.loads(line) for line in done.stdout.splitlines()]
    print(f"\n{options.threads} threads; NumPy {np.__version__}, scikit-learn {sklearn.__version__}.\n")
    print("| peer | seconds |\n|---|---|")
    for name, value in theirs.items():
        print(f"| {name} | {value:.3f} |")
    cube, _, svc = theirs.values()
    print("\n| ours | n | kernels | p | gap asked | gap | seconds | of it kernels | to 1e-2 | to 1e-3 | to 1e-5 | rounds | steps |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for j in jobs:
        to = [f"{v:.3f}" if v is not None else "" for v in (j["to"][k] for k in ("1e-2", "1e-3", "1e-5"))]
        print(f"| {j['job']} | {j['n']} | {j['kernels']} | {j['p']:.4g} | {j['tolerance']:g} | {j['relative_gap']:.1e} | {j['seconds']:.3f} "
              f"| {j['gram_seconds']:.3f} | {to[0]} | {to[1]} | {to[2]} | {j['rounds']} | {j['steps']} |")
    print()
    for j in jobs:
        if j["n"] == N and j["kernels"] == WIDTHS and j["job"] == "family" and j["tolerance"] == 1e-3:
            print(f"p = {j['p']:.4g}: from pixels to a certified model in {j['seconds'] / cube:.3f} of the time of {WIDTHS} × rbf_kernel.")
        if j["job"] == "given":
            print(f"{j['kernels']} given matrices, n = {j['n']}: {j['seconds'] / svc:.2f} times one SVC on their sum.")


if __name__ == "__main__":
    main()
