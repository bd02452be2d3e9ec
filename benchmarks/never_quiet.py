"""What is left of a disturbance: raw and corrected times of six kinds of programs beside foreign loads.

    python benchmarks/never_quiet.py [--rounds 3] [--loads 0,2,4,8] [--json FILE]
    python benchmarks/never_quiet.py --sets 240 [--members 3,4] [--loads 2,4,8] [--seed 0]

Loads are so many shells that do nothing but compute, left to the scheduler. The programs compute (Python),
compress (gzip), sort, run as a pipeline of three, wait and compute in turn, and start sixty processes. Each
round measures every program under every load, one after the other, so that what else the machine does meets
all of them; each is measured by a campaign of its own. The quiet time is not the collector's: a plain loop of
clocks runs the program where nobody can take its core (SCHED_FIFO, which takes root), before and after each
run. Where that is not allowed it is the raw time without a load. Printed are medians, and medians of the
ratios of each run to its own quiet time, since the speed of a shared machine changes within minutes. What
hardware does no account of lost time can show: under load the core beside it is busy too, and the same
program may need another CPU time (the least of plain executions under the load, against the quiet ones).

--sets: for so many seconds random sets that share cores, each measured beside a load, and before and after
that outranking everybody else (niceness -20, which takes root), which is the quiet time: members wait for
each other there, and for nobody else. Where others took over a fifth of it, the set does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from jostle.collect import Campaign, Workload, command_workload, job_of, measure
from jostle.collect.host._proc import threads_of
from jostle.data import Dataset

WAITS = """
import time
for _ in range(10):
    time.sleep(0.01)
    sum(range(100_000))
"""
LINES = 40_000
MOST_LOST = 0.2  # of a quiet time of a set


def programs(folder: Path) -> list[Workload]:
    """The six, on a text of some megabytes in the folder."""
    draw, text = random.Random(0), folder / "text"
    text.write_text("".join("".join(draw.choices("abcdefgh", k=30)) + "\n" for _ in range(LINES)))
    python, at = [sys.executable, "-S", "-c"], job_of(directory=folder)
    lines = {
        "computes": [*python, "s = 0\nfor i in range(1_500_000): s += i * i"],
        "compresses": ["gzip", "-c", "text"],
        "sorts": ["sort", "text"],
        "pipeline": ["sh", "-c", "sort text | uniq -c | gzip -c"],
        "waits": [*python, WAITS],
        "starts processes": [
            "sh",
            "-c",
            "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done",
        ],
    }
    return [command_workload(words, name, at) for name, words in lines.items()]


@contextmanager
def load(count: int) -> Iterator[None]:
    """So many processes that compute, until the context ends."""
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@contextmanager
def meanwhile(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """`act` goes on in a thread until the event that it is given is set."""
    over = threading.Event()
    thread = threading.Thread(target=act, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def executions(
    workload: Workload, folder: Path, times: int, *, alone: bool
) -> list[tuple[float, float]]:
    """(wall, CPU seconds) of each execution by a plain loop, from the moment it is the program. alone: where
    nobody but the kernel takes its core; none where this is not allowed."""
    words = [str(workload.module), *workload.arguments]
    shared, lasted = mmap(-1, 16), list[tuple[float, float]]()
    before = os.sched_getscheduler(0), os.sched_getparam(0)

    def become() -> None:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        if alone:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        numbers = time.monotonic_ns(), time.process_time_ns()
        shared[:] = b"".join(number.to_bytes(8, "little") for number in numbers)

    try:
        if alone:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
        for _ in range(times):
            child = subprocess.Popen(
                words, cwd=folder, stdout=subprocess.DEVNULL, preexec_fn=become
            )
            _, status, used = os.wait4(child.pid, 0)
            ended_ns = time.monotonic_ns()
            child.returncode = os.waitstatus_to_exitcode(status)
            began_ns, cpu_ns = (int.from_bytes(shared[at : at + 8], "little") for at in (0, 8))
            cpu = used.ru_utime + used.ru_stime - cpu_ns * 1e-9
            lasted.append(((ended_ns - began_ns) * 1e-9, cpu))
    except (PermissionError, subprocess.SubprocessError):
        if not alone:
            raise
    finally:
        os.sched_setscheduler(0, *before)
    return lasted


def run_of(workload: Workload, folder: Path) -> dict[str, Any]:
    """The row of one window of it alone."""
    campaign = Campaign(
        workloads=[workload], engines=["native"], solo_repeats=1, sets=0, device="here"
    )
    path = folder / f"{time.monotonic_ns()}"
    measure(campaign, path)
    (row,) = Dataset(path).read().table.to_pylist()
    return row


def outranking(over: threading.Event) -> None:
    """Until it is over, all that this process starts comes before everybody else."""
    lifted = set[int]()
    while not over.wait(0.01):
        folders = threads_of(os.getpid(), and_children=True)
        for pid in {int(folder.split("/")[2]) for folder in folders} - lifted - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, pid, -20)
                lifted.add(pid)


def rows_of(workloads: list[Workload], names: list[str], folder: Path) -> list[dict[str, Any]]:
    """The rows of one window of this set."""
    campaign = Campaign(
        workloads=[one for one in workloads if one.name in names],
        engines=["native"],
        solo_repeats=0,
        sets=0,
        device="here",
        chosen=[("native", names)],
    )
    path = folder / f"{time.monotonic_ns()}"
    measure(campaign, path)
    return Dataset(path).read().ok().table.sort_by("workload").to_pylist()


def sets_beside_loads(seconds: float, sizes: list[int], loads: list[int], seed: int) -> None:
    """Print medians of the ratios to the quiet time, and how far they are from 1 in the mean."""
    draw, until = random.Random(seed), time.monotonic() + seconds
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="jostle-never-quiet-") as place:
        folder = Path(place)
        workloads = programs(folder)
        names = [one.name for one in workloads]
        while time.monotonic() < until:
            members, count = sorted(draw.choices(names, k=draw.choice(sizes))), draw.choice(loads)
            with meanwhile(outranking):
                before = rows_of(workloads, members, folder)
            with load(count):
                loaded = rows_of(workloads, members, folder)
            with meanwhile(outranking):
                after = rows_of(workloads, members, folder)
            lost = [row["disturbance_ratio"] or 0.0 for row in (*before, *after)]
            if not len(before) == len(loaded) == len(after) or max(lost) > MOST_LOST:
                continue
            for one, row, two in zip(before, loaded, after, strict=True):
                quiet = (one["raw_runtime_seconds"] + two["raw_runtime_seconds"]) / 2
                ratios = row["raw_runtime_seconds"] / quiet, row["runtime_seconds"] / quiet
                found[row["workload"]].append(ratios)
                found[f"all, load {count}"].append(ratios)
                found["all"].append(ratios)
    print("| what | runs | raw / quiet | corrected / quiet | mean distance from 1 |")
    print("|---|---|---|---|---|")
    for name, ratios in sorted(found.items()):
        raw, clean = np.array(ratios).T
        print(
            f"| {name} | {len(ratios)} | {np.median(raw):.2f} | {np.median(clean):.2f} "
            f"| {np.abs(clean - 1).mean():.2f} |"
        )


def main() -> None:
    """Print the table; exit code 1 where a corrected median is over 10% from the quiet time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", default="0,2,4,8", help="numbers of foreign processes; 0 is in")
    parser.add_argument("--json", type=Path, help="write every run to this file")
    parser.add_argument(
        "--sets", type=float, help="measure random sets for so many seconds instead"
    )
    parser.add_argument("--members", default="3,4")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.sets:
        sizes, some = ([int(n) for n in text.split(",")] for text in (given.members, given.loads))
        sets_beside_loads(given.sets, sizes, [n for n in some if n], given.seed)
        return
    loads = sorted({0, *map(int, given.loads.split(","))})
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="jostle-never-quiet-") as name:
        folder = Path(name)
        for turn in range(given.rounds):
            for workload in programs(folder):
                for count in loads if turn % 2 else reversed(loads):
                    quiet = executions(workload, folder, 3, alone=True)
                    with load(count):
                        row = run_of(workload, folder)
                        cpu = [c for _, c in executions(workload, folder, 2, alone=False)]
                    quiet += executions(workload, folder, 3, alone=True)
                    own = {"round": turn, "load": count, "cpu": min(cpu)}
                    if quiet:
                        own["quiet"], own["quiet_cpu"] = map(
                            statistics.median, zip(*quiet, strict=True)
                        )
                    rows.append(own | row)
    if given.json:
        given.json.write_text(json.dumps(rows, default=str, indent=1) + "\n")
    sys.exit(not printed(rows, loads))


