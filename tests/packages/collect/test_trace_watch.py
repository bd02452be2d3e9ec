"""A traced window that was disturbed is recorded again, and that is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.collect import Assessment, TraceOptions, trace
from jostle.collect.tracing import _recording as recording
from jostle.collect.tracing._trace_settings import assessed
from jostle.data import Traces, read_traces


def attempt(cpu: float | None, late: float = 0.0) -> Assessment:
    known = None if cpu is None else np.array([cpu])
    ran = np.array([1.0])
    return assessed(("a",), 0, 0.1, ran_seconds=ran, cpu_seconds=known, lateness_seconds=late)


def test_foreign_load_and_a_late_start_disturb() -> None:
    assert attempt(0.95).reason is None
    assert attempt(0.5).foreign_load_ratio == pytest.approx(0.5)
    assert "foreign load 50.0%" in (attempt(0.5).reason or "")
    assert attempt(None) == Assessment(("a",), 0, None, None)
    assert "started 0.100 s late" in (attempt(1.0, 0.1).reason or "")


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each window the first two attempts are disturbed, the second less. Returns whether each time the
    members' CPU time was known."""
    known: list[bool] = []

    def made(members: Any, number: int, most: float, *, cpu_seconds: Any, **_: Any) -> Assessment:
        known.append(cpu_seconds is not None)
        return Assessment(members, number, "busy" if number < 2 else None, 0.5 - 0.1 * number)

    monkeypatch.setattr(recording, "assessed", made)
    return known


def test_a_disturbed_window_is_recorded_again(disturbed: list[bool]) -> None:
    seen: list[Assessment] = []
    words = ["edit-s*10", "sort-s*10"]
    options = TraceOptions(alone=True, device="here", attempts=5, most_disturbed_ratio=0.1)
    assert len(trace(words, options, on_attempt=seen.append)) == 4
    assert [one.attempt for one in seen] == [0, 1, 2] * 3
    # If every attempt is disturbed one of them is kept.
    assert len(trace(words[:1], TraceOptions(attempts=2, most_disturbed_ratio=0.1))) == 1


def test_members_that_take_turns_on_one_core_do_not_disturb_themselves(
    disturbed: list[bool],
) -> None:
    """Of two on a core each waits for the other, which is no load of others."""
    options = TraceOptions(cores=[0], alone=True, attempts=1, most_disturbed_ratio=0.1)
    trace(["edit-s*10", "sort-s*10"], options)
    assert disturbed == [True, True, False]


def test_the_command_counts_what_it_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], disturbed: list[bool]
) -> None:
    words = ["trace", "-o", str(tmp_path), "-w", "edit-s*10", "--device", "here"]
    assert exit_code([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["reason"] for one in document["attempts"]] == ["busy", "busy", None]
    assert exit_code(words) == 0
    assert "2 of 3 attempts were disturbed (busy); 0 windows" in capsys.readouterr().err
    assert len(read_traces(tmp_path)) == 2


def test_a_table_from_when_cores_were_probed_is_read_as_one_without() -> None:
    found = trace(["edit-s*10"], TraceOptions(device="here"))
    older = Traces(found.samples, found.traced.drop_columns(["core_slowdown_ratio"]))
    assert older.traced.column("core_slowdown_ratio").null_count == 1
    assert np.isnan(next(iter(older)).core_slowdown_ratio)
