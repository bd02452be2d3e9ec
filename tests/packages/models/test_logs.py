"""Logs, in which nobody chose what to run alone: through the calls of a user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import jostle

NAMES = [f"step{n}" for n in range(12)]
LONG = np.geomspace(2, 300, 12)


def log(rows: int, seed: int = 0, noise: float = 0.03) -> dict[str, Any]:
    """Steps that take their own time, whoever of several others is beside them."""
    random = np.random.default_rng(seed)
    step, start = random.integers(0, 12, rows), datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "workload": [NAMES[n] for n in step],
        "platform": ["node"] * rows,
        "node": ["node"] * rows,
        "corunners": [[NAMES[n] for n in random.integers(0, 12, 3)] for _ in range(rows)],
        "measured_at": [start + timedelta(seconds=30 * n) for n in range(rows)],
        "runtime_seconds": (LONG[step] * np.exp(noise * random.normal(size=rows))).tolist(),
    }


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: [one for part in parts for one in part[name]] for name in parts[0]}


@pytest.fixture(scope="module")
def learned() -> dict[str, Any]:
    """The very first run, alone, took a hundred times as long as the step takes."""
    first = log(1) | {
        "workload": ["step2"],
        "corunners": [[]],
        "runtime_seconds": [2000.0],
        "measured_at": [datetime(2025, 12, 31, tzinfo=UTC)],
    }
    return joined(first, log(300))


@pytest.fixture(scope="module")
def model(learned: dict[str, Any]) -> jostle.Model:
    return jostle.fit(jostle.Runs.from_columns(**learned), seed=0)


def test_one_long_run_alone_does_not_say_that_company_makes_work_faster(
    model: jostle.Model,
) -> None:
    asked = log(60, seed=1)
    beside = model.predict(asked) / np.array(asked["runtime_seconds"])
    assert np.abs(beside - 1).mean() < 0.1
    alone = model.predict({"workload": NAMES, "platform": ["node"] * 12, "corunners": [[]] * 12})
    assert np.all(alone < 3 * LONG)


def test_a_workload_that_was_only_met_beside_others_is_answered_as_a_typical_one(
    learned: dict[str, Any],
) -> None:
    """As one that was never met at all, and not with nothing."""
    table = dict(learned)
    table["corunners"] = [[*row, "watcher"] if row else [] for row in table["corunners"]]
    model = jostle.fit(jostle.Runs.from_columns(**table), seed=0)
    asked = {"workload": ["watcher", "never met"], "platform": ["node"] * 2}
    rows = {**asked, "corunners": [["step0", "step1"]] * 2}
    seconds = model.predict(rows)
    assert np.isfinite(seconds).all()
    assert seconds[0] == pytest.approx(seconds[1], rel=0.5)


def test_beside_a_co_runner_never_met_a_known_workload_keeps_most_of_its_bound(
    model: jostle.Model,
) -> None:
    rows = {"workload": ["step3"] * 2, "platform": ["node"] * 2}
    others = [["step0", "step1", "step2"], ["step0", "step1", "never met"]]
    known, new = model.bound({**rows, "corunners": others}, 0.9).seconds
    never = {"workload": ["never met"], "platform": ["node"], "corunners": [others[0]]}
    assert known <= new < model.bound(never, 0.9).seconds[0]


def test_where_nobody_ran_beside_anybody_new_names_are_answered_too() -> None:
    learned: dict[str, Any] = log(120) | {"corunners": [[]] * 120}
    model = jostle.fit(jostle.Runs.from_columns(**learned), seed=0)
    asked = {"workload": ["never met", "step3"], "platform": ["node"] * 2}
    seconds = model.predict({**asked, "corunners": [[], ["never met"]]})
    assert LONG[0] < seconds[0] < LONG[-1]
    assert seconds[1] == pytest.approx(LONG[3], rel=0.1)
