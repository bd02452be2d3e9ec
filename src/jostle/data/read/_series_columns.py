"""Tables of readings as text: a column of times, and columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path

import numpy as np

from jostle._base.untrusted import printable
from jostle.data.read._series import Kind, Series, usual_kind
from jostle.data.read._series_times import Piece, in_line_order, moment_of, pieces_of
from jostle.data.tables._read_table import RAGGED, csv_rows, read_text
from jostle.data.tables.cells import float_of
from jostle.errors import BadData, require_known

_TIMES = ("time", "timestamp", "datetime", "date", "ts", "epoch", "time_seconds", "_time")
_BEGINS, _ENDS = ("begin", "start", *_TIMES), ("end", "stop", "finish")
_NOTHING = ("", "nan", "null", "none", "na", "n/a", "-")


@dataclass(frozen=True)
class TableColumns:
    """What the columns are. time: None for the first with a usual name. instance, run: names of instances,
    and of runs, such as requests. kinds: of columns, where their names do not say. only: these, all that
    hold numbers where empty. zone: of times that name none."""

    time: str | None = None
    instance: str | None = None
    run: str | None = None
    kinds: Mapping[str, Kind] | None = None
    only: tuple[str, ...] = ()
    separator: str = ","
    zone: tzinfo = UTC


def read_columns(path: Path, columns: TableColumns) -> list[Series]:
    """The series of a file; each run of a column of runs is an instance.

    Raises UnreadableFile, BadData naming a line, UnknownName.
    """
    table = _Table.read(path, columns)
    time = table.column(columns.time, _TIMES, "times")
    first, second = table.moments(time)
    kinds = columns.kinds or {}
    named = dict.fromkeys((*columns.only, *kinds))
    for name in named:
        table.column(name)
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
        series += [
            Series(column, kinds.get(column, usual_kind(column)), name, moments, value[own], unsure)
            for column, value in values.items()
        ]
    return series


def read_requests(path: Path, columns: TableColumns) -> list[Piece]:
    """Requests, or jobs, from a table with columns of begins and ends, and maybe of names (`run`)."""
    table = _Table.read(path, columns)
    begins = table.moments(table.column(None, _BEGINS, "begins"))
    ends = table.moments(table.column(None, _ENDS, "ends"))
    labels = [f"{number:06d}" for number in range(len(begins[0]))]
    if columns.run is not None:
        labels = table.cells(table.column(columns.run))
    return pieces_of(labels, begins, ends, table.where)


@dataclass(frozen=True)
class _Table:
    """rows: cells by column, as text. lines: their numbers. zone: of times that name none."""

    names: tuple[str, ...]
    rows: Sequence[Mapping[str, str]]
    lines: Sequence[int]
    where: str
    zone: tzinfo

    @classmethod
    def read(cls, path: Path, columns: TableColumns) -> _Table:
        where = str(path)
        if len(columns.separator) != 1:
            raise BadData(f"the separator {columns.separator!r} is not one character", where=where)
        table = csv_rows(read_text(path), where, columns.separator)
        if not table.rows:
            text = "it has no lines below its names of columns"
            raise BadData(text, where=where, fix="Its first line names columns.")
        for number, row in zip(table.numbers, table.rows, strict=True):
            if RAGGED in row:
                raise BadData(
                    f"line {number} has {row[RAGGED]}",
                    where=where,
                    fix="Remove a line that was cut off; give the `separator` where it is not a comma.",
                )
        rows = [{printable(name): cell for name, cell in row.items()} for row in table.rows]
        return cls(tuple(rows[0]), rows, table.numbers, where, columns.zone)

    def column(self, name: str | None, usual: Sequence[str] = (), what: str = "") -> str:
        """This one, or the first that is called as usual. Raises UnknownName, BadData."""
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

    def cells(self, column: str) -> list[str]:
        return [printable(row[column]) for row in self.rows]

    def moments(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """(n,) seconds since 1970, twice: in either pass of an hour that the zone has twice. Raises
        BadData."""
        first = self._moments(column, 0)
        return first, first if self.zone is UTC else self._moments(column, 1)

    def _moments(self, column: str, fold: int) -> np.ndarray:
        seconds = np.empty(len(self.rows))
        for place, row in enumerate(self.rows):
            try:
                seconds[place] = moment_of(row[column], self.zone, fold)
            except (ValueError, OverflowError):
                raise BadData(
                    f"{row[column][:40]!r} in line {self.lines[place]} is not a valid time",
                    where=self.where,
                    fix="Times are seconds since 1970 or as in 2026-03-01T12:00:00Z.",
                ) from None
        return seconds

    def numbers(self, column: str, is_named: bool) -> np.ndarray:
        """(n,) NaN where there is none; all NaN for a column of text that nobody named. Raises BadData."""
        values = np.full(len(self.rows), np.nan)
        has_number = is_named
        for place, row in enumerate(self.rows):
            text = row[column].strip()
            if text.lower() in _NOTHING:
                continue
            try:
                values[place] = float_of(text)
            except ValueError:
                if not has_number:
                    return values
                raise BadData(
                    f"{text[:40]!r} in line {self.lines[place]} is not a number",
                    where=self.where,
                    fix="Leave a cell empty where nothing was read.",
                ) from None
            has_number = True
        values[~np.isfinite(values)] = np.nan
        return values
