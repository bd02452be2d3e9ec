"""Speed of the bridge on the published snapshots, single thread, CPU seconds.

    python benchmarks/bridge.py [--repeats 3]

500 runs, 26 snapshots, Hilbert residual 1e-10: at eps = 0.1 median cost per edge, at the paper's eps, over a
range of eps; the whole path by the paper's sweeps for comparison; queries after a solve; length of the path.
Falls back to made snapshots where the published ones are not at hand.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from _data import one_core

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    one_core()
    from jostle.bridge import Cloud, Stopping, scale_of, squared_distances
    from studies.bridge.data import COUNTERS, PAPER_SCALE, read_published
    from studies.bridge.speed import solve_path, solve_path_jointly, speed_metrics

    print("made snapshots")
    for name, value in speed_metrics(repeats=given.repeats).items():
        print(f"  {name:40s} {value:.4f}")
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("JOSTLE_DATA", root.parent / "shared" / "data")) / "nmpc"
    if not folder.is_dir():
        print(f"no published snapshots in {folder}")
        return
    _, arrays, _ = read_published(folder, 4)
    raw = [Cloud.of(array) for array in arrays]
    clouds = [cloud.scaled(scale_of(raw)) for cloud in raw]
    paper = [cloud.scaled(np.array([PAPER_SCALE[name] for name in COUNTERS])) for cloud in raw]
    medians = [float(np.median(squared_distances(x.atoms, y.atoms))) for x, y in pairwise(clouds)]
    strict = Stopping(hilbert=1e-10, marginal_l1=0.0)
    print("published snapshots, n=500, s=26, Hilbert 1e-10")
    for ratio in (1000.0, 1.0, 0.1, 0.02, 0.001):
        eps = [ratio * median for median in medians]
        seconds, solved = [], []
        for _ in range(given.repeats if ratio >= 0.1 else 1):
            began = time.process_time()
            solved = solve_path(clouds, eps, stopping=strict)
            seconds.append(time.process_time() - began)
        done = sum(edge.convergence.converged for edge in solved)
        worst = max(edge.convergence.marginal_l1 for edge in solved)
        print(
            f"  eps/median {ratio:<6g} {np.median(seconds):7.3f} s, {done}/25 edges converged, "
            f"worst L1 {worst:.1e}"
        )
    began = time.process_time()
    solve_path(paper, [0.1] * 25, stopping=strict)
    print(f"  the paper's eps and scales: {time.process_time() - began:.3f} s")
    began = time.process_time()
    _, end = solve_path_jointly(paper, [0.1] * 25, stopping=strict)
    print(
        f"  the same by sweeps over the whole path: {time.process_time() - began:.3f} s, "
        f"{end.sweeps} sweeps"
    )


if __name__ == "__main__":
    main()
