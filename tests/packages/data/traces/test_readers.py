"""Which reader a file needs: by its content, by name, and one of another package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.data import Profile, RecordedRun, Traces, read_any, read_profile, reader_names
from jostle.errors import BadData, UnreadableFile, UsageError
from tests.installing import install

CODE = """
from jostle.data import GPUS, tasks_from_rows

name = "ticks"


def sniff(head, path):
    return head.startswith(b'{"ticks"')


def read(path, recording):
    row = {"kind": "kernel", "start_seconds": 0.0, "duration_seconds": 1.0}
    return tasks_from_rows([row], run_id=recording.run_id, workload=recording.workload, gpu=GPUS["T4"])
"""
POINTS = "[jostle.trace_readers]\nticks = jostle_ticks\n"


def test_a_reader_of_another_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "fft.json"
    path.write_text('{"ticks": [1]}')
    with pytest.raises(UnreadableFile, match="no traceEvents"):  # Kineto reads all JSON
        read_profile(path)
    install(monkeypatch, tmp_path / "site", "jostle_ticks", CODE, POINTS)
    assert "ticks" in reader_names()
    found = read_any(path)
    assert isinstance(found, Profile)
    assert (found.workload, found.run_id) == ("fft", "fft")
    assert read_profile(path, workload="w", format="ticks").run_id == "w"


def test_what_two_packages_offer_or_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("a")
    install(monkeypatch, tmp_path / "one", "jostle_ticks", CODE, POINTS)
    two = POINTS.replace("jostle_ticks", "jostle_other") + "broken = jostle_nowhere\n"
    install(monkeypatch, tmp_path / "two", "jostle_other", CODE, two)
    with pytest.raises(UsageError, match=r"several packages offer .*'ticks'"):
        read_any(path, format="ticks")
    with pytest.raises(UsageError, match="'broken' cannot be loaded from jostle_nowhere"):
        read_any(path, format="broken")
    with pytest.raises(BadData, match="none of broken, kineto"):
        read_any(path, format="nonsense")


@pytest.mark.parametrize(
    "line",
    [
        "0.01,5,,instructions,10,100.0\n",
        json.dumps({"interval": 0.01, "counter-value": "5", "unit": "", "event": "instructions"}),
    ],
)
def test_counter_samples_by_their_content(tmp_path: Path, line: str) -> None:
    path = tmp_path / "lu.perf"
    path.write_text("# started on Monday\n\n" * line.startswith("0") + line)
    found = read_any(path, RecordedRun(platform="pi"))
    assert isinstance(found, Traces)
    (trace,) = found
    assert (trace.run_id, trace.workload, trace.platform) == ("lu", "lu", "pi")
    with pytest.raises(BadData, match="Name the platform"):
        read_any(path)
    with pytest.raises(BadData):
        read_profile(path)
