"""Tables of readings as text: a column of times, and columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path

import numpy as np

from jostle._base.untrusted import printable
from jostle.data.read._foreign_table import plain_text, read_table
from jostle.data.read._series import Kind, Series, usual_kind
from jostle.data.read._series_times import Piece, in_line_order, pieces_of
from jostle.data.tables._read_table import file_bytes
from jostle.data.tables.moments import DAY_DIGITS, FINER, seconds_of
from jostle.data.tables.quantities import SECONDS, ColumnOfNumbers, duration_of, numbers_in, size_of
from jostle.errors import BadData, JostleError, require_known

_TIMES = ("time", "timestamp", "datetime", "date", "ts", "epoch", "time_seconds", "_time")
_BEGINS, _ENDS = ("begin", "start", *_TIMES), ("end", "stop", "finish")
_INSTANCES = (
    *("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "name", "container", "pid", "id"),
    *("instance", "pod", "series"),
)
_TIMES = (*_TIMES, "elapsed time")
_MOSTLY = (
    0.5  # share of a column's different cells that are numbers, above which another is a fault
)
_PIDSTAT = {name: f"{name} [KiB]" for name in ("VSZ", "RSS", "StkSize", "StkRef")}


def unit_of(column: str) -> tuple[str, float]:
    """Return (name, factor) of a column whose name says a unit: `memory.used [MiB]`, `CPU (%)`, `%usr`, `x
    (ms)`."""
    match = re.fullmatch(r"(.*?)\s*[\[(]\s*([%\w]+)\s*[\])]|%()(\w+)", column)
    name, unit = (match[1] or match[4], match[2] or "%") if match else (column, "")
    if unit == "%":
        return f"{name}_ratio", 0.01
    if unit in ("W", "watts"):
        return f"{name}_watts", 1.0
    if unit in SECONDS:
        return f"{name}_seconds", SECONDS[unit]
    if re.fullmatch("[KMGT]i?B|[kKMGT]?bytes|B", unit):
        return f"{name}_bytes", size_of(f"1 {unit}", base=1024)
    return column, 1.0


def _as_csv(text: str) -> str:
    """Return what psrecord, pidstat and dstat write as lines with commas below names; others as they are.
    Raises BadData."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = (n for n, one in enumerate(lines[:8]) if re.match(r"#\s+(Elapsed )?time\s", one, re.I))
    if (at := next(names, None)) is not None:
        gap = r"\s{2,}" if "Elapsed" in lines[at] else r"\s+"
        head = [_PIDSTAT.get(n, n) for n in re.split(gap, lines[at].lstrip("# ").strip())]
        below = (re.sub(r"^(\S+) ([AP]M)\b", r"\1\2", line) for line in lines[at + 1 :])
        wanted = (line.replace(",", " ") for line in below if not line.startswith(("#", "Av")))
        rows = [head, *(line.split(None, len(head) - 1) for line in wanted)]
        return "\n".join(map(",".join, rows)) + "\n"
    if lines and lines[0].startswith("Linux "):
        raise BadData("it has no lines that begin with # and Time", fix="Print it so: pidstat -hH.")
    if lines and "Dstat" in lines[0]:  # its first line of names has groups of columns
        named = re.compile(r'"?(epoch|time)"?,"?[a-z]{2,}')
        at = next((n for n, line in enumerate(lines) if named.match(line)), 0)
        while at + 1 < len(lines) and re.match(r'"?(epoch|time)"?,', lines[at + 1]):
            at += 1
        return "\n".join(lines[at:]) + "\n"
    return text


_CLOCK = re.compile(r"\d?\d:\d\d:\d\d([.,]\d+)? ?([AP]M)?")
_DAYS = ("date", "day", "#date")


