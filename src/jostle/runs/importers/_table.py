"""Foreign tables, CSV or Parquet, as runs: which column holds what, and which rows are no good.

A row that breaks a rule is never passed over in silence: the import fails and names it, or, when
asked to, sets it aside with the reason.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from jostle.errors import BadData, BadRows, UnknownName, UnreadableFile, UsageError
from jostle.runs._check import SHOWN, find_bad_rows
from jostle.runs._runs import Runs, columns_table
from jostle.runs._schema import COLUMNS, conform, conform_features
from jostle.runs.importers._reading import Source, read_csv, read_parquet
from jostle.runs.store._adding import add_runs

# (multiplier, divisor): dividing by a power of ten rounds better than multiplying by its inverse.
UNITS = {"s": (1, 1), "ms": (1, 1e3), "us": (1, 1e6), "ns": (1, 1e9), "min": (60, 1)}
_TEXTS = [name for name, (kind, _, _) in COLUMNS.items() if pa.types.is_string(kind)]


@dataclass(frozen=True)
class Imported:
    """What an import found.

    runs: the good rows. source: the file's name. bad: (row, reason) of the others; row is a line
    of the file, counting the header, for CSV, and the row from 0 for Parquet. rejected: the bad
    rows as a table with columns `row` and `reason` first, or None. skipped: rows that hold no
    measurement (a zero where a rate should be, a pair that did not fit into memory).
    """

    runs: Runs
    source: str
    bad: list[tuple[int, str]] = field(default_factory=list)
    rejected: pa.Table | None = None
    skipped: int = 0

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Add to the dataset in folder `path`; returns the files written, rejected rows first.

        Raises what :func:`add_runs` raises; then nothing is written.
        """
        return add_runs(path, self.runs, self.source, self.rejected)


@dataclass(frozen=True)
class _Named:
    """What the caller said about the columns; see import_table."""

    workload: str
    runtime: str
    unit: str
    platform: str | None
    platform_name: str | None
    corunners: tuple[str, ...]
    separator: str
    window: str | None
    run_id: str | None
    campaign: str | None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise UsageError(f"unknown unit {self.unit!r}", fix=f"Use one of {', '.join(UNITS)}.")
        if (self.platform is None) == (self.platform_name is None):
            raise UsageError("give either a platform column or one platform name")
        if not self.separator:
            raise UsageError("the separator of co-runners is empty")

    def columns(self) -> list[str]:
        one = [self.workload, self.platform, self.runtime, self.window, self.run_id]
        return [*(name for name in one if name is not None), *self.corunners]


def import_table(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    workload: str,
    runtime: str,
    unit: str,
    platform: str | None = None,
    platform_name: str | None = None,
    corunners: Sequence[str] = (),
    separator: str = ";",
    window: str | None = None,
    run_id: str | None = None,
    campaign: str | None = None,
    workload_features: str | os.PathLike[str] | None = None,
    platform_features: str | os.PathLike[str] | None = None,
    format: str | None = None,
    delimiter: str = ",",
    drop_bad: bool = False,
) -> Imported:
    """Runs from a table in which each row is one run.

    source: a file, `-` for standard input, or an open binary file. format: `csv` or `parquet`;
    None goes by the file's name. workload, runtime, platform, window, run_id: names of columns.
    unit: of the runtime, one of s, ms, us, ns, min. platform_name: one platform for all rows,
    instead of a column. corunners: columns that hold names parted by `separator`, or lists.
    campaign: one name for all rows. Other columns are kept; those called as a column of runs/v1
    (`status`, `reason`, `measured_at` ...) fill it. Spaces around names do not count.
    Feature files are CSV or Parquet with a column `workload` or `platform`.

    A run_id, where no column gives it, is made of a hash of the file and the row, so that the
    same file is known again. Raises UsageError, UnreadableFile, UnknownName for a missing column,
    and BadRows with the bad rows unless drop_bad sets them aside.
    """
    named = _Named(
        workload,
        runtime,
        unit,
        platform,
        platform_name,
        tuple(corunners),
        separator,
        window,
        run_id,
        campaign,
    )
    content, where = source_bytes(source)
    read = _read(content, where, format, named.columns(), delimiter)
    features = [
        _features(file, key, column)
        for file, key, column in (
            (workload_features, "workload", workload),
            (platform_features, "platform", platform),
        )
    ]
    table, own = _mapped(read, named, hashlib.sha256(content).hexdigest()[:12])
    table = conform(table, where)

    def row_name(row: int) -> str:
        return f"{read.unit} {read.numbers[row]}"

    findings = find_bad_rows(table, features[0], features[1], row_name)
    for row, reason in own:
        findings.add(np.array([row]), reason)
    reasons = findings.reasons(findings.rows)
    bad = [(int(read.numbers[row]), r) for row, r in zip(findings.rows, reasons, strict=True)]
    bad = sorted([*bad, *read.ragged])
    good = np.ones(table.num_rows, bool)
    good[findings.rows] = False
    if bad and not (drop_bad and good.any()):
        raise bad_rows(bad, read)
    if not good.any():
        raise BadData("the table has no rows", where=where)
    runs = Runs(table.filter(pa.array(good)), *features, where=where)
    return Imported(runs, where, bad, rejected_rows(read, bad) if bad else None)


