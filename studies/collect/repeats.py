"""How far bags of programs differ, and how far repeats of one do: whether a recording shows anything."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np

from jostle.runs import Runs

WANTED = 5.0  # times the repeats' noise


def differences(runs: Runs) -> dict[str, dict[str, float]]:
    """{platform: how far slowdowns of two pairs differ, and times of two runs of the same set}, both as means
    of |log ratio|; NaN where nothing was repeated."""
    c, results = runs.colocations, defaultdict(lambda: defaultdict(list))
    for row, seconds in enumerate(np.log(runs.runtime_seconds).tolist()):
        target, platform, beside = c.row(row)
        results[platform][target, beside].append(seconds)
    answer = {}
    for platform, cells in sorted(results.items()):
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
