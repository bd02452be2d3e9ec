"""`jostle serve` as a process: started, asked by good and bad callers, killed, told to end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import jostle
from tests.packages.server.conftest import FLEET
from tests.packages.server.process_samples import answer_of, connected, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("running")


@pytest.fixture(scope="module")
def running(model_folders: tuple[Path, Path], folder: Path) -> Iterator[str]:
    (folder / "fleet.csv").write_text(FLEET)
    more = ("--fleet", str(folder / "fleet.csv"), "--most-seconds", "1")
    with serving(model_folders[0], folder / "state.sqlite", *more) as (address, _):
        yield address


def test_a_large_body_is_refused_before_it_is_sent(running: str) -> None:
    with connected(running) as made:
        made.sendall(
            b"POST /v1/bound HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n{"
        )
        found = answer_of(made)
    assert found.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in found


def test_a_body_without_a_length_is_cut_off(running: str) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with connected(running) as made:
        made.sendall(
            b"POST /v1/bound HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        sent = 0
        try:
            while sent < 200_000_000:
                made.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
    assert sent < 100_000_000


def test_a_slow_body_gets_its_problem_and_delays_nobody(running: str) -> None:
    with connected(running) as slow:
        slow.sendall(b"POST /v1/bound HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        with jostle.Client(running) as client:
            assert client.is_ready
        assert answer_of(slow).startswith(b"HTTP/1.1 408 ")


def test_nonsense_is_answered_and_the_service_lives(running: str, folder: Path) -> None:
    upgrade = b"Connection: close, Upgrade\r\nUpgrade: websocket\r\nHost: localhost\r\n\r\n"
    for text in (b"\x00\xff\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n" + upgrade):
        with connected(running) as made:
            made.sendall(text)
            made.shutdown(socket.SHUT_WR)
            answer_of(made)
    with jostle.Client(running) as client:
        assert client.is_ready
    assert (
        folder / "state.sqlite.log"
    ).read_text() == ""  # which strangers would fill the disk with


def test_headers_too_long_are_cut_off(running: str) -> None:
    with connected(running) as made:
        with suppress(OSError):
            made.sendall(b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 40_000)
        assert answer_of(made) == b""


def test_jax_is_never_imported(model_folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "fleet.csv").write_text(FLEET)
    code = f"""
import sys
from pathlib import Path
from starlette.testclient import TestClient
from jostle.server import ServeSettings, make_app
folder = Path({str(tmp_path)!r})
settings = ServeSettings(model=Path({str(model_folders[0])!r}), state=str(folder / "s.sqlite"),
                           fleet=folder / "fleet.csv", allow_host=("testserver",))
with TestClient(make_app(settings)) as http:
    one = {{"items": [{{"workload": "w00", "platform": "p0", "corunners": ["w01"]}}]}}
    for verb in ("predict", "bound", "explain"):
        assert http.post("/v1/" + verb, json=one).json()["items"][0]["status"] != "error"
    one = {{"items": [{{"workload": "w00", "slowdown": 2}}]}}
    for verb in ("safe", "rank", "walltime", "assign"):
        assert http.post("/v1/" + verb, json=one).json()["items"][0]["status"] == "ok", verb
print(*(name for name in ("jax", "optax", "sklearn", "scipy") if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_what_was_acknowledged_survives_a_kill(
    model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    acknowledged: list[str] = []
    (tmp_path / "fleet.csv").write_text("name,platform\nhere,p0\n")
    more = ("--fleet", str(tmp_path / "fleet.csv"))
    with serving(model_folders[0], tmp_path / "s.sqlite", *more) as (address, process):
        with jostle.Client(address) as client:
            for number in range(40):
                one = {"workload": "w00", "platform": "p0", "runtime_seconds": 1.0}
                body = {"items": [{**one, "id": f"r{number}"}]}
                assert client._call("POST", "/v1/runs", body)["items"][0]["status"] == "stored"
                client.put_placement(f"r{number}", "w00", "here")
                acknowledged.append(f"r{number}")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with (
        serving(model_folders[0], tmp_path / "s.sqlite", *more) as (address, process),
        jostle.Client(address) as client,
    ):
        runs = client._call("GET", "/v1/runs?limit=1000", None)["items"]
        assert [one["id"] for one in runs] == acknowledged
        tenants = client.fleet().node("here").tenants
        assert sorted(tenant.name for tenant in tenants) == sorted(acknowledged)


def test_told_to_end_it_ends_with_0(model_folders: tuple[Path, Path], tmp_path: Path) -> None:
    with serving(model_folders[0], tmp_path / "s.sqlite") as (address, process):
        with connected(address) as half:
            body = json.dumps({"items": []}).encode()
            half.sendall(
                b"POST /v1/bound HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body[:5]
            )
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            half.sendall(body[5:])  # what is under way is answered
            assert answer_of(half).startswith(b"HTTP/1.1 200 ")
        assert process.wait(15) == 0


def test_wrong_starts_are_sentences(
    model_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jostle.cli import exit_code

    model, state = str(model_folders[0]), str(tmp_path / "s.sqlite")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        wrong = [
            (["--port", port, "--state", state], 5, "cannot listen there"),
            (["--state", str(tmp_path)], 5, "the state cannot be opened"),
            (["--state", "mysql://x"], 2, "a state of the kind 'mysql'"),
            (["--state", state, "--fleet", str(tmp_path / "no.csv")], 4, "cannot be read"),
            (["--state", state, "--keys", str(tmp_path / "no")], 2, "API key"),
            (["--state", state, "--host", "0.0.0.0"], 2, "there is no certificate or no key"),
            (["--state", state, "--confidence", "1.5"], 2, "confidence"),
            (["--state", state, "--most-seconds", "-1"], 2, "--most-seconds"),
        ]
        for arguments, code, sentence in wrong:
            assert exit_code(["serve", model, *arguments]) == code, arguments
            assert sentence in capsys.readouterr().err


def test_told_to_end_it_waits_for_no_long_answer(
    model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """A thread that is at one for a minute."""
    code = f"""
import time
from pathlib import Path
from jostle.server import ServeSettings, serve
from jostle.server.http._running_service import Serving
def warm(service):
    service.placing.open.add(service.placing._pool.submit(time.sleep, 60))
Serving.warm = warm
settings = ServeSettings(model=Path({str(model_folders[0])!r}), state={str(tmp_path / "s.sqlite")!r}, port=0)
serve(settings, lambda address: print(address, flush=True))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"http")
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(40) == 0
        finally:
            process.kill()
