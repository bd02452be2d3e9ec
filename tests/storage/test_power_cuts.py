"""What was acknowledged survives a power cut at any moment, and what is found can be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jostle._tensors import read_document, write_document
from jostle.errors import UnreadableFile
from jostle.measure.campaign._journal import Journal
from jostle.runs import Dataset, Runs, add_runs, read_runs
from jostle.traces import Traces, read_traces, write_traces
from studies.traces import plain_trace

from .power import Recorder

NOTHING = ("no such dataset folder", "holds no runs", "holds no traces", "no thing here")


def _tried(read: Callable[[Path], set[Any]], folder: Path) -> tuple[set[Any], str | None]:
    """(what is found, why nothing is)."""
    try:
        return read(folder), None
    except UnreadableFile as error:
        return set(), str(error)


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """(a recorder, its folder, a call that checks what a reader finds after every cut)."""
    root, images = tmp_path / "root", tmp_path / "images"
    root.mkdir()
    images.mkdir()
    with monkeypatch.context() as patch:
        recorder = Recorder(root, patch)

        def check(
            read: Callable[[Path], set[Any]], draws: int = 5, moments: int | None = None
        ) -> None:
            """read: what is found in a folder. moments: only so many, the last."""
            patch.undo()
            seen = 0
            for folder, told in recorder.after_cuts(images, draws, moments):
                found, missing = _tried(read, folder)
                assert missing is None or (not told and any(text in missing for text in NOTHING))
                assert {*told} <= found, folder
                seen += missing is None
            assert seen >= draws

        yield recorder, root, check


def runs_of(name: str) -> Runs:
    return Runs.from_columns(
        workload=[name, "shared"],
        platform=["p", "p"],
        corunners=[["shared"], []],
        runtime_seconds=[1.0, 2.0],
        run_id=[name, f"{name} too"],
        workload_features={"workload": [name, "shared"], "size": [len(name), 1]},
        platform_features={"platform": ["p"], "cores": [4]},
    )


def test_runs_with_features(cut: Any) -> None:
    recorder, root, check = cut
    for name in ("a", "bb"):
        Dataset(root / "made" / "fleet").write(runs_of(name))
        recorder.acknowledge(name)

    def read(folder: Path) -> set[str]:
        found = read_runs(folder / "made" / "fleet")
        assert found.notes == ()  # features are there before the runs that need them
        return {*found.table.column("run_id").to_pylist()}

    check(read)


def test_runs_that_a_killed_writer_had_published(cut: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was killed right before some fsync; the second writer of the same runs is told that all is there."""
    recorder, root, check = cut
    real, syncs, number = os.fsync, 0, 0

    def killed(descriptor: int) -> None:
        nonlocal syncs
        syncs -= 1
        if syncs < 0:
            raise KeyboardInterrupt
        real(descriptor)

    for number in range(100):
        dataset, syncs = Dataset(root / "deep" / str(number)), number
        monkeypatch.setattr(os, "fsync", killed)
        try:
            dataset.write(runs_of("a"))
            break
        except KeyboardInterrupt:
            monkeypatch.setattr(os, "fsync", real)
        dataset.write(runs_of("a"))
    for done in range(number):
        recorder.acknowledge(done)
    assert number > 6

    def read(folder: Path) -> set[int]:
        found = {int(place.name): read_runs(place) for place in (folder / "deep").iterdir()}
        return {number for number, runs in found.items() if len(runs) == 2 and not runs.notes}

    check(read, draws=8, moments=1)


def test_rejected_rows_are_there_before_the_others(cut: Any) -> None:
    recorder, root, check = cut
    add_runs(root / "fleet", runs_of("a"), "times.csv", pa.table({"row": [3], "reason": ["x"]}))
    recorder.acknowledge("a")

    def read(folder: Path) -> set[str]:
        found = {*read_runs(folder / "fleet").table.column("run_id").to_pylist()}
        (kept,) = (folder / "fleet" / "rejected").glob("times-*.csv")
        assert not found or b'3,"x"' in kept.read_bytes()
        return found

    def read_if_there_are_runs(folder: Path) -> set[str]:
        there = list((folder / "fleet" / "runs").glob("*.parquet"))
        if not there:
            raise UnreadableFile("the folder holds no runs")
        return read(folder)

    check(read_if_there_are_runs)


def test_traces(cut: Any) -> None:
    recorder, root, check = cut
    for name in ("a", "b"):
        trace = plain_trace({"x": [1.0, 2.0]}, run_id=name)
        write_traces(root / "fleet", Traces.from_traces([trace]))
        recorder.acknowledge(name)

    def read(folder: Path) -> set[str]:
        found = read_traces(folder / "fleet")
        assert all(len(trace) == 2 for trace in found)
        return {*found.run_ids}

    check(read)


def test_documents(cut: Any) -> None:
    recorder, root, check = cut
    for value in range(3):
        arrays = {"x": np.arange(3.0 + value)}
        write_document(root / "deep" / "model", "thing", "thing/v1", {"value": value}, arrays)
        recorder.acknowledge(value)

    def read(folder: Path) -> set[int]:
        document, arrays = read_document(
            folder / "deep" / "model", "thing", "thing/v1", fix="Save it again."
        )
        assert len(arrays["x"]) == 3 + document["value"]
        return {*range(document["value"] + 1)}  # a later one stands for the earlier ones

    check(read, draws=12)


def test_windows_in_a_journal(cut: Any) -> None:
    recorder, root, check = cut

    def journal(folder: Path, write: Callable[[list[dict[str, Any]]], None]) -> Journal:
        return Journal(folder, "c", write=write, known=set, clock=lambda: 0.0)

    first = journal(root / "fleet", lambda rows: None)
    for name in ("a", "b"):
        first.append([{"window_id": name, "measured_at": datetime(2024, 1, 2, tzinfo=UTC)}])
        recorder.acknowledge(name)
    os.close(first._file)

    def read(folder: Path) -> set[str]:
        found: list[dict[str, Any]] = []
        journal(folder / "fleet", found.extend).close()
        return {row["window_id"] for row in found}

    check(read)
