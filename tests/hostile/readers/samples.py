"""One good file of each kind that is read, small, as it stands before it is changed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.packages.data.traces.profiles_samples import (
    COPY,
    HOST,
    KERNEL,
    NVPROF,
    PROPERTIES,
    ROCPROF,
    kineto,
    nsys,
)

KINETO: Any = kineto(HOST, KERNEL, COPY, KERNEL, deviceProperties=PROPERTIES)
NVPROF_TEXT, ROCPROF_TEXT = NVPROF.encode(), ROCPROF.encode()
SYSINFO = b"gpu_model,gpu_arch,cu_per_gpu,hbm_bw\nMI250,gfx90a,104,1638.4\n"
PERF_LINES = (
    b"0.010,CPU0,5,,instructions,10,100.0,,\n0.010,CPU1,<not counted>,msec,task-clock,0,50.0,,\n"
    b"0.020,CPU0,7,,instructions:u,10,100.0,,\n0.020,CPU1,1.5,msec,task-clock,10,100.0,,\n"
)
PERF_JSON: Any = {
    "interval": 0.01,
    "cpu": "0",
    "counter-value": "5.0",
    "unit": "msec",
    "event": "task-clock",
    "event-runtime": 10,
    "pcnt-running": 50.0,
}
CSV = (
    b"job,host,beside,wall,measured_at,status,reason,free\n"
    b'a,pi,b;c,1.5,2024-01-02T03:04:05,ok,,1\nb,pi,,2.5,,ok,,2\n"c",pi,a,3e-1,2024-01-02,ok,,x\n'
)
PAIRS = (
    b"dataset,platform,target,target_cfg,corunner,corunner_cfg,metric,unit,solo,corun,slowdown\n"
    b"one,gpu,a,,b,,throughput,steps/s,4,2,2\none,gpu,b,small,a;b,x,time,ms,8,16,2\n"
)


def nsys_bytes(folder: Path) -> bytes:
    """A database as nsys exports it."""
    (folder / "sample.sqlite").unlink(missing_ok=True)
    return nsys(folder / "sample.sqlite", graphs=True).read_bytes()


def nsys_with(folder: Path, statements: list[str]) -> bytes:
    """The same after statements of SQL, of which those that fail do nothing."""
    path = folder / "changed.sqlite"
    path.write_bytes(nsys_bytes(folder))
    with closing(sqlite3.connect(path)) as base, base:
        for statement in statements:
            try:
                base.execute(statement)
            except (sqlite3.Error, sqlite3.Warning, ValueError):
                continue
    return path.read_bytes()


def parquet(table: pa.Table) -> bytes:
    """A Parquet file."""
    file = BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def foreign_table() -> pa.Table:
    """What somebody else keeps of runs."""
    return pa.table(
        {
            "job": ["a", "b", "c"],
            "host": ["pi", "pi", "pc"],
            "beside": [["b", "c"], [], ["a"]],
            "wall": [1.5, 2.5, 3.5],
            "status": ["ok", "ok", "ok"],
            "free": [1, None, 3],
        }
    )


def journal_line(rows: list[dict[str, Any]]) -> bytes:
    """A line as a campaign writes it."""
    text = json.dumps({"rows": rows}).encode()
    return hashlib.sha256(text).hexdigest()[:16].encode() + b" " + text + b"\n"


JOURNAL_ROW: Any = {
    "workload": "a",
    "platform": "p",
    "corunners": ["b"],
    "runtime_seconds": 1.0,
    "measured_at": "2024-01-02T03:04:05+00:00",
    "campaign": "c",
    "window_id": "c-1-0",
    "run_id": "c-1-0-0",
    "status": "ok",
    "reason": None,
    "slot": 0,
}
