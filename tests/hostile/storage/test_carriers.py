"""What everything must do that carries measurements into a folder. The laws are the same for all; what writes
is in `carriers.py`, and a new one needs one more entry there; a test fails until it has one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import jostle
from jostle.errors import BadRows, JostleError, NotPermitted, UsageError
from tests.hostile.storage.carriers import CARRIERS, journal, runs_of
from tests.hostile.storage.stand_ins import Ending, Service

EVERY = pytest.mark.parametrize("name", CARRIERS)


def test_every_module_that_writes_runs_has_a_carrier() -> None:
    root = Path(jostle.__file__).parent
    writes = re.compile(
        r"\badd_runs\(|(?<!self\.)\bready_to_add\(|\b(Dataset\(\w+\)|dataset)\.write\("
    )
    found = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if writes.search(re.sub(r"def \w+\(|service\.store\.add_runs\(", "", path.read_text()))
    }
    by_service = {
        "server.operations._observed_runs",
        "server.slurm._slurm_submit",
        "server.kubernetes._extender",
    }
    assert found - by_service == {module for one in CARRIERS.values() for module in one.modules}


@EVERY
def test_what_is_sent_is_found_once_however_often_it_is_sent(tmp_path: Path, name: str) -> None:
    one = CARRIERS[name]
    for sent in ("a", "b", "a"):
        try:
            one.send(tmp_path / "to", sent)
        except JostleError as error:
            assert sent == "a"
            assert one.twice in str(error)  # noqa: PT017
            assert error.fix  # noqa: PT017
    assert one.found(tmp_path / "to") == ({"a"} if one.is_last else {"a", "b"})
    assert one.found(tmp_path / "to") == ({"a"} if one.is_last else {"a", "b"})


class Killed(BaseException):
    """As a process that is killed: nothing that comes after is done."""


ENDS: dict[str, Callable[[], BaseException]] = {
    "killed": Killed,
    "disk full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "quota": lambda: OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
    "read-only": lambda: OSError(errno.EROFS, os.strerror(errno.EROFS)),
}
SAID = "disk is full|could not write: No space left|Read-only file system"


@pytest.mark.parametrize(
    ("name", "end"),
    [(name, end) for name, one in CARRIERS.items() if one.calls for end in ("killed", "disk full")]
    + [("traces", "quota"), ("document", "read-only")],
)
def test_what_ends_at_any_call_loses_nothing_and_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, end: str
) -> None:
    one, at, is_through = CARRIERS[name], 0, False
    one.send(tmp_path / "first", "before")
    while not is_through:
        folder, is_kept = tmp_path / str(at), False
        shutil.copytree(tmp_path / "first", folder)
        with monkeypatch.context() as patch:
            disk = Ending(patch, at, ENDS[end])
            try:
                one.send(folder, "after")
                is_kept = True
            except Killed:
                pass
            except JostleError as error:
                assert end != "killed"
                # All was visible when only the last fsync of a folder had failed.
                assert re.search(SAID, str(error)) or isinstance(error, BadRows), error  # noqa: PT017
                assert str(folder) in str(error)  # noqa: PT017
                assert error.fix  # noqa: PT017
                assert not list(folder.rglob(".*.tmp"))
            is_through = disk.calls <= at
        found = one.found(folder)
        assert found <= {"before", "after"}
        assert found if one.is_last else "before" in found
        assert "after" in found or not is_kept
        if "after" not in found:
            one.send(folder, "after")
            assert one.found(folder) == ({"after"} if one.is_last else {"before", "after"})
        at += 1 + at // 8
    assert at > 4


@EVERY
def test_where_a_file_stands_in_the_way_it_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "to").write_text("in the way")
    for place in (tmp_path / "to", tmp_path / "to" / "in"):
        with pytest.raises(JostleError, match=re.escape(str(tmp_path / "to"))) as caught:
            CARRIERS[name].send(place, "a")
        assert caught.value.fix


def test_the_system_refuses_more_than_some_bytes_in_a_file(tmp_path: Path) -> None:
    """As a disk that runs full: without Python's doing."""
    for name, one in CARRIERS.items():
        one.send(tmp_path / name, "before")
    program = """
import resource, signal, sys
from pathlib import Path
from jostle.errors import JostleError
from tests.hostile.storage.carriers import CARRIERS

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for name, one in CARRIERS.items():
    for size in (0, 30, 200):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            one.send(Path(sys.argv[1]) / name, "after")
            text = "written"
        except JostleError as error:
            text = f"{error} {error.fix}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        print(name, text.replace(chr(10), " "))
"""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * len(CARRIERS)
    assert all(
        "File too large" in line or "full" in line or "I/O error" in line for line in lines
    ), lines
    for name, one in CARRIERS.items():
        assert one.found(tmp_path / name) == {"before"}
    assert not list(tmp_path.rglob(".*.tmp"))


@EVERY
def test_of_two_at_once_nothing_is_lost(tmp_path: Path, name: str) -> None:
    """Each is told that its own is kept, or why not; who was refused sends it again."""
    one, refused = CARRIERS[name], []

    def send(sent: str) -> None:
        try:
            one.send(tmp_path / "to", sent)
        except JostleError as error:
            assert error.fix  # noqa: PT017
            refused.append(sent)

    one.send(tmp_path / "to", "first")
    threads = [threading.Thread(target=send, args=(sent,)) for sent in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sent in refused:
        one.send(tmp_path / "to", sent)
    found = one.found(tmp_path / "to")
    assert found == {"first", "a", "b"} or (one.is_last and found <= {"a", "b"} and found)


@EVERY
def test_what_another_version_or_nobody_wrote_is_refused_by_name(tmp_path: Path, name: str) -> None:
    one, folder = CARRIERS[name], tmp_path / "to"
    one.send(folder, "a")
    one.found(folder)
    wholes = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path, whole in wholes.items():
        if path.suffix not in (".parquet", ".json"):
            continue
        for wrong in (whole.replace(b"/v1", b"/v9"), b"", whole[: len(whole) // 2], b"{}\n"):
            path.write_bytes(wrong)
            place = folder if one.is_last else path  # of one document the folder is the name
            with pytest.raises(JostleError, match=re.escape(str(place))) as caught:
                one.found(folder)
            assert caught.value.fix
        path.write_bytes(whole)
    assert one.found(folder) == {"a"}


class Cut(httpx.BaseTransport):
    """The connection is cut when the question has arrived."""

    def __init__(self, own: httpx.BaseTransport) -> None:
        self._own = own

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._own.handle_request(request)
        raise httpx.ReadError("cut", request=request)


def test_a_run_whose_answer_was_lost_is_stored_once(tmp_path: Path) -> None:
    with Service(tmp_path, Cut) as client, pytest.raises(NotPermitted, match="does not answer"):
        client.add_runs(runs_of("a"))
    with Service(tmp_path) as client:
        assert client.add_runs(runs_of("a")) == ["already_stored"]
        assert client.add_runs(runs_of("a", runtime_seconds=[9.0])) == ["conflict"]
    assert CARRIERS["service"].found(tmp_path) == {"a"}


def test_one_process_at_a_time_measures_a_campaign(tmp_path: Path) -> None:
    with journal(tmp_path), pytest.raises(UsageError, match="another process"):
        journal(tmp_path)