def printed(rows: list[dict[str, Any]], loads: list[int]) -> bool:
    """The table, and whether every corrected median is within a tenth of the quiet time."""
    columns = ("quiet", "raw", "corrected", "raw / quiet", "corrected / quiet", "CPU / quiet CPU")
    print("| program | load | " + " | ".join(columns) + " | its error |")
    print("|---" * 9 + "|")
    off = list[float]()
    for name in dict.fromkeys(row["workload"] for row in rows):
        own = [row for row in rows if row["workload"] == name and row["status"] == "ok"]
        least = [row for row in own if not row["load"]]
        usual = statistics.median(row["raw_runtime_seconds"] for row in least)
        usual_cpu = statistics.median(row["cpu"] for row in least)
        for count in loads:
            table = [
                (
                    quiet := row.get("quiet", usual),
                    raw := row["raw_runtime_seconds"],
                    clean := row["runtime_seconds"],
                    raw / quiet,
                    clean / quiet,
                    row["cpu"] / row.get("quiet_cpu", usual_cpu),
                    row["runtime_error_ratio"],
                )
                for row in own
                if row["load"] == count
            ]
            quiet, raw, clean, raw_to, clean_to, cpu_to, error = map(
                statistics.median, zip(*table, strict=True)
            )
            off.append(abs(clean_to - 1))
            print(
                f"| {name} | {count} | {quiet:.4f} s | {raw:.4f} s | {clean:.4f} s "
                f"| {raw_to:.2f} | {clean_to:.3f} | {cpu_to:.3f} | {error:.1%} |",
                flush=True,
            )
    within = sum(one <= 0.1 for one in off)
    print(f"\n{within} of {len(off)} corrected medians within 10% of the quiet time, all wanted;")
    print(f"worst {max(off):.1%} from it")
    return within == len(off)


if __name__ == "__main__":
    main()
