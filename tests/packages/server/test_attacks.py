"""What strangers try, against a service on loopback: it goes on answering everybody else.

Attackers come from 127.0.0.1; who asks whether it is alive does, too: nothing is told apart by address.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jostle.server.operations import StateAnswer
from jostle.server.slurm._slurm_jobs import ObservedJobs
from tests.packages.server.conftest import FLEET, Running, Start
from tests.packages.server.process_samples import KEYS, answer_of, connected, serving

PATIENCE_SECONDS = 30


@pytest.fixture(scope="module")
def address(
    model_folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with attacked(model_folders, tmp_path_factory, 50) as where:
        yield where


@contextmanager
def attacked(
    models: tuple[Path, Path], folders: pytest.TempPathFactory, most_per_second: float
) -> Iterator[str]:
    folder = folders.mktemp("attacked")
    (folder / "fleet.csv").write_text(FLEET)
    (folder / "keys").write_text(KEYS)
    more = ("--fleet", str(folder / "fleet.csv"), "--keys", str(folder / "keys"))
    limits = ("--most-connections", "100", "--most-seconds", "2")
    limits += ("--most-per-second", str(most_per_second))
    with serving(models[0], folder / "s.sqlite", *more, *limits) as (where, _):
        yield where


def is_alive(address: str) -> bool:
    with connected(address) as made:
        made.settimeout(PATIENCE_SECONDS)
        made.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return answer_of(made).startswith(b"HTTP/1.1 200 ")


@contextmanager
def watched(address: str) -> Iterator[None]:
    """Somebody asks all the time whether it is alive, and always hears that it is."""
    end, heard = threading.Event(), []

    def ask() -> None:
        while not end.is_set():
            heard.append(is_alive(address))
            end.wait(0.02)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        end.set()
        asking.join(2 * PATIENCE_SECONDS)
    assert heard
    assert all(heard)
    assert is_alive(address)


def is_open(made: socket.socket) -> bool:
    made.setblocking(False)
    try:
        return made.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_silent_connections_by_the_thousand(address: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(hard, 4096)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    n, silent = min(2000, most - 200), []
    try:
        with watched(address):
            for number in range(n):
                made = connected(address)
                if number % 2:
                    made.sendall(b"GET /healthz HTTP/1.1\r\nHost: localh")
                silent.append(made)
        assert sum(map(is_open, silent)) <= 100
    finally:
        for made in silent:
            made.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_requests_that_never_end(model_folders: tuple[Path, Path], tmp_path: Path) -> None:
    head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
    with serving(model_folders[0], tmp_path / "s", "--most-connections", "20") as (where, _):
        slow = []
        with watched(where):
            for _ in range(60):
                slow.append(connected(where))
                slow[-1].sendall(head)
        for made in slow:
            made.close()


def test_who_comes_is_heard_before_those_who_had_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turn costs does not grow with those who wait: each is looked at when it comes and when taken."""
    pytest.importorskip("uvicorn")
    from jostle.server.http import _protocol

    later, heard, looks, turns = list[Any](), list[int](), list[int](), _protocol.Turns()
    monkeypatch.setattr(_protocol, "TURN_SECONDS", 0.0)  # one turn has time for one of them

    class Connection:
        loop = SimpleNamespace(call_soon=later.append)

        def __init__(self, number: int) -> None:
            self.number = number

        @property
        def cycle(self) -> object:
            looks.append(self.number)
            return None if self.number >= 40 else 1

        def parse_part(self) -> bool:
            heard.append(self.number)
            return heard.count(self.number) < 2

    for number in range(50):
        turns.wait_for(Connection(number))  # type: ignore[arg-type]
    for take in later:  # which adds to them
        take()
    assert heard == [*range(40, 50)] * 2 + [*range(40)] * 2
    assert len(later) <= len(heard)
    assert len(looks) <= 3 * len(heard)


@pytest.mark.parametrize(
    ("sent", "act", "has_left"),
    [
        (b"", None, False),
        (b"", "shutdown", True),
        (b"", "reset", True),
        (b"GET", None, False),
        (b"GET", "shutdown", False),
    ],
)
def test_who_leaves_before_it_is_taken_costs_nothing(
    sent: bytes, act: str | None, has_left: bool
) -> None:
    pytest.importorskip("uvicorn")
    from jostle.server.http import _accept

    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        client.sendall(sent)
        if act == "shutdown":
            client.shutdown(socket.SHUT_WR)
        elif act == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        taken, _ = listening.accept()
        with client, taken:
            assert _accept.has_left(taken) == has_left
            assert not sent or taken.recv(3) == sent


def test_answers_that_nobody_reads(address: str) -> None:
    asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin-key\r\n\r\n"
    slow = []
    try:
        with watched(address):
            for _ in range(30):
                made = connected(address)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                made.settimeout(0.2)
                try:
                    for _ in range(50):
                        made.sendall(asked)
                except OSError:
                    pass
                slow.append(made)
    finally:
        for made in slow:
            made.close()