def source_bytes(source: Any) -> tuple[bytes, str]:
    if hasattr(source, "read"):
        return source.read(), str(getattr(source, "name", "<stream>"))
    if source == "-":
        return sys.stdin.buffer.read(), "<stdin>"
    try:
        return Path(source).read_bytes(), str(source)
    except OSError as error:
        raise UnreadableFile(
            f"cannot be read: {error.strerror}", where=str(source), fix="Check the name."
        ) from None


def _read(
    content: bytes, where: str, format: str | None, texts: Sequence[str], delimiter: str
) -> Source:
    format = format or ("parquet" if where.endswith((".parquet", ".pq")) else "csv")
    if format not in ("csv", "parquet"):
        raise UsageError(f"unknown format {format!r}", fix="Use csv or parquet.")
    if format == "parquet":
        read = read_parquet(content, where)
    else:
        # Names are text, also 007; so is the runtime, for a bad cell to be a bad row and no more.
        read = read_csv(content, where, [*texts, *_TEXTS], delimiter)
    for name in texts:
        if name not in read.table.column_names:
            raise UnknownName("column", name, read.table.column_names, where=where)
    return read


def _features(file: Any, key: str, column: str | None) -> pa.Table | None:
    if file is None:
        return None
    content, where = source_bytes(file)
    table = _read(content, where, None, [], ",").table
    if key not in table.column_names and column in table.column_names:
        table = table.rename_columns([key if n == column else n for n in table.column_names])
    return conform_features(table, key, where)


def _mapped(read: Source, named: _Named, content: str) -> tuple[pa.Table, list[tuple[int, str]]]:
    """(table with the columns of runs/v1, (row, reason) of cells that could not be read).

    content: a hash of the file, from which run_ids are made.
    """
    table, n = read.table, read.table.num_rows
    seconds, bad = _seconds(table.column(named.runtime), *UNITS[named.unit])
    columns: dict[str, Any] = {
        "workload": _names(table.column(named.workload)),
        "platform": pa.array([named.platform_name] * n, pa.string())
        if named.platform is None
        else _names(table.column(named.platform)),
        "corunners": _lists([table.column(c) for c in named.corunners], n, named.separator),
        "runtime_seconds": seconds,
        "run_id": pa.array([f"{content}:{row}" for row in read.numbers.tolist()], pa.string()),
    }
    free = [name for name in table.column_names if name not in named.columns()]
    for name in ("measured_at", "campaign", "run_id", "window_id", "status", "reason"):
        if name in free:
            columns[name] = table.column(name)
            free.remove(name)
    if "measured_at" in columns and pa.types.is_string(columns["measured_at"].type):
        columns["measured_at"], unread = _times(columns["measured_at"])
        bad += unread
    if named.run_id is not None:
        columns["run_id"] = _names(table.column(named.run_id))
    if named.window is not None:
        columns["window_id"] = _names(table.column(named.window))
    if named.campaign is not None:
        columns["campaign"] = named.campaign
    for name in free:
        columns[f"source_{name}" if name in COLUMNS else name] = table.column(name)
    return columns_table(**columns), bad


