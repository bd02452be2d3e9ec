"""What is left of a disturbance: raw and corrected times of six kinds of programs beside foreign loads.

    python benchmarks/never_quiet.py [--rounds 3] [--loads 0,2,4,8] [--json FILE]

Loads are so many shells that do nothing but compute, left to the scheduler. The programs compute (Python),
compress (gzip), sort, run as a pipeline of three, wait and compute in turn, and start sixty processes. Each
round measures every program under every load, one after the other, so that what else the machine does meets
all of them; each is measured by a campaign of its own. The quiet time is not the collector's: a plain loop of
clocks runs the program where nobody can take its core (SCHED_FIFO, which takes root), in the same round,
before and after. Where that is not allowed it is the least raw time without a load. Printed are medians.
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
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jostle.measure import Campaign, Workload, command_workload, job_of, measure
from jostle.runs import Dataset

WAITS = """
import time
for _ in range(10):
    time.sleep(0.01)
    sum(range(100_000))
"""
LINES = 40_000


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


def _alone() -> None:
    """In the child: nobody but the kernel takes its core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def quiet_seconds(workload: Workload, folder: Path, times: int = 5) -> list[float]:
    """Wall seconds of executions that nobody disturbs; none where this is not allowed."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    words, lasted = [str(workload.module), *workload.arguments], list[float]()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
        for _ in range(times):
            began = time.monotonic()
            subprocess.run(
                words, cwd=folder, check=True, stdout=subprocess.DEVNULL, preexec_fn=_alone
            )
            lasted.append(time.monotonic() - began)
    except PermissionError:
        pass
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


def main() -> None:
    """Print the table; exit code 1 where a corrected median is over 10% from the quiet time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", default="0,2,4,8", help="numbers of foreign processes; 0 is in")
    parser.add_argument("--json", type=Path, help="write every run to this file")
    given = parser.parse_args()
    loads = sorted({0, *map(int, given.loads.split(","))})
    rows: list[dict[str, Any]] = []
    quiet: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="jostle-never-quiet-") as name:
        folder = Path(name)
        for turn in range(given.rounds):
            for workload in programs(folder):
                quiet[workload.name] += quiet_seconds(workload, folder)
                for count in loads if turn % 2 else reversed(loads):
                    with load(count):
                        row = run_of(workload, folder)
                    rows.append({"round": turn, "load": count, **row})
                quiet[workload.name] += quiet_seconds(workload, folder)
    if given.json:
        given.json.write_text(json.dumps(rows, default=str, indent=1) + "\n")
    sys.exit(not printed(rows, loads, quiet))


def printed(rows: list[dict[str, Any]], loads: list[int], measured: dict[str, list[float]]) -> bool:
    """The table, and whether every corrected median is within a tenth of the quiet time."""
    print(
        "| program | load | quiet | raw | corrected | raw / quiet | corrected / quiet | its error |"
    )
    print("|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for name, times in measured.items():
        own = [row for row in rows if row["workload"] == name and row["status"] == "ok"]
        least = [row["raw_runtime_seconds"] for row in own if not row["load"]]
        quiet = statistics.median(times) if times else min(least)
        for count in loads:
            here = [row for row in own if row["load"] == count]
            raw, clean, error = (
                statistics.median(row[column] for row in here)
                for column in ("raw_runtime_seconds", "runtime_seconds", "runtime_error_ratio")
            )
            worst = max(worst, abs(clean / quiet - 1))
            print(
                f"| {name} | {count} | {quiet:.4f} s | {raw:.4f} s | {clean:.4f} s "
                f"| {raw / quiet:.2f} | {clean / quiet:.3f} | {error:.1%} |",
                flush=True,
            )
    print(f"\nworst corrected median {worst:.1%} from the quiet time, at most 10% wanted")
    return worst <= 0.1


if __name__ == "__main__":
    main()
