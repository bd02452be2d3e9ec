"""A load generator that does not wait for slow answers, and a service to aim it at.

A request starts when its time has come, whatever became of those before it, and its latency counts from then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Latencies:
    """seconds: of each request that was answered with 200. failed: {what instead: how often}."""

    seconds: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)

    def add(self, other: Latencies) -> None:
        """What was seen besides."""
        self.seconds += other.seconds
        for why, count in other.failed.items():
            self.failed[why] = self.failed.get(why, 0) + count

    def line(self, name: str) -> str:
        if not self.seconds:
            return f"{name}: no answer; {self.failed}"
        p50, p99, worst = np.quantile(self.seconds, [0.5, 0.99, 1.0]) * 1e3
        failed = f", failed {self.failed}" if self.failed else ""
        return (
            f"{name}: {len(self.seconds)} answers, p50 {p50:.2f} ms, p99 {p99:.2f} ms, "
            f"longest {worst:.1f} ms{failed}"
        )


class Caller:
    """Connections to one address, made as they are needed."""

    def __init__(self, address: str) -> None:
        self.host, self.port = address.removeprefix("http://").split(":")
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(
        self, method: str, path: str, body: bytes = b""
    ) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body). Raises OSError, EOFError where the connection breaks."""
        connection = self._idle.pop() if self._idle else await self._connect()
        reader, writer = connection
        try:
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(body)}\r\n"
            )
            writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.partition(": ") for line in lines[1:] if line)
            headers = {name.lower(): value for name, _, value in pairs}
            answer = await reader.readexactly(int(headers.get("content-length", "0")))
        except BaseException:
            writer.close()
            raise
        self._idle.append(connection)
        return int(lines[0].split()[1]), headers, answer

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, int(self.port), limit=1 << 24)

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


async def open_loop(
    caller: Caller, path: str, bodies: list[bytes], rate: float, seconds: float
) -> Latencies:
    """So many requests a second, each at its time."""
    found, tasks = Latencies(), set()

    async def one(body: bytes, due: float) -> None:
        try:
            status, _, _ = await caller.ask("POST", path, body)
        except (OSError, EOFError) as error:
            found.failed[type(error).__name__] = found.failed.get(type(error).__name__, 0) + 1
            return
        if status == 200:
            found.seconds.append(time.perf_counter() - due)
        else:
            found.failed[str(status)] = found.failed.get(str(status), 0) + 1

    start = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(bodies[number % len(bodies)], due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return found


async def lateness(rate: float, seconds: float) -> Latencies:
    """How late a timer alone is, with nothing to do: what no service on this machine can be better than."""
    found, start = Latencies(), time.perf_counter()

    async def one(due: float) -> None:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        found.seconds.append(time.perf_counter() - due)

    await asyncio.gather(*(one(start + number / rate) for number in range(int(rate * seconds))))
    return found


class Process:
    """`jostle serve`, started and ended."""

    def __init__(self, model: Path, state: str, *more: str) -> None:
        command = [sys.executable, "-m", "jostle", "serve", str(model), "--port", "0"]
        self._running = subprocess.Popen(
            [*command, "--state", state, *more],
            stdout=subprocess.PIPE,
            text=True,
            stderr=subprocess.DEVNULL,
        )
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if " on http" not in line:
            raise SystemExit(f"the service did not start: {line}")
        self.address = line.split()[-1]

    @property
    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self._running.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    @property
    def cpu_seconds(self) -> float:
        parts = Path(f"/proc/{self._running.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def kill_children(self) -> int:
        """How many processes of its own the service had: it is they that are killed."""
        tasks = Path(f"/proc/{self._running.pid}/task").glob("*/children")
        count = 0
        for pid in [int(pid) for path in tasks for pid in path.read_text().split()]:
            with contextlib.suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    count += 1
        return count

    def kill(self) -> None:
        self._running.send_signal(signal.SIGKILL)
        self._running.wait()

    def end(self) -> None:
        self._running.send_signal(signal.SIGTERM)
        self._running.wait()


@contextlib.contextmanager
def serving(model: Path, state: str, *more: str) -> Iterator[Process]:
    process = Process(model, state, *more)
    try:
        yield process
    finally:
        process.end()


def with_caller(address: str, act: Callable[[Caller], object]) -> object:
    """Run `act(caller)`, a coroutine, to its end."""

    async def whole() -> object:
        caller = Caller(address)
        try:
            return await act(caller)  # pyright: ignore[reportGeneralTypeIssues]
        finally:
            caller.close()

    return asyncio.run(whole())


_ANSWER = b'{"schema":"predict/v2","confidence":0.9,"model":{},"items":[{"status":"ok"}]}'.ljust(
    420
)


async def plain_app(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body and sends as many bytes as an answer has: the least that a service costs."""
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(_ANSWER)),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _ANSWER})


class Plain:
    """uvicorn itself, with that application."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        options = (
            "--port",
            str(port),
            "--log-level",
            "warning",
            "--no-access-log",
            "--loop",
            "uvloop",
        )
        command = [sys.executable, "-m", "uvicorn", "service_load:plain_app", *options]
        self._running = subprocess.Popen([*command, "--app-dir", str(Path(__file__).parent)])
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.05)

    def close(self) -> None:
        self._running.terminate()
        self._running.wait()
