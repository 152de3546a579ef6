"""Kernel matrices side by side: multikernel, NumPy and scikit-learn on the same data, in one run.

Called by bench/run. Peers are timed here; ours by the program given as --ours, which prints one JSON line per job.
Every time is the median of several repeats, after one that is not counted. Threads are the same on both sides. X·Xᵀ, where both sides
are near what the machine can do, is measured in turns, so that a slow minute of the machine is a slow minute for both.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ours", required=True, help="the program bench_gram")
parser.add_argument("--data", required=True, help="folder for the data that both sides read")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--quick", action="store_true", help="small sizes: does everything run?")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)  # read when NumPy is imported, so before it

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel  # noqa: E402
from threadpoolctl import threadpool_info  # noqa: E402

SIZES = [500, 1000] if options.quick else [4000, 8000]
FEATURES = 784
WIDTHS = 5 if options.quick else 50
TURNS = 1 if options.quick else 5
NAMES = {"xxt": "NumPy", "cube": "rbf_kernel", "cube, distances once": "NumPy, distances once"}


def make_data(folder):
    """Points in [0, 1]^784 around ten centres, a third of the coordinates zero: the shape of digit images."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    centres = rng.random((10, FEATURES)) * (rng.random((10, FEATURES)) < 0.7)
    for n in SIZES:
        x = centres[rng.integers(10, size=n)] * (0.5 + 0.5 * rng.random((n, FEATURES)))
        np.save(folder / f"x{n}.npy", x.astype(np.float32))


def median_seconds(job, repeats=5):
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peers(folder):
    """Seconds of each peer, by (job, n)."""
    out = {}
    n = SIZES[0]
    x = np.load(folder / f"x{n}.npy")
    squared = euclidean_distances(x, squared=True)
    mean = float(squared.sum() / (n * (n - 1)))
    # The same widths as ours: mean · 1.2^(m − M/2).
    gammas = [1 / (mean * 1.2 ** (m - WIDTHS / 2)) for m in range(WIDTHS)]

    def called_again_and_again():
        for gamma in gammas:
            rbf_kernel(x, gamma=gamma)

    def distances_once():
        t = euclidean_distances(x, squared=True)
        out = np.empty_like(t)
        for gamma in gammas:
            np.exp(np.multiply(t, np.float32(-gamma), out=out), out=out)

    out["cube", n] = median_seconds(called_again_and_again, repeats=3)
    out["cube, distances once", n] = median_seconds(distances_once, repeats=3)
    return out


def ours(folder, widths, sizes):
    """What our program prints; X·Xᵀ alone without widths."""
    command = [options.ours, str(folder), "--threads", str(options.threads), "--widths", str(widths)]
    for n in sizes:
        command += ["--size", str(n)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def products(folder):
    """X·Xᵀ in turns: our lines with the median time, the peer's median time, and how many times faster ours was in each turn."""
    lines, theirs, ratios = [], {}, {}
    for n in SIZES:
        x = np.load(folder / f"x{n}.npy")
        turns = []
        for _ in range(TURNS):
            peer = median_seconds(lambda: x @ x.T)
            line = next(line for line in ours(folder, 0, [n]) if line["job"] == "xxt")
            turns.append((peer, line["seconds"]))
        line |= {"seconds": statistics.median(own for _, own in turns), "turns": TURNS}
        lines.append(line)
        theirs["xxt", n] = statistics.median(peer for peer, _ in turns)
        ratios[n] = sorted(peer / own for peer, own in turns)
    return lines, theirs, ratios


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    folder = pathlib.Path(options.data)
    make_data(folder)
    lines, theirs, ratios = products(folder)
    theirs |= peers(folder)
    lines += ours(folder, WIDTHS, SIZES[:1])
    machine = next(line for line in lines if line["job"] == "machine")
    flops, read, write = machine["flops"], machine["read_bytes"], machine["write_bytes"]

    blas = ", ".join(sorted({f"{p['internal_api']} {p.get('version')} ({p.get('architecture')})" for p in threadpool_info()
                             if p["user_api"] == "blas"}))
    print(f"\n{processor()}, {options.threads} threads; NumPy {np.__version__} [{blas}], scikit-learn {sklearn.__version__}.")
    peak = f"{flops / 1e9:.0f} Gflop/s f32" if flops else "(flops not measured)"
    print(f"Measured limits: {peak}, {read / 1e9:.1f} GB/s read, {write / 1e9:.1f} GB/s written.\n")
    jobs = [line for line in lines if line["job"] != "machine" and (line["job"] != "xxt" or "turns" in line)]
    stored = {line["job"]: line for line in jobs if "stored" in line["title"]}
    print("| job | ours | compared with | times faster | bound | reached |")
    print("|---|---|---|---|---|---|")
    for line in jobs:
        limits = {
            "flops": line["flops"] / flops if flops else 0.0,
            "memory": line["read_bytes"] / read + line["write_bytes"] / write,
        }
        bound, least = max(limits.items(), key=lambda item: item[1])
        rows = [(f"{NAMES[job]}: {seconds:.4f} s", seconds) for (job, n), seconds in theirs.items()
                if job.split(",")[0] == line["job"] and n == line["n"]]
        if line["job"] in stored and line is not stored[line["job"]]:
            other = stored[line["job"]]["seconds"]
            rows = [(f"{WIDTHS} stored kernels: {other:.4f} s", other)]
        for other, seconds in rows or [("", None)]:
            ratio = f"{seconds / line['seconds']:.2f}" if seconds else ""
            print(f"| {line['title']} | {line['seconds']:.4f} s | {other} | {ratio} "
                  f"| {bound}: {least:.4f} s | {least / line['seconds']:.0%} |")
    print()
    for n, found in ratios.items():
        print(f"X·Xᵀ, n = {n}, in {TURNS} turns: {', '.join(f'{ratio:.2f}' for ratio in found)} times as fast as NumPy.")
    for job, what in (("combined", "a combined matrix"), ("forms", "all quadratic forms")):
        times = {line["kernels"]: line["seconds"] for line in jobs if line["job"] == job and "family" in line["title"]}
        fewest, most = min(times), max(times)
        print(f"{most} widths instead of {fewest}: {what} takes {times[most] / times[fewest]:.2f} times as long.")


if __name__ == "__main__":
    main()
