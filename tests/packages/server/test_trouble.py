"""What goes wrong beside the answers is noticed, told, and begins again."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from jostle.errors import NotPermitted
from jostle.server.http._running_service import steady_clock
from jostle.server.state import Store
from tests.packages.server.conftest import Running, Start
from tests.waiting import wait_for


def stored(by: Running, id: str) -> int:
    """Post a run of this id; the status of the answer."""
    run = {"id": id, "workload": "w00", "platform": "p0", "runtime_seconds": 1.0}
    return by.http.post("/v1/runs", json={"items": [run]}).status_code


def test_a_state_file_that_is_gone_is_noticed(start: Start, tmp_path: Path) -> None:
    service, state = start(), tmp_path / "state.sqlite"
    log, kept = tmp_path / "state.sqlite-wal", tmp_path / "kept"

    assert stored(service, "a") == 200, list(tmp_path.iterdir())
    for gone in (state, log):
        gone.rename(kept)
        assert stored(service, f"lost with {gone}") == 503
        assert (
            service.http.put(
                "/v1/placements/a", json={"workload": "w00", "node": "east"}
            ).status_code
            == 503
        )
        if gone == state:
            gone.write_bytes(b"")  # another one
            assert stored(service, "b") == 503
        found = service.http.get("/readyz")
        assert (found.status_code, "removed, replaced" in found.text) == (503, True), found.text
        kept.rename(gone)
        assert stored(service, f"back {gone}") == 200
        assert service.http.get("/readyz").status_code == 200
    for emptied in (state, log):
        content = emptied.read_bytes()
        emptied.write_bytes(b"")
        assert stored(service, f"lost with {emptied}") == 503
        if emptied == state:
            emptied.write_bytes(content)
            assert stored(service, "back once more") == 200


@pytest.mark.parametrize("is_other", [False, True])
def test_a_state_file_that_is_written_over_in_place_is_noticed(
    start: Start, tmp_path: Path, is_other: bool
) -> None:
    """By what it held before, and by another state: both are whole databases, in the same file.

    Others look and write, in processes of their own: this one would lose SQLite's locks by closing the file.
    """
    service, state = start(), str(tmp_path / "state.sqlite")
    other = str(tmp_path / "other.sqlite")
    Store(other, service.clock).close()

    def looks() -> None:
        """Somebody else opens the state, has its log written into it, and closes it."""
        look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint')"
        subprocess.run([sys.executable, "-c", look, state], check=True)

    assert stored(service, "a") == 200
    looks()
    subprocess.run(["cp", other if is_other else state, tmp_path / "copy"], check=True)
    assert stored(service, "b") == 200
    looks()
    assert stored(service, "c") == 200
    subprocess.run(["cp", tmp_path / "copy", state], check=True)
    assert stored(service, "d") == 503
    assert service.http.get("/readyz").status_code == 503


@pytest.mark.parametrize("log", ["", "-wal"])
def test_zeros_in_the_middle_of_the_state_are_noticed(
    start: Start, tmp_path: Path, log: str
) -> None:
    """Nothing is acknowledged into a file that cannot be read back; what a replica writes is no damage."""
    service, other = start(), start()
    file = tmp_path / f"state.sqlite{log}"

    for number in range(9):
        assert stored((service, other)[number % 2], f"a{number}") == 200
    where = 4096 if not log else 32 + 24 + 512  # a page, or what the log holds of one
    zeros = f"if=/dev/zero of={file} bs=1 seek={where} count={file.stat().st_size - where - 512}"
    subprocess.run(["dd", *zeros.split(), "conv=notrunc", "status=none"], check=True)
    assert [stored(service, "b"), stored(other, "c"), stored(service, "d")] == [503, 503, 503]
    found = service.http.get("/readyz")
    assert (found.status_code, "put a copy there" in found.text) == (503, True), found.text


def test_a_full_disk_is_told_and_left_behind(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = {"id": "a", "workload": "w00", "platform": "p0", "runtime_seconds": 1.0}
    assert service.http.get("/readyz").status_code == 200
    with monkeypatch.context() as full:
        full.setattr(tempfile, "TemporaryFile", lambda **_: FileIO("/dev/full", "w"))
        wait_for(lambda: service.http.get("/readyz").status_code == 503)
        told = service.http.get("/readyz").json()["detail"]
        assert "there is no room for the state: No space left" in told
        assert service.http.get("/healthz").status_code == 200
    assert service.http.get("/readyz").status_code == 200
    store = service.app.state.service.store
    with store.reading() as connection:
        limit = list(connection.exec_driver_sql("PRAGMA page_count").one())

    def limited(connection: Any, *_: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {limit[0]}")

    event.listen(store.engine, "checkout", limited)  # whichever connection writes
    many = [{**run, "id": f"{n}", "workload": "w" * 200} for n in range(500)]
    found = service.http.post("/v1/runs", json={"items": many})
    assert (found.status_code, "disk is full" in found.text) == (503, True), found.text
    limit[0] = 1_000_000
    assert service.http.post("/v1/runs", json={"items": many}).status_code == 200
    assert len(store.runs_after(0, 1000)) == 500


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device", "kernel"])
def test_what_is_no_file_is_no_state(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else "/proc/kmsg")
    why = "Is a directory" if kind == "folder" else "it is no regular file"
    with pytest.raises(NotPermitted, match=why):
        Store(str(path), time.time)


def test_what_fails_beside_the_answers_begins_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jostle.server.http import _running_service
    from jostle.server.state._served_model import ModelFolder

    look, calls = ModelFolder.look, []

    def fails(self: ModelFolder) -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("nobody foresaw it")
        return look(self)

    monkeypatch.setattr(_running_service, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(ModelFolder, "look", fails)
    service = start()
    wait_for(lambda: len(calls) > 3)
    found = service.http.get("/readyz")
    assert found.status_code == 200, found.text
    assert found.json()["failed"] == {"models": 1}
    assert 'jostle_loop_failures_total{loop="models"} 1.0' in service.http.get("/metrics").text


def test_what_hinders_answers_is_logged_once(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serving, hindered = service.app.state.service, list[str]()

    def fails() -> bool:
        if hindered:
            raise NotPermitted(hindered[-1])
        return False

    monkeypatch.setattr(serving.drifts, "follow", fails)
    for why in ("full", "gone"):
        hindered.append(why)
        for _ in range(3):
            assert serving.follow() is False
    hindered.clear()
    serving.follow()
    hindered.append("full")
    serving.follow()
    told = [record.getMessage() for record in caplog.records if "follow" in record.getMessage()]
    assert [text.rpartition(": ")[2] for text in told] == ["full", "gone", "full"]


def test_what_hinders_learning_is_logged_once(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serving, looks = service.app.state.service, list[int]()

    def fails() -> bool:
        looks.append(1)
        raise NotPermitted("gone" if len(looks) > 2 else "full")

    async def learn() -> None:
        learning = asyncio.create_task(serving.learn(0.001))
        while len(looks) < 5 and not learning.done():
            await asyncio.sleep(0.001)
        learning.cancel()
        await asyncio.gather(learning, return_exceptions=True)

    monkeypatch.setattr(serving.learning, "is_due", fails)
    asyncio.run(learn())
    told = [record.getMessage() for record in caplog.records if "learned" in record.getMessage()]
    assert [text.rpartition(": ")[2] for text in told] == ["full", "gone"]
    assert serving.learning.trouble == "gone"


def test_a_step_of_the_systems_clock_moves_none_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = steady_clock()
    before = clock()
    assert abs(before - time.time()) < 3600
    monkeypatch.setattr(time, "time", lambda: before + 1e6)
    assert 0 <= clock() - before < 1e5
