"""The protocol of Moolchandani et al. on bags: one benchmark is left out with every run it is in (their
Fig. 4), its runs alone being known, by every feature group (their Fig. 5-9); and pairs are left out, both
sides and all repeats together. Each reports the mean relative error of every run and of the bag, whose time
is that of its last member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle.data import solo_medians
from jostle.errors import NotEnoughRuns
from jostle.learn import learn
from studies.bag.methods import bag_methods
from studies.cells import Runner, file_name
from studies.fields import picked

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.data import Colocations, Runs

TESTS = ("application", "pair")
BENCHMARK_COLUMNS = ("program", "benchmark", "kernel", "family")


@dataclass(frozen=True)
class BagsEvaluation:
    """metrics: by name, for TEST `application` or `pair`: `relative_error_mean_TEST_METHOD_ratio`,
    `relative_error_mean_bag_TEST_METHOD_ratio`, `extra_time_r2_TEST_METHOD` (share of the variance of the
    time beside others minus the time alone that is explained), `log_slowdown_r2_TEST_METHOD` (of the
    logarithm of their ratio). methods: their names in order. errors: {method: {benchmark: mean relative
    error}}."""

    metrics: dict[str, float]
    methods: tuple[str, ...]
    errors: dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """rows: left out of one fit. test: one of TESTS. title: the benchmark, or the fold."""

    test: str
    title: str
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class BagCell:
    """One method fitted without a part, and asked about it. data: version of the dataset."""

    name: str
    method: Any
    part: LeftOut
    seed: int
    data: str

    @property
    def file_name(self) -> str:
        parts = (self.data, self.method, self.part.rows.tolist(), self.seed)
        return file_name(f"bag-{self.part.test}-{self.name}-{self.seed}", parts)

    def measure(self, data: Runs) -> pa.Table:
        """Seconds that the method answers for the rows."""
        import pyarrow as pa

        rows = self.part.rows
        train = data.take(np.setdiff1d(np.arange(len(data)), rows))
        fitted = learn(self.method, train, seed=self.seed)
        return pa.table({"seconds": fitted.predict(data.colocations.take(rows))})


def evaluate_bags(
    runs: Runs,
    cpu_platform: str | None = None,
    target: str = "extra",
    *,
    folds: int = 6,
    seed: int = 0,
    methods: Sequence[str] | None = None,
    runner: Runner | None = None,
    progress: Progress = no_progress,
) -> BagsEvaluation:
    """Make both tests for every method of bag_methods, or those named in `methods`.

    cpu_platform: that whose runs are features only. target: what the trees learn. folds: parts that the pairs
    are cut into. Raises NotEnoughRuns, UnknownName.
    """
    runs, runner = runs.ok(), runner or Runner()
    chosen = picked(bag_methods(runs, target, cpu_platform), methods)
    parts = held_out(runs, cpu_platform, folds, seed)
    cells = [
        BagCell(name, method, part, seed, runner.data)
        for name, method in chosen.items()
        for part in parts
    ]
    results = runner.run(cells, lambda: runs, progress)
    answers: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    errors: dict[str, dict[str, float]] = {name: {} for name in chosen}
    for cell, result in zip(cells, results, strict=True):
        rows, seconds = cell.part.rows, result.column("seconds").to_numpy()
        answers.setdefault((cell.part.test, cell.name), []).append((rows, seconds))
        if cell.part.test == "application":
            error = np.abs(seconds / runs.runtime_seconds[rows] - 1)
            errors[cell.name][cell.part.title] = float(np.nanmean(error))
    metrics = {
        key.format(f"{test}_{name}"): value
        for (test, name), found in answers.items()
        for key, value in scores(runs, found).items()
    }
    return BagsEvaluation(metrics, tuple(chosen), errors)


def held_out(runs: Runs, cpu_platform: str | None, folds: int, seed: int) -> list[LeftOut]:
    """Every part of both tests: each benchmark once, each fold of the pairs once. Raises NotEnoughRuns."""
    c = runs.colocations
    beside = c.number_of_corunners > 0
    if cpu_platform is not None:
        beside &= c.platform != c.platform_names.index(cpu_platform)
    asked = np.flatnonzero(beside)
    touched = rows_with(c, benchmarks_of(runs))
    if len(touched) < 3 or len(asked) < folds:
        raise NotEnoughRuns(f"{len(touched)} benchmarks and {len(asked)} runs beside are too few")
    parts = [
        LeftOut("application", name, np.intersect1d(rows, asked)) for name, rows in touched.items()
    ]
    unit = np.unique(runs.units("together")[asked], return_inverse=True)[1].reshape(-1)
    place = np.random.default_rng(seed).permutation(unit.max() + 1) % folds
    parts += [LeftOut("pair", str(fold), asked[place[unit] == fold]) for fold in range(folds)]
    return [part for part in parts if len(part.rows)]


def benchmarks_of(runs: Runs) -> dict[str, str]:
    """{workload: its benchmark}, by the first of BENCHMARK_COLUMNS that there is; a command line is one by
    itself: its `kernel` is the interpreter."""
    names, table = runs.features_of("workload")
    present = [] if table is None else table.column_names
    chosen = next((name for name in BENCHMARK_COLUMNS if name in present), None)
    if chosen is None or table is None:
        return {name: name for name in runs.colocations.workload_names}
    given = dict(zip(names, table.column(chosen).to_pylist(), strict=True))
    if "kind" in present:
        kinds = zip(names, table.column("kind").to_pylist(), strict=True)
        given |= {name: name for name, kind in kinds if kind in ("command", "service")}
    return {name: str(given.get(name) or name) for name in runs.colocations.workload_names}


def rows_with(c: Colocations, groups: Mapping[str, str]) -> dict[str, np.ndarray]:
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


def scores(runs: Runs, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Measures by their names, with `{}` for test and method. answers: rows and seconds of each fit."""
    held = np.concatenate([rows for rows, _ in answers])
    guess = np.concatenate([seconds for _, seconds in answers])
    actual = runs.runtime_seconds[held]
    results = {"relative_error_mean_{}_ratio": float(np.nanmean(np.abs(guess / actual - 1)))}
    c = runs.colocations
    solo = np.exp(solo_medians(runs, c.workload_names, c.platform_names))
    extra = actual - solo[c.platform[held], c.workload[held]]
    usable = np.isfinite(extra) & np.isfinite(guess)
    spread = float(((extra - extra[usable].mean())[usable] ** 2).sum())
    if spread > 0:
        left = float(((guess - actual)[usable] ** 2).sum())
        results["extra_time_r2_{}"] = 1 - left / spread
        log_slowdown = np.log(actual / (actual - extra))[usable]
        varies = float(log_slowdown.var() * usable.sum())
        left = float((np.log(guess / actual)[usable] ** 2).sum())
        results["log_slowdown_r2_{}"] = 1 - left / varies if varies > 0 else float("nan")
    whole = np.concatenate([bag_errors(runs, rows, seconds) for rows, seconds in answers])
    if len(whole):
        results["relative_error_mean_bag_{}_ratio"] = float(np.nanmean(whole))
    return results


def bag_errors(runs: Runs, rows: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Relative error of the latest end of every window whose members were all measured and asked for."""
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
