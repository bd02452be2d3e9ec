"""Full disks, folders that cannot be written, killed writers' leftovers: a clear error, and nothing lost."""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jostle import _files, _tensors
from jostle._tensors import read_document, write_document
from jostle.errors import BadRows, NotPermitted
from jostle.runs import Dataset, Runs, add_runs, read_runs
from jostle.traces import Traces, read_traces, write_traces

from .test_settling import a_trace, runs_of

CALLS = ("fsync", "link", "replace", "mkdir", "write")


class Full:
    """Every call that needs room, counted; the call number `at` and all later ones fail."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, error: int) -> None:
        self.calls, self.at, self.error = 0, at, error
        for name in ("fsync", "link", "replace", "mkdir"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        patch.setattr(_files, "open", self._opened, raising=False)

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls > self.at:
                raise OSError(self.error, os.strerror(self.error))
            return real(*arguments, **named)

        return call

    def _opened(self, path: Any, mode: str = "r", *more: Any) -> Any:
        if "x" not in mode:
            return builtins.open(path, mode, *more)
        # Opening needs room for a name, and so does what is written.
        file = self._counted(builtins.open)(path, mode, *more)
        test = self

        class Counted:
            def write(self, data: Any) -> int:
                return test._counted(file.write)(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __iter__(self) -> Any:
                return iter(file)

        return Counted()


def add(folder: Path, name: str) -> None:
    runs = runs_of(
        name,
        workload_features={"workload": [name], "size": [1]},
        platform_features={"platform": ["p"], "cores": [4]},
    )
    add_runs(folder, runs, "times.csv", pa.table({"row": [1], "reason": [name]}))


def ids(folder: Path) -> set[str]:
    return {*read_runs(folder).table.column("run_id").to_pylist()}


def save(folder: Path, name: str) -> None:
    write_document(folder, "thing", "thing/v1", {"name": name}, {"x": np.arange(5.0)})


def saved(folder: Path) -> set[str]:
    return {read_document(folder, "thing", "thing/v1", fix="Save it again.")[0]["name"]}


def trace(folder: Path, name: str) -> None:
    write_traces(folder, Traces.from_traces([a_trace(name, 1.0)]))


def traced(folder: Path) -> set[str]:
    return {*read_traces(folder).run_ids}


WRITERS = {"dataset": (add, ids), "document": (save, saved), "traces": (trace, traced)}


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("dataset", errno.ENOSPC),
        ("traces", errno.EDQUOT),
        ("document", errno.ENOSPC),
        ("document", errno.EROFS),
    ],
)
def test_a_disk_that_is_full_from_any_call_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, error: int
) -> None:
    write, read = WRITERS[kind]
    write(tmp_path, "before")
    is_full = error in (errno.ENOSPC, errno.EDQUOT)
    at = 0
    for at in range(100):
        with monkeypatch.context() as patch:
            disk = Full(patch, at, error)
            try:
                write(tmp_path, "after")
            except NotPermitted as caught:
                text = str(caught)
            except BadRows:  # all was visible, when only the last fsync of a folder had failed
                assert read(tmp_path) == {"before", "after"}
                break
            else:
                break
        assert ("the disk is full" if is_full else os.strerror(error)) in text
        assert str(tmp_path) in text
        assert disk.calls > at
        # The old or the new, never neither, and nothing half-written beside it.
        assert read(tmp_path) & {"before", "after"}
        assert kind == "document" or "before" in read(tmp_path)
        assert not list(tmp_path.rglob(".*.tmp"))
    assert at > 5
    assert "after" in read(tmp_path)


def test_a_limit_of_the_system(tmp_path: Path) -> None:
    """The system refuses to write beyond some bytes in a file, as a disk does that runs full."""
    for kind, (write, _) in WRITERS.items():
        write(tmp_path / kind, "before")
    program = """
import resource, signal, sys
from pathlib import Path
from jostle.errors import NotPermitted
from tests.storage.test_obstacles import WRITERS

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for kind, (write, _) in WRITERS.items():
    for size in (0, 30, 200):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            write(Path(sys.argv[1]) / kind, "after")
            text = "written"
        except NotPermitted as error:
            text = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        print(kind, text)
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 9
    assert all("File too large" in line for line in lines)
    for kind, (_, read) in WRITERS.items():
        assert read(tmp_path / kind) == {"before"}
    assert not list(tmp_path.rglob(".*.tmp"))


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
        Full(patch, 25, errno.ENOSPC)
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
