"""What is left of a disturbance where members share cores: random sets beside foreign loads.

    python benchmarks/never_quiet_sets.py [--seconds 240] [--members 3,4] [--loads 2,4,8] [--seed 0]

The programs of never_quiet.py in sets, each measured three times: beside foreign shells that do nothing but
compute, and before and after that without them and outranking everybody else (niceness -20, which takes
root). These two are the quiet time: members wait for each other there, and for nobody else. Where others took
over a fifth of it all the same, the set does not count. A set is measured once, so that of a slow program
there is one execution; what the medians show is whether estimates lean to one side.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from never_quiet import load, meanwhile, programs

from jostle.measure import Campaign, Workload, measure
from jostle.measure.slots._slots import descendants
from jostle.runs import Dataset

MOST_LOST = 0.2  # of a quiet time


def outranking(over: threading.Event) -> None:
    """Until it is over, all that this process starts comes before everybody else."""
    lifted = set[int]()
    while not over.wait(0.01):
        for pid in set(descendants(os.getpid())) - lifted:
            with suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, pid, -20)
                lifted.add(pid)


def measured(workloads: list[Workload], names: list[str], folder: Path) -> list[dict[str, Any]]:
    """The rows of one window of this set."""
    campaign = Campaign(
        workloads=[one for one in workloads if one.name in names],
        engines=["native"],
        solo_repeats=0,
        sets=0,
        device="here",
        chosen=[("native", names)],
    )
    path = folder / f"{time.monotonic_ns()}"
    measure(campaign, path)
    return Dataset(path).read().ok().table.sort_by("workload").to_pylist()


def main() -> None:
    """Print the table: medians of the ratios to the quiet time, and how far they are from 1 in the mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--members", default="3,4")
    parser.add_argument("--loads", default="2,4,8")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, until = random.Random(given.seed), time.monotonic() + given.seconds
    sizes, loads = (list(map(int, text.split(","))) for text in (given.members, given.loads))
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="jostle-never-quiet-") as place:
        folder = Path(place)
        workloads = programs(folder)
        names = [one.name for one in workloads]
        while time.monotonic() < until:
            members, count = sorted(draw.choices(names, k=draw.choice(sizes))), draw.choice(loads)
            with meanwhile(outranking):
                before = measured(workloads, members, folder)
            with load(count):
                loaded = measured(workloads, members, folder)
            with meanwhile(outranking):
                after = measured(workloads, members, folder)
            lost = [row["disturbance_ratio"] or 0.0 for row in (*before, *after)]
            if not len(before) == len(loaded) == len(after) or max(lost) > MOST_LOST:
                continue
            for one, row, two in zip(before, loaded, after, strict=True):
                quiet = (one["raw_runtime_seconds"] + two["raw_runtime_seconds"]) / 2
                ratios = row["raw_runtime_seconds"] / quiet, row["runtime_seconds"] / quiet
                found[row["workload"]].append(ratios)
                found[f"all, load {count}"].append(ratios)
                found["all"].append(ratios)
    print("| what | runs | raw / quiet | corrected / quiet | mean distance from 1 |")
    print("|---|---|---|---|---|")
    for name, ratios in sorted(found.items()):
        raw, clean = np.array(ratios).T
        print(
            f"| {name} | {len(ratios)} | {np.median(raw):.2f} | {np.median(clean):.2f} "
            f"| {np.abs(clean - 1).mean():.2f} |"
        )


if __name__ == "__main__":
    main()
