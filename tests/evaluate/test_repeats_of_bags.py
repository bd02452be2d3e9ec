"""Recordings of bags: how far pairs and repeats differ, and which workloads are whole."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.runs import Runs
from studies.collect import repeats as recorder

NAMES = ("a", "b", "c", "d")


def runs_of(noise: float) -> Runs:
    """Pairs of NAMES twice on two platforms; only on `turns` does it matter who they are."""
    random = np.random.default_rng(0)
    rows = [(p, t, ()) for p in ("own", "turns") for t in NAMES for _ in range(2)]
    rows += [(p, t, (o,)) for p in ("own", "turns") for t in NAMES for o in NAMES for _ in range(2)]
    worse = {name: 1.0 + number for number, name in enumerate(NAMES)}
    seconds = [
        (worse[o[0]] if p == "turns" and o else 1.0) * np.exp(noise * random.normal())
        for p, _, o in rows
    ]
    return Runs.from_columns(
        workload=[t for _, t, _ in rows],
        platform=[p for p, _, _ in rows],
        corunners=[o for _, _, o in rows],
        runtime_seconds=seconds,
        window_id=[f"w{number}" for number in range(len(rows))],
    )


def test_pairs_and_repeats_are_measured_alike() -> None:
    found = recorder.differences(runs_of(0.01))
    logs = np.log([1.0, 2.0, 3.0, 4.0])
    expected = np.mean(np.abs(np.subtract.outer(logs, logs)))
    assert found["turns"]["pairs_differ"] == pytest.approx(expected, rel=0.05)
    assert found["turns"]["repeats_differ"] == pytest.approx(0.01 * 2 / np.sqrt(np.pi), rel=0.4)
    assert found["turns"]["ratio"] > 20
    assert found["own"]["ratio"] < 2


def test_a_workload_not_alone_on_both_platforms_is_left_out() -> None:
    runs = runs_of(0.01)
    c = runs.colocations
    a_alone_with_turns = [c.row(row) == ("a", "turns", ()) for row in range(len(runs))]
    left = recorder.whole_bags(runs.take(~np.array(a_alone_with_turns)))
    met = [left.colocations.row(row) for row in range(len(left))]
    assert {name for target, _, beside in met for name in (target, *beside)} == {"b", "c", "d"}
    assert recorder.whole_bags(runs) == runs
