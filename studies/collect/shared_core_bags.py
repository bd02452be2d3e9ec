"""Record bags of programs that disturb each other: they wait for parts of their time, and share a core.

    python -m studies.collect.shared_core_bags BUILD OUT [--minutes 40] [--passes 3] [--export]

Twenty programs, copies too: streaming, pointer chases and stencils inside the caches and past them, ciphers,
vision, graphs; what part of its time alone each has the core for, and in how long turns, differs. Each alone,
all 210 pairs, 60 bags of three and 30 of four, on two platforms: on one all members share one core, on the
other there are two, a core each for a pair (the CPU side: seconds there, fairness). Who has ended begins
again until all have ended once. Windows are measured once in each of several passes through all of them in
random order, so that repeats lie minutes apart; one in which a core was slow is measured again.

BUILD keeps what was measured: run the same again to go on after a break. Needs two cores that nothing else
uses; ends by itself after --minutes. When every pass is whole, or with --export, it prints as JSON how far
slowdowns differ and how far repeats do, and only where bags on the shared core differ by over five times as
much OUT is written; otherwise it says so, with exit code 1. Then

    python -m studies bag --data OUT --target slowdown --cpu-platform PLATFORM

with the name that is printed as cpu_platform.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.runs import Dataset, Runs, summarise
from studies.collect.repeats import WANTED, differences, whole_bags
from studies.collect.shared_core import shared_core_program

if TYPE_CHECKING:
    from jostle.measure.tracing._watch import Assessment
    from jostle.measure.workloads._program import TracedProgram
    from jostle.traces import Trace

ONE, TWO = "speed@cpus=1", "speed@cpus=2"
# Some 0.35 seconds alone each, of which between a seventh and all on the core.
PROGRAMS = {
    "cipher": "chacha-m*900",
    "sponge": "10(sha3-m*8+wait-25)",
    "near-chase": "chase-s*1500",
    "far-chase": "6(chase-l*70+wait-17)",
    "near-stream": "20(stream-s*45+wait-5)",
    "far-stream": "stream-l*800+copy-l*620",
    "near-stencil": "8(stencil-s*50+wait-30)",
    "far-stencil": "stencil-l*570",
    "faces": "12(faces-m*20+wait-9)",
    "tracking": "5(tracking-m*50+wait-37)",
    "sift": "3(sift-m*120+wait-12)",
    "primes": "3(modexp-m*140+wait-50)",
    "filter": "30(fir-m*6+wait-8)",
    "factors": "9(qr-m*28+wait-17)",
    "transform": "16(dct-m*9+wait-14)",
    "paths": "4(floyd-m*75+wait-17)",
    "sieve": "7(sieve-l*28+wait-20)",
    "compress": "24(lz-m*3+wait-12)",
    "bodies": "40(nbody-m*22+wait-1)",
    "ranks": "2(pagerank-l*24+wait-65)",
}
LARGER = {3: 60, 4: 30}  # bags of so many members
ATTEMPTS = 3
Bag = tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=40.0, help="to record in, at most")
    parser.add_argument("--passes", type=int, default=3, help="through all bags")
    parser.add_argument("--programs", type=int, default=len(PROGRAMS), help="of all, 3 at least")
    parser.add_argument("--export", action="store_true", help="only make OUT of what BUILD holds")
    asked = parser.parse_args(arguments)
    if not 3 <= asked.programs <= len(PROGRAMS) or asked.passes < 1 or not asked.minutes > 0:
        parser.error(f"3 to {len(PROGRAMS)} programs, one pass or more, and some minutes")
    names = list(PROGRAMS)[: asked.programs]
    asked.build.mkdir(parents=True, exist_ok=True)
    if not asked.export and not record(asked.build, names, asked.passes, 60 * asked.minutes):
        print("some windows are left: the same again goes on", file=sys.stderr)
        return 1
    return ship(asked.build, asked.out, names)


def bags(names: Sequence[str]) -> list[Bag]:
    """Each alone twice, every pair, and random larger ones; copies too."""
    results: list[Bag] = [(name,) for name in names] * 2
    results += combinations_with_replacement(names, 2)
    deal = random.Random(1)
    for size, number in LARGER.items():
        results += [tuple(sorted(deal.choices(names, k=size))) for _ in range(number)]
    return results


def record(build: Path, names: Sequence[str], passes: int, seconds: float) -> bool:
    """Measure what is still missing in BUILD; whether all of it is there."""
    until, log = time.monotonic() + seconds, build / "windows.jsonl"
    if log.is_file():  # a last line may have been cut off
        log.write_text("".join(whole_lines(log)))
    done = Counter((one["engine"], one["pass"], *one["bag"]) for one in logged(build))
    for turn in range(passes):
        for engine in (ONE, TWO):
            order = random.Random(f"{turn}")
            todo = bags(names)
            todo = order.sample(todo, len(todo))
            missing = []
            for bag in todo:
                done[engine, turn, *bag] -= 1
                if done[engine, turn, *bag] < 0:
                    missing.append(bag)
            if not missing:
                continue
            print(f"pass {turn + 1} of {passes}, {engine}: {len(missing)} windows", file=sys.stderr)
            with closing(BagMachine(build, names, engine)) as machine:
                for number, bag in enumerate(missing):
                    if time.monotonic() > until:
                        return False
                    members = machine.window(bag, f"{turn}-{number}")
                    with log.open("a") as file:
                        about = {"engine": engine, "pass": turn, "bag": bag, "members": members}
                        file.write(json.dumps(about) + "\n")
                    if number % 50 == 49:
                        left = f"{len(missing) - number - 1} windows left"
                        print(f"pass {turn + 1} of {passes}, {engine}: {left}", file=sys.stderr)
    return True


def logged(build: Path) -> list[dict[str, Any]]:
    """The windows that BUILD holds; a last line that was cut off is none."""
    path = build / "windows.jsonl"
    return [json.loads(line) for line in whole_lines(path)] if path.is_file() else []


def whole_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


class BagMachine:
    """Slots and cores for the windows of one platform."""

    def __init__(self, build: Path, names: Sequence[str], engine: str) -> None:
        from jostle.measure import TraceOptions, platform_name
        from jostle.measure.host._facts import chosen_cores, device_name
        from jostle.measure.slots._available import find_engines
        from jostle.measure.slots._slots import Slot
        from jostle.measure.tracing._watch import Watch

        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        cores = chosen_cores(None)[:2]
        if len(cores) < 2:
            sys.exit("two cores are needed")
        (self.engine,) = find_engines(["speed"])
        self.platform = platform_name(engine, device_name(cores))
        self.cores = tuple(cores[1:] if engine == ONE else cores)
        self.programs = {name: shared_core_program(name, PROGRAMS[name], build) for name in names}
        self.slots = [Slot() for _ in range(max(LARGER))]
        self.options = TraceOptions(loop=True, seconds=0.3, interval_seconds=0.05)
        # Programs wait by themselves: that they are not on their cores does not tell of others there.
        self.watch = Watch(self.slots[0], self.cores, float("inf"))
        if engine == ONE:  # who records stays off the core that is recorded
            os.sched_setaffinity(0, {cores[0]})

    def close(self) -> None:
        for slot in self.slots:
            slot.kill()

    def window(self, bag: Bag, identity: str) -> list[dict[str, Any]]:
        """Rows of the bag's members: of an attempt that no slow core disturbed, or the least so."""
        from jostle.measure.tracing._recording import TracedWindow
        from jostle.measure.tracing._trace import least_disturbed

        order = random.Random(identity).sample(bag, len(bag))
        recording = TracedWindow(
            tuple(self.programs[name] for name in order),
            self.slots[: len(bag)],
            self.engine,
            self.cores,
            self.options,
            0,
            self.platform,
            f"{'-'.join(order)}-{identity}-{time.time_ns()}",
        )
        seen: list[Assessment] = []
        results = least_disturbed(recording, self.watch, ATTEMPTS, seen.append)
        return [row_of(one, seen[-1].reason) for one in results]


