"""Coverage of bounds in the tests of bags: calibrated on pairs, or on benchmarks, that were left out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import Calibration, coverage
from jostle.methods import learn
from studies.bag.held_out import without
from studies.cells import file_name, metrics_table

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.runs import Runs

CONFIDENCE = 0.9
BOUNDED = (
    "solo_constant",
    "twice_solo",
    "bag",
)  # whose coverage is measured with a benchmark left out


def coverage_of_sets(
    test: Runs, bound: np.ndarray, confidence: float, calibrated_sets: int
) -> tuple[float, float]:
    """(coverage in which every set of workloads weighs the same, its variance).

    calibrated_sets: how many the bound was calibrated on, since few of them make it vary, too.
    """
    under = (test.runtime_seconds <= bound).astype(float)
    unit = np.unique(test.units("together"), return_inverse=True)[1].reshape(-1)
    by_set = np.bincount(unit, under) / np.bincount(unit)
    variance = float(by_set.var() / len(by_set))
    return float(by_set.mean()), variance + confidence * (1 - confidence) / (calibrated_sets + 2)


@dataclass(frozen=True, eq=False)
class PairCoverage:
    """Coverage of one method on pairs held out, calibrated on other pairs; every pair weighs the same.
    asked: rows beside others. data: version of the dataset."""

    name: str
    method: Any
    asked: np.ndarray
    seed: int
    data: str

    @property
    def file_name(self) -> str:
        parts = (self.data, self.method, self.asked.tolist(), self.seed)
        return file_name(f"bag-coverage-pair-{self.name}-{self.seed}", parts)

    def measure(self, data: Runs) -> pa.Table:
        from jostle.models import fit
        from jostle.runs import split_rows

        shares = [0.5, 0.05, 0.25, 0.2]
        parts = split_rows(data.take(self.asked), shares, self.seed, by="together")
        _, watched, held, test = (self.asked[part] for part in parts)
        model = fit(
            without(data, np.concatenate([watched, held, test])),
            self.method,
            seed=self.seed,
            validation=data.take(watched),
            calibration=data.take(held),
            calibrate_by="together",
        )
        tested = data.take(test)
        bound = model.bound(tested.colocations, CONFIDENCE).seconds
        sets = len(np.unique(data.units("together")[held]))
        covered, variance = coverage_of_sets(tested, bound, CONFIDENCE, sets)
        return metrics_table({"coverage": covered, "variance": variance})


@dataclass(frozen=True, eq=False)
class ApplicationCoverage:
    """Coverage of one method on benchmarks held out. held: the rows of each. data: version of the dataset."""

    name: str
    method: Any
    held: dict[str, np.ndarray]
    seed: int
    data: str

    @property
    def file_name(self) -> str:
        held = {title: rows.tolist() for title, rows in self.held.items()}
        parts = (self.data, self.method, held, self.seed)
        return file_name(f"bag-coverage-application-{self.name}", parts)

    def measure(self, data: Runs) -> pa.Table:
        return metrics_table(
            application_coverage(data, self.name, self.method, self.held, self.seed)
        )


def pair_metrics(results: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """By documented name, from what PairCoverage measured of each method for each seed."""
    out = {}
    for name, draws in results.items():
        variance = np.mean([draw["variance"] for draw in draws])
        out[f"coverage_90_pair_{name}_ratio"] = float(np.mean([d["coverage"] for d in draws]))
        error = float(np.sqrt(variance / len(draws)))
        out[f"coverage_90_standard_error_pair_{name}_ratio"] = error
    return out


def application_coverage(
    runs: Runs, name: str, method: Any, held: dict[str, np.ndarray], seed: int
) -> dict[str, float]:
    """Coverage on a benchmark held out. Runs with other benchmarks are not like those with an unknown one, so
    each of the others is left out in turn as well, and its runs, answered without it, calibrate; a
    benchmark is one unit: of n benchmarks n - 1 calibrate, and a bound at confidence c needs n (1 - c) of at
    least 1. Models that miss the same two serve both. Nothing where there are too few for any such bound."""
    confidence = next((c for c in (CONFIDENCE, 0.8) if len(held) * (1 - c) >= 1 - 1e-9), None)
    if confidence is None:
        return {}

    def fitted_without(rows: np.ndarray) -> Any:
        train = without(runs, rows)
        return learn(method, train, seed=seed)

    answers: dict[tuple[str, str], np.ndarray] = {}
    for one, other in combinations(held, 2):
        fitted = fitted_without(np.union1d(held[one], held[other]))
        for test, left in ((one, other), (other, one)):
            # What calibrates the test benchmark: runs with the other, and not with it.
            mine = np.setdiff1d(held[left], held[test])
            answers[test, left] = fitted.predict(runs.colocations.take(mine))
    shares = []
    for test in held:
        parts = {left: np.setdiff1d(held[left], held[test]) for left in held if left != test}
        titles = np.concatenate([np.full(len(rows), left) for left, rows in parts.items()])
        own = _renamed(runs.take(np.concatenate(list(parts.values()))), titles)
        guesses = np.concatenate([answers[test, left] for left in parts])
        known = _WithGivenAnswers(own.colocations, guesses, fitted_without(held[test]))
        calibration = Calibration.fit(known, own, own, by="window")
        tested = runs.take(held[test])
        bound = calibration.bound(known, tested.colocations, confidence).seconds
        shares.append(coverage(bound, tested.runtime_seconds))
    what = f"coverage_{round(100 * confidence)}"
    error = float(np.std(shares, ddof=1) / np.sqrt(len(shares)))
    return {
        f"{what}_application_{name}_ratio": float(np.mean(shares)),
        f"{what}_standard_error_application_{name}_ratio": error,
    }


@dataclass(frozen=True, eq=False)
class _WithGivenAnswers:
    """A predictor whose answers to one query are given; the query is known by its identity."""

    query: Any
    seconds: np.ndarray
    otherwise: Any

    def predict(self, colocations: Any) -> np.ndarray:
        given = colocations is self.query
        return self.seconds if given else self.otherwise.predict(colocations)


def _renamed(runs: Runs, windows: np.ndarray) -> Runs:
    """The runs as if those with the same title had been measured together; run_ids are made anew."""
    import pyarrow as pa

    from jostle.runs import Runs

    table = runs.table
    for name, values in (
        ("window_id", windows.tolist()),
        ("run_id", [str(number) for number in range(len(runs))]),
    ):
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))
    return Runs(table, runs.workload_features, runs.platform_features, checked=True)
