"""Training on more runs than one would hold in memory: made-up runs in a dataset, learned from disk.

    python benchmarks/from_disk.py FOLDER [--runs 10000000] [--workloads 100000] [--platforms 1000]

Writes FOLDER once (about 25 bytes a run) and prints how long reading and training take, how much memory
they need at most, and the error on the runs held out, beside that of the linear-scaling baseline. One core.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np
from _data import one_core

FILE_ROWS = 1_000_000
RANK = 6


class World:
    """Runtimes with a known law: log t = w + p + <u_w, v_p>/2 + 0.6 s_w sum of g_k, and 3% noise."""

    def __init__(self, workloads: int, platforms: int) -> None:
        random = np.random.default_rng(1)
        self.w, self.p = random.normal(size=workloads), random.normal(size=platforms)
        # What a workload does follows from eight features, so that few runs of each can do.
        self.features = random.normal(size=(workloads, 8)).astype(np.float32)
        mix = random.normal(size=(8, RANK)) / 8**0.5
        self.u = np.tanh(self.features @ mix)
        self.v = random.normal(size=(platforms, RANK)) * 0.5
        self.s = 1 / (1 + np.exp(-self.features[:, 0]))
        self.g = 0.5 / (1 + np.exp(-self.features[:, 1]))

    def draw(self, n: int, seed: int):
        """(workload, platform, counts, corunner, runtime_seconds)."""
        random = np.random.default_rng([2, seed])
        w, p = random.integers(0, len(self.w), n), random.integers(0, len(self.p), n)
        counts = random.choice(4, n, p=(0.4, 0.3, 0.2, 0.1))
        corunner = random.integers(0, len(self.w), counts.sum())
        row = np.repeat(np.arange(n), counts)
        pressure = np.bincount(row, self.g[corunner], n)
        log = self.w[w] + self.p[p] + 0.5 * (self.u[w] * self.v[p]).sum(1)
        log += 0.6 * self.s[w] * pressure + 0.03 * random.normal(size=n)
        return w, p, counts, corunner, np.exp(log)


def made_runs(world: World, n: int, number: int):
    """Runs of the world; number: of the draw."""
    import pyarrow as pa

    import jostle

    names = pa.array([f"w{i:06d}" for i in range(len(world.w))])
    places = pa.array([f"p{i:04d}" for i in range(len(world.p))])
    w, p, counts, corunner, seconds = world.draw(n, number)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return jostle.Runs.from_columns(
        workload=names.take(pa.array(w)),
        platform=places.take(pa.array(p)),
        corunners=pa.ListArray.from_arrays(offsets, names.take(pa.array(corunner))),
        runtime_seconds=seconds,
        campaign=f"made-up {number}",
        workload_features={"workload": names}
        | {f"f{i}": f for i, f in enumerate(world.features.T)},
    )


def write(folder: Path, world: World, runs: int) -> None:
    import jostle

    for number in range(-(-runs // FILE_ROWS)):
        n = min(FILE_ROWS, runs - number * FILE_ROWS)
        jostle.Dataset(folder).write(made_runs(world, n, number))
        print(f"{number * FILE_ROWS + n} runs written", file=sys.stderr)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--workloads", type=int, default=100_000)
    parser.add_argument("--platforms", type=int, default=1_000)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--only-write", action="store_true")
    given = parser.parse_args()
    one_core()
    import jostle

    if not (given.folder / "runs").is_dir():
        write(given.folder, World(given.workloads, given.platforms), given.runs)
    if given.only_write:
        return
    began = time.perf_counter()
    with jostle.StoredRuns(given.folder) as runs:
        print(
            f"read: {len(runs)} runs to learn from, {time.perf_counter() - began:.0f} s,", end=" "
        )
        print(f"{peak_mb():.0f} MB at most")
        began = time.perf_counter()

        def report(done: int, total: int, loss: float) -> None:
            passed = time.perf_counter() - began
            print(f"step {done} of {total}, {passed:.0f} s, loss {loss:.4f}", file=sys.stderr)

        model = jostle.fit(runs, jostle.Factorization(steps=given.steps), progress=report)
        print(f"trained: {time.perf_counter() - began:.0f} s, {peak_mb():.0f} MB at most")
        test = runs.calibration
        found = model.predict(test.colocations)
        bound = model.bound(test.colocations, 0.9).seconds
    alone = test.colocations.number_of_corunners == 0
    error = np.abs(found / test.runtime_seconds - 1)
    for name, group in (("alone", alone), ("beside others", ~alone)):
        print(f"error {name}: {100 * error[group].mean():.2f}% (noise alone makes 2.4%)")
    print(f"calibration runs under their 90% bound: {np.mean(test.runtime_seconds <= bound):.4f}")


if __name__ == "__main__":
    main()
