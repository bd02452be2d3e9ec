"""Moolchandani et al.: Performance prediction for multi-application concurrency on GPUs (Figures 4 and 5).

One benchmark is left out with every run that it is in, its runs alone being known. The paper's bags were
never published: bags of vision kernels that come with Jostle, on one core of a machine, stand for them, with
two cores in the place of its CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table, percent
from jostle.data import VISION_CPU, vision_bags
from jostle.learn import Ensemble, learn
from jostle.learn.learners.bags import Bag
from jostle.operations import SimpleRule

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs

PART = 3  # every third window is learned from and asked about
BENCHMARK_COLUMNS = ("program", "benchmark", "kernel", "family")
MIX, CPU, FAIRNESS = "mix", "cpu", "fairness"
# {features of its tree: (groups here, error that is printed)}
PRINTED = {
    "mix": ((MIX,), "144.6%"),
    "mix, CPU time": ((MIX, CPU), "57.05%"),
    "mix, CPU time, fairness": ((MIX, CPU, FAIRNESS), "37.7%"),
    "all, time alone among them": ((MIX, CPU, FAIRNESS, "solo"), "9.05%"),
}
RULES = {"time alone": "none", "a constant": "level", "additive effects": "effects"}


def tables(seed: int, progress: Progress) -> list[Table]:
    """Compare the paper's tree on each of its sets of features with rules and the default."""
    runs = vision_bags().ok()
    window = np.unique(runs.window, return_inverse=True)[1].reshape(-1)
    runs = runs.take((window % PART == 0) | (runs.colocations.number_of_corunners == 0))
    methods: dict[str, tuple[Any, str]] = {
        f"tree: {name}": (_tree(groups), printed) for name, (groups, printed) in PRINTED.items()
    }
    methods |= {name: (SimpleRule(rule), "–") for name, rule in RULES.items()}
    methods["default"] = (Ensemble(), "–")
    parts = left_out(runs, VISION_CPU)
    errors: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for number, rows in enumerate(parts.values()):
        progress(number, len(parts), float("nan"))
        train = runs.take(np.setdiff1d(np.arange(len(runs)), rows))
        for name, (method, _) in methods.items():
            seconds = learn(method, train, seed=seed).predict(runs.colocations.take(rows))
            each = np.abs(seconds / runs.runtime_seconds[rows] - 1)
            errors.setdefault(name, []).append((each, bag_errors(runs, rows, seconds)))
    cells = [
        [name, methods[name][1], *(percent(_mean(found, what)) for what in (0, 1))]
        for name, found in errors.items()
    ]
    columns = ["benchmark left out", "printed", "each run", "the bag"]
    return [Table(columns, cells, "Figures 4 and 5: mean relative error")]


def _tree(groups: Sequence[str]) -> Bag:
    return Bag(
        learner="tree", target="runtime", cpu_platform=VISION_CPU, groups=tuple(groups), rules=False
    )


def _mean(found: Sequence[tuple[np.ndarray, ...]], what: int) -> float:
    return float(np.nanmean(np.concatenate([each[what] for each in found])))


def left_out(runs: Runs, cpu_platform: str) -> dict[str, np.ndarray]:
    """Find the rows beside others in which each benchmark runs, but for those of the CPU."""
    c = runs.colocations
    beside = (c.number_of_corunners > 0) & (c.platform != c.platform_names.index(cpu_platform))
    touched = rows_with(c, benchmarks_of(runs))
    return {name: rows[beside[rows]] for name, rows in touched.items() if beside[rows].any()}


def benchmarks_of(runs: Runs) -> dict[str, str]:
    """Return {workload: its benchmark}, by the first of BENCHMARK_COLUMNS that there is."""
    names, table = runs.features_of("workload")
    given: dict[str, object] = {}
    for column in BENCHMARK_COLUMNS:
        if table is not None and column in table.column_names and not given:
            given = dict(zip(names, table.column(column).to_pylist(), strict=True))
    return {name: str(given.get(name) or name) for name in runs.colocations.workload_names}


def rows_with(c: Colocations, groups: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return {benchmark: rows in which one of its workloads runs}."""
    titles = sorted(set(groups.values()))
    code = np.array([titles.index(groups[name]) for name in c.workload_names])
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    out = {}
    for number, title in enumerate(titles):
        inside = code[c.workload] == number
        inside[row[code[c.corunner] == number]] = True
        out[title] = np.flatnonzero(inside)
    return out


def bag_errors(runs: Runs, rows: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return the relative error of the latest end of each window whose members are all in the rows."""
    c = runs.colocations
    window = np.unique(runs.window[rows], return_inverse=True)[1].reshape(-1)
    count = int(window.max(initial=-1)) + 1
    members: list[set[int]] = [set() for _ in range(count)]
    needed: list[set[int]] = [set() for _ in range(count)]
    for at, row in zip(window.tolist(), rows.tolist(), strict=True):
        start, stop = c.corunner_offsets[row], c.corunner_offsets[row + 1]
        members[at].add(int(c.workload[row]))
        needed[at] |= {int(c.workload[row]), *(int(code) for code in c.corunner[start:stop])}
    whole = np.array([a == b for a, b in zip(members, needed, strict=True)], bool)
    ends, guess = np.zeros(count), np.zeros(count)
    np.maximum.at(ends, window, runs.runtime_seconds[rows])
    np.maximum.at(guess, window, seconds)
    return np.abs(guess[whole] / ends[whole] - 1)
