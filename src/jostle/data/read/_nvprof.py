"""CSV files of NVIDIA's tools with one task per row: of nvprof, and of `nsys stats --report cuda_gpu_trace`.

Units differ from file to file and column to column: nvprof has a row of them below the header, nsys writes
them behind the names of columns. Sizes of nsys are rounded to thousands of bytes; its SQLite export says all
that this does, and more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.data.read._trace_readers import RecordedRun
from jostle.data.tables.lines import Line, csv_lines, plain, table_lines
from jostle.data.tables.quantities import SECONDS
from jostle.data.traces._gpus import Gpu, known_gpu
from jostle.data.traces._profile_tasks import COPIES, Profile, TaskBuilder, volume
from jostle.errors import UnreadableFile

name = "nvprof"
# Bytes of a unit: nvprof means powers of 1024.
_BYTES: dict[str, dict[str, float]] = {
    "nvprof": {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30},
    "nsys": {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
}
_AGAIN = {
    "nvprof": "Record it with: nvprof --print-gpu-trace --csv --log-file FILE PROGRAM",
    "nsys": "Write it with: nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep",
}
_HEADED = re.compile(r"(.*?)\s*\((.*)\)")
_PINNED = {"Pinned": True, "Pageable": False}


def read(path: Path, recording: RecordedRun) -> Profile:
    """Raises UnreadableFile for a foreign or truncated file, BadRows for a row that cannot be read."""
    return read_gpu_trace(path, recording, "nvprof")


def read_gpu_trace(path: Path, recording: RecordedRun, tool: str) -> Profile:
    """Read the tasks of a GPU trace. tool: nvprof or nsys, which wrote it. Raises what `read` does."""
    where = str(path)
    rows = csv_lines(path)
    needs = {"start", "duration", "name"} | ({"corrid"} if tool == "nsys" else {"stream"})
    for _, row in rows:
        columns, units = _header(row)
        if needs <= set(map(plain, columns)):
            break
    else:
        raise UnreadableFile(f"no GPU trace of {tool}: no header", where=where, fix=_AGAIN[tool])
    if tool == "nvprof":
        _, cells = next(rows, (0, []))
        units = dict(zip(map(plain, columns), cells, strict=False))
    if not {units.get("start", ""), units.get("duration", "")} <= SECONDS.keys():
        text = "no row of units of time follows the header"
        raise UnreadableFile(text, where=where, fix=_AGAIN[tool])
    builder = TaskBuilder(recording.run_id, where)
    devices: dict[str, int] = {}
    gpus: dict[int, Gpu | None] = {}
    skipped = 0
    for line in table_lines(rows, columns, where, units):
        start, duration = (line.value(column, scale=SECONDS) for column in ("start", "duration"))
        label = line.text("name")
        if start is None or duration is None or label is None:
            raise line.bad(" has no times or no name: cut off?")
        card = line.cells.get("device", "")
        device = devices.setdefault(card, len(devices))
        gpus.setdefault(device, recording.gpu or known_gpu(card))
        kind, more = _task(line, label, _BYTES[tool])
        if kind is None:
            skipped += 1
            continue
        stream = line.whole("stream", "strm")
        builder.add(kind, start, duration, name=label, device=device, stream=stream, **more)
    notes = [f"{skipped} copies between hosts or peers were left out"] if skipped else []
    return builder.profile(recording.workload, gpus, notes, tool)


def _header(row: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return (columns, unit of each by its plain name, where it stands behind it)."""
    parts = [(m[1], m[2]) if (m := _HEADED.fullmatch(c.strip())) else (c.strip(), "") for c in row]
    return [column for column, _ in parts], {plain(column): unit for column, unit in parts if unit}


def _task(line: Line, label: str, scale: Mapping[str, float]) -> tuple[str | None, dict[str, Any]]:
    """Return (kind, further columns); None for a copy that does not touch the device's link or memory."""
    size = {"bytes": line.whole("size", "bytes", scale=scale)} if label.startswith("[") else {}
    if "memcpy" in label and label.startswith("["):
        kind = COPIES.get(plain(label).removeprefix("cudamemcpy").removeprefix("unified"))
        end = ("srcmemtype", "srcmemkd") if kind == "htod" else ("dstmemtype", "dstmemkd")
        return kind, {
            **size,
            "pinned": _PINNED.get(line.text(*end) or "") if kind != "dtod" else None,
        }
    if label.startswith("[CUDA memset"):
        return "memset", size
    columns = ("staticsmem", "stcsmem"), ("dynamicsmem", "dymsmem")
    shared = (line.value(*spellings, scale=scale) for spellings in columns)
    known = [part for part in shared if part is not None]
    return "kernel", {
        "blocks": volume([line.value(f"grid{axis}", f"grd{axis}") for axis in "xyz"]),
        "threads_per_block": volume([line.value(f"block{axis}", f"blk{axis}") for axis in "xyz"]),
        "registers_per_thread": line.whole("registersperthread", "regtrd"),
        "shared_bytes": round(sum(known)) if known else None,
    }
