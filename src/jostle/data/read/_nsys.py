"""Nsight Systems SQLite exports (schemas of 2022 to 2024.5): one task per kernel, copy, memset.

What `nsys stats` prints is read too (see _nvprof).

Tables are made lazily: an absent one means that no such event happened. Columns come and go between
versions, so each is asked for by name and null where it is missing. With `--cuda-graph-trace=graph` a
whole graph is one event without launch shape.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from jostle.data.read._nvprof import read_gpu_trace
from jostle.data.read._trace_readers import RecordedRun, looks_like, text_of
from jostle.data.traces._gpus import Gpu, register_rules, reported_gpu
from jostle.data.traces._profile_tasks import Profile, TaskBuilder, volume
from jostle.errors import BadData, UnreadableFile

name = "nsys"
_AGAIN = "Export the report again: nsys export --type sqlite REPORT.nsys-rep"
_MAGIC = b"SQLite format 3\x00"
_Tables = dict[str, set[str]]  # columns by table
_COPY_KINDS = {1: "htod", 2: "dtoh", 8: "dtod", 10: "dtod"}
_PINNED = {0: False, 1: True}  # CUpti_ActivityMemoryKind of nsys: 0 pageable, 1 pinned, 2 device
_KERNEL, _COPY, _SET, _GRAPH = (
    f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
)
_KNOWN = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_GPU")


def read(path: Path, recording: RecordedRun) -> Profile:
    """Raises UnreadableFile for a truncated or foreign database, BadData for one without GPU tasks."""
    where = str(path)
    with path.open("rb") as file:
        head = text_of(file.read(65_536))
    if looks_like(name, head) and not head.startswith(_MAGIC.decode()):
        return read_gpu_trace(path, recording, name)
    _whole(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            base.text_factory = lambda raw: raw.decode(errors="replace")
            _limit(base, path.stat().st_size)
            return _read(base, where, recording)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # whose messages quote names as they are
        what = f"not a readable SQLite database: {error}"
        raise UnreadableFile(what, where=where, fix=_AGAIN) from None
    except BadData as error:
        if error.where:
            raise
        raise BadData(error.what, where=where, fix=error.fix or _AGAIN) from None


def _limit(base: sqlite3.Connection, size: int) -> None:
    """Limit what a schema may compute: no longer values, and no more work, than so large a file needs."""
    base.execute("pragma trusted_schema = off")
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(1 << 20, size))
    left = 20 + size // 1000  # a row takes some ten bytes and some fifty steps

    def tick() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    base.set_progress_handler(tick, 100_000)


def _whole(path: Path) -> None:
    """SQLite reads what is left of a file that was cut off; its header says how many pages there were."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
        size = path.stat().st_size
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None
    page = int.from_bytes(head[16:18], "big")
    page = 65536 if page == 1 else page
    pages = int.from_bytes(head[28:32], "big")
    counted = head[24:28] == head[92:96]  # the count of pages is of the last change
    if head.startswith(_MAGIC) and counted and size < page * pages:
        raise UnreadableFile(
            f"the SQLite database is cut off: {size} bytes of {page * pages}",
            where=str(path),
            fix="Copy it or export the report again: nsys export --type sqlite REPORT.nsys-rep",
        )


def _read(base: sqlite3.Connection, where: str, recording: RecordedRun) -> Profile:
    tables = {
        name: {row[1] for row in base.execute(f'pragma table_info("{name}")')}
        for (name,) in base.execute("select name from sqlite_master where type = 'table'")
    }
    if not tables.keys() & {"META_DATA_EXPORT", "EXPORT_META_DATA", "StringIds", _KERNEL}:
        raise UnreadableFile(
            "a SQLite database, but not an export of Nsight Systems",
            where=where,
            fix="Make one with: nsys export --type sqlite REPORT.nsys-rep; of rocprofv3 with: rocpd convert "
            "--output-format csv",
        )
    for name_, columns in list(tables.items()):  # later schemas call a table such as ..._V3
        plain, mark, version = name_.rpartition("_V")
        if mark and version.isdigit() and plain not in tables and plain.startswith(_KNOWN):
            base.execute(f'create temp view "{plain}" as select * from "{name_}"')
            tables[plain] = columns
    if not {_KERNEL, _GRAPH} & set(tables):
        raise BadData(
            "it holds no table of kernels",
            where=where,
            fix="Record with: nsys profile --trace=cuda",
        )
    gpus: dict[int, Gpu | None] = {}
    for row in _rows(base, tables, "TARGET_INFO_GPU", _GPU):
        if row["id"] is not None:
            gpus[row["id"]] = recording.gpu or _hardware(row, where)
    builder = TaskBuilder(recording.run_id, where)
    _add_kernels(builder, base, tables)
    skipped = _add_copies(builder, base, tables)
    for row in _rows(base, tables, _SET, ("bytes",)):
        builder.add("memset", *_time(row), name="memset", bytes=row["bytes"], **_common(row))
    graphs = 0
    for row in _rows(base, tables, _GRAPH, ()):
        graphs += 1
        builder.add("graph", *_time(row), name="cuda graph", **_common(row))
    notes = []
    if graphs:
        notes.append(
            f"{graphs} CUDA graphs were recorded whole, without their kernels; "
            "record with --cuda-graph-trace=node to see them"
        )
    if skipped:
        notes.append(f"{skipped} copies between hosts, peers or arrays were left out")
    profile = builder.profile(recording.workload, gpus or {0: recording.gpu}, notes, name)
    return replace(profile, marks=_marks(base, tables, recording.mark))


