"""The bags of programs that share a core are what they say, and small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from jostle import data as datasets
from jostle.data import SHARED_CORE_CPU, all_names, shared_core_bags, solo_core_shares

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
