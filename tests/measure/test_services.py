"""Services under load: latencies at a rate that does not wait for answers, alone and beside others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from jostle.errors import UnreadableFile, UsageError
from jostle.measure import (
    JobSettings,
    command_workload,
    service_workload,
)
from tests.command_line import jostle as command
from tests.measure.measured import measured, rows

# A server that answers each request after so long, one at a time, in one of two ways.
SERVER = """
import http.server, sys, time
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(float(sys.argv[2]))
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\\r\\nhello\\r\\n0\\r\\n\\r\\n")
            return
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
URL = "http://127.0.0.1:{port}/"


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    (tmp_path / "server.py").write_text(SERVER)
    return [sys.executable, "-S", str(tmp_path / "server.py"), "{port}"]


def test_latencies_at_a_rate_alone_and_beside(tmp_path: Path, server) -> None:
    web = service_workload([*server, "0.02"], 50, url=URL, quantile=0.5, name="web")
    assert web.name == "web@50rps"
    job = command_workload(["sleep", "0.1"], "job")
    found = measured(tmp_path, web, job, sets=1, window_seconds=0.2)
    assert {row["status"] for row in found} == {"ok"}
    assert any(row["corunners"] for row in found)
    for row in found:
        if row["workload"] == "job":
            assert row["latency_p50_seconds"] is None
            continue
        assert row["estimator"] == "p50"
        assert row["repetitions"] >= 20
        assert 0.02 <= row["raw_runtime_seconds"] == row["latency_p50_seconds"] < 5
        assert 0 < row["runtime_seconds"] <= row["raw_runtime_seconds"]
        assert (
            row["latency_p50_seconds"] <= row["latency_p99_seconds"] <= row["latency_p999_seconds"]
        )


def test_a_server_that_falls_behind_shows_it(tmp_path: Path, server) -> None:
    (tmp_path / "server.py").write_text(SERVER.replace("ThreadingHTTPServer", "HTTPServer"))
    slow = service_workload([*server, "0.05"], 60, url=URL + "chunked", quantile=0.9, name="slow")
    (row,) = measured(tmp_path, slow, window_seconds=0.2)
    # It answers 20 a second of 60: after a third of a second what is due has waited long.
    assert row["status"] == "failed" or row["raw_runtime_seconds"] > 0.2


def test_latencies_that_another_program_prints(tmp_path: Path, server) -> None:
    load = [
        sys.executable,
        "-S",
        "-c",
        "import sys; print(*[float(sys.argv[1]) / 1e3] * 30)",
        "{rate}",
    ]
    ready = [sys.executable, "-S", "-c", "import os; os.environ['PORT']"]
    web = service_workload([*server, "0"], 7, ready=ready, load=load, quantile=0.9, name="web")
    (row,) = measured(tmp_path, web, window_seconds=0.2)
    assert (row["status"], row["raw_runtime_seconds"]) == ("ok", 0.007)
    bad = service_workload([*server, "0"], 7, ready=ready, load=["echo", "fast"], name="bad")
    (row,) = [
        r for r in measured(tmp_path / "b", bad, window_seconds=0.2) if r["workload"] == "bad@7rps"
    ]
    assert "the load printed 'fast', not seconds of latency" in row["reason"]


def test_servers_that_fail_say_why(tmp_path: Path, server) -> None:
    missing = service_workload([*server, "0"], 50, url=URL + "missing", name="missing")
    dies = service_workload(
        [sys.executable, "-c", "raise SystemExit('no luck')"], 5, url=URL, name="dies"
    )
    reasons = {
        row["workload"]: row["reason"]
        for row in measured(tmp_path, missing, dies, window_seconds=0.2)
    }
    assert "requests failed, the last by: status 404" in reasons["missing@50rps"]
    assert "the server ended with exit code 1: no luck" in reasons["dies@5rps"]


@pytest.mark.parametrize(
    ("words", "more", "error"),
    [
        ([], {}, UsageError),
        (["true"], {"rate": 0}, UsageError),
        (["true"], {"rate": float("nan")}, UsageError),
        (["true"], {"url": "ftp://x"}, UsageError),
        (["true"], {"url": "http://a/b c"}, UsageError),
        (["true"], {"url": ""}, UsageError),
        (["true"], {"quantile": 1.0}, UsageError),
        (["no-such-program"], {}, UnreadableFile),
        (["true"], {"job": JobSettings(before=("true",))}, UsageError),
    ],
)
def test_what_cannot_be(words: list[str], more: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        service_workload(words, **{"rate": 10.0, "url": URL, **more})


def test_on_the_command_line(tmp_path: Path, server) -> None:
    words = [
        "measure",
        "-o",
        str(tmp_path / "d"),
        "--device",
        "here",
        "--sets",
        "0",
        "--solo",
        "1",
    ]
    serve = [
        "--serve",
        " ".join([*server, "0"]),
        "--url",
        URL,
        "--name",
        "web",
        "--quantile",
        "0.9",
    ]
    done = command(*words, *serve, "--rate", "40", "--rate", "80")
    assert done.exit_code == 0, done.output
    assert {row["workload"] for row in rows(tmp_path / "d")} == {
        "web@40rps",
        "web@80rps",
    }
    for wrong in (serve, ["--rate", "5"]):
        assert command(*words, *wrong).exit_code == UsageError.exit_code
