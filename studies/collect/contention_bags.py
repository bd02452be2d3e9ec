"""Record bags of kernels that contend for caches, memory and cores.

    python -m studies.collect.contention_bags BUILD OUT [--minutes 9.5] [--most 23] [--export]

Streaming, pointer chases, stencils, graphs, sorts and plain arithmetic, built by gcc, with working sets
inside the first cache, inside the second and past both: every pair of them, copies too, on two platforms. On
one each member has a core to itself; on the other both take turns on one core, as on a GPU without MPS, where
each finds its caches as the other left them. A repetition takes some ten milliseconds, so that what a member
has to fetch again after its turn is in its time. Pairs are measured in passes through all of them in random
order, so that repeats lie minutes apart.

BUILD keeps what was measured: run the same again to go on after a break. Needs two cores that nothing else
uses, and gcc; ends by itself after --minutes. Then, or with --export without measuring anything, it prints
as JSON how far pairs differ and how far repeats of one pair do, on each platform. Only where pairs differ by
over five times as much on one of them is OUT written; otherwise it says so, with exit code 1. Then

    python -m studies bag --data OUT --target slowdown --cpu-platform PLATFORM

with the name that is printed as cpu_platform: what is predicted are times on the other.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np

from jostle.measure import Campaign, MeasureOptions, Workload, measure
from jostle.measure.campaign._campaign import PlannedWindow
from jostle.measure.slots._available import can_run
from jostle.measure.workloads.kernels import KERNEL_FOLDER
from jostle.runs import Dataset, Runs
from studies.collect.sample import export

ALONE, TURNS = "native", "native@cpus=1"
SECONDS = {ALONE: 0.15, TURNS: 0.4}  # of a window: turns of 4 ms should be many in it
WANTED = 5.0  # times the repeats' noise
# (name, kernel, argument, repeats), 10 ms or so each. Working sets: 50 KB (s), 1 MB (m), over 10 MB (l)
# The first ones matter most.
PROGRAMS = (
    ("chase-m", "chase", 1 << 20, 250),
    ("stream-l", "stream", 1 << 24, 240),
    ("stencil-m", "stencil", 250, 80),
    ("nbody-s", "nbody", 128, 96),
    ("chase-s", "chase", 1 << 15, 1100),
    ("copy-l", "copy", 1 << 25, 480),
    ("gemv-m", "gemv", 350, 50),
    ("heat-m", "heat", 40, 80),
    ("chase-l", "chase", 1 << 26, 12),
    ("bfs-m", "bfs", 8192, 36),
    ("radix-m", "radix", 65536, 12),
    ("pagerank-m", "pagerank", 16384, 6),
    ("stencil-l", "stencil", 1024, 4),
    ("sha256-s", "sha256", 16384, 70),
    ("wavelet-m", "wavelet", 1 << 16, 24),
    ("sort-m", "sort", 65536, 1),
    ("stream-s", "stream", 1 << 17, 700),
    ("heat-s", "heat", 16, 1300),
    ("fft-m", "fft", 16384, 12),
    ("gemv-l", "gemv", 2048, 1),
    ("copy-m", "copy", 1 << 19, 1500),
    ("floyd-m", "floyd", 192, 1),
    ("sieve-m", "sieve", 1 << 20, 4),
)


@dataclass(frozen=True)
class EveryPair(Campaign):
    """Each workload alone, and every pair of them, copies too, once in every pass, in random order.

    passes: how often. A workload is alone twice in each.
    """

    passes: int = 1

    def plan(self) -> list[PlannedWindow]:
        """The windows of a pass before those of the next; more passes only add."""
        planned = []
        for turn in range(self.passes):
            windows = [
                PlannedWindow(engine, members, ordinal)
                for engine in self.engine_names
                for members, ordinals in self._sets_of(turn)
                for ordinal in ordinals
                if all(can_run(engine, member) for member in members)
            ]
            random.Random(f"{self.seed}/{turn}").shuffle(windows)
            planned += windows
        return planned

    def _sets_of(self, turn: int) -> list[tuple[tuple[Workload, ...], tuple[int, ...]]]:
        alone = [((member,), (2 * turn, 2 * turn + 1)) for member in self.members]
        pairs = combinations_with_replacement(self.members, 2)
        return [*alone, *((pair, (turn,)) for pair in pairs)]


def workloads(most: int) -> list[Workload]:
    """The first so many of PROGRAMS."""
    return [
        Workload(name, KERNEL_FOLDER / f"{kernel}.wasm", argument, repeats, "", name[-1])
        for name, kernel, argument, repeats in PROGRAMS[:most]
    ]


def record(build: Path, seconds: float, most: int) -> bool:
    """Measure what is still missing in BUILD; whether all of it is there."""
    until, whole = time.monotonic() + seconds, True
    for engine, passes in ((TURNS, 1), (ALONE, 1), (TURNS, 2), (ALONE, 2)):
        campaign = EveryPair(
            workloads=workloads(most),
            engines=[engine],
            window_seconds=SECONDS[engine],
            passes=passes,
        )
        left = max(0.0, until - time.monotonic())
        options = MeasureOptions(time_budget_seconds=left)
        found = measure(campaign, build, options)
        whole = found.finished and whole
        print(
            f"{engine}, {passes} of 2 passes: {found.ok} windows measured, {found.contaminated} "
            f"disturbed, {found.remaining} left, {found.elapsed_seconds:.0f} s",
            file=sys.stderr,
        )
        if not found.finished:
            break
    return whole


def differences(runs: Runs) -> dict[str, dict[str, float]]:
    """{platform: how far slowdowns of two pairs differ, and times of two runs of the same set}, both as means
    of |log ratio|; NaN where nothing was repeated."""
    c, found = runs.colocations, defaultdict(lambda: defaultdict(list))
    for row, seconds in enumerate(np.log(runs.runtime_seconds).tolist()):
        target, platform, beside = c.row(row)
        found[platform][target, beside].append(seconds)
    answer = {}
    for platform, cells in sorted(found.items()):
        slow = [
            np.mean(logs) - np.median(cells[target, ()])
            for (target, beside), logs in cells.items()
            if beside and (target, ()) in cells
        ]
        # Copies of a program are two runs of one window: they show that, not how it repeats.
        again = [
            abs(one - other)
            for (target, beside), logs in cells.items()
            if target not in beside
            for one, other in combinations(logs, 2)
        ]
        apart = float(np.mean(np.abs(np.subtract.outer(slow, slow)))) if slow else float("nan")
        noise = float(np.mean(again)) if again else float("nan")
        answer[platform] = {"sets": len(slow), "pairs_differ": apart, "repeats_differ": noise}
        answer[platform]["ratio"] = apart / noise if noise > 0 else float("nan")
    return answer


def whole_bags(runs: Runs) -> Runs:
    """Without workloads that were not measured alone on both platforms."""
    c = runs.colocations
    alone = defaultdict(set)
    for row in np.flatnonzero(c.number_of_corunners == 0).tolist():
        target, platform, _ = c.row(row)
        alone[platform].add(target)
    known = set.intersection(*alone.values()) if alone else set()
    rows = [c.row(row) for row in range(len(runs))]
    return runs.take(np.array([known.issuperset((one[0], *one[2])) for one in rows], bool))


def ship(build: Path, out: Path) -> int:
    """Say what BUILD holds, and make OUT of it where it shows enough; the exit code."""
    runs = whole_bags(Dataset(build).read().ok())
    found = differences(runs)
    best = max(found, key=lambda name: np.nan_to_num(found[name]["ratio"]), default="")
    document: dict[str, Any] = {"schema": "contention-bags/v1", "differences": found}
    if len(found) != 2 or not found[best]["ratio"] > WANTED:
        print(json.dumps(document, indent=1))
        print(
            f"pairs differ by no more than {WANTED:g} times as much as repeats: no set of bags is made "
            "of this. A quiet machine, or one whose cores share more, may show it.",
            file=sys.stderr,
        )
        return 1
    fresh = out.with_name(out.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    document |= {"predicted": best, "cpu_platform": next(name for name in found if name != best)}
    document |= export(build, fresh)
    text = json.dumps(document, indent=1, default=str)
    (fresh / "contention.json").write_text(text + "\n")
    shutil.rmtree(out, ignore_errors=True)
    fresh.rename(out)
    print(text)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=9.5, help="to record in, at most")
    parser.add_argument("--most", type=int, default=len(PROGRAMS), help="programs, 3 at least")
    parser.add_argument("--export", action="store_true", help="only make OUT of what BUILD holds")
    asked = parser.parse_args(arguments)
    if not 3 <= asked.most <= len(PROGRAMS) or not asked.minutes > 0:
        parser.error(f"3 to {len(PROGRAMS)} programs, and some minutes")
    if not asked.export and not record(asked.build, 60 * asked.minutes, asked.most):
        print("some windows are left: the same again goes on", file=sys.stderr)
    return ship(asked.build, asked.out)


if __name__ == "__main__":
    sys.exit(main())
