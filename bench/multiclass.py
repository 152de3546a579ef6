"""Several classes: OBSCURE, the exact solver and one-vs-rest, beside one SVC on the sum of the same kernels.

Called by bench/multiclass. Ours is timed by the program given as --ours, kernels in memory to certified result; it also
writes the sum kernels that scikit-learn is timed on.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ours", required=True, help="the program obscure")
parser.add_argument("--folder", required=True, help="where the sum kernels go")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--quick", action="store_true", help="a small size: does everything run?")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)  # read when NumPy is imported, so before it

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn.svm import SVC  # noqa: E402


def svc(file):
    folder = pathlib.Path(options.folder)
    kernel, y = np.load(folder / f"{file}.npy"), np.load(folder / f"{file}_y.npy")
    times = []
    for _ in range(3):
        start = time.perf_counter()
        SVC(kernel="precomputed", C=1, cache_size=1000).fit(kernel, y)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def shown(seconds):
    return "not reached" if seconds is None else f"{seconds:.3f}"


def main():
    command = [options.ours, "compare", "--folder", options.folder, "--threads", str(options.threads)]
    done = subprocess.run(command + ["--quick"] * options.quick, stdout=subprocess.PIPE, check=True, text=True)
    jobs = [json.loads(line) for line in done.stdout.splitlines()]
    peers = {file: svc(file) for file in dict.fromkeys(j["file"] for j in jobs)}
    print(f"\n{options.threads} threads; NumPy {np.__version__}, scikit-learn {sklearn.__version__}.\n")
    print("| problem | n | kernels | classes | solver | seconds | gap | objective within 1 % | gap 1e-3 | rounds | times one SVC |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for j in jobs:
        ratio = j["seconds"] / peers[j["file"]]
        alone = j["solver"] == "one-vs-rest"
        near, reached = ("another problem", shown(j["seconds"])) if alone else (shown(j["near"]), shown(j["reached"]))
        print(f"| {j['problem']} | {j['n']} | {j['kernels']} | {j['classes']} | {j['solver']} | {j['seconds']:.3f} | {j['gap']:.1e} "
              f"| {near} | {reached} | {j['rounds'] or ''} | {ratio:.2f} |")
    print()
    for file, seconds in peers.items():
        print(f"scikit-learn: one SVC on the sum kernel, {file}: {seconds:.3f} s")


main()
