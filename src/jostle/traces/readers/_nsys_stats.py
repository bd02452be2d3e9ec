"""CSV files of `nsys stats --report cuda_gpu_trace`: one task per row, units in the header.

Sizes are rounded to thousands of bytes there; the SQLite export says all that this does, and more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.errors import UnreadableFile
from jostle.traces.profiles._gpus import Gpu, known_gpu
from jostle.traces.profiles._tasks import Profile, TaskBuilder, volume
from jostle.traces.readers._lines import bad_line, csv_lines, require_width
from jostle.traces.readers._recorded import RecordedRun, text_of

name = "nsys"
_SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "μs": 1e-6, "µs": 1e-6, "ns": 1e-9}
_BYTES = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_COPIES = {"htod": "htod", "hosttodevice": "htod", "dtoh": "dtoh", "devicetohost": "dtoh"}
_COPIES |= {"dtod": "dtod", "devicetodevice": "dtod"}
_AGAIN = "Write it with: nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep"
_HEADED = re.compile(r"(.*?)\s*\((.*)\)")


def is_stats(head: bytes) -> bool:
    """Whether there is a line with columns that only nsys stats writes."""
    lines = text_of(head).splitlines()
    return any(
        ("CorrId" in line and "Duration (" in line) or "Total Time (ns)" in line for line in lines
    )


def read_stats(path: Path, recording: RecordedRun) -> Profile:
    """Raises UnreadableFile for another report or a file that was cut off, BadRows for a row that cannot be
    read."""
    where = str(path)
    lines = csv_lines(path)
    columns, units = _header(lines, where)
    builder = TaskBuilder(recording.run_id, where)
    devices: dict[str, int] = {}
    gpus: dict[int, Gpu | None] = {}
    skipped = 0
    for number, cells in lines:
        require_width(cells, columns, number, where)
        row = _StatsRow(dict(zip(columns, cells, strict=True)), units, number, where)
        start, duration = row.value("Start", _SECONDS), row.value("Duration", _SECONDS)
        if start is None or duration is None or not row.cell.get("Name"):
            raise bad_line(number, " has no times or no name: cut off?", where, _AGAIN)
        label = row.cell.get("Device", "")
        device = devices.setdefault(label, len(devices))
        gpus.setdefault(device, recording.gpu or known_gpu(label))
        kind, more = _task(row)
        if kind is None:
            skipped += 1
            continue
        stream = row.whole("Strm")
        builder.add(
            kind, start, duration, name=row.cell["Name"], device=device, stream=stream, **more
        )
    notes = [f"{skipped} copies between hosts or peers were left out"] if skipped else []
    return builder.profile(recording.workload, gpus, notes, name)


def _header(lines: Iterator[tuple[int, list[str]]], where: str) -> tuple[list[str], dict[str, str]]:
    """(columns, unit of each); lines before the header say what nsys did."""
    for _, row in lines:
        found = [_HEADED.fullmatch(cell.strip()) for cell in row]
        columns = [m[1] if m else c.strip() for m, c in zip(found, row, strict=True)]
        if {"Start", "Duration", "Name", "CorrId"} <= set(columns):
            units = {m[1]: m[2] for m in found if m}
            if units.get("Start") in _SECONDS and units.get("Duration") in _SECONDS:
                return columns, units
    raise UnreadableFile("not the trace of nsys stats, no header", where=where, fix=_AGAIN)


@dataclass(frozen=True)
class _StatsRow:
    cell: dict[str, str]
    unit: dict[str, str]
    number: int
    where: str

    def value(self, column: str, scale: Mapping[str, float] | None = None) -> float | None:
        """A number in SI units by `scale`; None where there is none. Raises BadRows."""
        text = self.cell.get(column, "").strip().replace(",", "")
        if not text or text == "-":
            return None
        try:
            value = float(text) * (scale[self.unit.get(column, "")] if scale else 1)
            if not math.isfinite(value):
                raise ValueError
            return value
        except (ValueError, KeyError):
            problem = f": {column} is {text!r} in unit {self.unit.get(column)!r}"
            raise bad_line(self.number, problem, self.where, _AGAIN) from None

    def whole(self, column: str, scale: Mapping[str, float] | None = None) -> int | None:
        value = self.value(column, scale)
        return None if value is None else round(value)


def _task(row: _StatsRow) -> tuple[str | None, dict[str, Any]]:
    """(kind, further columns); None for a copy that does not touch the device's link or memory."""
    label = row.cell["Name"]
    if "memcpy" in label and label.startswith("["):
        plain = "".join(c for c in label.lower() if c.isalpha()).removeprefix("cudamemcpy")
        kind = _COPIES.get(plain.removeprefix("unified"))
        if kind is None:
            return None, {}
        host = row.cell.get("SrcMemKd" if kind == "htod" else "DstMemKd", "")
        pinned = {"Pinned": True, "Pageable": False}.get(host) if kind != "dtod" else None
        return kind, {"pinned": pinned, "bytes": row.whole("Bytes", _BYTES)}
    if label.startswith("[CUDA memset"):
        return "memset", {"bytes": row.whole("Bytes", _BYTES)}
    shared = [row.value("StcSMem", _BYTES), row.value("DymSMem", _BYTES)]
    known = [part for part in shared if part is not None]
    return "kernel", {
        "blocks": volume([row.value(f"Grd{axis}") for axis in "XYZ"]),
        "threads_per_block": volume([row.value(f"Blk{axis}") for axis in "XYZ"]),
        "registers_per_thread": row.whole("Reg/Trd"),
        "shared_bytes": round(sum(known)) if known else None,
    }
