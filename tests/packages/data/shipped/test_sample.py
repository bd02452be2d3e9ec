"""The sample is complete, small, and says of itself what is in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from jostle import data as datasets
from jostle.data import sample, sample_description, summarise


def test_the_sample_holds_what_it_promises() -> None:
    runs = sample()
    solo: Counter[tuple[str, str]] = Counter()
    sets: set[str] = set()
    for row in runs.table.to_pylist():
        assert row["status"] == "ok"
        assert 0 < row["runtime_seconds"] < 10
        if row["corunners"]:
            assert 1 <= len(row["corunners"]) <= 3
            sets.add(row["window_id"])
        else:
            solo[row["workload"], row["platform"]] += 1
    platforms = {platform for _, platform in solo}
    workloads = {workload for workload, _ in solo}
    assert len(platforms) >= 6
    assert len(workloads) >= 30
    often = [count for count in solo.values() if count >= 5]
    assert len(often) >= 0.9 * len(workloads) * len(platforms)
    assert len(sets) >= 500


def test_data_are_small_and_the_sample_describes_itself() -> None:
    for name, most in (("sample", 2_000_000), ("shared_core", 400_000), ("vision", 500_000)):
        files = (Path(datasets.__file__).parent / "shipped" / name).rglob("*.*")
        assert sum(file.stat().st_size for file in files) < most
    description, runs = sample_description(), sample()
    found = summarise(runs)
    assert description["schema"] == "sample/v1"
    assert description["runs"]["runs"] == found.runs
    assert description["runs"]["repeatability_median_ratio"] == found.repeatability_median_ratio
    assert found.repeatability_median_ratio is not None


def test_interference_is_in_it() -> None:
    runs = sample()
    alone: dict[tuple[str, str], list[float]] = {}
    crowded = []
    rows = runs.table.to_pylist()
    for row in rows:
        if not row["corunners"]:
            key = row["workload"], row["platform"]
            alone.setdefault(key, []).append(row["runtime_seconds"])
    for row in rows:
        usual = alone.get((row["workload"], row["platform"]))
        if len(row["corunners"]) == 3 and usual:
            crowded.append(row["runtime_seconds"] / np.median(usual))
    # Four on two cores take at least twice as long, in the median.
    assert np.median(crowded) > 1.8
