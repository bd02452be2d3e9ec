"""What strangers try, against a service on loopback: it goes on answering everybody else.

Attackers come from 127.0.0.1; who asks whether it is alive does, too: nothing is told apart by address.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jostle
from jostle.errors import NotPermitted, UsageError
from jostle.server import ServeSettings
from jostle.server.http._callers import Callers
from tests.packages.server.conftest import FLEET, Running, Start
from tests.packages.server.process_samples import answer_of, connected, serving

KEYS = "see read reader-key\ndo write writer-key\nall administer admin-key\n"
PATIENCE_SECONDS = 30


@pytest.fixture(scope="module")
def address(
    model_folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "fleet.csv").write_text(FLEET)
    (folder / "keys").write_text(KEYS)
    more = ("--fleet", str(folder / "fleet.csv"), "--keys", str(folder / "keys"))
    limits = ("--most-connections", "100", "--most-per-second", "50", "--most-seconds", "2")
    with serving(model_folders[0], folder / "s.sqlite", *more, *limits) as (where, _):
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


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_told_to_wait(address: str, kind: str) -> None:
    """Every answer counts, of whatever status; those that refuse end the connection."""
    asked, expected = FLOODS[kind]
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


def test_a_request_of_millions_of_parts_is_not_parsed(start: Start) -> None:
    service = start()
    for part in ("{}", "[]", '{"a":[]}'):
        asked = f'{{"items":[{",".join([part] * 300_000)}]}}'
        found = service.http.post("/v1/predict", content=asked)
        assert (found.status_code, "objects and lists" in found.text) == (413, True)


def test_large_requests_cost_their_bytes(start: Start) -> None:
    service = start(most_per_second=10.0)
    asked = {"items": [{"workload": "w00", "platform": "p0", "corunners": []}] * 2000}
    assert service.http.post("/v1/predict", json=asked).status_code == 200
    assert service.http.post("/v1/predict", json=asked).status_code == 429


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
             b"Host: localhost\r\nOrigin: http://evil.example", b"Host: localhost\r\nOrigin: http://["]
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


def test_roles(start: Start, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(KEYS)
    service = start(keys=tmp_path / "keys")

    def status(key: str, method: str, path: str, body: Any = None) -> int:
        head = {"Authorization": f"Bearer {key}"}
        return service.http.request(method, path, json=body, headers=head).status_code

    put = ("PUT", "/v1/placements/a", {"workload": "w00", "node": "east"})
    asked = ("POST", "/v1/rank", {"items": [{"workload": "w00"}]})
    assert [status("reader-key", *one) for one in (put, asked)] == [403, 200]
    assert [status("writer-key", *one) for one in (put, asked)] == [200, 200]
    assert status("reader-key", "DELETE", "/v1/placements/a") == 403
    for hold in ("prioritize", "filter"):  # what reserves a slot is a write
        pod = {"Pod": {"metadata": {"labels": {"jostle/workload": "w00"}}}, "NodeNames": ["east"]}
        assert status("reader-key", "POST", f"/v1/kubernetes/{hold}", pod) == 403
        assert status("writer-key", "POST", f"/v1/kubernetes/{hold}", pod) == 200
        pod["Pod"]["metadata"]["uid"] = "a" * 300  # type: ignore[index]
        assert status("writer-key", "POST", f"/v1/kubernetes/{hold}", pod) == 422
    # The description is long: strangers do not make the service send it.
    assert service.http.get("/openapi.json").status_code == 401
    assert status("reader-key", "GET", "/openapi.json") == 200
    # Keys are changed while it serves; what cannot be read changes none.
    (tmp_path / "keys").write_text("see read another-key\n")
    assert status("reader-key", *asked) == 401
    assert status("another-key", *asked) == 200
    (tmp_path / "keys").write_text("see everything another-key\n")
    assert status("another-key", *asked) == 200
    # But one without keys, or none at all, revokes them all.
    for revoked in (lambda path: path.write_text("\n# none\n"), Path.unlink):
        (tmp_path / "keys").write_text("see read another-key\n")
        assert status("another-key", *asked) == 200
        revoked(tmp_path / "keys")
        assert status("another-key", *asked) == 401


@pytest.mark.parametrize("text", ["", "# none\n", "a b\n", "a owner c\n", "ä\n"])
def test_files_without_keys_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(UsageError, match="API key"):
        Callers(tmp_path / "keys", 1.0, lambda: 0.0)


def test_the_rate_is_that_of_each_caller() -> None:
    now = [0.0]
    callers = Callers(None, 4.0, lambda: now[0])
    assert [callers.waits("a") for _ in range(6)] == [0, 0, 0, 0, 0.25, 0.25]
    assert callers.waits("b") == 0
    now[0] += 0.5
    assert [callers.waits("a") for _ in range(3)] == [0, 0, 0.25]
    now[0] += 1000  # no more than a second's requests at once, and one where that is less
    assert [callers.waits("a") for _ in range(5)] == [0, 0, 0, 0, 0.25]
    slow = Callers(None, 0.5, lambda: now[0])
    assert [slow.waits("a") for _ in range(2)] == [0, 2]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "cluster.example"])
def test_nothing_is_open_to_others_without_a_key_and_a_certificate(
    tmp_path: Path, host: str
) -> None:
    made: Any = ServeSettings
    for more in ({}, {"keys": tmp_path}, {"tls_cert": tmp_path}):
        with pytest.raises(UsageError, match="no certificate or no key"):
            made(model=tmp_path, host=host, **more)
    asked = made(model=tmp_path, host=host, keys=tmp_path, tls_cert=tmp_path)
    assert not asked.hosts


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


def certificate(folder: Path, name: str, ca: str | None = None) -> None:
    """folder/name.pem, .key: signed by itself, or by that."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl is installed")
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
    signed = (
        []
        if ca is None
        else ["-CA", str(folder / f"{ca}.pem"), "-CAkey", str(folder / f"{ca}.key")]
    )
    # What strict checks (Python 3.13's default) want: who signs says that it may, and who is signed that not.
    uses = "keyCertSign,digitalSignature" if ca is None else "digitalSignature"
    signs = [
        *("-addext", f"keyUsage=critical,{uses}"),
        *("-addext", f"basicConstraints=critical,CA:{str(ca is None).upper()}"),
    ]
    kind = [
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        ["openssl", "req", *kind, *subject, *signs, *files, *signed],
        check=True,
        capture_output=True,
    )


