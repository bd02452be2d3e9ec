"""Does the collector tell the truth? Its times against those of a plain loop.

    python benchmarks/measuring.py [--job NAME] [--seconds 45] [--rounds 3]

gzip of a file, `sleep 0.05`, sqlite3 with fsync, and a job of --seconds that computes and waits, each timed
by a loop of `clock_gettime` here and measured by a campaign: alone, and beside a job that computes on the
other core. The last column is the difference. What is left of a disturbance: never_quiet.py. Meant for a
quiet machine: look at what `jostle measure --check` says first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jostle.collect import (
    Campaign,
    JobSettings,
    Workload,
    check_machine,
    command_workload,
    job_of,
    measure,
)
from jostle.collect.window._core_placement import phases
from jostle.data import Dataset

INSERTS = """
import sqlite3
base = sqlite3.connect("x.db")
base.execute("pragma synchronous=full")
base.execute("create table t (a)")
for number in range(40):
    base.execute("insert into t values (?)", (number,))
    base.commit()
"""
LONG = """
import sys, time
for _ in range(int(sys.argv[1])):
    sum(range(2_000_000))
    time.sleep(0.02)
"""
COMPUTES = [sys.executable, "-S", "-c", "sum(range(4000000))"]
JOBS = ("gzip", "sleep", "sqlite", "long")


def main() -> None:
    """Print the table; exit code 1 where a difference is over 5%."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=45.0, help="how long the long job takes")
    parser.add_argument("--rounds", type=int, default=3, help="of both clocks in turn")
    parser.add_argument("--job", action="append", choices=JOBS, help="one of the table")
    given = parser.parse_args()
    quiet = check_machine(3.0)
    print(f"quiet: {quiet.quiet}; " + ("; ".join(quiet.disturbances) or "nothing disturbs"))
    print("\n| job | | by a loop | by jostle measure | difference |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="jostle-measuring-") as folder:
        worst = max(
            _timed(Path(folder), name, given.seconds, beside, given.rounds)
            for name in given.job or JOBS
            for beside in (False, True)
        )
    print(f"\nworst difference {worst:.1%}, at most 5% wanted")
    sys.exit(worst > 0.05)


def _words(folder: Path, name: str, seconds: float) -> tuple[list[str], JobSettings | None, int]:
    """(words, what surrounds them, how often the loop here runs them)."""
    python = [sys.executable, "-S", "-c"]
    if name == "gzip":
        data = folder / "data.bin"
        data.write_bytes(b"".join(os.urandom(64) * 40 for _ in range(1500)))
        return ["gzip", "-kf", "data.bin"], job_of(inputs=[data]), 15
    if name == "sqlite":
        return [*python, INSERTS], job_of(fresh_folder=True), 15
    if name == "long":
        began = time.monotonic()
        subprocess.run([*python, LONG, "20"], check=True)
        turns = max(1, round(20 * seconds / (time.monotonic() - began)))
        return [*python, LONG, str(turns)], None, 1
    return ["sleep", "0.05"], None, 20


def _timed(folder: Path, name: str, seconds: float, beside: bool, rounds: int) -> float:
    """The difference of the two times of a job, in turns, so that what changes on the machine meets both."""
    words, job, times = _words(folder, name, seconds)
    campaign, core = _planned(command_workload(words, name, job), beside)
    loops, rows = list[float](), list[dict[str, Any]]()
    for _ in range(1 if times == 1 else rounds):
        with _partner(beside, core):
            loops.append(_looped(words, job, times))
        rows.append(_measured(folder, campaign, name))
    return _compared(name, loops, rows, beside)


@contextmanager
def _partner(beside: bool, core: int) -> Iterator[None]:
    """The job that computes, over and over on another core, while this process is kept to its own.

    core: where the campaign runs it, too. A disk's answers reach one core first: a job with fsync is half as
    long again on the other.
    """
    cores = sorted(os.sched_getaffinity(0))
    other = next(each for each in reversed(cores) if each != core)
    again = f"while :; do {sys.executable} -S -c 'sum(range(4000000))'; done"
    process = None
    if beside:
        process = subprocess.Popen(
            ["taskset", "-c", str(other), "sh", "-c", again], process_group=0
        )
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        if process is not None:
            os.killpg(process.pid, 9)
            process.wait()


def _looped(words: list[str], job: JobSettings | None, times: int) -> float:
    """Median wall seconds of a plain loop, each time in a fresh folder."""
    found = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            for path in job.inputs if job else ():
                (Path(folder) / path.name).write_bytes(path.read_bytes())
            before = time.clock_gettime(time.CLOCK_MONOTONIC)
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            found.append(time.clock_gettime(time.CLOCK_MONOTONIC) - before)
    return statistics.median(found)


def _planned(workload: Workload, beside: bool) -> tuple[Campaign, int]:
    """A campaign of its run alone, or in a set with the job that computes, and the core it is dealt."""
    plan: dict[str, Any] = {"solo_repeats": 1, "sets": 0}
    members = [workload]
    if beside:
        members.append(command_workload(COMPUTES, "partner"))
        plan = {"solo_repeats": 0, "sets": 1, "set_sizes": (2, 2)}
    seed = 0
    while True:
        campaign = Campaign(workloads=members, engines=["native"], device="here", seed=seed, **plan)
        (planned,) = campaign.plan()
        names = [one.name for one in planned.members]
        if len(set(names)) == len(members):
            (dealt,) = phases(len(names), campaign.core_numbers, planned.key)
            return campaign, dealt[names.index(workload.name)]
        seed += 1


def _measured(folder: Path, campaign: Campaign, name: str) -> dict[str, Any]:
    """Its run in that campaign."""
    path = folder / f"{name}-{time.monotonic_ns()}"
    measure(campaign, path)
    rows = Dataset(path).read().table.to_pylist()
    return next(row for row in rows if row["workload"] == name)


def _compared(
    name: str, loops: Sequence[float], rows: Sequence[dict[str, Any]], beside: bool
) -> float:
    looped = statistics.median(loops)
    seconds = statistics.median(float(row["runtime_seconds"] or "nan") for row in rows)
    off = abs(seconds / looped - 1)
    how = "side by side" if beside else "alone"
    print(f"| {name} | {how} | {looped:.5g} s | {seconds:.5g} s | {off:.1%} |", flush=True)
    return off


if __name__ == "__main__":
    main()
