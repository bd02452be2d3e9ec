"""What was acknowledged survives a power cut at any moment, and what is found can be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jostle.data import Dataset, read_runs
from jostle.errors import UnreadableFile

from .carriers import CARRIERS, with_features
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


@pytest.mark.parametrize("name", [name for name, one in CARRIERS.items() if one.calls])
def test_what_was_acknowledged_is_found(cut: Any, name: str) -> None:
    """Features and rejected rows are there before the runs that need them, which each reader checks."""
    recorder, root, check = cut
    one, sent = CARRIERS[name], ("a", "bb", "ccc") if CARRIERS[name].is_last else ("a", "bb")
    for each in sent:
        one.send(root / "made" / "fleet", each)
        recorder.acknowledge(each)

    def read(folder: Path) -> set[str]:
        found = one.found(folder / "made" / "fleet")
        # A later document stands for the earlier ones.
        return {*sent[: 1 + max(sent.index(each) for each in found)]} if one.is_last else found

    check(read, draws=12 if one.is_last else 5)


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
            dataset.write(with_features("a"))
            break
        except KeyboardInterrupt:
            monkeypatch.setattr(os, "fsync", real)
        dataset.write(with_features("a"))
    for done in range(number):
        recorder.acknowledge(done)
    assert number > 6

    def read(folder: Path) -> set[int]:
        found = {int(place.name): read_runs(place) for place in (folder / "deep").iterdir()}
        return {number for number, runs in found.items() if len(runs) == 1 and not runs.notes}

    check(read, draws=8, moments=1)
