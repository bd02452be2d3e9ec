"""One query out of a recording of many."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import GPUS, read_profile
from jostle.errors import BadData, UsageError
from jostle.gpu import Application


def trace(folder: Path, mark: str = "ProfilerStep#", lengths=(9.0, 9.2, 8.8, 9.4, 9.0)) -> Path:
    """Steps of 9 ms or so, 50 ms apart: a copy of 2 ms and kernels after it; one kernel before them all."""
    events = [{"ph": "X", "cat": "kernel", "name": "warm", "ts": 10.0, "dur": 500.0, "args": {}}]
    for number, length in enumerate(lengths):
        at = 1000.0 + 50_000.0 * number
        step = {"ph": "X", "cat": "user_annotation", "name": f"{mark}{number}", "dur": 5000.0}
        events.append({**step, "ts": at, "args": {}})
        copy = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "dur": 2000.0}
        events.append({**copy, "ph": "X", "ts": at + 300.0, "args": {"device": 0, "stream": 7}})
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "args": {"device": 0, "stream": 7}}
        half = (length - 2.0) / 2 * 1000
        events += [{**kernel, "ts": at + 2300.0 + k * half, "dur": half} for k in range(2)]
    path = folder / "steps.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_five_steps_are_one_step(tmp_path: Path) -> None:
    profile = read_profile(trace(tmp_path), gpu="A100")
    assert len(profile) == 3
    app = Application.from_profile(profile)
    assert app.solo_seconds == pytest.approx(0.009)
    note = next(text for text in profile.notes if "one of 5 queries" in text)
    assert "8.8 ms to 9.4 ms" in note
    assert any("1 tasks before the first" in text for text in profile.notes)
    whole = read_profile(trace(tmp_path), gpu="A100", queries="whole")
    assert len(whole) == 16
    assert Application.from_profile(whole).solo_seconds == pytest.approx(0.2103, rel=0.01)


def test_steps_by_gaps_and_by_other_marks(tmp_path: Path) -> None:
    path = trace(tmp_path, mark="query ")
    assert len(read_profile(path, gpu="A100")) == 16
    assert len(read_profile(path, gpu="A100", mark="query")) == 3
    by_gaps = read_profile(path, gpu="A100", queries="gaps")
    assert by_gaps.column("duration_seconds").sum() == pytest.approx(0.009)
    with pytest.raises(BadData, match="marked step"):
        read_profile(path, gpu="A100", queries="steps")
    with pytest.raises(UsageError, match="queries"):
        read_profile(path, gpu="A100", queries="often")
    one = tmp_path / "one.json"
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1.0, "dur": 5.0, "args": {}}
    one.write_text(json.dumps([kernel]))
    two = [{**kernel, "ts": at} for at in (1.0, 6.0, 900.0)]  # of two tasks, and of one
    (tmp_path / "two.json").write_text(json.dumps(two))
    (task,) = read_profile(tmp_path / "two.json", gpu="A100", queries="gaps").tasks.to_pylist()
    assert task["start_seconds"] == pytest.approx(900e-6)
    with pytest.raises(BadData, match="gaps"):
        read_profile(one, gpu="A100", queries="gaps")


def test_import_takes_one_query_and_says_so(tmp_path: Path, capsys) -> None:
    ask = ["import", "--kind=profile", str(trace(tmp_path)), "--gpu", "A100"]
    assert exit_code([*ask, "-o", str(tmp_path / "set"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == {"htod": 1, "kernel": 2}
    assert exit_code([*ask, "-o", str(tmp_path / "all"), "--queries", "whole", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == {"htod": 5, "kernel": 11}


def test_ranges_of_nvtx_mark_steps(tmp_path: Path) -> None:
    path = tmp_path / "steps.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("create table StringIds (id integer, value text)")
        base.execute("insert into StringIds values (1, 'k'), (2, 'batch 1')")
        base.execute(
            "create table NVTX_EVENTS (start integer, end integer, text text, textId integer)"
        )
        base.execute(
            "create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer, "
            "streamId integer, demangledName integer)"
        )
        for number, length in enumerate((5, 7, 6)):
            at = 100_000_000 * number
            text = (None, 2) if number == 1 else (f"batch {number}", None)
            base.execute("insert into NVTX_EVENTS values (?, ?, ?, ?)", (at, at + 1000, *text))
            kernel = at + 5000, at + 5000 + length * 1_000_000, 0, 7, 1
            base.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?)", kernel)
    assert len(read_profile(path, gpu=GPUS["A100"])) == 3
    found = read_profile(path, gpu=GPUS["A100"], mark="batch")
    np.testing.assert_allclose(found.column("duration_seconds"), [6e-3])


def test_every_device_of_a_trace_can_be_taken(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1.0}
    events = [{**kernel, "dur": 5e6 * (d + 1), "args": {"device": d}} for d in range(2)]
    devices = [
        {"id": d, "name": name, "numSms": 108, "maxThreadsPerMultiprocessor": 2048}
        for d, name in enumerate(("NVIDIA A100-SXM4-40GB", "Tesla V100-SXM2-16GB"))
    ]
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    profile = read_profile(path)
    first = Application.from_profile(profile)
    assert first.solo_seconds == pytest.approx(5.0)
    assert any("device 1 left out" in note for note in first.notes)
    for device in (1, "1", "v100"):
        assert Application.from_profile(profile, device).solo_seconds == pytest.approx(10.0)
    for device in ("T4", "a", 7):
        with pytest.raises(BadData, match="device"):
            Application.from_profile(profile, device)
