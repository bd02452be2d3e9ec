"""What is left out in the tests on bags: one benchmark with every run it is in, pairs, or a fifth of the runs
whatever they are of (80/20), which shows what is learned by heart: a bag's repeats are on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import NotEnoughRuns, UnknownName

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs

TESTS = ("application", "pair", "fifth")
BENCHMARK_COLUMNS = ("program", "benchmark", "kernel", "family")


@dataclass(frozen=True)
class BagTests:
    """cpu_platform: that whose runs are features only. benchmark: the workload feature by which workloads are
    left out together; None takes the first of BENCHMARK_COLUMNS there is, or else every workload by itself.
    target: what the trees learn. folds: parts that the pairs are cut into, anew for each of the seeds."""

    cpu_platform: str | None = None
    benchmark: str | None = None
    target: str = "extra"
    folds: int = 6
    seeds: Sequence[int] = range(5)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """rows: left out of one fit. test: one of TESTS. title: the benchmark, or the fold."""

    test: str
    title: str
    seed: int
    rows: np.ndarray


def rows_asked(runs: Runs, cpu_platform: str | None) -> np.ndarray:
    """Rows with co-runners, but for those on the platform that only gives features."""
    c = runs.colocations
    beside = c.number_of_corunners > 0
    if cpu_platform is not None:
        beside &= c.platform != c.platform_names.index(cpu_platform)
    return np.flatnonzero(beside)


def without(runs: Runs, rows: np.ndarray) -> Runs:
    """All other runs."""
    return runs.take(np.setdiff1d(np.arange(len(runs)), rows))


def held_out(runs: Runs, tests: BagTests) -> list[LeftOut]:
    """Every part of all tests: each benchmark once, each fold of the pairs and a fifth of the runs once a
    seed.

    Raises NotEnoughRuns, UnknownName.
    """
    asked = rows_asked(runs, tests.cpu_platform)
    touched = rows_with(runs.colocations, benchmarks_of(runs, tests.benchmark))
    if len(touched) < 3 or len(asked) < tests.folds:
        raise NotEnoughRuns(f"{len(touched)} benchmarks and {len(asked)} runs beside are too few")
    parts = [
        LeftOut("application", name, tests.seeds[0], np.intersect1d(rows, asked))
        for name, rows in touched.items()
    ]
    unit = np.unique(runs.units("together")[asked], return_inverse=True)[1].reshape(-1)
    for seed in tests.seeds:
        place = np.random.default_rng(seed).permutation(unit.max() + 1) % tests.folds
        parts += [
            LeftOut("pair", str(fold), seed, asked[place[unit] == fold])
            for fold in range(tests.folds)
        ]
        fifth = np.random.default_rng([seed, 5]).permutation(len(asked))[: max(1, len(asked) // 5)]
        parts.append(LeftOut("fifth", "80/20", seed, np.sort(asked[fifth])))
    return [part for part in parts if len(part.rows)]


def benchmarks_of(runs: Runs, column: str | None) -> dict[str, str]:
    """{workload: its benchmark}. column: what says so; by default the first of BENCHMARK_COLUMNS that there
    is, and a command line is one by itself: its `kernel` is the interpreter."""
    names, table = runs.features_of("workload")
    present = [] if table is None else table.column_names
    if column is not None and column not in present:
        raise UnknownName("workload feature", column, present)
    chosen = column or next((name for name in BENCHMARK_COLUMNS if name in present), None)
    if chosen is None or table is None:
        return {name: name for name in runs.colocations.workload_names}
    given = dict(zip(names, table.column(chosen).to_pylist(), strict=True))
    if column is None and "kind" in present:
        kinds = zip(names, table.column("kind").to_pylist(), strict=True)
        given |= {name: name for name, kind in kinds if kind in ("command", "service")}
    return {name: str(given.get(name) or name) for name in runs.colocations.workload_names}


def rows_with(c: Colocations, groups: dict[str, str]) -> dict[str, np.ndarray]:
    """{benchmark: rows in which one of its workloads runs}."""
    titles = sorted(set(groups.values()))
    code = np.array([titles.index(groups[name]) for name in c.workload_names])
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    out = {}
    for number, title in enumerate(titles):
        inside = code[c.workload] == number
        inside[row[code[c.corunner] == number]] = True
        out[title] = np.flatnonzero(inside)
    return out