def _of_a_clock(cells: Sequence[str]) -> np.ndarray:
    """Return (n,) seconds of a clock without days, which begins anew at midnight."""
    seconds = np.array([duration_of(cell.rstrip("APM ").replace(",", ".")) for cell in cells])
    pairs = zip(cells, seconds >= 43200, strict=True)
    halves = [int(cell[-2:] == "PM") - int(late) for cell, late in pairs if cell[-1:] == "M"]
    seconds += 43200.0 * np.array(halves or [0])
    return seconds + 86400.0 * np.r_[0, np.cumsum(np.diff(seconds) < -43200)]


@dataclass(frozen=True)
class TableColumns:
    """Names of the columns of a table of readings. time: None for the first with a usual name. instance, run:
    names of instances, and of runs, such as requests. kinds: of columns, where their names do not say. only:
    these, all that hold numbers where empty. zone: of times that name none."""

    time: str | None = None
    instance: str | None = None
    run: str | None = None
    kinds: Mapping[str, Kind] | None = None
    only: tuple[str, ...] = ()
    separator: str = ","
    zone: tzinfo = UTC


def read_columns(path: Path, columns: TableColumns) -> list[Series]:
    """Return the series of a file; each run of a column of runs is an instance.

    Raises UnreadableFile, BadData naming a line, UnknownName.
    """
    table = _Table.read(path, columns)
    time = table.column(columns.time, _TIMES, "times")
    first, second = table.moments(time)
    kinds = columns.kinds or {}
    named = dict.fromkeys((*columns.only, *kinds))
    for name in named:
        table.column(name)
    if columns.instance is None and columns.run is None and len(np.unique(first)) < len(first):
        columns = replace(columns, instance=table.instance(time, first))
    labels = {n: table.cells(table.column(n)) for n in (columns.instance, columns.run) if n}
    values = {
        name: table.numbers(name, name in named)
        for name in columns.only or table.names
        if name != time and name not in labels
    }
    values = {n: v for n, v in values.items() if n in named or np.isfinite(v).any()}
    if not values:
        raise BadData("it has no column of numbers besides the times", where=table.where)
    label = ["-".join(filter(None, row)) for row in zip(*labels.values(), strict=True)]
    each = np.array(label or [""] * len(first))
    series = []
    for name in dict.fromkeys(each.tolist()):
        own = np.flatnonzero(each == name)
        moments, unsure = in_line_order(first[own], second[own])
        order = np.argsort(moments, kind="stable")
        own, moments = own[order], moments[order]
        twice = np.flatnonzero(np.diff(moments) <= 0)
        if len(twice):
            raise BadData(
                f"the time in line {table.lines[int(own[twice[0] + 1])]} stands twice",
                where=table.where,
                fix="Say by `instance` which column tells apart what was read at the same time.",
            )
        for column, value in values.items():
            kind = kinds.get(column, usual_kind(column))
            series.append(Series(unit_of(column)[0], kind, name, moments, value[own], unsure))
    return series


def read_requests(path: Path, columns: TableColumns) -> list[Piece]:
    """Read requests, or jobs, from a table with columns of begins and ends."""
    table = _Table.read(path, columns)
    begins = table.moments(table.column(None, _BEGINS, "begins"))
    ends = table.moments(table.column(None, _ENDS, "ends"))
    labels = [f"{number:06d}" for number in range(len(begins[0]))]
    return pieces_of(labels, begins, ends, table.where)


