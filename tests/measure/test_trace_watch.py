"""A traced window that was disturbed is recorded again, and that is reported."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.measure import Assessment, TraceOptions, trace
from jostle.measure.tracing import _trace as trace_module
from jostle.measure.tracing._watch import Watch
from jostle.measure.window._speed import CoreSpeed
from jostle.traces import Traces, read_traces


class Fast(CoreSpeed):
    def calibrate(self, slot, cores, stopped=lambda: False) -> None:
        for core in cores:
            self.learn(core, [100] * 20)


def assessed(
    watch: Watch, *, before: int = 100, after: int = 100, ran=1.0, cpu: float | None = 1.0
) -> Assessment:
    cpu_seconds = None if cpu is None else np.array([cpu])
    return watch.assessed(
        ("a",),
        0,
        ({0: before}, {0: after}),
        ran_seconds=np.array([ran]),
        cpu_seconds=cpu_seconds,
        lateness_seconds=0.0,
    )


def test_slow_cores_and_foreign_load_disturb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.measure.tracing._watch.CoreSpeed", Fast)
    watch = Watch(None, (0,), 0.1)  # type: ignore[arg-type]
    assert assessed(watch).reason is None
    # One quiet end is not enough here.
    for moments in ({"before": 170}, {"after": 170}):
        found = assessed(watch, **moments)
        assert found.slowdown_ratio == pytest.approx(1.7)
        assert "slower than usual" in (found.reason or "")
    busy = assessed(watch, cpu=0.5)
    assert busy.foreign_load_ratio == pytest.approx(0.5)
    assert "foreign load" in (busy.reason or "")
    assert assessed(watch, cpu=None).foreign_load_ratio is None


class Disturbed(Watch):
    """Of each window the first attempts are disturbed, each less than the one before."""

    clean_at = 2

    def __init__(self, slot, cores, most_disturbed_ratio) -> None:
        self.most_disturbed_ratio = most_disturbed_ratio

    def before(self, slots, cores):
        return {}

    def after(self, slots, cores):
        return {}

    def assessed(self, members, attempt, probes, **_) -> Assessment:
        slow = 1.0 if attempt >= self.clean_at else 2.0 - 0.1 * attempt
        return Assessment(members, attempt, "slow" if slow > 1 else None, slow, 0.0)


def test_a_disturbed_window_is_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "Watch", Disturbed)
    seen: list[Assessment] = []
    words = ["edit-s*10", "sort-s*10"]
    found = trace(
        words,
        TraceOptions(alone=True, device="here", attempts=5, most_disturbed_ratio=0.1),
        on_attempt=seen.append,
    )
    assert len(found) == 4
    assert [one.attempt for one in seen] == [0, 1, 2] * 3
    assert {one.core_slowdown_ratio for one in found} == {1.0}
    # Where every attempt is disturbed the least disturbed one is kept.
    found = trace(words[:1], TraceOptions(device="here", attempts=2, most_disturbed_ratio=0.1))
    assert [one.core_slowdown_ratio for one in found] == [1.9]


class Waiting(Disturbed):
    """Keeps what each window said of its members' CPU time."""

    told: ClassVar[list[bool]] = []

    def assessed(self, members, attempt, probes, *, cpu_seconds=None, **_) -> Assessment:
        self.told.append(cpu_seconds is not None)
        return Assessment(members, attempt, None, 1.0, None)


def test_members_that_take_turns_on_one_core_do_not_disturb_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two on a core each waits for the other, which is no load of others."""
    monkeypatch.setattr(trace_module, "Watch", Waiting)
    Waiting.told.clear()
    options = TraceOptions(cores=[0], alone=True, device="here", most_disturbed_ratio=0.1)
    trace(["edit-s*10", "sort-s*10"], options)
    assert Waiting.told == [True, True, False]


def test_unwatched_traces_say_nothing_of_it(tmp_path: Path) -> None:
    (one,) = trace(["edit-s*10"], TraceOptions(device="here"))
    assert math.isnan(one.core_slowdown_ratio)
    found = Traces.from_traces([one])
    # A table from before there was such a column.
    older = Traces(found.samples, found.traced.drop_columns(["core_slowdown_ratio"]))
    assert older.traced.column("core_slowdown_ratio").null_count == 1
    assert older.samples.equals(found.samples)
    assert math.isnan(next(iter(older)).core_slowdown_ratio)


def test_the_command_counts_what_it_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "Watch", Disturbed)
    words = ["trace", "-o", str(tmp_path), "-w", "edit-s*10", "--device", "here"]
    assert exit_code([*words, "--attempts", "2"]) == 0
    assert "2 of 2 attempts were disturbed (slow); 1 windows" in capsys.readouterr().err
    assert exit_code([*words, "--attempts", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["reason"] for one in document["attempts"]] == ["slow", "slow", None]
    assert [row["core_slowdown_ratio"] for row in document["runs"]] == [1.0]
    assert sorted(t.core_slowdown_ratio for t in read_traces(tmp_path)) == [1.0, 1.9]
