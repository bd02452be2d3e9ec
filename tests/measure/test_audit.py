"""The audit: contradictions in a dataset, overlap from beats, a second clock and counter, disturbers."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.errors import UnreadableFile, UsageError
from jostle.kernels import packed
from jostle.measure import (
    AuditOptions,
    AuditReport,
    Detection,
    MeasureOptions,
    audit,
    command_workload,
    detection,
    find_workloads,
    measure,
)
from jostle.measure.audit._direct import (
    SecondCount,
    contradictions,
    overlap_of,
    second_count,
    timed_directly,
)
from jostle.measure.audit._disturbers import disturber
from jostle.measure.window._assess import Clocks, Observed
from jostle.measure.window._foreign import Moment
from tests.command_line import jostle as command

MILLISECOND = 1_000_000


def window(**changed: Any) -> list[dict[str, Any]]:
    row = {
        "window_id": "w",
        "platform": "p",
        "measured_at": datetime(2026, 1, 1, tzinfo=UTC),
        "window_seconds": 0.25,
        "status": "ok",
        "estimator": "quiet",
        "repetitions": 100.0,
        "runtime_seconds": 0.0024,
        "lateness_seconds": 0.001,
    }
    first = {**row, "workload": "a", "corunners": ["b"], **changed}
    return [first, {**row, "workload": "b", "corunners": ["a"]}]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"window_id": None}, "other co-runners than the window has members"),
        ({"corunners": ["c"]}, "other co-runners"),
        ({"platform": "q"}, "differ in platform"),
        ({"window_seconds": 0.3}, "differ in window_seconds"),
        ({"lateness_seconds": 0.2}, "started 0.200 s late"),
        ({"repetitions": 200.0}, "did 200.0 of 0.0024 s each in 0.25 s"),
        ({"status": "contaminated", "repetitions": 200.0, "runtime_seconds": None}, None),
    ],
)
def test_windows_that_cannot_have_been(changed: dict[str, Any], said: str | None) -> None:
    found = contradictions(window(**changed))
    assert (not found) if said is None else any(said in text for text in found)


def observed(*beats_ms: list[float]) -> Observed:
    import base64

    def encoded(times: list[float]) -> str:
        return base64.b64encode(packed([int(t * MILLISECOND) for t in times])).decode()

    clocks = Clocks(0, np.zeros(len(beats_ms)), Moment(0, {}, 0.0, 0.0, {}))
    answers = [{"times": encoded(times), "clock_offset_ns": 0} for times in beats_ms]
    return Observed(0, 10 * MILLISECOND, 110 * MILLISECOND, clocks, clocks, answers)


def test_overlap_is_what_the_beats_of_all_cover() -> None:
    whole = overlap_of("s", observed([0, 40, 80, 120], [1, 60, 115]))
    assert whole.common_ratio == 1
    assert whole.longest_beat_ratio == pytest.approx(0.5)
    assert whole.spread_seconds == pytest.approx(0.001)
    assert whole.counts
    late = overlap_of("s", observed([0, 120], [35, 90]))
    assert late.common_ratio == pytest.approx(0.55)
    assert not late.counts  # a campaign would repeat it
    assert report(overlaps=(late,)).passed
    assert not report(overlaps=(replace(whole, common_ratio=0.9),)).passed
    assert overlap_of("s", observed([0, 20], [50, 120])).common_ratio == 0


def test_a_second_clock_and_a_second_counter() -> None:
    (kernel,) = find_workloads(["sort-s"])
    assert 0 < timed_directly(kernel, "speed", 0.01, 0) < 1
    count = second_count(kernel, None)
    assert count.agrees
    assert count.rewritten == count.fuel > 1000
    stored = {"instructions": count.fuel, "bulk_bytes": 0}
    assert second_count(kernel, stored).agrees
    assert not second_count(kernel, {**stored, "instructions": count.fuel - 1}).agrees


def test_a_disturber_takes_what_it_is_told_and_is_seen() -> None:
    job = command_workload(["sleep", "0.05"], "waits")
    found = detection(job, "native", share=0.9, windows=1)
    assert (found.windows, found.flagged) == (1, 1)
    assert found.held_cores is not None
    assert (
        found.held_cores > 0.1
    )  # on a busy machine it gets less than it wants, and others are there
    with disturber(0.0):
        pass


def test_how_sure_a_rate_is() -> None:
    low, high = Detection("m", 0.25, None, 20, 20, 0.25).interval
    assert (low, high) == (pytest.approx(0.839, abs=1e-3), 1.0)
    assert Detection("m", 0.0, None, 100, 0, 0.0).interval[0] == 0
    assert Detection("m", 0.0, None, 0, 0, None).interval == (0.0, 1.0)


def report(**changed: Any) -> AuditReport:
    clean: dict[str, Any] = {
        "dataset": "d",
        "engine": "speed",
        "rows": 1,
        "contaminated": 0,
        "contradictions": (),
        "overlaps": (),
        "times": (),
        "counts": (),
        "detections": (),
        "notes": (),
    }
    return AuditReport(**{**clean, **changed})


def test_what_makes_an_audit_fail() -> None:
    assert report().passed
    assert not report(contradictions=("window w: differs",)).passed
    assert not report(counts=(SecondCount("k", 1, 2, None),)).passed
    assert report(detections=(Detection("m", 0.1, None, 20, 0, 0.1),)).passed  # weak: only told
    assert not report(detections=(Detection("m", 0.25, None, 20, 12, 0.1),)).passed
    assert report(detections=(Detection("m", 0.25, None, 20, 19, 0.1),)).passed
    assert not report(detections=(Detection("m", 0.0, None, 20, 6, 0.1),)).passed
    with pytest.raises(UsageError):
        AuditOptions(shares=(1.5,))
    with pytest.raises(UsageError):
        AuditOptions(kernels=-1)


def test_a_dataset_is_audited_by_either_name(tmp_path: Path, quick) -> None:
    measure(quick(), tmp_path / "data", MeasureOptions())
    found = audit(tmp_path / "data", AuditOptions(kernels=1, sets=1, windows=0))
    assert [one.agrees for one in found.counts] == [True]
    assert len(found.overlaps) == len(found.times) == 1
    assert 0 <= found.overlaps[0].common_ratio <= 1
    words = [str(tmp_path / "data"), "--windows", "0", "--kernels", "0", "--sets", "0", "--json"]
    done = command("audit", *words)
    document = json.loads(done.stdout)
    assert document["schema"] == "measure-audit/v1"
    # On a busy machine some start late or are held up, which this campaign was told to tolerate.
    assert document["passed"] == (not found.contradictions)
    assert done.exit_code == (1 if found.contradictions else 0), done.output
    missing = command("audit", tmp_path / "nothing")
    assert missing.exit_code == UnreadableFile.exit_code
    assert "nothing" in missing.stderr
