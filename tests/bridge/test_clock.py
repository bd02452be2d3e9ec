"""Clocks: marks of work, periods, samples with parts of two phases; windows as cores; null counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.bridge import Bridge, Snapshots
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError
from jostle.traces import Trace, Traces, Windows
from studies.bridge.graphs.clock import ClockedSnapshots, ClockForecast, ClockSettings, clock_of
from studies.bridge.graphs.contexts import Contexts
from tests.bridge.conftest import a_trace as trace


def cyclic(late: int, cycles: int = 3) -> dict[str, list[float]]:
    """Phases of 10 and of 20 repetitions, one and two per sample; 5 and 50 events. Runs start `late`."""
    work, use = [0.0] * late, [0.0] * late
    for _ in range(cycles):
        work += [1.0] * 10 + [2.0] * 10
        use += [5.0] * 10 + [50.0] * 10
    return {"repetitions": work, "events": use}


def clocked(rows: list[Trace], clock: ClockSettings, times: tuple[float, ...]) -> ClockForecast:
    shots = ClockedSnapshots.timed(Traces.from_traces(rows), ["events"], times, clock=clock)
    return ClockForecast(shots, Bridge())


MARKS = (10.0, 30.0, 40.0, 60.0, 70.0)


def test_marks_make_beats_of_work() -> None:
    rows = [trace(run, cyclic(0)) for run in range(3)]
    shots = ClockedSnapshots.timed(
        Traces.from_traces(rows), ["events"], [0.5, 1.0, 1.5, 2.5],
        clock=ClockSettings("repetitions", "beats", MARKS),
    )  # fmt: skip
    assert shots.clock is not None
    found = [shots.clock.at(0, time)[0][0] for time in (0.5, 0.85, 1.5, 2.5, 3.5, 5.5)]
    assert found == [0, 0, 1, 2, 3, 5]
    periodic = replace(shots.clock, period=2)
    assert [periodic.at(0, time)[0][0] for time in (0.5, 1.5, 2.5, 5.5)] == [0, 1, 0, 1]


def test_a_sample_of_two_phases_is_their_mean() -> None:
    """A mark in the middle of a sample: half of the time at one rate, half at the other."""
    work = [1.0] * 9 + [0.5 + 0.5 * 2] + [2.0] * 9
    use = [5.0] * 9 + [0.5 * 5 + 0.5 * 50] + [50.0] * 9
    rows = [trace(run, {"repetitions": work, "events": use}) for run in range(3)]
    forecast = clocked(rows, ClockSettings("repetitions", "beats", (9.5,)), (0.5, 1.5))
    clock = clock_of(forecast.snapshots)
    assert clock is not None
    first, last, share = clock.phases(0, 0.95)
    np.testing.assert_array_equal([first[0], last[0]], [0, 1])
    np.testing.assert_allclose(share, 0.5, atol=1e-6)
    np.testing.assert_allclose(forecast.at(0.95, method="phase").atoms, 275.0, rtol=1e-5)
    np.testing.assert_allclose(forecast.at(0.65, method="phase").atoms, 50.0)


def test_a_program_that_comes_back_needs_few_snapshots() -> None:
    rows = [trace(run, cyclic(run % 3)) for run in range(12)]
    made, times = ClockSettings("repetitions", "beats", MARKS), (0.5, 1.6, 5.9)
    once, again = (clocked(rows, one, times) for one in (made, replace(made, period=2)))
    assert any("no snapshot caught" in text for text in once.at(2.65, method="phase").warnings)
    found = again.at(2.65, method="phase")
    assert not found.warnings
    np.testing.assert_allclose(np.unique(found.atoms), 50.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"marks": (2.0, 1.0)}, {"marks": (0.0,)}, {"marks": (float("nan"),)}, {"period": 0},
        {"kind": "work", "period": 2}, {"kind": "work", "marks": (1.0,)}, {"kind": "sundial"},
    ],
)  # fmt: skip
def test_odd_clocks_are_refused(wrong: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"kind": "beats", **wrong}
    with pytest.raises(UsageError):
        ClockSettings("repetitions", **settings)


def test_a_clock_has_to_be_there() -> None:
    rows = Traces.from_traces([trace(run, cyclic(0)) for run in range(3)])
    with pytest.raises(UnknownName, match="lost"):
        ClockedSnapshots.timed(rows, ["events"], clock=ClockSettings("lost"))
    with pytest.raises(UsageError, match="needs a clock"):
        ClockForecast(Snapshots.from_traces(rows), Bridge()).at(0.55, method="phase")
    clock = ClockSettings("repetitions", "beats", MARKS)
    assert ClockedSnapshots.timed(rows, None, clock=clock).components == ("events",)


def side_by_side(windows: int) -> Traces:
    rows = []
    for window in range(windows):
        for place, (name, value) in enumerate((("b", 1.0), ("a", 2.0), ("b", 3.0))):
            rows.append(
                trace(0, {"events": [value] * (4 + place)}, run_id=f"w{window}-{place}",
                      workload=name, window_id=f"w{window}",
                      corunners=tuple(sorted({0: "ab", 1: "bb", 2: "ab"}[place])))
            )  # fmt: skip
    return Traces.from_traces(rows)


def test_members_of_windows_are_cores() -> None:
    runs = Windows.of(side_by_side(3))
    assert len(runs) == 3
    assert runs.run_ids == ("w0", "w1", "w2")
    shots = Snapshots.from_traces(runs, ["events"])
    # a first, then both b in the order in which they were members.
    levels = [shots.of(core)[0].cloud.atoms[0, 0] for core in (0, 1, 2)]
    np.testing.assert_allclose(levels, [20.0, 10.0, 30.0])
    # Members end at different times.
    found = jostle.forecast(runs, Bridge(components=("events",)))
    assert [found.at(0.55, core).idle_ratio for core in (0, 1, 2)] == [1.0, 1.0, 0.0]
    few = runs.select(["w2", "w0"])
    assert few.run_ids == ("w2", "w0")
    with pytest.raises(UnknownName):
        runs.select(["w7"])


def test_windows_that_differ_are_refused() -> None:
    alone = Traces.from_traces([trace(run, {"events": [1.0]}) for run in range(2)])
    with pytest.raises(BadData, match="no traced run has a window"):
        Windows.of(alone)
    rows = [*side_by_side(2)][:-1]
    with pytest.raises(BadData, match="differ in their members"):
        Windows.of(Traces.from_traces(rows))


def test_counters_that_this_host_lacks_are_not_components() -> None:
    nothing = float("nan")
    counters = {"events": [1.0, 2.0], "perf_cycles": [nothing] * 2, "phases": [0.5, 0.5]}
    rows = [trace(run, {**counters, "resident_bytes": [7.0, 7.0]}) for run in range(3)]
    found = jostle.forecast(Traces.from_traces(rows))
    assert found.components == ("events", "resident_bytes")
    # A level is not divided by the length of the sample.
    np.testing.assert_allclose(found.at(0.1).mean, [10.0, 7.0])
    with pytest.raises(NotEnoughRuns, match="perf_cycles: null in every run"):
        jostle.forecast(Traces.from_traces(rows), Bridge(components=("events", "perf_cycles")))
    empty = [trace(run, {"perf_cycles": [nothing] * 2}) for run in range(3)]
    with pytest.raises(BadData, match="no counter with values"):
        jostle.forecast(Traces.from_traces(empty))


@pytest.mark.parametrize("eps", [0.02, 0.1, float("inf")])
def test_any_eps_answers(phases: Traces, eps: Any) -> None:
    made = Bridge(components=("instructions", "llc-misses"), eps=eps, snapshots=6)
    found = jostle.forecast(phases, made)
    assert np.isfinite(found.at(0.31).atoms).all()


def test_independent_is_the_limit_of_large_eps(phases: Traces) -> None:
    made = Bridge(components=("instructions",), eps=float("inf"), snapshots=5)
    limit = jostle.forecast(phases, made).coupling(1).matrix
    large = jostle.forecast(phases, replace(made, eps=1e7)).coupling(1).matrix
    np.testing.assert_allclose(limit, large, rtol=1e-4)


def test_contexts_of_saved_forecasts(phases: Traces, tmp_path: Any) -> None:
    made = Bridge(components=("instructions",), snapshots=4)
    one = jostle.forecast(phases, made)
    one.save(tmp_path)
    both = Contexts({0.0: one, 1.0: type(one).load(tmp_path)})
    np.testing.assert_allclose(both.at(0.4, 0.5).mean, one.at(0.4).mean, rtol=0.05)
