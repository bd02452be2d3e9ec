"""The protocol of Moolchandani et al. on bags, and the tests that small public data allow beside it.

Three tests: one benchmark is left out with every run it is in (their Fig. 4), its runs alone being known;
pairs are left out, both sides and all repeats together; and a fifth of the runs is (80/20). Each reports the
mean relative error of every run and of the bag, whose time is that of its last member. Feature groups are
left out and taken alone (their Fig. 5-9), and the questions on the way to every answer are counted (Fig.
10-12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bag import Bag
from jostle.errors import MissingExtra
from jostle.methods import learn
from jostle.progress import Progress, no_progress
from jostle.runs import solo_medians
from studies.bag.bounds import BOUNDED, ApplicationCoverage, PairCoverage, pair_metrics
from studies.bag.held_out import BagTests, LeftOut, held_out, rows_asked, without
from studies.bag.methods import bag_methods
from studies.bag.paper_features import paper_features
from studies.bag.scores import scores
from studies.cells import Runner, file_name, metrics_in
from studies.fields import picked

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.runs import Runs

COUNTED = "tree"  # whose questions are counted
USES = "uses of "


@dataclass
class BagsEvaluation:
    """metrics: by documented name. methods: their names in order. features: of the tree; uses: (test runs,
    features) its questions, one row per run, each from the tree that had not seen the run's benchmark;
    tested: what each row of `uses` is. errors: {method: {benchmark: mean relative error}}. copies:
    {platform: {workload: {number of copies: mean slowdown}}}, of bags of one program. cpu: the platform of
    the CPU side. paper_features: their Table IV, as it is here."""

    metrics: dict[str, float]
    methods: tuple[str, ...]
    features: tuple[str, ...]
    uses: np.ndarray
    tested: tuple[str, ...]
    errors: dict[str, dict[str, float]]
    notes: list[str] = field(default_factory=list)
    copies: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)
    cpu: str | None = None
    paper_features: list[dict[str, Any]] = field(default_factory=list)

    def uses_table(self) -> list[tuple[str, float, float]]:
        """(feature, share of answers it is asked for, mean number of times), most asked first."""
        if not len(self.uses):
            return []
        share, times = (self.uses > 0).mean(0), self.uses.mean(0)
        order = np.lexsort((-times, -share))
        return [(self.features[at], float(share[at]), float(times[at])) for at in order]

    def uses_document(self) -> list[dict[str, Any]]:
        """The same for JSON."""
        return [
            {"feature": name, "answers_ratio": share, "uses_mean": times}
            for name, share, times in self.uses_table()
        ]


@dataclass(frozen=True, eq=False)
class BagCell:
    """One method fitted without a part, and asked about it. data: version of the dataset."""

    name: str
    method: Any
    part: LeftOut
    data: str

    @property
    def file_name(self) -> str:
        part = self.part
        parts = (self.data, self.method, self.counts_uses, part.rows.tolist(), part.seed)
        return file_name(f"bag-{part.test}-{self.name}-{part.seed}", parts)

    @property
    def counts_uses(self) -> bool:
        return self.part.test == "application" and self.name == COUNTED

    def measure(self, data: Runs) -> pa.Table:
        """Rows and seconds, and how often the tree asks about each feature where that is counted."""
        import pyarrow as pa

        rows = self.part.rows
        train = without(data, rows)
        fitted = learn(self.method, train, seed=self.part.seed)
        asked = data.colocations.take(rows)
        columns = {"row": rows, "seconds": fitted.predict(asked)}
        if self.counts_uses:
            counted = fitted.path_uses(asked)
            for name, column in zip(fitted.feature_names, counted.T, strict=True):
                columns[USES + name] = column
        return pa.table(columns)


def evaluate_bags(
    runs: Runs,
    tests: BagTests | None = None,
    *,
    bounds: bool = True,
    methods: Sequence[str] | None = None,
    runner: Runner | None = None,
    progress: Progress = no_progress,
) -> BagsEvaluation:
    """All tests for every method of bag_methods, or those named in `methods`.

    bounds: whether coverage is measured, too. Metrics, for TEST `application`, `pair` or `fifth`:
    `relative_error_mean_TEST_METHOD_ratio`, `relative_error_mean_bag_TEST_METHOD_ratio`,
    `extra_time_r2_TEST_METHOD` (share of the variance of the time beside others minus the time alone that is
    explained), `log_slowdown_r2_TEST_METHOD` (of the logarithm of their ratio), and for some methods
    `coverage_90_TEST_METHOD_ratio` with its standard error; coverage_80 where a benchmark held out leaves
    fewer than the nine others that a bound at 90% needs.
    Raises NotEnoughRuns, UnknownName.
    """
    runs, tests = runs.ok(), tests or BagTests()
    known = bag_methods(runs, tests.target, tests.cpu_platform)
    chosen = picked(known, methods)
    parts = held_out(runs, tests)
    asked = rows_asked(runs, tests.cpu_platform)
    runner = replace(runner or Runner(), tolerated=(MissingExtra,))
    cells: list[Any] = [
        BagCell(name, method, part, runner.data)
        for name, method in chosen.items()
        for part in parts
    ]
    if bounds:
        held = {part.title: part.rows for part in parts if part.test == "application"}
        cells += [
            ApplicationCoverage(name, chosen[name], held, tests.seeds[0], runner.data)
            for name in BOUNDED
            if name in chosen
        ]
        cells += [
            PairCoverage(name, chosen[name], asked, seed, runner.data)
            for name in (*BOUNDED, "slowdown")
            for seed in tests.seeds
            if name in chosen
        ]
    results = runner.run(cells, lambda: runs, progress)
    missing = {
        cell.name: f"{cell.name}: {result}"
        for cell, result in zip(cells, results, strict=True)
        if isinstance(result, MissingExtra)
    }
    measured = [
        (cell, result)
        for cell, result in zip(cells, results, strict=True)
        if cell.name not in missing
    ]
    metrics = {"seeds": float(len(tests.seeds)), "runs": float(len(asked))}
    answers = [(cell, outcomes) for cell, outcomes in measured if isinstance(cell, BagCell)]
    metrics |= _error_metrics(runs, answers)
    metrics |= _coverage_metrics(measured)
    features, uses, tested = _uses(runs, answers)
    errors = _errors_by_benchmark(runs, answers)
    names = tuple(name for name in chosen if name not in missing)
    notes = list(missing.values())
    outcomes = BagsEvaluation(metrics, names, features, uses, tested, errors, notes)
    described = learn(Bag(learner="tree", depth=1, cpu_platform=tests.cpu_platform), runs)
    return replace(
        outcomes,
        copies=_copies(runs),
        cpu=tests.cpu_platform,
        paper_features=paper_features(described),
    )


def _copies(runs: Runs) -> dict[str, dict[str, dict[int, float]]]:
    """Of bags of copies alone (the paper's Fig. 1 and 2)."""
    c = runs.colocations
    names = c.workload_names, c.platform_names
    log_solo = solo_medians(runs, *names)
    results: dict[str, dict[str, dict[int, list[float]]]] = {}
    for row in np.flatnonzero(c.number_of_corunners > 0).tolist():
        target, platform, others = c.row(row)
        solo = np.exp(log_solo[c.platform[row], c.workload[row]])
        if set(others) != {target} or not np.isfinite(solo):
            continue
        here = results.setdefault(platform, {}).setdefault(target, {})
        here.setdefault(1 + len(others), []).append(float(runs.runtime_seconds[row] / solo))
    return {
        platform: {
            name: {1: 1.0} | {k: float(np.mean(values)) for k, values in sorted(by.items())}
            for name, by in sorted(here.items())
        }
        for platform, here in sorted(results.items())
    }


def _seconds(results: pa.Table) -> np.ndarray:
    return results.column("seconds").to_numpy()


def _error_metrics(runs: Runs, answers: list[tuple[BagCell, pa.Table]]) -> dict[str, float]:
    """Means over the draws of a test."""
    draws: dict[tuple[str, str], dict[int, list[tuple[np.ndarray, np.ndarray]]]] = {}
    for cell, results in answers:
        part = cell.part
        by_seed = draws.setdefault((part.test, cell.name), {})
        by_seed.setdefault(part.seed, []).append((part.rows, _seconds(results)))
    metrics = {}
    for (test, name), by_seed in draws.items():
        each: dict[str, list[float]] = {}
        for fits in by_seed.values():
            for key, value in scores(runs, fits).items():
                each.setdefault(key, []).append(value)
        metrics |= {k.format(f"{test}_{name}"): float(np.mean(v)) for k, v in each.items()}
    return metrics


def _errors_by_benchmark(
    runs: Runs, answers: list[tuple[BagCell, pa.Table]]
) -> dict[str, dict[str, float]]:
    errors: dict[str, dict[str, float]] = {}
    for cell, results in answers:
        if cell.part.test == "application":
            error = np.abs(_seconds(results) / runs.runtime_seconds[cell.part.rows] - 1)
            errors.setdefault(cell.name, {})[cell.part.title] = float(np.nanmean(error))
    return errors


def _coverage_metrics(measured: Sequence[tuple[Any, pa.Table]]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    pairs: dict[str, list[dict[str, float]]] = {}
    for cell, results in measured:
        if isinstance(cell, ApplicationCoverage):
            metrics |= metrics_in(results)
        elif isinstance(cell, PairCoverage):
            pairs.setdefault(cell.name, []).append(metrics_in(results))
    return metrics | pair_metrics(pairs)


def _uses(
    runs: Runs, answers: list[tuple[BagCell, pa.Table]]
) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """(features, uses (n, features), what each row is), over the trees that left one benchmark out."""
    counted = [results for cell, results in answers if cell.counts_uses]
    names = (name for results in counted for name in results.column_names if name.startswith(USES))
    columns = tuple(dict.fromkeys(names))
    tested = []
    for row in (row for results in counted for row in results.column("row").to_pylist()):
        target, _, others = runs.colocations.row(row)
        tested.append(f"{target} beside {' + '.join(others)}")
    uses = np.zeros((len(tested), len(columns)), np.int64)
    start = 0
    for results in counted:
        stop = start + len(results)
        for place, name in enumerate(columns):
            if name in results.column_names:
                uses[start:stop, place] = results.column(name).to_numpy()
        start = stop
    return tuple(name.removeprefix(USES) for name in columns), uses, tuple(tested)
