"""Coverage by group is counted right, and every test run is in one group of each kind."""

from __future__ import annotations

import numpy as np

from jostle.runs import Runs
from studies.factorization.coverage import COVERAGE_KINDS, Covered, coverage_by_group


def made(n: int = 240) -> tuple[Runs, dict[float, np.ndarray]]:
    random = np.random.default_rng(0)
    w, p = random.integers(0, 23, n), random.integers(0, 5, n)
    runs = Runs.from_columns(
        workload=[f"w{i:02d}" for i in w],
        platform=[f"p{i}" for i in p],
        corunners=[["w00"] * int(k) for k in random.integers(0, 3, n)],
        runtime_seconds=np.exp(random.normal(size=n) + w),
    )
    seconds = runs.runtime_seconds * np.where(random.random(n) < 0.85, 1.2, 0.9)
    return runs, {0.9: seconds, 0.99: np.full(n, np.inf)}


def test_each_kind_counts_every_run_once() -> None:
    runs, bounds = made()
    found = coverage_by_group(runs, bounds)
    for kind in COVERAGE_KINDS:
        some = [one for one in found if one.kind == kind]
        assert sum(one.runs for one in some) == len(runs)
        covered = sum(one.runs * one.coverage[0.9] for one in some)
        assert np.isclose(covered, (runs.runtime_seconds <= bounds[0.9]).sum())
        assert all(one.coverage[0.99] == 1 and np.isnan(one.margin[0.99]) for one in some)
    assert [one.name for one in found if one.kind == "pool"] == [
        "alone",
        "1 co-runner",
        "2 co-runners",
    ]


def test_tenths_go_from_short_to_long() -> None:
    runs, bounds = made()
    tenths = [one for one in coverage_by_group(runs, bounds) if one.kind == "workload_decile"]
    assert [one.name for one in tenths] == [str(i) for i in range(1, 11)]
    few = Runs.from_columns(workload=["a", "b"], platform=["p"] * 2, runtime_seconds=[2.0, 1.0])
    named = coverage_by_group(few, {0.9: np.array([1.5, 1.5])})
    by_name = {one.name: one.coverage[0.9] for one in named if one.kind == "workload_decile"}
    assert by_name == {"1": 1.0, "2": 0.0}


def test_short_means_two_standard_errors() -> None:
    def one(coverage: float) -> Covered:
        return Covered("pool", "alone", 100, {0.9: coverage}, {0.9: 0.1})

    assert one(0.9).standard_error(0.9) == 0.03
    assert not one(0.85).falls_short(0.9)
    assert one(0.83).falls_short(0.9)
