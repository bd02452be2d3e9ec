"""nvprof CSV files: one task per row.

nvprof writes `==PID==` lines, a header, a row of units (they differ from file to file and column to
column) and the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.errors import UnreadableFile
from jostle.traces.profiles._gpus import Gpu, known_gpu
from jostle.traces.profiles._tasks import Profile, TaskBuilder, volume
from jostle.traces.readers._lines import bad_line, csv_lines, require_width
from jostle.traces.readers._recorded import RecordedRun, text_of

name = "nvprof"
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "µs": 1e-6}
_BYTES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_MEMCPY = {"HtoD": "htod", "DtoH": "dtoh", "DtoD": "dtod"}
_AGAIN = "Record it with: nvprof --print-gpu-trace --csv --log-file FILE PROGRAM"


def sniff(head: bytes, path: Path) -> bool:
    """Whether it begins with nvprof's own lines, or has its columns."""
    text = text_of(head)
    return text.startswith("==") or ('"Start"' in text and "Duration" in text)


def read(path: Path, recording: RecordedRun) -> Profile:
    """Raises UnreadableFile for a foreign or truncated file, BadRows for a row that cannot be read."""
    where = str(path)
    lines = csv_lines(path)
    columns, units = _header(lines, where)
    builder = TaskBuilder(recording.run_id, where)
    devices: dict[str, int] = {}
    gpus: dict[int, Gpu | None] = {}
    skipped = 0
    for number, cells in lines:
        require_width(cells, columns, number, where)
        row = _NvprofRow(dict(zip(columns, cells, strict=True)), units, number, where)
        start, duration = row.value("Start", _SECONDS), row.value("Duration", _SECONDS)
        if start is None or duration is None:
            raise bad_line(number, " has no times", where)
        label = row.cell.get("Device", "")
        device = devices.setdefault(label, len(devices))
        if device not in gpus:
            gpus[device] = recording.gpu or known_gpu(label)
        if not row.cell["Name"]:
            raise bad_line(number, " has no name: cut off?", where)
        kind, more = _task(row)
        if kind is None:
            skipped += 1
            continue
        stream = _whole(row.value("Stream"))
        builder.add(
            kind, start, duration, name=row.cell["Name"], device=device, stream=stream, **more
        )
    notes = [f"{skipped} copies between hosts or peers were left out"] if skipped else []
    return builder.profile(recording.workload, gpus, notes, name)


def _header(lines: Iterator[tuple[int, list[str]]], where: str) -> tuple[list[str], dict[str, str]]:
    """(columns, unit of each)"""
    columns = next((row for _, row in lines if "Duration" in row and "Name" in row), [])
    if "Start" not in columns:
        raise UnreadableFile("not a GPU trace of nvprof: no header", where=where, fix=_AGAIN)
    number, units = next(lines, (0, []))
    unit = dict(zip(columns, units, strict=False))
    if unit.get("Start") not in _SECONDS or unit.get("Duration") not in _SECONDS:
        raise UnreadableFile(
            f"line {number} is not the row of units that follows the header",
            where=where,
            fix=_AGAIN,
        )
    return columns, unit


@dataclass(frozen=True)
class _NvprofRow:
    cell: dict[str, str]
    unit: dict[str, str]
    number: int
    where: str

    def value(self, column: str, scale: Mapping[str, float] | None = None) -> float | None:
        """A number in SI units by `scale`; None where there is none. Raises BadRows."""
        text = self.cell.get(column, "").strip()
        if not text or text == "-":
            return None
        unit = self.unit.get(column)
        try:
            value = float(text) * (scale[unit or ""] if scale else 1)
            if not math.isfinite(value):
                raise ValueError
            return value
        except (ValueError, KeyError):
            problem = f": {column} is {text!r} in unit {unit!r}"
            raise bad_line(self.number, problem, self.where, _AGAIN) from None


def _task(row: _NvprofRow) -> tuple[str | None, dict[str, Any]]:
    """(kind, further columns); None for a copy that does not touch the device's link or memory."""
    label = row.cell["Name"]
    if label.startswith("[CUDA memcpy"):
        kind = next((_MEMCPY[d] for d in _MEMCPY if d in label), None)
        if kind is None:
            return None, {}
        host = row.cell.get("SrcMemType" if kind == "htod" else "DstMemType", "")
        pinned = {"Pinned": True, "Pageable": False}.get(host) if kind != "dtod" else None
        return kind, {"pinned": pinned, "bytes": _whole(row.value("Size", _BYTES))}
    if label.startswith("[CUDA memset"):
        return "memset", {"bytes": _whole(row.value("Size", _BYTES))}
    shared = [row.value("Static SMem", _BYTES), row.value("Dynamic SMem", _BYTES)]
    known = [part for part in shared if part is not None]
    return "kernel", {
        "blocks": volume([row.value(f"Grid {axis}") for axis in "XYZ"]),
        "threads_per_block": volume([row.value(f"Block {axis}") for axis in "XYZ"]),
        "registers_per_thread": _whole(row.value("Registers Per Thread")),
        "shared_bytes": round(sum(known)) if known else None,
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
