"""Does the collector tell the truth? Its times against a plain loop, and disturbers that it should notice.

    python benchmarks/measuring.py [--windows 100] [--only times] [--only disturbers] [--seconds 45]

times: gzip of a file, `sleep 0.05`, sqlite3 with fsync, a job of --seconds, and a request at 100/s to a small
server, each timed by a loop of `clock_gettime` here and measured alone by a campaign; the last column is the
difference. disturbers: a job that waits and one that computes, in windows without and with another process
that holds a quarter of a core: how many windows of each are flagged. Meant for a quiet machine: look at what
`jostle measure --check` says first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from jostle.measure import (
    Campaign,
    JobSettings,
    MeasureOptions,
    Tolerance,
    Workload,
    check_machine,
    command_workload,
    job_of,
    measure,
    service_workload,
)
from jostle.runs import Dataset

# Holds so much of a core, in turns of a tenth of a second.
DISTURBER = """
import sys, time
share = float(sys.argv[1])
while True:
    began = time.monotonic()
    while time.monotonic() < began + 0.1 * share:
        pass
    time.sleep(max(0.0, began + 0.1 - time.monotonic()))
"""


def main() -> None:
    """Print both tables; exit code 1 where a figure misses what the documentation promises."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--windows", type=int, default=100, help="for each kind of disturbance")
    parser.add_argument("--seconds", type=float, default=45.0, help="how long the long job takes")
    parser.add_argument("--only", action="append", choices=("times", "disturbers"))
    given = parser.parse_args()
    quiet = check_machine(3.0)
    print(f"quiet: {quiet.quiet}; " + ("; ".join(quiet.disturbances) or "nothing disturbs"))
    with tempfile.TemporaryDirectory(prefix="jostle-measuring-") as folder:
        wanted = given.only or ["times", "disturbers"]
        good = True
        if "times" in wanted:
            good &= _times(Path(folder), given.seconds)
        if "disturbers" in wanted:
            good &= _disturbers(Path(folder), given.windows)
    sys.exit(not good)


def _jobs(
    folder: Path, seconds: float
) -> list[tuple[Workload, list[str], JobSettings | None, int]]:
    """(workload, its words, what surrounds it, how often the loop here runs it)."""
    data = folder / "data.bin"
    data.write_bytes(b"".join(os.urandom(64) * 40 for _ in range(1500)))
    insert = (
        "import sqlite3; b = sqlite3.connect('x.db'); b.execute('pragma synchronous=full');"
        "b.execute('create table t (a)');"
        "[(b.execute('insert into t values (?)', (i,)), b.commit()) for i in range(40)]"
    )
    lines: list[tuple[str, list[str], JobSettings | None, int]] = [
        ("gzip", ["gzip", "-kf", "data.bin"], job_of(inputs=[data]), 15),
        ("sleep", ["sleep", "0.05"], None, 20),
        ("sqlite", [sys.executable, "-S", "-c", insert], job_of(), 15),
        ("long", ["sleep", f"{seconds:g}"], None, 1),
    ]
    return [(command_workload(w, name, job), w, job, n) for name, w, job, n in lines]


def _looped(words: list[str], job: JobSettings | None, times: int) -> float:
    """Median wall seconds of a plain loop, on one core, each time in a fresh folder."""
    found = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            for path in job.inputs if job else ():
                (Path(folder) / path.name).write_bytes(path.read_bytes())
            before = time.clock_gettime(time.CLOCK_MONOTONIC)
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            found.append(time.clock_gettime(time.CLOCK_MONOTONIC) - before)
    return statistics.median(found)


def _measured(folder: Path, workload: Workload, **options: object) -> list[dict[str, object]]:
    campaign = Campaign(
        workloads=[workload], engines=["native"], solo_repeats=1, sets=0, device="here"
    )
    settings = MeasureOptions(tolerance=Tolerance.anything(), **options)  # type: ignore[arg-type]
    path = folder / f"{workload.name}-{time.monotonic_ns()}"
    measure(campaign, path, settings)
    return Dataset(path).read().table.to_pylist()


def _times(folder: Path, seconds: float) -> bool:
    print("\n| job | by a loop | by jostle measure | difference |\n|---|---|---|---|")
    worst = 0.0
    for workload, words, job, times in _jobs(folder, seconds):
        # In turns, so that what changes on the machine meets both.
        loops = [_looped(words, job, times)]
        (row,) = _measured(folder, workload)
        loops.append(_looped(words, job, times))
        worst = max(worst, _compared(workload.name, statistics.mean(loops), row))
    worst = max(worst, _served(folder))
    print(f"\nworst difference {worst:.1%}, at most 5% wanted")
    return worst <= 0.05


def _compared(name: str, looped: float, row: dict[str, object]) -> float:
    seconds = float(str(row["runtime_seconds"] or "nan"))
    off = abs(seconds / looped - 1)
    print(f"| {name} | {looped:.5g} s | {seconds:.5g} s | {off:.1%} |", flush=True)
    return off


def _served(folder: Path) -> float:
    """The median latency of requests at 100/s, against a loop of requests with the same pauses."""
    server = folder / "server.py"
    server.write_text(
        "import http.server, sys, time\n"
        "class A(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        time.sleep(0.005)\n"
        "        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers()\n"
        "        self.wfile.write(b'ok')\n"
        "    def log_message(self, *_): pass\n"
        "http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), A).serve_forever()\n"
    )
    words = [sys.executable, "-S", str(server), "{port}"]
    web = service_workload(words, 100, url="http://127.0.0.1:{port}/", quantile=0.5, name="served")
    (row,) = _measured(folder, web)
    process = subprocess.Popen([*words[:-1], "18999"])
    found = []
    try:
        for _ in range(200):
            try:
                before = time.clock_gettime(time.CLOCK_MONOTONIC)
                urllib.request.urlopen("http://127.0.0.1:18999/").read()
                found.append(time.clock_gettime(time.CLOCK_MONOTONIC) - before)
            except OSError:
                pass
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    return _compared("served@100rps", statistics.median(found), row)


def _disturbers(folder: Path, windows: int) -> bool:
    print("\n| job | other process | windows | flagged |\n|---|---|---|---|")
    jobs = [
        command_workload(["sleep", "0.05"], "waits"),
        command_workload([sys.executable, "-S", "-c", "sum(range(4000000))"], "computes"),
    ]
    good = True
    for job in jobs:
        for share in (0.0, 0.25):
            flagged = _flagged(folder, job, windows, share)
            what = f"{share:.0%} of a core" if share else "none"
            print(f"| {job.name} | {what} | {windows} | {flagged} |", flush=True)
            good &= flagged >= 0.95 * windows if share else flagged <= 0.05 * windows
    return good


def _flagged(folder: Path, job: Workload, windows: int, share: float) -> int:
    """How many of so many windows are contaminated while another process holds a share of a core."""
    other = None
    if share:
        other = subprocess.Popen([sys.executable, "-S", "-c", DISTURBER, str(share)])
    try:
        campaign = Campaign(
            workloads=[job], engines=["native"], solo_repeats=windows, sets=0, device="here"
        )
        path = folder / f"{job.name}-{share}"
        measure(campaign, path, MeasureOptions(attempts=1))
        return Dataset(path).read().table.column("status").to_pylist().count("contaminated")
    finally:
        if other is not None:
            other.kill()
            other.wait()


if __name__ == "__main__":
    main()
