"""Full disks, folders that cannot be written, killed writers' leftovers: a clear error, and nothing lost."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from jostle._base import files as _files
from jostle._base import tensors as _tensors
from jostle.data import Dataset, Runs
from jostle.errors import NotPermitted

from .carriers import add, added, runs_of, save, saved, trace, traced
from .stand_ins import Ending

WRITERS = {"dataset": (add, added), "document": (save, saved), "traces": (trace, traced)}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_folder_that_cannot_be_written(tmp_path: Path, kind: str) -> None:
    write, read = WRITERS[kind]
    write(tmp_path / "set", "before")
    places = [
        place for place in [tmp_path / "set", *(tmp_path / "set").rglob("*")] if place.is_dir()
    ]
    for place in places:
        place.chmod(0o555)
    try:
        if os.access(places[-1], os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(NotPermitted, match="Permission denied"):
            write(tmp_path / "set", "after")
        assert read(tmp_path / "set") == {"before"}
    finally:
        for place in places:
            place.chmod(0o755)


@pytest.mark.parametrize("kind", WRITERS)
def test_leftovers_of_killed_writers_are_swept_and_those_of_the_living_are_not(
    tmp_path: Path, kind: str
) -> None:
    write, read = WRITERS[kind]
    write(tmp_path, "before")
    folders = sorted({file.parent for file in tmp_path.rglob("*") if file.is_file()})
    dead = [folder / ".1-abc.tmp" for folder in folders]
    for path in dead:
        path.write_bytes(b"half a file")
    with _files.temporary_file(folders[0]) as (living, _):
        assert Dataset(tmp_path).leftovers() or kind == "document"
        write(tmp_path, "after")
        assert living.exists()
        assert list(tmp_path.rglob(".*.tmp")) == [living]
    assert not list(tmp_path.rglob(".*.tmp"))
    assert "after" in read(tmp_path)


def test_a_temporary_file_that_was_swept_before_it_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, swept = fcntl.flock, []

    def slow(file: Any, how: int) -> None:
        if not swept:
            swept.extend(tmp_path.glob(".*.tmp"))
            swept[0].unlink()  # by another, who came between
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with _files.temporary_file(tmp_path) as (path, file):
        assert path.exists()
        assert path != swept[0]
        file.write(b"x")


def test_a_file_system_without_locks_or_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is swept there, because the living cannot be told from the dead; all else works."""

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    for name in ("dataset", "document"):
        folder = tmp_path / name
        write, read = WRITERS[name]
        write(folder, "before")
        left = folder / ("runs" if name == "dataset" else ".") / ".1-abc.tmp"
        left.write_bytes(b"maybe somebody is at it")
        tensors = folder / "thing-of-another.safetensors"
        tensors.write_bytes(b"about to be named")
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", refused)
            patch.setattr(os, "link", refused)
            write(folder, "after")
            assert left.exists()
        assert tensors.exists()
        assert "after" in read(folder)
    save(tmp_path / "document", "with locks")
    assert len(list((tmp_path / "document").iterdir())) == 2
    with monkeypatch.context() as patch:
        patch.setattr(
            _tensors.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "x"))
        )
        with pytest.raises(NotPermitted):
            save(tmp_path / "document", "never")


def test_one_of_two_importers_of_the_same_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it set aside may be what the other was told is kept."""
    add(tmp_path, "a")
    (kept,) = (tmp_path / "rejected").iterdir()
    with monkeypatch.context() as patch:
        Ending(patch, 25, lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        with pytest.raises(NotPermitted):
            add(tmp_path, "b")
    assert kept.exists()


def test_columns_are_checked_before_anything_is_visible(tmp_path: Path) -> None:
    Dataset(tmp_path).write(runs_of("a", remark=[1]))
    before = sorted(tmp_path.rglob("*"))
    both = runs_of("b", remark=["x"], platform_features={"platform": ["p"], "cores": [4]})
    with pytest.raises(Exception, match="remark"):
        Dataset(tmp_path).write(both)
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [
        path for path in before if path.is_file()
    ]
    assert isinstance(both, Runs)