def _marks(base: sqlite3.Connection, tables: _Tables, mark: str) -> tuple[float, ...]:
    """Return when NVTX ranges began whose text begins so."""
    columns = tables.get("NVTX_EVENTS", set())
    if not {"start", "end", "text"} <= columns:
        return ()
    text = "text"
    if "textId" in columns and tables.get("StringIds", set()) >= {"id", "value"}:
        text = "coalesce(text, (select value from StringIds where id = textId))"
    query = f"select start, {text} from NVTX_EVENTS where start is not null and end is not null"
    starts = [start for start, label in base.execute(query) if str(label).startswith(mark)]
    return tuple(sorted(float(start) * 1e-9 for start in starts))


def _add_kernels(builder: TaskBuilder, base: sqlite3.Connection, tables: _Tables) -> None:
    names: dict[Any, str] = {}
    if tables.get("StringIds", set()) >= {"id", "value"}:
        every = base.execute("select id, value from StringIds")
        names = {number: text for number, text in every if isinstance(text, str)}
    for row in _rows(base, tables, _KERNEL, _SHAPE):
        builder.add(
            "kernel",
            *_time(row),
            name=names.get(row["demangledName"], names.get(row["shortName"])),
            blocks=volume([row[f"grid{axis}"] for axis in "XYZ"]),
            threads_per_block=volume([row[f"block{axis}"] for axis in "XYZ"]),
            registers_per_thread=row["registersPerThread"],
            shared_bytes=_sum(row["staticSharedMemory"], row["dynamicSharedMemory"]),
            **_common(row),
        )


def _add_copies(builder: TaskBuilder, base: sqlite3.Connection, tables: _Tables) -> int:
    """Return how many were left out."""
    skipped = 0
    for row in _rows(base, tables, _COPY, ("bytes", "copyKind", "srcKind", "dstKind")):
        kind = _COPY_KINDS.get(row["copyKind"])
        if kind is None:
            skipped += 1
            continue
        host = row["srcKind"] if kind == "htod" else row["dstKind"]
        builder.add(
            kind,
            *_time(row),
            name=f"memcpy {kind}",
            bytes=row["bytes"],
            pinned=_PINNED.get(host) if kind != "dtod" else None,
            **_common(row),
        )
    return skipped


_SHAPE = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread"),
    *("staticSharedMemory", "dynamicSharedMemory", "demangledName", "shortName"),
)
_TEXTS = ("name",)
_FRACTIONS = ("start", "end", "memoryBandwidth")
_GPU = (
    *("id", "name", "smCount", "maxWarpsPerSm", "maxBlocksPerSm", "maxRegistersPerSm"),
    *("maxShmemPerSm", "memoryBandwidth", "threadsPerWarp", "l2CacheSize"),
    *("computeMajor", "computeMinor"),
)


def _rows(
    base: sqlite3.Connection, tables: _Tables, table: str, columns: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table that may be absent, with None for columns that are."""
    if table not in tables:
        return
    event = ("start", "end", "deviceId", "streamId", "graphNodeId")
    needed = (*columns, *(() if table == "TARGET_INFO_GPU" else event))
    there = [column for column in needed if column in tables[table]]
    missing = {column: None for column in needed if column not in tables[table]}
    selection = ", ".join(f'"{column}"' for column in there)
    for values in base.execute(f'select {selection} from "{table}"') if there else ():
        row = dict(zip(there, values, strict=True))
        for column, value in row.items():
            is_odd = isinstance(value, (bytes, float)) and not _is_whole(value, column)
            if is_odd or (value is not None and isinstance(value, str) != (column in _TEXTS)):
                raise BadData(f"{column} in {table} holds {value!r:.60}", fix=_AGAIN)
            if isinstance(value, float) and column not in _FRACTIONS:
                row[column] = int(value)
        yield {**missing, **row}


def _is_whole(value: bytes | float, column: str) -> bool:
    """Return whether it is a number as this column has them: bandwidths and times may have fractions."""
    if isinstance(value, bytes) or not math.isfinite(value):
        return False
    return column in _FRACTIONS or float(value).is_integer()


def _time(row: dict[str, Any]) -> tuple[float, float]:
    start, end = row["start"], row["end"]
    if start is None or end is None:
        raise BadData("an event has no start or no end: the recording was cut off")
    return start * 1e-9, (end - start) * 1e-9


def _common(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "device": row["deviceId"] or 0,
        "stream": row["streamId"],
        "graph_node": row["graphNodeId"],
    }


def _sum(*parts: int | None) -> int | None:
    return None if all(part is None for part in parts) else sum(part or 0 for part in parts)


def _hardware(row: dict[str, Any], where: str) -> Gpu | None:
    major, minor = row["computeMajor"], row["computeMinor"]
    return reported_gpu(
        row["name"] or "",
        row["smCount"],
        row["maxWarpsPerSm"],
        f"{where}, TARGET_INFO_GPU",
        blocks_per_pe=row["maxBlocksPerSm"],
        registers_per_pe=row["maxRegistersPerSm"],
        shared_bytes_per_pe=row["maxShmemPerSm"],
        memory_bandwidth_bytes_per_second=float(row["memoryBandwidth"] or 0),
        threads_per_warp=row["threadsPerWarp"],
        l2_bytes=row["l2CacheSize"],
        compute_capability=f"{major}.{minor}",
        **({} if major is None else register_rules(major, minor or 0)),
    )
