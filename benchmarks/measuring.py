"""Does the collector tell the truth? Its times against a plain loop, and disturbers that it should notice.

    python benchmarks/measuring.py [--only times|disturbers] [--job NAME] [--windows 100] [--seconds 45]

times: gzip of a file, `sleep 0.05`, sqlite3 with fsync, a job of --seconds that computes and waits, and
requests at 100/s to a small server, each timed by a loop of `clock_gettime` here and measured by a campaign:
alone, and beside a job that computes on the other core. The last column is the difference. disturbers: a job
that waits, one that computes and a kernel, in windows without and with another process that holds a quarter
of a core, left to the scheduler or kept on one core: how many windows of each are flagged. Meant for a quiet
machine: look at what `jostle measure --check` says first.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jostle.measure import (
    Campaign,
    JobSettings,
    Workload,
    check_machine,
    command_workload,
    detection,
    find_workloads,
    job_of,
    measure,
    service_workload,
)
from jostle.measure.window._placement import phases
from jostle.runs import Dataset

SERVER = """
import http.server, sys, time
class A(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.005)
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), A).serve_forever()
"""
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
JOBS = ("gzip", "sleep", "sqlite", "long", "served")
DISTURBED = ("waits", "computes", "sort-s")
_PORT = "18999"
# Share of a core, and the core where it is kept.
_DISTURBERS: dict[str, tuple[float, int | None]] = {
    "none": (0.0, None),
    "free": (0.25, None),
    "kept": (0.25, 0),
}


def main() -> None:
    """Print both tables; exit code 1 where a figure misses what the documentation promises."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--windows", type=int, default=100, help="for each kind of disturbance")
    parser.add_argument("--seconds", type=float, default=45.0, help="how long the long job takes")
    parser.add_argument("--rounds", type=int, default=3, help="of both clocks in turn")
    parser.add_argument("--only", action="append", choices=("times", "disturbers"))
    parser.add_argument("--disturber", action="append", choices=tuple(_DISTURBERS))
    parser.add_argument(
        "--job",
        action="append",
        choices=(*JOBS, *DISTURBED),
        help="one of a table; may be repeated",
    )
    given = parser.parse_args()
    quiet = check_machine(3.0)
    print(f"quiet: {quiet.quiet}; " + ("; ".join(quiet.disturbances) or "nothing disturbs"))
    with tempfile.TemporaryDirectory(prefix="jostle-measuring-") as folder:
        wanted = given.only or ["times", "disturbers"]
        good = True
        if "times" in wanted:
            jobs = [name for name in given.job or JOBS if name in JOBS]
            good &= _times(Path(folder), given.seconds, jobs, given.rounds)
        if "disturbers" in wanted:
            good &= _disturbers(given.windows, given.job, given.disturber or tuple(_DISTURBERS))
    sys.exit(not good)


def _times(folder: Path, seconds: float, wanted: Sequence[str], rounds: int) -> bool:
    print("\n| job | | by a loop | by jostle measure | difference |\n|---|---|---|---|---|")
    worst = 0.0
    for name in wanted:
        for beside in (False, True):
            if name == "served":
                worst = max(worst, _served(folder, beside, rounds))
            else:
                worst = max(worst, _timed(folder, name, seconds, beside, rounds))
    print(f"\nworst difference {worst:.1%}, at most 5% wanted")
    return worst <= 0.05


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
            (dealt,) = phases(len(names), campaign.cores_of(planned.engine), planned.key)
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


def _served(folder: Path, beside: bool, rounds: int) -> float:
    """The same of the median latency of requests at 100/s, against a loop of requests at that rate."""
    server = folder / "server.py"
    server.write_text(SERVER)
    words = [sys.executable, "-S", str(server), "{port}"]
    web = service_workload(words, 100, url="http://127.0.0.1:{port}/", quantile=0.5, name="served")
    campaign, core = _planned(web, beside)
    loops, rows = list[float](), list[dict[str, Any]]()
    for _ in range(rounds):
        with _partner(beside, core):
            loops.append(_requested([*words[:-1], _PORT]))
        rows.append(_measured(folder, campaign, web.name))
    return _compared("served", loops, rows, beside)


def _requested(words: Sequence[str]) -> float:
    """Median latency of a server's answers, asked a hundred times a second, one after the other.

    On bare sockets: a general client's own work (urllib's some 0.5 ms) is no latency of the server's.
    """
    process, found = subprocess.Popen(words), list[float]()
    try:
        due = time.clock_gettime(time.CLOCK_MONOTONIC)
        while len(found) < 150:
            due += 0.01
            time.sleep(max(0.0, due - time.clock_gettime(time.CLOCK_MONOTONIC)))
            before = time.clock_gettime(time.CLOCK_MONOTONIC)
            try:
                with socket.create_connection(("127.0.0.1", int(_PORT))) as connection:
                    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    while connection.recv(1 << 16):
                        pass
            except OSError:  # it is not ready yet
                continue
            found.append(time.clock_gettime(time.CLOCK_MONOTONIC) - before)
    finally:
        process.kill()
        process.wait()
    return statistics.median(found)


def _disturbers(windows: int, wanted: Sequence[str] | None, cases: Sequence[str]) -> bool:
    print("\n| member | other process | windows | flagged | others held (median) |")
    print("|---|---|---|---|---|")
    members = [
        (command_workload(["sleep", "0.05"], DISTURBED[0]), "native"),
        (command_workload(COMPUTES, DISTURBED[1]), "native"),
        (find_workloads([DISTURBED[-1]])[0], "speed"),
    ]
    good = True
    for member, engine in members:
        if wanted and member.name not in wanted:
            continue
        for share, core in (_DISTURBERS[name] for name in cases):
            found = detection(member, engine, share=share, windows=windows, core=core)
            what = f"{share:.0%} of a core" if share else "none"
            what += "" if core is None else f", on core {core}"
            told = f"{found.windows} | {found.flagged} | {found.held_cores or 0.0:.1%}"
            print(f"| {member.name} | {what} | {told} |", flush=True)
            good &= found.rate >= 0.95 if share else found.rate <= 0.05
    return good


if __name__ == "__main__":
    main()
