"""How fast the library is, in CPU seconds of one core; and against another version of it, in one run.

    python benchmarks/speed.py [CASE ...] [--model MODEL] [--other SRC] [--rounds 7]

Each case is prepared once and repeated; the least time counts, per item where it handles many. With --other,
the folder `src` of another version, both versions work in turns, so that a crowded machine slows both alike:
the last columns are the median of the ratios of their times, and whether both results are equal to the bit.
--model: a folder written by `jostle fit`; without it a small model of the shipped sample is fitted.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _data import one_core

# Does the work once; returns arrays of what came out.
Work = Callable[[], tuple[Any, ...]]


def _asked(model: Any, rows: int) -> Any:
    import jostle

    random = np.random.default_rng(0)
    names, places = model.predictor.workload_names, model.predictor.platform_names
    return jostle.Colocations(
        names,
        places,
        random.integers(0, len(names), rows),
        random.integers(0, len(places), rows),
        np.arange(rows + 1),
        random.integers(0, len(names), rows),
    )


def predict(model: Any) -> tuple[Work, int]:
    """Predictions in bulk, one co-runner each."""
    asked = _asked(model, 100_000)
    return lambda: (model.predict(asked),), len(asked)


def bound(model: Any) -> tuple[Work, int]:
    """Bounds in bulk."""
    asked = _asked(model, 100_000)
    return lambda: (model.bound(asked, 0.9).seconds,), len(asked)


def one(model: Any) -> tuple[Work, int]:
    """One prediction."""
    asked = _asked(model, 1)
    return lambda: (model.predict(asked),), 1


def _requests(model: Any, count: int) -> list[Any]:
    from jostle.placement import Request

    random = np.random.default_rng(0)
    names = [str(name) for name in random.choice(model.predictor.workload_names, count)]
    limits = random.choice((1.1, 1.25, 1.5, 2.0), count)
    return [
        Request(name, f"r{number}", slowdown=float(limit))
        for number, (name, limit) in enumerate(zip(names, limits, strict=True))
    ]


def rank(model: Any) -> tuple[Work, int]:
    """One request ranked over 5 000 nodes with up to two tenants."""
    import jostle
    from jostle.placement import Node

    random = np.random.default_rng(1)
    places = random.choice(model.predictor.platform_names, 5_000)
    nodes = [
        Node(f"n{number}", str(place), 3, tenants=tuple(_requests(model, number % 3)))
        for number, place in enumerate(places)
    ]
    placed, (asked,) = jostle.place(model, nodes), _requests(model, 1)
    return lambda: (np.array([len(placed.rank(asked)[0])]),), 1


def assign(model: Any) -> tuple[Work, int]:
    """200 requests assigned to 50 nodes of two slots."""
    import jostle
    from jostle.placement import Node

    random = np.random.default_rng(2)
    places = random.choice(model.predictor.platform_names, 50)
    nodes = [Node(f"n{number}", str(place), 2) for number, place in enumerate(places)]
    requests = _requests(model, 200)
    return lambda: (np.array([len(jostle.place(model, nodes).assign(requests).placed)]),), 1


def _simulation(way: str, tenants: int) -> tuple[Work, int]:
    from jostle.gpu import Application, Device, Task, Tenant, simulate

    def application(seed: int) -> Any:
        random = np.random.default_rng(seed)
        tasks = []
        for _ in range(500):
            gap, seconds = random.exponential(5e-6), float(random.exponential(5e-5))
            if random.random() < 0.15:
                kind = "htod" if random.random() < 0.5 else "dtoh"
                tasks.append(Task(kind, seconds, float(gap)))
                continue
            needs = {"memory": float(random.uniform(0, 3))}
            blocks = int(2 ** random.uniform(0, 10))
            tasks.append(Task("kernel", seconds, float(gap), blocks, 8, 0.5, needs))
        return Application.of(f"a{seed}", *tasks)

    device = Device(80, 64, {"memory": 100.0})
    asked = [Tenant(application(n), None if n else 40) for n in range(tenants)]

    def work() -> tuple[Any, ...]:
        schedule = simulate(asked, device, way)
        return (*schedule.run_ends, *schedule.latencies)

    return work, simulate(asked, device, way).tasks


def simulate(_: Any) -> tuple[Work, int]:
    """Two applications that share a GPU."""
    return _simulation("concurrent", 2)


def simulate_many(_: Any) -> tuple[Work, int]:
    """Eight applications that share a GPU."""
    return _simulation("concurrent", 8)


def roll(_: Any) -> tuple[Work, int]:
    """A pair of traces of 5 000 samples rolled forward."""
    from jostle.learn import RunCounts
    from jostle.learn.learners.counters import (
        FittedAlignment,
        Solos,
        aligned_rows,
        fit_learner,
        solo_counters,
        traced_runs,
        traced_windows,
    )
    from studies.worlds.memory_laws import Machine
    from studies.worlds.traced_programs import Job, draw_programs, simulate_campaign, trace_of
    from studies.worlds.traced_programs import simulate as beside

    counters = ("instructions", "stall_cycles", "cache_accesses", "dram_read_bytes")
    sets = [(a, b) for a in range(10) for b in range(10) if (a + b) % 3 == 0]
    law = Machine()
    traces = simulate_campaign(draw_programs(12, 1, seconds=0.5, machine=law), law, sets=sets)
    rows = aligned_rows(traced_windows(traces), Solos.from_traces(traces, counters))
    solos = []
    for core, program in enumerate(draw_programs(12, 1, seconds=5.0, machine=law)[10:]):
        (history,) = beside(law, [Job(program, core)])
        solos.append(solo_counters(trace_of(history, run_id=program.name), counters))
    counts = RunCounts.of(traced_runs(traces))
    model = FittedAlignment(Solos(tuple(solos)), fit_learner(rows, "phases"), counts)
    return lambda: (np.array([model.roll(solos) is not None]),), 1


def bridge(_: Any) -> tuple[Work, int]:
    """A path of 25 bridges between snapshots of 200 atoms."""
    from jostle.usage import Cloud, edge_eps, solve_edge

    random = np.random.default_rng(0)
    path = [Cloud.of(random.normal(0.1 * k, 1.0, (200, 3))) for k in range(26)]
    ends = list(itertools.pairwise(path))
    eps = [edge_eps(x, y, 0.1, "spread") for x, y in ends]
    return lambda: (
        np.array(
            [solve_edge(*two, one).convergence.sweeps for two, one in zip(ends, eps, strict=True)]
        ),
    ), 1


CASES: dict[str, Callable[[Any], tuple[Work, int]]] = {
    case.__name__: case
    for case in (predict, bound, one, rank, assign, simulate, simulate_many, roll, bridge)
}


def serve(model_folder: str) -> None:
    """Answer names of cases with (CPU seconds an item, digest of what came out)."""
    import jostle

    one_core()
    model, ready = jostle.load(model_folder), dict[str, tuple[Work, int]]()
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = CASES[name](model)
            ready[name][0]()  # what is made once, such as compiled code
        work, items = ready[name]
        began = time.process_time()
        found = work()
        spent = time.process_time() - began
        digest = hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in found))
        print(spent / items, digest.hexdigest()[:12], flush=True)


class Version:
    """A process of a version of the library. source: its folder `src`; empty for this one."""

    def __init__(self, source: str, model: str) -> None:
        environment = os.environ | ({"PYTHONPATH": source} if source else {})
        words = [sys.executable, __file__, "--serve", "--model", model]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, text=True, env=environment, **pipes)

    def timed(self, name: str) -> tuple[float, str]:
        """Let it do a case once. Returns CPU seconds an item, and the digest of the result."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        seconds, digest = self._process.stdout.readline().split()
        return float(seconds), digest


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--model", default="")
    parser.add_argument("--other", default="", help="the folder src of another version")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.model)
        return
    if unknown := set(given.cases) - set(CASES):
        parser.error(f"no case is called {', '.join(unknown)}; there are {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as folder:
        model = given.model
        if not model:
            import jostle
            from jostle.data import sample

            model = str(Path(folder) / "model")
            jostle.fit(sample(), jostle.Slowdown()).save(model)
        versions = [Version(source, model) for source in ("", given.other)[: 1 + bool(given.other)]]
        print("| case | what | an item | other / this | alike |\n|---|---|---|---|---|")
        for name in given.cases or CASES:
            rounds = [[version.timed(name) for version in versions] for _ in range(given.rounds)]
            best = min(each[0][0] for each in rounds)
            ratio = statistics.median(each[-1][0] / each[0][0] for each in rounds)
            same = "yes" if len({digest for each in rounds for _, digest in each}) == 1 else "NO"
            compared = f"{ratio:.2f} | {same}" if given.other else " | "
            print(
                f"| {name} | {CASES[name].__doc__} | {1e6 * best:.4g} µs | {compared} |", flush=True
            )


if __name__ == "__main__":
    main()
