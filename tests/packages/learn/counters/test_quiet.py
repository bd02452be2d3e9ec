"""Repeats that neighbours disturbed make one quiet run; what makes no sense is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.data import Trace, Traces
from jostle.errors import BadData, UsageError
from jostle.learn.learners.counters import (
    SoloIndex,
    aligned_rows,
    quiet_seconds,
    solo_counters,
    traced_windows,
)
from tests.packages.learn.counters.conftest import a_trace

RATES = np.array([300.0, 100.0, 500.0, 200.0])  # instructions per second, 0.5 s each


def disturbed(bursts: list[tuple[float, float]], *, run_id: str = "r", **facts) -> Trace:
    """RATES, four phases of half a second; within each burst (seconds of its own time) half as fast."""
    step = 1e-4
    work, now, phase_left, phase = 0.0, 0.0, 0.5, 0
    counts, sample = [], 0.0
    times = []
    while phase < len(RATES):
        slow = 2.0 if any(a <= now < b for a, b in bursts) else 1.0
        sample += RATES[phase] * step / slow
        phase_left -= step / slow
        now += step
        if phase_left <= 1e-9:
            phase, phase_left = phase + 1, 0.5
        if len(times) < int(now / 0.01 + 1e-9) or phase == len(RATES):
            counts.append(sample)
            times.append(now)
            work, sample = work + sample, 0.0
    intervals = np.diff([0.0, *times]).tolist()
    return a_trace(
        counts, interval=intervals, run_id=run_id, misses=[2 * c for c in counts], **facts
    )


BURSTS = ([(0.0, 0.6)], [(0.5, 1.1)], [(1.2, 1.9)], [(0.2, 0.5), (1.6, 2.2)])


def test_the_quiet_stretches_of_disturbed_runs_make_a_quiet_run() -> None:
    runs = [disturbed(bursts, run_id=f"r{n}") for n, bursts in enumerate(BURSTS)]
    assert min(run.runtime_seconds for run in runs) > 2.25
    solo = solo_counters(runs)
    assert solo.duration_seconds == pytest.approx(2.0, rel=0.02)
    assert solo.instructions == pytest.approx(RATES.sum() * 0.5, rel=2e-3)
    # What was counted on the way comes with it.
    np.testing.assert_allclose(solo.cumulative[:, 1], 2 * solo.cumulative[:, 0], rtol=2e-3)
    quiet = solo_counters(disturbed([]))
    at = np.linspace(0.1, 1.9, 7)
    found, expected = (p.at(p.cumulative, at)[:, 0] for p in (solo, quiet))
    np.testing.assert_allclose(found, expected, rtol=0.03)
    assert quiet_seconds(runs, 0.01) == pytest.approx(solo.duration_seconds)


def test_one_run_stands_for_itself_and_equal_runs_for_each_other() -> None:
    run = disturbed([(0.3, 0.9)])
    alone = solo_counters(run, ["misses"])
    np.testing.assert_array_equal(solo_counters([run], ["misses"]).cumulative, alone.cumulative)
    assert quiet_seconds([run], 0.01) == run.runtime_seconds
    same = solo_counters([run, replace(run, run_id="again")], ["misses"])
    np.testing.assert_allclose(same.cumulative, alone.cumulative, rtol=1e-9)


@given(st.lists(st.lists(st.floats(0.5, 2.0), min_size=40, max_size=40), min_size=1, max_size=7))
@settings(max_examples=40, deadline=None)
def test_a_quiet_run_is_within_what_was_measured(repeats: list[list[float]]) -> None:
    """Samples of one instruction each, as long as drawn."""
    runs = [
        a_trace([1.0] * 40, interval=[0.01 * x for x in lengths], run_id=f"r{n}")
        for n, lengths in enumerate(repeats)
    ]
    seconds = quiet_seconds(runs, 0.01)
    lengths = np.array([run.interval_seconds for run in runs])
    assert lengths.min(axis=0).sum() * (1 - 1e-9) <= seconds
    assert seconds <= max(run.runtime_seconds for run in runs) * (1 + 1e-9)


def test_idle_stretches_stay() -> None:
    idle = a_trace([4.0] * 20 + [0.0] * 20 + [4.0] * 20)
    found = solo_counters([idle, replace(idle, run_id="x"), replace(idle, run_id="y")])
    assert found.idle.sum() == pytest.approx(20, abs=1)
    assert found.duration_seconds == pytest.approx(0.6)


def test_runs_that_are_no_repeats_are_named() -> None:
    run = disturbed([])
    other = replace(run, run_id="o", counters={n: 1.1 * v for n, v in run.counters.items()})
    for runs, error, message in (
        ([], UsageError, "at least one"),
        ([run, other], BadData, "instructions"),
        ([run, replace(run, corunners=("x",))], BadData, "beside others"),
        ([run, replace(run, runtime_seconds=np.nan)], BadData, "had not ended"),
    ):
        with pytest.raises(error, match=message):
            solo_counters(runs)


def test_of_three_windows_the_disturbed_one_is_not_learned_from() -> None:
    alone = [disturbed([], workload=name, run_id=f"s{name}") for name in "ab"]
    solos = SoloIndex(tuple(solo_counters(run) for run in alone))

    def window(number: int, bursts: list[tuple[float, float]]) -> list[Trace]:
        facts = {"window_id": f"w{number}"}
        return [
            disturbed(bursts, workload="a", run_id=f"a{number}", corunners=("b",), **facts),
            disturbed(bursts, workload="b", run_id=f"b{number}", corunners=("a",), **facts),
        ]

    windows = [window(0, []), window(1, [(0.0, 9.0)]), window(2, [(0.5, 1.0)])]
    traces = Traces.from_traces([run for one in windows for run in one])
    rows = aligned_rows(traced_windows(traces), solos)
    assert rows.slowdown.max() < 1.05
    every = sum(len(run) for one in windows for run in one)
    assert len(rows) < 0.5 * every
    two = Traces.from_traces([run for one in windows[:2] for run in one])
    assert aligned_rows(traced_windows(two), solos).slowdown.max() > 1.9


def test_stretches_that_instructions_do_not_tell_add_up_to_the_whole() -> None:
    """Copying memory executes next to nothing: of repeats, the quickest stretches are no run."""
    random = np.random.default_rng(0)
    traces = []

    def run(name: str, number: int, slow: float, others: tuple[str, ...] = ()) -> None:
        work = np.repeat([1e5, 0.2, 1e5], 40) if name == "a" else np.full(120, 1e5)
        work = work * (1 + 1e-5 * random.normal(size=len(work)))
        steps = 1e-3 * slow * np.exp(0.1 * random.normal(size=len(work)))
        traces.append(
            a_trace(
                work.tolist(),
                interval=steps.tolist(),
                workload=name,
                run_id=f"{name}{number}{len(others)}",
                corunners=others,
                window_id=f"v{number}" if others else None,
                core=("a", "b").index(name) if others else 0,
            )
        )

    for number in range(5):
        for name, other in ("ab", "ba"):
            run(name, number, 1.0)
            run(name, number, 1.2, (other,))
    every = Traces.from_traces(traces)
    solos = SoloIndex.from_traces(every, ("instructions",), 1e-3, repeats=5)
    rows = aligned_rows(traced_windows(every), solos, loop=True, repeats=5)
    numbers = np.unique(rows.run).tolist()
    assert len(numbers) == 2
    for number, log in zip(numbers, rows.run_logs(), strict=True):
        name = rows.members[number][1]
        beside = [t for t in traces if t.corunners and t.workload == name]
        alone = solos.of(name, "p", 0).duration_seconds
        whole = quiet_seconds(beside, 1e-3, 5)
        assert log == pytest.approx(np.log(whole / alone), abs=1e-9)
        assert log == pytest.approx(np.log(1.2), abs=0.08)
