"""What everything must do that carries measurements: into a folder, or from another process or machine.

The laws are the same for all. What writes is in `carriers.py`; whoever is asked and answers is in PEERS here,
each with every trouble of TROUBLES. A new one needs one more entry; tests fail until it has one."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import jostle
from jostle.errors import BadRows, JostleError, NotPermitted, UsageError
from jostle.measure.slots._slots import Slot
from jostle.service import Client
from jostle.service.answers._apart import Worker
from jostle.service.kubernetes._api import ApiServer
from jostle.traces import PrometheusImport
from tests.storage.carriers import (
    CARRIERS,
    Answer,
    Cluster,
    Ending,
    Service,
    journal,
    measured,
    runs_of,
    windows,
)

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
        "service.operations._runs",
        "service.slurm._submit",
        "service.kubernetes._extender",
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
from tests.storage.carriers import CARRIERS

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


@contextmanager
def answering(act: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that reads a request and does this."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    made, _ = server.accept()
                    with made, suppress(OSError):
                        made.recv(65536)
                        act(made)

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def body(document: Any) -> bytes:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def over_http(ask: Callable[[str], Any], whole: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What happens to a question of one who asks by HTTP. whole: a right answer."""
    text = body(whole)

    def answered(*parts: bytes, then: Callable[[], object] = lambda: None) -> Callable[[], Any]:
        def act(made: socket.socket) -> None:
            for part in parts:
                made.sendall(part)
            then()

        def asked() -> Any:
            with answering(act) as url:
                return ask(url)

        return asked

    for_ever = threading.Event()
    return {
        "none": answered(text),
        "gone": lambda: ask("http://127.0.0.1:9"),
        "cut": answered(),
        "late": answered(text[:30], then=lambda: for_ever.wait(3)),
        "truncated": answered(text[:-5]),
        "half a document": answered(body(json.dumps(whole).encode()[:-3])),
        "nonsense": answered(b"SSH-2.0-OpenSSH_9\r\n"),
        "another thing": answered(body([1, {"items": 3}])),
        "nothing": answered(body(None)),
        "nested": answered(body(b"[" * 100_000)),
        "other values": answered(body(dict.fromkeys(whole, 3) | {"schema": whole.get("schema")})),
        **(
            {"version": answered(body(whole | {"schema": "coverage/v9"}))}
            if "schema" in whole
            else {}
        ),
        "no service": answered(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\n<h"),
    }


def by_client(url: str) -> Any:
    with Client(url, timeout_seconds=0.5) as client:
        return client.coverage()


def by_prometheus(url: str) -> Any:
    times: dict[str, Any] = {"start": "2026-01-01T00:00:00", "end": "2026-01-01T00:01:00"}
    return PrometheusImport((url,), "api", "prod", query=("x",), **times).read()


def by_api_server(url: str) -> Any:
    async def asked() -> Any:
        server = ApiServer(url)
        try:
            return await server.list("pods")
        finally:
            await server.close()

    return asyncio.run(asked())


SERIES = {
    "resultType": "matrix",
    "result": [{"metric": {"pod": "a"}, "values": [[1.0, "2"], [16.0, "3"]]}],
}


def by_worker(trouble: Callable[[int, Any], Answer], step: float = 0.0) -> Callable[[], Any]:
    """A campaign whose first worker has it; the second comes when it is asked for the second time."""

    def asked() -> Any:
        folder = Path(tempfile.mkdtemp())
        cluster = Cluster("first", step=step)

        def troubled(number: int, value: Any) -> Answer:
            cluster.workers["tcp://second"] = {"name": "second"}
            cluster.asked["second"] = 0
            given = trouble(number, value)
            if given.status == "gone":
                del cluster.workers["tcp://first"]
            return given

        cluster.trouble["first"] = troubled
        summary = measured(folder, "a", cluster)
        assert summary.finished
        assert windows(folder) == {"a"}
        if summary.lost or summary.refused:
            lost = "its window was given to another" if summary.lost else ""
            raise NotPermitted("; ".join([*summary.refused, lost]), where="first", fix="-")
        return summary

    return asked


def window(
    at: str, value: Any = None, error: Exception | None = None
) -> Callable[[int, Any], Answer]:
    """The first worker says what it is; that becomes of its first window."""
    return lambda number, whole: (
        Answer(at, value, error) if number == 2 else Answer("finished", whole)
    )


def other_version(number: int, value: Any) -> Answer:
    del number
    return Answer("finished", replace(value, version="0.0.1"))


FIRST = {
    "none": by_worker(lambda number, value: Answer("finished", value)),
    "gone": by_worker(window("gone")),
    "cut": by_worker(window("finished", error=TimeoutError())),
    "late": by_worker(window("pending"), step=40.0),
    "nonsense": by_worker(window("finished", 3)),
    "another thing": by_worker(lambda number, value: Answer("finished", {"number": number})),
    "version": by_worker(other_version),
    "not installed": by_worker(
        lambda *_: Answer("error", error=ModuleNotFoundError("No module named 'jostle'"))
    ),
    "refuses": by_worker(
        lambda *_: Answer("error", error=UsageError("no such cores", fix="Name others."))
    ),
}

SLOT = """
import json, os, sys, time
for line in sys.stdin:
    do = json.loads(line)["do"]
    if do == "cut":
        os.kill(os.getpid(), 9)
    if do == "late":
        time.sleep(60)
    told = {"none": '{"ready": true}', "nonsense": "hello", "another thing": "[1]", "half": '{"rea'}[do]
    os.write(1, told.encode() + b"\\n" * (do != "half"))
    if do == "half":
        sys.exit(3)
"""


def by_slot(do: str) -> Callable[[], Any]:
    def asked() -> Any:
        slot = Slot(program="slot_of_tests")
        try:
            found = slot.ask({"do": do}, 5.0 if do != "late" else 0.5)
            if why := found.get("failed", "no answer in time" if "timeout" in found else None):
                assert slot.ask({"do": "none"}, 5.0) == {"ready": True}  # it is begun anew
                raise NotPermitted(why, where="slot", fix="-")
            return found
        finally:
            slot.kill()

    return asked


def by_process(act: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    async def asked() -> Any:
        worker = Worker()
        try:
            return await worker.do(20.0 if act is not time.sleep else 0.5, act, *given)
        except (BrokenProcessPool, TimeoutError) as error:
            worker.close()
            assert await worker.do(20.0, len, "ab") == 2  # it is begun anew
            raise NotPermitted(type(error).__name__, where="process", fix="-") from None
        finally:
            worker.close()

    return lambda: asyncio.run(asked())


# Of everyone who is asked and answers: what asks it in each trouble.
PEERS: dict[str, dict[str, Callable[[], Any]]] = {
    "client": over_http(
        by_client, {"schema": "coverage/v1", "model": None, "confidence": 0.9, "days": []}
    ),
    "prometheus": over_http(by_prometheus, {"data": SERIES}),
    "API server": over_http(by_api_server, {"items": []}),
    "fleet": FIRST,
    "slot": {
        do: by_slot(do) for do in ("none", "cut", "late", "nonsense", "another thing", "half")
    },
    "process": {
        "none": by_process(len, "ab"),
        "cut": by_process(os._exit, 3),
        "late": by_process(time.sleep, 60),
    },
}
TROUBLES = {"none", "cut", "late"}


def test_everyone_is_asked_in_every_trouble() -> None:
    assert all(set(troubles) >= TROUBLES for troubles in PEERS.values())
    root = Path(jostle.__file__).parent
    asks = re.compile(
        r"httpx\.\w*Client\(|urlopen\(|ProcessPoolExecutor\(|measure_fleet\(|class Slot\b"
    )
    found = [path for path in sorted(root.rglob("*.py")) if asks.search(path.read_text())]
    assert len([path for path in found if "/cli/" not in str(path)]) == len(PEERS), found


@pytest.mark.parametrize(
    ("peer", "trouble"), [(peer, one) for peer, all_ in PEERS.items() for one in all_]
)
def test_whoever_does_not_answer_is_told_of_and_nothing_hangs(
    peer: str, trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slot_of_tests.py").write_text(SLOT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ask = PEERS[peer][trouble]
    if trouble == "none":
        ask()
        return
    began = time.monotonic()
    with pytest.raises(JostleError) as caught:
        ask()
    assert caught.value.where
    assert caught.value.fix
    assert time.monotonic() - began < 30
