"""nvprof and rocprof CSV files: one task per row.

nvprof writes `==PID==` lines, a header, a row of units (they differ from file to file and column to
column) and the rows. rocprof writes a plain table; its Grid_Size counts work-items, not blocks, and its
hardware stands in a sysinfo.csv beside it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jostle.errors import BadRows, UnreadableFile
from jostle.traces.profiles._gpus import Gpu, _amd, known_gpu
from jostle.traces.profiles._tasks import Profile, TaskBuilder

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "µs": 1e-6}
_BYTES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_MEMCPY = {"HtoD": "htod", "DtoH": "dtoh", "DtoD": "dtod"}
_AGAIN = "Record it with: nvprof --print-gpu-trace --csv --log-file FILE PROGRAM"


def read_nvprof(path: Path, *, run_id: str, workload: str, gpu: Gpu | None = None) -> Profile:
    """gpu: the device of all rows, instead of the one that the rows name.

    Raises UnreadableFile for a foreign or truncated file, BadRows for a row that cannot be read.
    """
    where = str(path)
    lines = _lines(path)
    header = next((row for row in lines if "Duration" in row[1] and "Name" in row[1]), None)
    if header is None or "Start" not in header[1]:
        raise UnreadableFile("not a GPU trace of nvprof: no header", where=where, fix=_AGAIN)
    columns = header[1]
    number, units = next(lines, (0, []))
    unit = dict(zip(columns, units, strict=False))
    if unit.get("Start") not in _SECONDS or unit.get("Duration") not in _SECONDS:
        raise UnreadableFile(
            f"line {number} is not the row of units that follows the header",
            where=where,
            fix=_AGAIN,
        )
    builder = TaskBuilder(run_id, where)
    devices: dict[str, int] = {}
    gpus: dict[int, Gpu | None] = {}
    skipped = 0
    for number, row in lines:
        _same_width(row, columns, number, where)
        cell = dict(zip(columns, row, strict=True))

        def value(
            name: str,
            scale: dict[str, Any] | None = None,
            cell: dict[str, str] = cell,
            at: int = number,
        ) -> float | None:
            text = cell.get(name, "").strip()
            if not text or text == "-":
                return None
            try:
                return float(text) * (scale[unit[name]] if scale else 1)
            except (ValueError, KeyError):
                raise BadRows(
                    f"line {at}: {name} is {text!r} in unit {unit.get(name)!r}",
                    rows=[(at, name)],
                    where=where,
                    fix=_AGAIN,
                ) from None

        start, duration = value("Start", _SECONDS), value("Duration", _SECONDS)
        if start is None or duration is None:
            raise BadRows(f"line {number} has no times", rows=[(number, "no times")], where=where)
        label = cell.get("Device", "")
        device = devices.setdefault(label, len(devices))
        if device not in gpus:
            gpus[device] = gpu or known_gpu(label)
        more: dict[str, Any] = {"device": device, "stream": _int(value("Stream"))}
        name = cell["Name"]
        if not name:
            raise BadRows(
                f"line {number} has no name: cut off?", rows=[(number, "no name")], where=where
            )
        if name.startswith("[CUDA memcpy"):
            kind = next((_MEMCPY[d] for d in _MEMCPY if d in name), None)
            if kind is None:
                skipped += 1
                continue
            host = cell.get("SrcMemType" if kind == "htod" else "DstMemType", "")
            more["pinned"] = (
                {"Pinned": True, "Pageable": False}.get(host) if kind != "dtod" else None
            )
            more["bytes"] = _int(value("Size", _BYTES))
        elif name.startswith("[CUDA memset"):
            kind = "memset"
            more["bytes"] = _int(value("Size", _BYTES))
        else:
            kind = "kernel"
            grid = [value(f"Grid {axis}") for axis in "XYZ"]
            block = [value(f"Block {axis}") for axis in "XYZ"]
            static, dynamic = value("Static SMem", _BYTES), value("Dynamic SMem", _BYTES)
            more["blocks"] = _volume(grid)
            more["threads_per_block"] = _volume(block)
            more["registers_per_thread"] = _int(value("Registers Per Thread"))
            known = [part for part in (static, dynamic) if part is not None]
            more["shared_bytes"] = round(sum(known)) if known else None
        builder.add(kind, start, duration, name=name, **more)
    notes = [] if not skipped else [f"{skipped} copies between hosts or peers were left out"]
    return Profile(run_id, workload, builder.finish(gpus), gpus, tuple(notes), "nvprof")


def read_rocprof(path: Path, *, run_id: str, workload: str, gpu: Gpu | None = None) -> Profile:
    """gpu: the device of all rows; by default what sysinfo.csv in the same folder says.

    Raises UnreadableFile for a file without times, BadRows for a row that cannot be read.
    """
    where = str(path)
    lines = _lines(path)
    _, columns = next(lines, (0, []))
    at = {_plain(name): place for place, name in enumerate(columns)}
    starts, ends = _find(at, "starttimestamp", "beginns"), _find(at, "endtimestamp", "endns")
    names = _find(at, "kernelname", "name")
    if starts is None or ends is None:
        raise UnreadableFile(
            "no start and end times in this table",
            where=where,
            fix="Counter files have none: give the timestamps.csv or kernel trace of the same run.",
        )
    gpu = gpu or _sysinfo(path.with_name("sysinfo.csv"))
    grid, group = _find(at, "gridsize", "grd"), _find(at, "workgroupsize", "wgr")
    sides = [(_find(at, f"gridsize{axis}"), _find(at, f"workgroupsize{axis}")) for axis in "xyz"]
    builder = TaskBuilder(run_id, where)
    for number, row in lines:
        _same_width(row, columns, number, where)

        def whole(place: int | None, row: list[str] = row, at: int = number) -> int | None:
            if place is None or not row[place].strip():
                return None
            try:
                return int(float(row[place])) if "." in row[place] else int(row[place])
            except ValueError:
                raise BadRows(
                    f"line {at}: {row[place]!r} is not a number", rows=[(at, "number")], where=where
                ) from None

        start, end = whole(starts), whole(ends)
        if start is None or end is None:
            raise BadRows(f"line {number} has no times", rows=[(number, "no times")], where=where)
        blocks = threads = None
        items, threads = whole(grid), whole(group)
        if items and threads:
            blocks = -(-items // threads)
        elif all(side is not None for pair in sides for side in pair):
            items3 = [whole(g) or 1 for g, _ in sides]
            threads3 = [whole(w) or 1 for _, w in sides]
            threads = _volume(threads3)
            blocks = _volume([-(-i // t) for i, t in zip(items3, threads3, strict=True)])
        vector = [whole(_find(at, n)) for n in ("archvgpr", "accumvgpr")]
        name = row[names] if names is not None else None
        kind = _direction(row[place]) if (place := _find(at, "direction")) is not None else "kernel"
        if kind is None:
            continue
        builder.add(
            kind,
            start * 1e-9,
            (end - start) * 1e-9,
            name=name,
            device=0,
            stream=whole(_find(at, "queueid")),
            blocks=blocks,
            threads_per_block=threads,
            registers_per_thread=sum(v for v in vector if v is not None)
            if any(v is not None for v in vector)
            else None,
            shared_bytes=whole(_find(at, "ldsperworkgroup", "lds", "groupsegmentsize")),
        )
    return Profile(run_id, workload, builder.finish({0: gpu}), {0: gpu}, (), "rocprof")


def _sysinfo(path: Path) -> Gpu | None:
    """The hardware row of a rocprof folder; what it lacks comes from the table of devices."""
    if not path.is_file():
        return None
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        row = next(csv.DictReader(file), None) or {}
    named = known_gpu(row.get("gpu_model") or "") or known_gpu(row.get("gpu_arch") or "")
    try:
        units, bandwidth = int(row.get("cu_per_gpu") or 0), float(row.get("hbm_bw") or 0)
    except ValueError:
        return named
    if not units:
        return named
    rest = named.l2_bytes if named else None
    return _amd(row.get("gpu_model") or "AMD", units, bandwidth or 1.0, (rest or 0) / 2**20)


def _direction(text: str) -> str | None:
    plain = _plain(text)
    return {"hosttodevice": "htod", "devicetohost": "dtoh", "devicetodevice": "dtod"}.get(
        plain.removeprefix("memorycopy")
    )


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) without `==PID==` lines and empty ones."""
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            quotes = 0

            def counted() -> Iterator[str]:
                nonlocal quotes
                for line in file:
                    quotes += line.count('"')
                    yield line

            reader = csv.reader(counted())
            for row in reader:
                if row and not row[0].startswith("==") and any(cell.strip() for cell in row):
                    yield reader.line_num, row
    except (OSError, csv.Error) as error:
        raise UnreadableFile(f"cannot be read as CSV: {error}", where=str(path)) from None
    if quotes % 2:
        raise UnreadableFile("cut off inside a text in quotes", where=str(path), fix=_AGAIN)


def _same_width(row: list[str], columns: list[str], number: int, where: str) -> None:
    if len(row) != len(columns):
        raise BadRows(
            f"line {number} has {len(row)} columns, the header {len(columns)}: cut off?",
            rows=[(number, "wrong number of columns")],
            where=where,
            fix="Record or copy the file again.",
        )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _find(at: dict[str, int], *names: str) -> int | None:
    return next((at[name] for name in names if name in at), None)


def _int(value: float | None) -> int | None:
    return None if value is None else round(value)


def _volume(sides: list[Any]) -> int | None:
    product = 1
    for side in sides:
        product *= int(side or 0)
    return product or None