def _names(column: Any) -> pa.Array:
    texts = [None if value is None else str(value).strip() for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _lists(columns: list[Any], n: int, separator: str) -> pa.Array:
    """A sorted list of names for each row, from all columns that hold co-runners."""
    rows: list[list[str]] = [[] for _ in range(n)]
    known: dict[str, list[str]] = {"": []}
    for column in columns:
        for row, cell in zip(rows, column.to_pylist(), strict=True):
            if isinstance(cell, str):
                if cell not in known:
                    pieces = [name.strip() for name in cell.split(separator)]
                    known[cell] = [] if pieces == [""] else pieces
                row.extend(known[cell])
            elif isinstance(cell, list):
                row.extend("" if name is None else str(name).strip() for name in cell)
            elif cell is not None:
                row.append(str(cell))
    return pa.array([sorted(row) for row in rows], pa.list_(pa.string()))


def _seconds(
    column: Any, multiplier: float, divisor: float
) -> tuple[pa.Array, list[tuple[int, str]]]:
    """((n,) float64 seconds, null where the cell is empty; (row, reason) of unreadable cells)."""
    values: list[float | None] = []
    bad = []
    for row, cell in enumerate(column.to_pylist()):
        value: float | None = None
        if cell is not None and (not isinstance(cell, str) or cell.strip()):
            try:
                if isinstance(cell, str) and "_" in cell:  # Python would take 1_000
                    raise ValueError
                value = float(cell) * multiplier / divisor
            except (TypeError, ValueError):
                bad.append((row, f"runtime {cell!r} is not a number"))
                value = 1.0  # any good value, so that one reason is given and not two
        values.append(value)
    return pa.array(values, pa.float64(), from_pandas=False), bad


def _times(column: Any) -> tuple[pa.Array, list[tuple[int, str]]]:
    """((n,) times, without a zone in UTC; (row, reason) of unreadable cells)."""
    times: list[datetime | None] = []
    bad = []
    for row, cell in enumerate(column.to_pylist()):
        time = None
        if cell:
            try:
                time = datetime.fromisoformat(cell)
                time = time if time.tzinfo else time.replace(tzinfo=UTC)
            except ValueError:
                bad.append((row, f"measured_at {cell!r} is not a time"))
        times.append(time)
    return pa.array(times, pa.timestamp("us", tz="UTC")), bad


def bad_rows(bad: list[tuple[int, str]], read: Source) -> BadRows:
    total = read.table.num_rows + len(read.ragged)
    lines = [f"\n  {read.unit} {row}: {reason}" for row, reason in bad[:SHOWN]]
    if len(bad) > SHOWN:
        lines.append(f"\n  and {len(bad) - SHOWN} more")
    return BadRows(
        f"{len(bad)} of {total} rows cannot be used:{''.join(lines)}",
        rows=bad,
        where=read.where,
        fix="Nothing was written. Correct them, or set them aside with --drop-bad.",
    )


def rejected_rows(read: Source, bad: list[tuple[int, str]]) -> pa.Table:
    """One row for each bad row of the source: its number, all reasons, and its cells as text."""
    reasons = dict(bad)
    at = {int(number): row for row, number in enumerate(read.numbers.tolist())}
    index = pa.array([at.get(row) for row in reasons], pa.int64())
    columns: dict[str, Any] = {
        "row": list(reasons),
        "reason": list(reasons.values()),
    }
    for name in read.table.column_names:
        cells = read.table.column(name).take(index).to_pylist()
        texts = [
            cell
            if cell is None or isinstance(cell, str)
            else ";".join(map(str, cell))
            if isinstance(cell, list)
            else str(cell)
            for cell in cells
        ]
        columns[f"source_{name}" if name in columns else name] = pa.array(texts, pa.string())
    return pa.table(columns)