def row_of(one: Trace, reason: str | None) -> dict[str, Any]:
    """A run as columns. CPU time is known up to the last sample; what follows is taken as the rest."""
    cpu = one["cpu_seconds"]
    known = np.isfinite(cpu)
    share = float(cpu[known].sum() / one.interval_seconds[known].sum()) if known.any() else None
    seconds = one.runtime_seconds
    return {
        "workload": one.workload,
        "platform": one.platform,
        "corunners": list(one.corunners),
        "runtime_seconds": seconds if reason is None else None,
        "status": "ok" if reason is None else "contaminated",
        "reason": reason,
        "run_id": one.run_id,
        "window_id": one.window_id or one.run_id,
        "repetitions": 1.0,
        "window_seconds": seconds,
        "cpu_seconds": None if share is None else share * seconds,
    }


def features(names: Sequence[str], build: Path) -> dict[str, list[Any]]:
    """What each program executes: the counts of its kernels' repetitions, added up."""
    from jostle.measure import count_opcodes

    columns: dict[str, list[Any]] = {"workload": list(names)}
    for place, name in enumerate(names):
        program: TracedProgram = shared_core_program(name, PROGRAMS[name], build)
        total: Counter[str] = Counter()
        for kernel, repetitions in program.phases:
            if not kernel.name.startswith("wait-"):
                counts = count_opcodes(replace(kernel, repeats=1)).columns()
                memory = max(total["memory_bytes"], counts.pop("memory_bytes"))
                times = (repetitions or 1) * kernel.repeats
                total.update({key: times * value for key, value in counts.items()})
                total["memory_bytes"] = memory
        for key, value in total.items():
            columns.setdefault(key, [0] * len(names))[place] = value
    return {key: values for key, values in columns.items() if key == "workload" or any(values)}


def ship(build: Path, out: Path, names: Sequence[str]) -> int:
    """Say what BUILD holds, and make OUT of it where it shows enough; the exit code."""
    rows = [row for one in logged(build) for row in one["members"]]
    if not rows:
        sys.exit(f"{build} holds no windows")
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    columns["runtime_seconds"] = [
        float("nan") if seconds is None else round(seconds, 6)
        for seconds in columns["runtime_seconds"]
    ]
    columns["campaign"] = ["shared-core"] * len(rows)
    runs = Runs.from_columns(**columns, workload_features=features(names, build))
    disturbed = int((~runs.is_ok).sum())
    runs = whole_bags(runs.ok())
    results = differences(runs)
    one = next(name for name in results if f"wasmtime-{ONE}:" in name)
    document: dict[str, Any] = {
        "schema": "shared-core-bags/v1",
        "programs": {name: PROGRAMS[name] for name in names},
        "differences": results,
        "disturbed_runs": disturbed,
        "predicted": one,
        "cpu_platform": next(name for name in results if name != one),
        "runs": summarise(runs).to_json(),
    }
    text = json.dumps(document, indent=1, default=str)
    print(text)
    if not results[one]["ratio"] > WANTED:
        print(
            f"bags differ by no more than {WANTED:g} times as much as repeats: no set is made of this.",
            file=sys.stderr,
        )
        return 1
    fresh = out.with_name(out.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    Dataset(fresh).write(runs)
    (fresh / "bags.json").write_text(text + "\n")
    shutil.rmtree(out, ignore_errors=True)
    fresh.rename(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
