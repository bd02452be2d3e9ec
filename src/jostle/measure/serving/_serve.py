"""In a slot: a server, and an open loop of requests to it.

Requests are sent at times of their own (one every 1/rate seconds), whether or not earlier ones have been
answered, and a latency counts from when its request was due. So a server that falls behind shows it, as it
would to users who do not wait for each other.
"""

from __future__ import annotations

import base64
import math
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from jostle.kernels import Part
from jostle.measure.serving._requests import OpenLoop, Refused, answer_status
from jostle.measure.slots._queue import own_wait_ns, tree_wait_seconds
from jostle.measure.slots._slots import (
    adopt_orphans,
    end_children,
    how_it_ended,
    told_to_stop_before_end,
    tree_cpu_seconds,
)

_READY_SECONDS = 120.0
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 2.0  # for answers that are due when the window ends
_ENOUGH = 20  # requests before a window may end, and so many that two are above the quantile
_MOST_FAILED_RATIO = 0.01
_ONE_ANSWER_SECONDS = 10.0


class ServicePart(Part):
    """A server that runs, and what to ask of it."""

    def __init__(self, part: dict[str, Any]) -> None:
        self.settings: dict[str, Any] = part["service"]
        self.port = _free_port()
        self._folder = self.settings["directory"] or tempfile.mkdtemp(prefix="jostle-service-")
        self._environment = {**os.environ, **self.settings["environment"], "PORT": str(self.port)}
        self._errors = os.memfd_create("jostle-service-errors", os.MFD_CLOEXEC)
        self.latencies: list[float] = []
        self.failed: list[str] = []
        self.told = False
        self._enough = max(_ENOUGH, math.ceil(2 / (1 - self.settings["quantile"])))
        words = [part["module"], *map(self._filled, part["arguments"])]
        adopt_orphans()
        self._server = self._started(words, subprocess.DEVNULL)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return self._filled(self.settings["url"])

    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Any:
        raise RuntimeError("a service has latencies and no beats")

    def cpu_seconds(self) -> float:
        """Of the server and all that it started."""
        return tree_cpu_seconds(self._server.pid)

    def wait_seconds(self) -> float:
        """In the run queue: of this process, which asks, and of the server and all that it started."""
        return tree_wait_seconds(self._server.pid) + own_wait_ns() * 1e-9

    def require_running(self) -> None:
        """Raises RuntimeError where the server has ended."""
        code = self._server.poll()
        if code is not None:
            raise RuntimeError(f"the server ended with {how_it_ended(code, self._errors)}")

    def close(self) -> None:
        """End the server and all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
        end_children()
        if not self.settings["directory"]:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _filled(self, text: str) -> str:
        rate = f"{self.settings['rate']:g}"
        return text.replace("{port}", str(self.port)).replace("{rate}", rate)

    def _started(self, words: list[str], output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=self._errors,
            cwd=self._folder,
            env=self._environment,
            process_group=0,
        )

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + _READY_SECONDS
        why = "it never answered"
        while time.monotonic() < until:
            self.require_running()
            if self.settings["ready"]:
                words = [self._filled(word) for word in self.settings["ready"]]
                done = self._started(words, subprocess.DEVNULL).wait(timeout=_READY_SECONDS)
                if done == 0:
                    return
                why = f"{words[0]} ended with exit code {done}"
            else:
                try:
                    status = answer_status(self.url, _ONE_ANSWER_SECONDS)
                    if status < 500:
                        return
                    why = f"it answered with status {status}"
                except (OSError, Refused) as error:
                    why = str(error) or type(error).__name__
            time.sleep(_LOOK_SECONDS)
        raise RuntimeError(f"the server was not ready in {_READY_SECONDS:g} s: {why}")

    def _tell(self, notice: Callable[[dict[str, Any]], None]) -> None:
        """Once, when there are enough."""
        if not self.told and len(self.latencies) + len(self.failed) >= self._enough:
            self.told = True
            notice({"done": True})

    def load(self, notice: Callable[[dict[str, Any]], None]) -> None:
        """Until a line comes on standard input. Raises RuntimeError, OSError."""
        if self.settings["load"]:
            self._commands(notice)
            return
        requests = OpenLoop(self.url, self.settings["rate"])
        self.latencies, self.failed = requests.latencies, requests.failed
        requests.run(sys.stdin.fileno(), lambda: self._tell(notice), _PATIENCE_SECONDS)

    def _commands(self, notice: Callable[[dict[str, Any]], None]) -> None:
        """The load of another program, which prints latencies, over and over."""
        words = [self._filled(word) for word in self.settings["load"]]
        output = os.memfd_create("jostle-service-load", os.MFD_CLOEXEC)
        stopped = False
        while not stopped:
            os.ftruncate(output, 0)
            os.lseek(output, 0, os.SEEK_SET)
            process = self._started(words, output)
            if told_to_stop_before_end(process.pid):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return
            stopped = bool(select.select([sys.stdin], [], [], 0)[0])
            if code := process.wait():
                raise RuntimeError(f"the load ended with {how_it_ended(code, self._errors)}")
            self.latencies += _numbers(os.pread(output, os.fstat(output).st_size, 0))
            self._tell(notice)


def _numbers(output: bytes) -> list[float]:
    """Latencies, one a line. Raises RuntimeError for a line that is none."""
    latencies = []
    for line in output.decode("utf-8", "replace").split():
        try:
            seconds = float(line)
        except ValueError:
            raise RuntimeError(f"the load printed {line[:60]!r}, not seconds of latency") from None
        if not 0 <= seconds < float("inf"):
            raise RuntimeError(f"the load printed a latency of {line[:60]} s")
        latencies.append(seconds)
    if not latencies:
        raise RuntimeError("the load printed no latency")
    return latencies


def serve(
    part: ServicePart, message: dict[str, Any], notice: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Latencies from the common start until told to stop; the server has ended afterwards."""
    while (early_ns := message["start_ns"] - time.monotonic_ns()) > 0:
        time.sleep(early_ns * 1e-9)
    try:
        before, waited = part.cpu_seconds(), part.wait_seconds()
        part.load(notice)
        used, waited = part.cpu_seconds() - before, part.wait_seconds() - waited
        part.require_running()
        requests = len(part.latencies) + len(part.failed)
        if len(part.failed) > _MOST_FAILED_RATIO * requests:
            last = part.failed[-1]
            raise RuntimeError(
                f"{len(part.failed)} of {requests} requests failed, the last by: {last}"
            )
    finally:
        part.close()
    values = struct.pack(f"<{len(part.latencies)}d", *part.latencies)
    return {
        "latencies": base64.b64encode(values).decode("ascii"),
        "quantile": part.settings["quantile"],
        "failed_requests": len(part.failed),
        "cpu_ns_used": int(max(0.0, used) * 1e9),
        "run_delay_seconds": waited,
        "involuntary_switches": None,
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
