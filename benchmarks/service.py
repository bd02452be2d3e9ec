"""What the service takes, keeps and survives: python benchmarks/service.py MODEL [--only NAME ...] [--quick].

The client runs on the same machine; give both two cores and nothing else to do. A request starts when its
time has come, whatever became of those before it, and its latency counts from then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import jostle


@dataclass
class Latencies:
    """seconds: of each request that was answered with 200. failed: {what instead: how often}."""

    seconds: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)

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


class ServiceMeasurements:
    """model: a saved model. scale: 1, or less for a quick look."""

    def __init__(self, model: Path, folder: Path, scale: float, postgresql: str | None) -> None:
        self.model, self.folder, self.scale, self.postgresql = model, folder, scale, postgresql
        loaded = jostle.load(model)
        self.workloads = list(loaded.predictor.workload_names)
        self.platforms = list(loaded.predictor.platform_names)
        self.random = np.random.default_rng(0)

    def items(self, n: int) -> list[dict[str, Any]]:
        """Co-locations with none to three co-runners, drawn evenly."""
        draw = self.random
        return [
            {
                "workload": str(draw.choice(self.workloads)),
                "platform": str(draw.choice(self.platforms)),
                "corunners": [
                    str(w) for w in draw.choice(self.workloads, int(draw.integers(0, 4)))
                ],
            }
            for _ in range(n)
        ]

    def state(self) -> str:
        return str(self.folder / f"state-{time.monotonic_ns()}.sqlite")

    def single(self) -> None:
        """Single `bound` at 500 requests a second."""
        self._bounds(1, 500.0, 60 * self.scale, "bound, 500/s")

    def batch(self) -> None:
        """Batches of 1 000, five a second."""
        self._bounds(1000, 5.0, 60 * self.scale, "bound, batches of 1 000, 5/s")

    def _bounds(self, size: int, rate: float, seconds: float, name: str) -> None:
        bodies = [
            orjson.dumps({"items": self.items(size)}) for _ in range(1000 if size == 1 else 20)
        ]
        with serving(self.model, self.state()) as process:

            async def act(caller: Caller) -> Latencies:
                await open_loop(caller, "/v1/bound", bodies, rate, min(2.0, seconds))
                before = process.cpu_seconds
                found = await open_loop(caller, "/v1/bound", bodies, rate, seconds)
                share = (process.cpu_seconds - before) / seconds
                print(f"{found.line(name)}; {100 * share:.0f}% of a core")
                return found

            with_caller(process.address, act)

    def kubernetes(self) -> None:
        """Filter and prioritize over 5 000 nodes, with tenants on a third of them."""
        names = [f"node-{n:04d}" for n in range(5000)]
        draw, rows = random.Random(0), ["name,platform,slots,tenants"]
        for name in names:
            tenants = [
                f"{draw.choice(self.workloads)}@9x" for _ in range(draw.choice((0, 0, 1, 2)))
            ]
            rows.append(f"{name},{draw.choice(self.platforms)},4,{';'.join(tenants)}")
        fleet = self.folder / "nodes.csv"
        fleet.write_text("\n".join(rows) + "\n")
        bodies = {
            path: [
                orjson.dumps(
                    {"Pod": _pod(f"{path}-{n}", draw.choice(self.workloads)), "NodeNames": names}
                )
                for n in range(100)
            ]
            for path in ("filter", "prioritize")
        }
        with serving(self.model, self.state(), "--fleet", str(fleet)) as process:

            async def act(caller: Caller) -> None:
                for path, given in bodies.items():
                    url = f"/v1/kubernetes/{path}"
                    await open_loop(caller, url, given, 4.0, 5 * self.scale)
                    found = await open_loop(caller, url, given, 4.0, 25 * self.scale)
                    print(found.line(f"{path} over 5 000 nodes, 4/s"))

            with_caller(process.address, act)

    def swaps(self) -> None:
        """100 model swaps under load: no wrong and no lost answer."""
        link, others = self.folder / "current", [self.model, self.folder / "other"]
        self._fit_another(others[1])
        one = self.items(1)
        asked = jostle.Colocations.from_columns(
            workload=[one[0]["workload"]],
            platform=[one[0]["platform"]],
            corunners=[one[0]["corunners"]],
        )
        link.symlink_to(others[0])
        truth: dict[str, float] = {}
        for path in others:
            version = orjson.loads((path / "model.json").read_bytes())["sha256"][:16]
            truth[version] = float(jostle.load(path).predict(asked)[0])
        first, second = truth.values()
        if abs(first / second - 1) < 1e-3:
            raise SystemExit("both models answer alike: nothing would show")
        body, wrong, lost, seen = orjson.dumps({"items": one}), 0, 0, set()
        with serving(link, self.state()) as process:

            async def act(caller: Caller) -> None:
                nonlocal wrong, lost
                swaps, done = int(100 * self.scale) or 1, asyncio.Event()

                async def ask() -> None:
                    nonlocal wrong, lost
                    while not done.is_set():
                        status, headers, answer = await caller.ask("POST", "/v1/predict", body)
                        found = orjson.loads(answer)
                        lost += status != 200
                        version = found["model"]["version"]
                        seconds = found["items"][0]["runtime_seconds"]
                        # Sums of single precision differ in their last bits with how many are asked at once.
                        wrong += abs(seconds / truth[version] - 1) > 1e-6
                        wrong += headers["jostle-model-version"] != version
                        seen.add(version)

                asking = [asyncio.create_task(ask()) for _ in range(4)]
                for turn in range(swaps):
                    (self.folder / "next").symlink_to(others[(turn + 1) % 2])
                    os.replace(self.folder / "next", link)
                    await asyncio.sleep(0.7)
                done.set()
                await asyncio.gather(*asking)
                _, _, text = await caller.ask("GET", "/metrics")
                taken = [
                    line
                    for line in text.decode().splitlines()
                    if line.startswith("jostle_model_swaps_t")
                ]
                print(
                    f"{swaps} swaps: {taken[0]}, {len(seen)} versions seen, {wrong} wrong, {lost} lost"
                )

            with_caller(process.address, act)

    def _fit_another(self, path: Path) -> None:
        """A model of the sample; so is MODEL best, too."""
        from jostle.data import sample

        method = jostle.Factorization(steps=40, quantiles=())
        jostle.fit(sample(), method, seed=7).save(path)

    def kills(self) -> None:
        """kill -9 of the service, of the process that learns, and of connections to the database, at random
        moments under writes, after every tenth of which some runs are learned first: nothing acknowledged is
        lost or there twice, and no run is learned twice."""
        state = self.postgresql or self.state()
        turns, number, draw = int(100 * self.scale) or 1, itertools.count(1), random.Random(0)
        acknowledged: set[str] = set()
        placed: set[str] = set()
        model = self.folder / "killed"
        shutil.copytree(self.model, model)

        async def one(turn: int, caller: Caller) -> None:
            while True:
                id = f"r{next(number)}"
                item = {"id": id, "workload": self.workloads[0], "platform": self.platforms[0]}
                body = orjson.dumps({"items": [{**item, "runtime_seconds": 1.0}]})
                try:
                    if turn % 2:
                        status, _, _ = await caller.ask("POST", "/v1/runs", body)
                        acknowledged.update([id] if status == 200 else [])
                    else:
                        place = {"workload": self.workloads[0], "node": self.platforms[0]}
                        where = f"/v1/placements/{id}"
                        status, _, _ = await caller.ask("PUT", where, orjson.dumps(place))
                        placed.update([id] if status == 200 else [])
                except (OSError, EOFError):
                    return

        def version() -> str:
            return orjson.loads((model / "model.json").read_bytes())["sha256"]

        async def round_of(
            process: Process, kill: Callable[[Process], int], *, learns: bool = False
        ) -> int:
            caller = Caller(process.address)
            tasks = [asyncio.create_task(one(turn, caller)) for turn in range(4)]
            before, end = version(), time.monotonic() + 60
            while learns and version() == before and time.monotonic() < end:
                await asyncio.sleep(0.05)
            await asyncio.sleep(draw.uniform(0.05, 0.6))
            hit = kill(process)
            if hit:
                await asyncio.sleep(0.1)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            caller.close()
            return hit

        def service(process: Process) -> int:
            process.kill()
            return 1

        victims: dict[str, Callable[[Process], int]] = {
            "service": service,
            "learner": Process.kill_children,
        }
        if self.postgresql:
            victims["database connection"] = lambda _: _cut(str(self.postgresql))
        for name, kill in victims.items():
            hits, process = 0, Process(model, state, "--learn", "20")
            for turn in range(turns):
                hit = 0
                for attempt in range(60):  # the learner is not always there
                    learns = turn % 10 == 0 and attempt == 0
                    if hit := asyncio.run(round_of(process, kill, learns=learns)):
                        break
                hits += bool(hit)
                if name == "service":
                    process = Process(model, state, "--learn", "20")
            process.kill()
            counts = f"{len(acknowledged)} runs and {len(placed)} placements acknowledged"
            print(f"{hits} kills of the {name}, {counts}")
        with serving(model, state) as process, jostle.Client(process.address) as client:
            kept: list[str] = []
            numbers: list[int] = []
            after = 0
            while rows := client._call("GET", f"/v1/runs?after={after}&limit=1000", None)["items"]:
                kept += [row["id"] for row in rows]
                numbers += [row["number"] for row in rows]
                after = numbers[-1]
            start = time.perf_counter()
            there = [t.name for node in client.fleet().nodes for t in node.tenants]
            print(f"the fleet with {len(there)} tenants: {time.perf_counter() - start:.2f} s")
            start = time.perf_counter()
        print(f"told to end, it ended after {time.perf_counter() - start:.2f} s")
        lost = len(acknowledged - {*kept}) + len(placed - {*there})
        twice = len(kept) - len({*kept}) + len(there) - len({*there})
        learned = jostle.load(model).metadata
        runs = sum(record["runs"] for record in learned.get("updates") or [])
        due = sum(number <= learned.get("observed", [0])[0] for number in numbers)
        print(
            f"{lost} lost, {twice} there twice; {len(learned.get('updates') or [])} times learned, "
            f"{runs} runs in all, of the {due} up to the last of them"
        )

    def races(self) -> None:
        """Two replicas over one state: the last slot is given once."""
        state = self.postgresql or self.state()
        fleet = self.folder / "race.csv"
        turns = int(1000 * self.scale) or 1
        rows = [f"n{n},{self.platforms[0]},1" for n in range(turns)]
        fleet.write_text("\n".join(["name,platform,slots", *rows]) + "\n")
        more = ("--fleet", str(fleet))
        with serving(self.model, state, *more) as one, serving(self.model, state, *more) as other:

            async def act(caller: Caller) -> None:
                second, twice, never = Caller(other.address), 0, 0
                for turn in range(turns):
                    body = orjson.dumps({"workload": self.workloads[0], "node": f"n{turn}"})
                    found = await asyncio.gather(
                        caller.ask("PUT", f"/v1/placements/a{turn}", body),
                        second.ask("PUT", f"/v1/placements/b{turn}", body),
                    )
                    good = sum(status == 200 for status, _, _ in found)
                    twice += good > 1
                    never += good < 1
                second.close()
                kind = "PostgreSQL" if self.postgresql else "SQLite"
                print(f"{turns} races over {kind}: {twice} slots given twice, {never} not at all")

            with_caller(one.address, act)


def _cut(address: str) -> int:
    """How many other connections to the database were ended."""
    import psycopg

    with psycopg.connect(address) as connection:
        query = (
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where pid <> pg_backend_pid() and datname = current_database()"
        )
        row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def _pod(name: str, workload: str) -> dict[str, Any]:
    labels = {"jostle/workload": workload, "jostle/deadline": "4x"}
    return {
        "metadata": {"name": name.lower(), "namespace": "default", "uid": name, "labels": labels}
    }


NAMES = (
    "single",
    "batch",
    "kubernetes",
    "swaps",
    "kills",
    "races",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--scale", type=float, default=1.0, help="of all lengths, such as 0.1")
    parser.add_argument("--postgresql", help="postgresql://… for the races; SQLite without")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = ServiceMeasurements(
            asked.model.resolve(), Path(folder), asked.scale, asked.postgresql
        )
        for name in asked.only:
            getattr(measured, name)()


if __name__ == "__main__":
    main()
