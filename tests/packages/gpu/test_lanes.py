"""Profiles of several streams: what ran beside what, with schedules worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.data import GPUS, tasks_from_rows
from jostle.gpu import (
    Application,
    DeviceTenant,
    Objective,
    Task,
    Tenant,
    Wish,
    causes,
    how_many_fit,
    simulate,
)
from tests.packages.gpu.made_profiles import DEVICE, ENGINES, FULL, ends


def profiled(*rows: tuple[str, float, float, int], blocks: int = 160) -> Application:
    """rows: (kind, start, duration, stream)."""
    made: list[dict[str, Any]] = []
    for kind, start, duration, stream in rows:
        row = {"kind": kind, "start_seconds": start, "duration_seconds": duration, "stream": stream}
        made.append(
            {**row, **({**FULL, "blocks": blocks} if kind == "kernel" else {"pinned": False})}
        )
    return Application.from_profile(tasks_from_rows(made, run_id="a", gpu=GPUS["V100"]))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_under_its_own_prefetch_copy(engine: Any) -> None:
    step = profiled(
        ("htod", 0.0, 9.0, 2),
        ("kernel", 1.0, 4.0, 1),
        ("kernel", 5.0, 4.0, 1),
        ("kernel", 10.0, 2.0, 1),
    )
    assert len(step) == 4
    assert ends(engine, step) == [12.0]
    # Two of them. Copies share the link: 0 to 18. Kernels take turns: A 1-5, B 5-9, A 9-13, B 13-17. The last
    # ones wait for the copy and 1 s: A 19-21, B 21-23.
    assert ends(engine, step, step, sharing="sequential") == [21.0, 23.0]
    fit = how_many_fit(Wish("step", DeviceTenant(step), Objective(1.2)), step, DEVICE)
    assert fit.instances == 0
    lost = causes(step, [step], DEVICE)
    assert lost.kernels_seconds > 1
    assert lost.transfers_seconds > 1


@pytest.mark.parametrize("engine", ENGINES)
def test_two_streams_of_small_kernels_and_one_that_waits_for_both(engine: Any) -> None:
    # Half of the device each, side by side; the third begins when the longer has ended.
    two = profiled(
        ("kernel", 0.0, 4.0, 1), ("kernel", 0.0, 6.0, 2), ("kernel", 7.0, 3.0, 1), blocks=80
    )
    assert len(two) == 3
    assert ends(engine, two) == [10.0]
    # Beside one that fills the device for 5 s, first in line: both begin at 5.
    full = profiled(("kernel", 0.0, 5.0, 1))
    assert ends(engine, full, two) == [5.0, 15.0]


def test_kernels_that_do_not_fit_beside_each_other_take_turns() -> None:
    rows = [("kernel", 0.0, 4.0, 1), ("kernel", 1.0, 5.0, 2)]
    both = profiled(*rows)
    assert both.solo_seconds == 6.0
    assert not both.columns.is_parallel
    assert any("in their lane" in note for note in both.notes)
    assert ends(simulate, both) == [6.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_by_hand(engine: Any) -> None:
    # The copy back waits for the kernel of the other lane, and the run ends with the later lane.
    app = Application.of(
        "a",
        Task("htod", 2.0),
        Task("kernel", 3.0, 1.0, lane=1, after=0),
        Task("htod", 10.0),
        Task("dtoh", 1.0, 0.5, lane=2, after=1),
    )
    assert app.solo_seconds == 12.0
    np.testing.assert_array_equal(app.columns.ends_alone(), [2.0, 6.0, 12.0, 7.5])
    found = engine([Tenant(app, 3)], DEVICE)
    assert found.run_ends[0].tolist() == [12.0, 24.0, 36.0]
    assert found.task_ends[0].tolist() == [2.0, 6.0, 12.0, 7.5]
    queries = Tenant(app, 2, arrivals=np.array([1.0, 2.0]))
    found = engine([queries], DEVICE)
    assert found.latencies[0].tolist() == [12.0, 23.0]


@pytest.mark.parametrize("seed", range(4))
def test_replayed_alone_a_profile_of_streams_takes_its_own_time(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, at = [], {1: 0.0, 2: 0.0, 3: 0.0}
    for _ in range(30):
        stream = int(random.integers(1, 4))
        kind = {1: "kernel", 2: "htod", 3: "dtoh"}[stream]
        start = at[stream] + float(random.exponential(0.5))
        seconds = float(random.exponential(1.0))
        rows.append((kind, start, seconds, stream))
        at[stream] = start + seconds
    app = profiled(*rows)
    assert len(app) == 30
    span = max(start + seconds for _, start, seconds, _ in rows) - min(row[1] for row in rows)
    assert app.solo_seconds == pytest.approx(span)
    assert ends(simulate, app) == [pytest.approx(span)]