def test_what_is_not_read_in_time_is_given_up() -> None:
    pytest.importorskip("uvicorn")
    from jostle.server.http._protocol import PatientProtocol

    later: list[Any] = []

    class Loop:
        def call_later(self, seconds: float, act: Any) -> Any:
            later.append((seconds, act))
            return SimpleNamespace(cancel=lambda: later.clear())

    aborted: list[int] = []
    protocol: Any = PatientProtocol.__new__(PatientProtocol)
    protocol.loop, protocol.flow = (
        Loop(),
        SimpleNamespace(pause_writing=lambda: None, resume_writing=lambda: None),
    )
    protocol.transport = SimpleNamespace(is_closing=lambda: False, abort=lambda: aborted.append(1))
    protocol.pause_writing()
    protocol.resume_writing()
    assert not later
    protocol.pause_writing()
    ((seconds, act),) = later
    act()
    assert seconds == protocol.write_seconds
    assert aborted == [1]


def request_of(path: str = "/v1/models", key: str = "reader-key", **headers: str) -> bytes:
    given = {"Host": "localhost", "Authorization": f"Bearer {key}", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode()


FLOODS = {
    "a key": (request_of(), {200, 429}),
    "no key": (request_of(key="wrong"), {401, 429}),
    "another host": (request_of(Host="evil.example"), {403, 429}),
    "another origin": (request_of(Origin="http://evil.example"), {403, 429}),
    "no origin at all": (request_of(Origin="http://["), {403, 429}),
    "no such operation": (request_of("/x"), {404, 429}),
    "whether it is alive": (request_of("/healthz"), {200, 429}),
}


@pytest.fixture(scope="module")
def patient(
    model_folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """So few requests a second that a machine that is busy sends more, too."""
    with attacked(model_folders, tmp_path_factory, 0.5) as where:
        yield where


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_told_to_wait(patient: str, kind: str) -> None:
    """Every answer counts, of whatever status; those that refuse end the connection."""
    address, (asked, expected) = patient, FLOODS[kind]
    found, lines = list[int](), [b""]
    with watched(address):
        while 429 not in found[-1:]:
            with connected(address) as made:
                made.sendall(asked * 200)
                lines = answer_of(made).split(b"HTTP/1.1 ")[1:]
            statuses = [int(line[:3]) for line in lines]
            assert not {401, 403, 429} & set(statuses[:-1])
            found += statuses
    assert set(found) <= expected
    assert b"retry-after: " in lines[-1].lower()


def test_one_connection_has_few_requests_under_way() -> None:
    """What a client sends ahead is not parsed before its turn, and all of it is answered in the end."""
    uvicorn = pytest.importorskip("uvicorn")
    from jostle.server.http._protocol import PatientProtocol, Turns

    most, sent, body = 0, 2000, b"x" * 100

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal most
        most = max(most, len(made[0].pipeline) + 1)
        parts = [await receive()]
        while parts[-1]["more_body"]:
            parts.append(await receive())
        assert b"".join(one["body"] for one in parts) == body
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    made: list[Any] = []

    def connection() -> Any:
        config = uvicorn.Config(app, log_config=None)
        config.load()
        one = PatientProtocol(config, uvicorn.server.ServerState(), {})
        one.turns = Turns()
        made.append(one)
        return one

    async def ask() -> int:
        server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
        writer.write((head + body) * sent)
        answers = [await reader.readuntil(b"\r\n\r\n") for _ in range(sent)]
        writer.close()
        server.close()
        return sum(one.startswith(b"HTTP/1.1 204 ") for one in answers)

    assert asyncio.run(ask()) == sent
    assert most <= 16


def test_a_request_of_millions_of_parts_is_not_parsed(service: Running) -> None:
    keys = ",".join(f'"{n:x}":0' for n in range(300_000))
    parts = [",".join([one] * 300_000) for one in ("{}", "[]", '{"a":[]}')] + [f"{{{keys}}}"]
    for asked in [f'{{"items":[{part}]}}' for part in parts] + [f"{{{keys}}}"]:
        found = service.http.post("/v1/predict", content=asked)
        assert (found.status_code, "objects, lists and names" in found.text) == (413, True)


def test_large_requests_cost_their_bytes(start: Start) -> None:
    service = start(most_per_second=10.0)
    asked = {"items": [{"workload": "w00", "platform": "p0", "corunners": []}] * 2000}
    assert service.http.post("/v1/predict", json=asked).status_code == 200
    assert service.http.post("/v1/predict", json=asked).status_code == 429
    # Who asks in few words for much pays for the answer.
    service = start(most_per_second=20.0)
    found = [service.http.get("/openapi.json").status_code for _ in range(9)]
    assert found[0] == 200
    assert found[-1] == 429


def test_what_takes_long_is_not_done_by_the_event_loop(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many.csv").write_text(
        "name,platform\n" + "".join(f"n{n},p0\n" for n in range(300))
    )
    service, done = start(fleet=tmp_path / "many.csv"), list[tuple[str, str]]()

    def noted(kind: type, name: str) -> None:
        act = getattr(kind, name)

        def noting(self: Any, *given: Any) -> Any:
            done.append((type(self).__name__, threading.current_thread().name))
            return act(self, *given)

        monkeypatch.setattr(kind, name, noting)

    noted(StateAnswer, "to_document")
    noted(type(service.app.state.service.served.model.calibration), "summary")
    noted(ObservedJobs, "see")
    for path in ("placements", "fleet", "models", "models"):
        assert service.http.get(f"/v1/{path}").status_code == 200
    by_kind = dict(done)
    assert by_kind["FleetNow"] != by_kind["Placements"] == by_kind["ServedModels"]
    (found,) = [one for one in done if one[0] not in ("FleetNow", "Placements", "ServedModels")]
    assert found[1] != by_kind["Placements"]  # found once, and by another thread
    # All jobs of a large cluster at once, none of which was placed here: one change on the disk.
    jobs = [f"{n}|ann|n{n}|1|w00|" for n in range(300)]
    service.post("/v1/slurm/jobs", {"event": "began", "job": "1", "nodes": [], "jobs": jobs})
    placed = service.app.state.service.store.placements_since(0)
    assert (len(placed), len({one.changed for one in placed})) == (300, 1)
    assert dict(done)["ObservedJobs"] != by_kind["Placements"]


SMUGGLED = (
    b"Content-Length: 4\r\nTransfer-Encoding: chunked",
    b"Content-Length: 4\r\nContent-Length: 5",
    b"Content-Length: 4, 5",
    b"Content-Length: +4",
    b"Content-Length: -1",
    b"Content-Length : 4",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: xchunked",
    b" Transfer-Encoding: chunked",
    b"Transfer-Encoding\x00: chunked",
    b"X: a\nTransfer-Encoding: chunked",
)


@pytest.mark.parametrize("headers", SMUGGLED)
def test_no_second_request_is_smuggled(address: str, headers: bytes) -> None:
    second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(address) as made:
        made.sendall(
            b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer reader-key\r\n"
            + headers + b"\r\n\r\n0\r\n\r\n" + second
        )  # fmt: skip
        made.shutdown(socket.SHUT_WR)
        found = answer_of(made)
    assert found.count(b"HTTP/1.1 ") <= 1
    assert b"HTTP/1.1 200 " not in found
    assert is_alive(address)


@pytest.mark.parametrize(
    "host", [b"Host: evil.example", b"Host: evil.example:8000", b"Host: localhost.evil.example", b"X: y",
             b"Host: localhost\r\nHost: evil.example", b"Host: localhost@evil.example",
             b"Host: localhost\r\nOrigin: http://evil.example", b"Host: localhost\r\nOrigin: http://[",
             b"Host: localhost\r\nAuthorization: Bearer wrong"]
)  # fmt: skip
def test_another_host_is_refused(address: str, host: bytes) -> None:
    key = b"Authorization: Bearer admin-key\r\nConnection: close"
    with connected(address) as made:
        made.sendall(b"GET /v1/models HTTP/1.1\r\n" + host + b"\r\n" + key + b"\r\n\r\n")
        assert answer_of(made).startswith(b"HTTP/1.1 403 ")


def test_own_hosts_pass(address: str) -> None:
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8000"):
        with connected(address) as made:
            made.sendall(
                f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
            )
            assert answer_of(made).startswith(b"HTTP/1.1 200 ")


def test_bodies_of_one_client_are_bounded(start: Start) -> None:
    service = start()
    receiving = service.app.state.service.callers.bodies
    receiving["testclient"] = 8 * service.settings.most_body_bytes
    found = service.http.post("/v1/predict", json={"items": []})
    assert found.status_code == 429
    receiving.clear()
    assert service.http.post("/v1/predict", json={"items": []}).status_code == 200
    assert not receiving


HOSTILE = (
    "<script>alert(1)</script>",
    "a\r\nX-Injected: 1",
    "\x1b[2J",
    "../../etc/passwd",
    "\u202eabc",
    "';--",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(service: Running, name: str) -> None:
    from urllib.parse import quote

    body = {"workload": name, "node": "east", "require": "nothing"}
    put = service.http.put(f"/v1/placements/{quote(name, safe='')}", json=body)
    found = [
        put,
        service.http.get("/v1/placements"),
        service.http.get("/v1/fleet"),
        service.http.get("/metrics"),
    ]
    run = {"id": name, "workload": name, "platform": name, "runtime_seconds": 1.0}
    found.append(service.http.post("/v1/runs", json={"items": [run]}))
    pod = {"metadata": {"name": name, "namespace": name, "labels": {"jostle/workload": name}}}
    found.append(
        service.http.post("/v1/kubernetes/filter", json={"Pod": pod, "NodeNames": ["east", name]})
    )
    for one in found:
        assert one.status_code < 500
        assert "x-injected" not in one.headers
        kind = one.headers["content-type"]
        assert kind.startswith("text/plain") or one.headers["x-content-type-options"] == "nosniff"
        if "json" in kind:
            json.loads(one.text)
