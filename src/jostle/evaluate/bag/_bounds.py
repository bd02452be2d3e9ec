"""Coverage of bounds in the tests of bags: calibrated on pairs, or on benchmarks, that were left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import Calibration, coverage
from jostle.methods import learn

if TYPE_CHECKING:
    from jostle.runs import Runs

CONFIDENCE = 0.9
BOUNDED = (
    "solo_constant",
    "twice_solo",
    "bag",
)  # whose coverage is measured with a benchmark left out


def pair_coverage(
    runs: Runs,
    methods: dict[str, Any],
    known: np.ndarray,
    asked: np.ndarray,
    seeds: Sequence[int],
) -> dict[str, float]:
    """Coverage on pairs held out, calibrated on other pairs; every pair weighs the same."""
    from jostle.models import fit
    from jostle.runs import split_rows

    found: dict[str, list[float]] = {}
    variance: dict[str, list[float]] = {}
    for seed in seeds:
        some = runs.take(asked)
        parts = split_rows(some, [0.5, 0.05, 0.25, 0.2], seed, by="together")
        train, watched, held, test = (asked[part] for part in parts)
        for name in (name for name in (*BOUNDED, "slowdown") if name in methods):
            model = fit(
                runs.take(np.union1d(known, train)),
                methods[name],
                seed=seed,
                validation=runs.take(watched),
                calibration=runs.take(held),
                calibrate_by="together",
            )
            tested = runs.take(test)
            under = tested.runtime_seconds <= model.bound(tested.colocations, CONFIDENCE).seconds
            unit = np.unique(tested.units("together"), return_inverse=True)[1].reshape(-1)
            by_set = np.bincount(unit, under) / np.bincount(unit)
            found.setdefault(name, []).append(float(by_set.mean()))
            sets = len(np.unique(runs.units("together")[held]))
            variance.setdefault(name, []).append(
                float(by_set.var() / len(by_set)) + CONFIDENCE * (1 - CONFIDENCE) / (sets + 2)
            )
    out = {}
    for name, values in found.items():
        out[f"coverage_90_pair_{name}_ratio"] = float(np.mean(values))
        error = np.sqrt(np.mean(variance[name]) / len(values))
        out[f"coverage_90_standard_error_pair_{name}_ratio"] = float(error)
    return out


def application_coverage(
    runs: Runs,
    methods: dict[str, Any],
    known: np.ndarray,
    asked: np.ndarray,
    held: dict[str, np.ndarray],
    seed: int,
) -> dict[str, float]:
    """Coverage on a benchmark held out. Runs with other benchmarks are not like those with an unknown one, so
    each of the others is left out in turn as well, and its runs, answered without it, calibrate; a
    benchmark is one unit: of n benchmarks n - 1 calibrate, and a bound at confidence c needs n (1 - c) of at
    least 1. Models that miss the same two serve both."""
    names = list(held)
    confidence = next((c for c in (CONFIDENCE, 0.8) if len(names) * (1 - c) >= 1 - 1e-9), None)
    if confidence is None:  # too few to calibrate any such bound on
        return {}
    out = {}
    for method_name in (name for name in BOUNDED if name in methods):
        answers: dict[tuple[str, str], np.ndarray] = {}
        for one, other in combinations(names, 2):
            rows = np.union1d(held[one], held[other])
            train = runs.take(np.union1d(known, np.setdiff1d(asked, rows)))
            fitted = learn(methods[method_name], train, seed=seed)
            for test, left in ((one, other), (other, one)):
                # What calibrates the test benchmark: runs with the other, and not with it.
                mine = np.setdiff1d(held[left], held[test])
                answers[test, left] = fitted.predict(runs.colocations.take(mine))
        shares = []
        for test in names:
            parts = [(left, np.setdiff1d(held[left], held[test])) for left in names if left != test]
            rows = np.concatenate([rows for _, rows in parts])
            titles = np.concatenate([np.full(len(rows), left) for left, rows in parts])
            guesses = np.concatenate([answers[test, left] for left, _ in parts])
            own = _renamed(runs.take(rows), titles)
            train = runs.take(np.union1d(known, np.setdiff1d(asked, held[test])))
            fitted = learn(methods[method_name], train, seed=seed)
            tested = runs.take(held[test])
            kept = _Answers({id(own.colocations): guesses}, fitted)
            calibration = Calibration.fit(kept, own, own, by="window")
            bound = calibration.bound(kept, tested.colocations, confidence).seconds
            shares.append(coverage(bound, tested.runtime_seconds))
        what = f"coverage_{round(100 * confidence)}"
        out[f"{what}_application_{method_name}_ratio"] = float(np.mean(shares))
        error = float(np.std(shares, ddof=1) / np.sqrt(len(shares)))
        out[f"{what}_standard_error_application_{method_name}_ratio"] = error
    return out


class _Answers:
    """A predictor whose answers to some co-locations are given, by the identity of the question."""

    def __init__(self, given: dict[int, np.ndarray], otherwise: Any) -> None:
        self.given, self.otherwise = given, otherwise

    def predict(self, colocations: Any) -> np.ndarray:
        found = self.given.get(id(colocations))
        return self.otherwise.predict(colocations) if found is None else found


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
