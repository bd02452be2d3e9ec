"""Three small real campaigns, measured on this machine and evaluated on sets that were held out.

    python -m studies.collect.campaigns jobs|web|kernels OUT
        [--seconds 200] [--observed 0.6] [--evaluate-only]

jobs: gzip, bzip2, xz, zstd, a database with fsync, a NumPy job and a compiler, as far as they are installed.
web: a server (uvicorn) at three rates beside batch jobs. kernels: those of the tour. Each is measured alone
and in random sets of two and three, for --seconds at most (the same command goes on), into OUT; then
`jostle evaluate pairs` holds sets out and prints error and coverage of every method and simple rule.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.cli import exit_code
from jostle.kernels import KERNEL_FOLDER
from jostle.measure import (
    Campaign,
    MeasureOptions,
    Workload,
    command_workload,
    job_of,
    measure,
    service_workload,
)
from jostle.runs import read_runs
from jostle.tour import TourPlan

_TEXT_BYTES = 3_000_000
_RATES = (25, 50, 100)
_NUMPY = """
import numpy as np
draw = np.random.default_rng(0)
a = draw.random((300, 300))
for _ in range(3):
    np.linalg.svd(a @ a.T)
"""
_INSERTS = """
import random, sqlite3
base, draw = sqlite3.connect("x.db"), random.Random(0)
base.execute("pragma synchronous=full")
base.execute("create table t (a integer, b text)")
for turn in range(12):
    base.executemany("insert into t values (?, ?)", [(draw.getrandbits(30), str(i)) for i in range(1500)])
    base.commit()
base.execute("create index i on t (a)")
base.execute("select sum(length(b)) from t where a > 1000").fetchone()
"""
_SERVER = """
import hashlib, json

rows = [{"number": number, "name": f"row {number}"} for number in range(400)]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = json.dumps(rows).encode()
    mark = hashlib.sha256(body).hexdigest().encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"etag", mark)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""


def _jobs(folder: Path) -> list[Workload]:
    """Compression, a database, numbers and a compiler: those that are installed."""
    text, draw = folder / "text.txt", random.Random(0)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(3000)]
    text.write_text(" ".join(draw.choices(words, k=_TEXT_BYTES // 6))[:_TEXT_BYTES])
    lines: dict[str, list[str]] = {
        "gzip": ["gzip", "-kf", text.name],
        "bzip2": ["bzip2", "-kf", text.name],
        "xz": ["xz", "-kf", "-1", text.name],
        "zstd": ["zstd", "-qf", "-9", text.name],
    }
    results = [
        command_workload(line, name, job_of(inputs=[text]))
        for name, line in lines.items()
        if shutil.which(line[0])
    ]
    python = [sys.executable, "-c"]
    results.append(command_workload([*python, _INSERTS], "database", job_of(fresh_folder=True)))
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    results.append(command_workload([*python, _NUMPY], "numpy", job_of(environment=one_thread)))
    if shutil.which("cc"):
        sources = [KERNEL_FOLDER / name for name in ("sha256.c", "sift.c", "lz.c", "kernel.h")]
        words = ["cc", "-O2", "-c", *(path.name for path in sources[:-1])]
        results.append(command_workload(words, "build", job_of(inputs=sources)))
    return results


def _web(folder: Path) -> list[Workload]:
    """A server at three rates, and batch jobs."""
    (folder / "served.py").write_text(_SERVER)
    words = [sys.executable, "-m", "uvicorn", "served:app", "--port", "{port}"]
    words += ["--log-level", "critical", "--no-access-log", "--app-dir", str(folder)]
    batch = [one for one in _jobs(folder) if one.name in ("gzip", "database", "numpy")]
    return batch + [
        service_workload(words, rate, url="http://127.0.0.1:{port}/", quantile=0.9, name="web")
        for rate in _RATES
    ]


def _settings(name: str, folder: Path) -> dict[str, Any]:
    """Of the campaign."""
    native = {"engines": ["native"], "solo_repeats": 3, "sets": 70, "set_sizes": (2, 3)}
    makers: dict[str, Callable[[Path], list[Workload]]] = {"jobs": _jobs, "web": _web}
    if name in makers:
        return {"workloads": makers[name](folder), **native}
    plan = TourPlan()
    engines = [engine for engine in plan.engines if engine != "checked"]
    return {
        "workloads": list(plan.workloads),
        "engines": engines,
        "solo_repeats": 3,
        "sets": 240,
        "set_sizes": (2, 3),
        "window_seconds": plan.window_seconds,
    }


def main() -> None:
    """Measure as long as allowed, then print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=("jobs", "web", "kernels"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=200.0, help="to measure at most")
    parser.add_argument("--observed", type=float, default=0.6, help="share of the sets")
    parser.add_argument("--measure-only", action="store_true")
    parser.add_argument("--evaluate-only", action="store_true")
    given = parser.parse_args()
    data = given.out / "data"
    if not given.evaluate_only:
        given.out.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        campaign = Campaign(**_settings(given.name, given.out.resolve()))
        options = MeasureOptions(time_budget_seconds=given.seconds)
        summary = measure(campaign, data, options)
        done = summary.already + summary.ok
        print(
            f"{given.name}: {done} of {summary.planned} windows, {summary.contaminated} disturbed, "
            f"{summary.failed} failed, in {time.monotonic() - began:.0f} s",
            flush=True,
        )
    if not given.measure_only:
        print(read_runs(data).ok(), flush=True)
        sys.exit(exit_code(["evaluate", "pairs", str(data), "--observed", str(given.observed)]))


if __name__ == "__main__":
    main()