@dataclass(frozen=True)
class _Table:
    """columns: cells by name, as text. lines: their numbers. zone: of times that name none."""

    columns: Mapping[str, list[str]]
    lines: Sequence[int]
    where: str
    zone: tzinfo

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @classmethod
    def read(cls, path: Path, columns: TableColumns) -> _Table:
        content, where = file_bytes(path)
        if len(columns.separator) != 1:
            raise BadData(f"the separator {columns.separator!r} is not one character", where=where)
        try:
            content = _as_csv(plain_text(content, where)).encode()
        except JostleError as error:
            error.where = error.where or where
            raise
        separator = None if columns.separator == "," else columns.separator
        found = read_table(content, where, None, separator)
        for number, reason in found.ragged:
            raise BadData(
                f"line {number} has {reason}", where=where,
                fix="Remove a line that was cut off; give the `separator` where it is not a comma.",
            )  # fmt: skip
        if not found.table.num_rows:
            text = "it has no lines below its names of columns"
            raise BadData(text, where=where, fix="Its first line names columns.")
        texts = {printable(n): found.table.column(n).to_pylist() for n in found.table.column_names}
        return cls(texts, found.numbers.tolist(), where, columns.zone)

    def column(self, name: str | None, usual: Sequence[str] = (), what: str = "") -> str:
        """Return this column, or the first that is called as usual. Raises UnknownName, BadData."""
        if name is not None:
            require_known("column", name, self.names, where=self.where)
            return name
        lower = {one.lower(): one for one in reversed(self.names)}
        for one in usual:
            if one in lower:
                return lower[one]
        raise BadData(
            f"no column is called as columns of {what} are ({', '.join(usual[:4])})",
            where=self.where,
            fix="Say by `time` which one it is." if what == "times" else "Name it so.",
        )

    def instance(self, time: str, moments: np.ndarray) -> str | None:
        """Find the column that tells apart what was read at the same time: one with a usual name, or the
        first of labels that does."""
        usual = [name for name in self.names if name.lower() in _INSTANCES]
        for name in [*usual, *self.names]:
            pairs = set(zip(moments.tolist(), labels := self.cells(name), strict=True))
            is_text = name in usual or not isinstance(numbers_in(labels), ColumnOfNumbers)
            if name != time and is_text and len(pairs) == len(labels):
                return name
        return next(iter(usual), None)

    def cells(self, column: str) -> list[str]:
        return [printable(cell).strip() for cell in self.columns[column]]

    def moments(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return (n,) seconds since 1970, or since the first line of a clock of its own, twice: in either
        pass of an hour that the zone has twice. Raises BadData."""
        cells = [cell.strip() for cell in self.columns[column]]
        if all(map(_CLOCK.fullmatch, cells)):
            day = next((name for name in self.names if name.lower() in _DAYS), None)
            if day is None or day == column:
                return (seconds := _of_a_clock(cells)), seconds
            days = self.columns[day]
            cells = [f"{one.strip()} {cell}" for one, cell in zip(days, cells, strict=True)]
        read = numbers_in(cells, only=("numbers",))
        is_spelled = all(re.match(DAY_DIGITS, cell) for cell in cells)
        if not is_spelled and isinstance(read, ColumnOfNumbers) and np.isfinite(read.values).all():
            size = float(np.abs(read.values).max(initial=0.0))
            seconds = read.values * next((unit for least, unit in FINER if size >= least), 1.0)
            return seconds, seconds
        first, second, bad = seconds_of(cells, str(self.zone))
        wrong = np.flatnonzero(bad | np.isnan(first))
        if len(wrong):
            raise BadData(
                f"{cells[wrong[0]][:40]!r} in line {self.lines[wrong[0]]} is not a valid time",
                where=self.where,
                fix="Times are seconds since 1970 or as in 2026-03-01T12:00:00Z.",
            )
        return first, second

    def numbers(self, column: str, is_named: bool) -> np.ndarray:
        """Return (n,) NaN where there is none; all NaN for a column of text that nobody named. Raises
        BadData."""
        cells = [cell.strip() for cell in self.columns[column]]
        is_endless = [cell.lower().lstrip("+-") in ("inf", "infinity") for cell in cells]
        told = ["" if one else cell for cell, one in zip(cells, is_endless, strict=True)]
        read = numbers_in([re.sub(r" (W|MHz|RPM|C)$", "", cell) for cell in told])
        if isinstance(read, ColumnOfNumbers):
            return read.values * (1.0 if read.unit else unit_of(column)[1])
        if not is_named and read[2] < _MOSTLY:
            return np.full(len(cells), np.nan)
        raise BadData(
            f"{column}: {cells[read[0]][:40]!r} in line {self.lines[read[0]]} is not a number: {read[1]}",
            where=self.where,
            fix="Leave a cell empty where nothing was read.",
        )
