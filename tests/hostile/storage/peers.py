"""Everyone who is asked over a process, a machine or a network and answers, with what goes wrong there."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jostle.collect.slots._slots import Slot
from jostle.data import PrometheusImport
from jostle.errors import NotPermitted, UsageError
from jostle.server import Client
from jostle.server.asking._search_process import Worker
from jostle.server.kubernetes._kubernetes_api import ApiServer
from tests.hostile.storage.carriers import windows
from tests.hostile.storage.stand_ins import Answer, Cluster, measured
from tests.waiting import HANGS_SECONDS


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
        time.sleep(3600)
    told = {"none": '{"ready": true}', "nonsense": "hello", "another thing": "[1]", "half": '{"rea'}[do]
    os.write(1, told.encode() + b"\\n" * (do != "half"))
    if do == "half":
        sys.exit(3)
"""


def by_slot(do: str) -> Callable[[], Any]:
    def asked() -> Any:
        slot = Slot(program="slot_of_tests")
        try:
            found = slot.ask({"do": do}, HANGS_SECONDS if do != "late" else 0.5)
            if why := found.get("failed", "no answer in time" if "timeout" in found else None):
                assert slot.ask({"do": "none"}, HANGS_SECONDS) == {
                    "ready": True
                }  # it is begun anew
                raise NotPermitted(why, where="slot", fix="-")
            return found
        finally:
            slot.kill()

    return asked


def by_process(act: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    async def asked() -> Any:
        worker = Worker()
        try:
            return await worker.do(HANGS_SECONDS if act is not time.sleep else 0.5, act, *given)
        except (BrokenProcessPool, TimeoutError) as error:
            worker.close()
            assert await worker.do(HANGS_SECONDS, len, "ab") == 2  # it is begun anew
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
        "late": by_process(time.sleep, 3600),
    },
}