def test_clients_with_a_certificate(model_folders: tuple[Path, Path], tmp_path: Path) -> None:
    for name, ca in (
        ("jostle", None),
        ("ca", None),
        ("kube-scheduler", "ca"),
        ("stranger", "ca"),
        ("own", None),
    ):
        certificate(tmp_path, name, ca)
    (tmp_path / "keys").write_text("kube-scheduler write certificate\nsee read reader-key\n")
    given = {
        "tls-cert": "jostle.pem",
        "tls-key": "jostle.key",
        "client-ca": "ca.pem",
        "keys": "keys",
    }
    more = [word for name, file in given.items() for word in (f"--{name}", str(tmp_path / file))]

    def client(name: str | None, key: str | None = None) -> jostle.Client:
        tls = ssl.create_default_context(cafile=str(tmp_path / "jostle.pem"))
        if name is not None:
            tls.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        return jostle.Client(where, tls=tls, api_key=key)

    with serving(model_folders[0], tmp_path / "s.sqlite", *more, "--most-connections", "9") as (
        where,
        _,
    ):
        assert where.startswith("https://127.0.0.1:")
        with client("kube-scheduler") as known:
            assert known.put_placement("a", "w00", "p0") > 0
        with client(None, "reader-key") as reader:
            assert len(reader.placements()) == 1
            with pytest.raises(NotPermitted, match="may read, not write"):
                reader.delete_placement("a")
        # The word is no key, and another's certificate no name.
        for stranger in (
            client(None),
            client(None, "certificate"),
            client("stranger"),
            client("own"),
        ):
            with stranger, pytest.raises(NotPermitted):
                stranger.placements()
        # Those who never begin with TLS keep nobody out.
        silent = [
            socket.create_connection(("127.0.0.1", int(where.rpartition(":")[2])))
            for _ in range(60)
        ]
        with client("kube-scheduler") as known:
            assert known.delete_placement("a")
        for made in silent:
            made.close()
