"""Data that are shipped hold what they promise, say it of themselves, and are small."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np

from jostle import data as datasets
from jostle.data import (
    SHARED_CORE_CPU,
    VISION_CPU,
    all_names,
    sample,
    sample_description,
    shared_core_bags,
    solo_core_shares,
    summarise,
    vision_bags,
)


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


FOLDER = Path(datasets.__file__).parent / "shipped" / "shared_core"


def test_the_same_bags_are_there_on_both_platforms() -> None:
    runs = shared_core_bags()
    c = runs.colocations
    assert runs.is_ok.all()
    assert SHARED_CORE_CPU in c.platform_names
    found: dict[str, dict[tuple[str, ...], int]] = {name: {} for name in c.platform_names}
    for row in range(len(runs)):
        target, platform, beside = c.row(row)
        bag = tuple(sorted((target, *beside)))
        found[platform][bag] = found[platform].get(bag, 0) + 1
    one, two = found.values()
    assert one == two
    pairs = {bag for bag in one if len(bag) == 2}
    assert len(pairs) == 20 * 21 // 2
    assert all((name, name) in pairs for name in c.workload_names)
    assert {len(bag) for bag in one} == {1, 2, 3, 4}
    assert all(number % (3 * len(bag)) == 0 for bag, number in one.items())


def test_it_says_how_long_each_is_on_a_core_and_what_it_executes() -> None:
    runs = shared_core_bags()
    shares = solo_core_shares(runs, *all_names(runs))
    assert np.isfinite(shares).all()
    assert 0.1 < shares.min() < 0.25
    assert 0.9 < shares.max() <= 1.01
    names, table = runs.features_of("workload")
    assert table is not None
    assert len(names) == 20
    assert any(name.startswith("opcode_") for name in table.column_names)


def test_bags_differ_by_much_more_than_repeats_on_the_shared_core() -> None:
    told = json.loads((FOLDER / "bags.json").read_text())
    assert told["cpu_platform"] == SHARED_CORE_CPU
    assert told["differences"][told["predicted"]]["ratio"] > 5


def test_every_workload_is_there_alone_and_in_bags_on_both_platforms() -> None:
    runs = vision_bags()
    c = runs.colocations
    assert runs.is_ok.all()
    assert VISION_CPU in c.platform_names
    assert len(c.platform_names) == 2
    assert len(c.workload_names) == 27
    alone = c.number_of_corunners == 0
    cells = set(zip(c.workload[alone].tolist(), c.platform[alone].tolist(), strict=True))
    assert len(cells) == 54
    assert set(c.number_of_corunners.tolist()) == {0, 1, 2}
    names, table = runs.features_of("workload")
    assert table is not None
    assert set(names) == set(c.workload_names)
    assert len(set(table.column("kernel").to_pylist())) == 9
