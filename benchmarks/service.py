"""What the service takes, keeps and survives: python benchmarks/service.py MODEL [--only NAME ...] [--quick].

The client runs on the same machine; give both two cores and nothing else to do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import jostle

if not __package__:  # as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.service_load import (
    Caller,
    Latencies,
    Plain,
    Process,
    lateness,
    open_loop,
    serving,
    with_caller,
)


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
        """Single `predict` at 500 requests a second, beside plain uvicorn with the same body and an answer of
        that length, in turns, after the machine's own timers at that rate."""
        timers = asyncio.run(lateness(500.0, 20 * self.scale))
        print(timers.line("timers with nothing to do, 500/s"))
        bodies = [orjson.dumps({"items": self.items(1)}) for _ in range(1000)]
        with serving(self.model, self.state()) as process, contextlib.closing(Plain()) as plain:
            self._in_turns({"plain uvicorn": plain, "predict": process}, bodies)

    def learning(self) -> None:
        """Single `predict` at 50 a second with and without a learner that is always at work, in turns."""
        bodies = [orjson.dumps({"items": self.items(1)}) for _ in range(200)]
        model = self.folder / "learning"
        shutil.copytree(self.model, model)
        with (
            serving(self.model, self.state()) as without,
            serving(model, self.state(), "--learn", "20") as process,
            jostle.Client(process.address) as client,
            jostle.Client(without.address) as other,
        ):
            end, number = threading.Event(), itertools.count()

            def send() -> None:
                while not end.wait(0.5):
                    items = [
                        {**one, "id": f"l{next(number)}", "runtime_seconds": 1.0}
                        for one in self.items(20)
                    ]
                    for one in (client, other):
                        one._call("POST", "/v1/runs", {"items": items})

            sending = threading.Thread(target=send)
            sending.start()
            try:
                self._in_turns(
                    {"without learning": without, "with learning": process}, bodies, 50.0
                )
            finally:
                end.set()
                sending.join()
            updates = client.models()[0]["updates"]
        print(f"learned {len(updates)} times meanwhile")

    def _in_turns(
        self, rivals: dict[str, Any], bodies: list[bytes], rate: float = 500.0, turns: int = 6
    ) -> None:
        """The quantiles of all turns of each, and how many times the first one's p99 the second's is."""
        found = {name: Latencies() for name in rivals}

        async def act() -> None:
            callers = {name: Caller(one.address) for name, one in rivals.items()}
            for turn in range(turns + 1):
                for name, caller in callers.items():
                    seconds = min(2.0, 10 * self.scale) if turn == 0 else 10 * self.scale
                    here = await open_loop(caller, "/v1/predict", bodies, rate, seconds)
                    if turn:  # the first one warms up
                        found[name].add(here)
            for caller in callers.values():
                caller.close()

        asyncio.run(act())
        for name, one in found.items():
            print(one.line(f"{name}, {rate:g}/s"))
        first, second = (float(np.quantile(one.seconds, 0.99)) for one in found.values())
        print(f"p99 of the second is {second / first:.2f} times that of the first")

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

    def memory(self) -> None:
        """Resident memory over a million items and requests."""
        with serving(self.model, self.state()) as process:

            async def act(caller: Caller) -> None:
                bodies = [orjson.dumps({"items": self.items(1)}) for _ in range(2000)]
                total = int(1_000_000 * self.scale)
                for part in range(5):

                    async def worker() -> None:
                        for number in range(total // 5 // 16):
                            await caller.ask("POST", "/v1/bound", bodies[number % len(bodies)])

                    await asyncio.gather(*(worker() for _ in range(16)))
                    done = (part + 1) * total // 5
                    print(f"after {done} requests: {process.resident_bytes / 2**20:.1f} MiB")

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
        from jostle.datasets import sample

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

    def million(self) -> None:
        """CPU of what the page and a monitor ask, with a million observed runs in the state."""
        from jostle.service.state._store import ObservedRun, Store

        state, total, step = self.state(), int(1_000_000 * self.scale), 20_000
        store, now = Store(state, time.time), time.time()
        version = orjson.loads((self.model / "model.json").read_bytes())["sha256"][:16]
        for start in range(0, total, step):
            items = self.items(100)
            seconds = np.exp(self.random.normal(0, 0.1, step)).tolist()
            store.add_runs(
                [
                    ObservedRun(
                        f"r{start + n}",
                        {**items[n % 100], "runtime_seconds": seconds[n]},
                        now - (total - start - n) / 10,
                        0.9,
                        seconds[n],
                        1.2,
                        version,
                    )
                    for n in range(step)
                ]
            )
        store.close()
        print(f"{total} observed runs, {Path(state).stat().st_size / 2**20:.0f} MiB")
        paths = ("/", "/v1/fleet", "/v1/models", "/v1/coverage", "/v1/drift", "/metrics")
        begun = time.perf_counter()
        with serving(self.model, state) as process:

            async def act(caller: Caller) -> None:
                while (await caller.ask("GET", "/v1/drift"))[0] != 200:
                    await asyncio.sleep(1)  # it looks at the last thousands once more
                took = time.perf_counter() - begun
                print(
                    f"what drifts is known {took:.1f} s after the start, {process.cpu_seconds:.1f} CPU-s"
                )
                for path in paths:
                    before = process.cpu_seconds
                    statuses = {(await caller.ask("GET", path))[0] for _ in range(50)}
                    each = (process.cpu_seconds - before) / 50
                    print(f"{path}: {statuses}, {1e3 * each:.1f} ms of CPU")

            with_caller(process.address, act)

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
    "learning",
    "batch",
    "kubernetes",
    "memory",
    "swaps",
    "kills",
    "million",
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
