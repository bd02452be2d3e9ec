"""Tables of readings as text: a column of times, and columns of numbers."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path

import numpy as np

from jostle._untrusted import printable
from jostle.errors import BadData, UnknownName, UnreadableFile
from jostle.traces.services._series import Kind, Series, usual_kind
from jostle.traces.services._times import Piece, moment_of, pieces_of

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
    header, rows = _table(path, columns.separator)
    where = str(path)
    time = _column(header, columns.time, _TIMES, "times", where)
    moments = _moments(rows, time, columns.zone, where)
    labels = {
        kind: [printable(row[_column(header, name, (), kind, where)]) for row in rows]
        for kind, name in (("instance", columns.instance), ("run", columns.run))
        if name is not None
    }
    taken = {time} | {header.index(n) for n in (columns.instance, columns.run) if n is not None}
    for name in (*columns.only, *(columns.kinds or {})):
        if name not in header:
            raise UnknownName("column", name, header, where=where)
    wanted = [
        place
        for place, name in enumerate(header)
        if place not in taken and (not columns.only or name in columns.only)
    ]
    named = {*columns.only, *(columns.kinds or {})}
    values = {
        header[place]: _values(rows, place, where, header[place] in named) for place in wanted
    }
    values = {
        name: found for name, found in values.items() if name in named or np.isfinite(found).any()
    }
    if not values:
        raise BadData("it has no column of numbers besides the times", where=where)
    instances = np.array(labels.get("instance", [""] * len(rows)))
    runs = np.array(labels["run"]) if "run" in labels else None
    kinds = columns.kinds or {}
    found = []
    for instance in dict.fromkeys(instances.tolist()):
        mine = np.flatnonzero(instances == instance)
        for run in [None] if runs is None else dict.fromkeys(runs[mine].tolist()):
            own = mine if runs is None else mine[runs[mine] == run]
            own = own[np.argsort(moments[own], kind="stable")]
            twice = np.flatnonzero(np.diff(moments[own]) <= 0)
            if len(twice):
                raise BadData(
                    f"the time in line {own[twice[0] + 1] + 2} stands twice",
                    where=where,
                    fix="Say by `instance` which column tells apart what was read at the same time.",
                )
            label = "-".join(text for text in (instance, run) if text)
            found += [
                Series(name, kinds.get(name, usual_kind(name)), label, moments[own], value[own])
                for name, value in values.items()
            ]
    return found


def read_requests(path: Path, columns: TableColumns) -> list[Piece]:
    """Requests, or jobs, from a table with columns of begins and ends, and maybe of names (`run`)."""
    header, rows = _table(path, columns.separator)
    where = str(path)
    begins = _moments(rows, _column(header, None, _BEGINS, "begins", where), columns.zone, where)
    ends = _moments(rows, _column(header, None, _ENDS, "ends", where), columns.zone, where)
    labels = [f"{number:06d}" for number in range(len(rows))]
    if columns.run is not None:
        place = _column(header, columns.run, (), "names", where)
        labels = [printable(row[place]) for row in rows]
    return pieces_of(labels, begins, ends, where)


def _table(path: Path, separator: str) -> tuple[list[str], list[list[str]]]:
    if len(separator) != 1:
        raise BadData(f"the separator {separator!r} is not one character", where=str(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, delimiter=separator))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"cannot be read: {error}", where=str(path)) from None
    if len(lines) < 2:
        raise BadData("it has no lines below its names of columns", where=str(path))
    header = [printable(name.strip()) for name in lines[0]]
    if len(set(header)) < len(header):
        raise BadData("two columns have the same name", where=str(path))
    rows = []
    for number, row in enumerate(lines[1:], start=2):
        if not any(field.strip() for field in row):
            continue
        if len(row) != len(header):
            raise BadData(
                f"line {number} has {len(row)} fields and not {len(header)}",
                where=str(path),
                fix="Remove a line that was cut off; give the `separator` where it is not a comma.",
            )
        rows.append(row)
    if not rows:
        raise BadData("it has no lines below its names of columns", where=str(path))
    return header, rows


def _column(
    header: list[str], name: str | None, usual: Sequence[str], what: str, where: str
) -> int:
    if name is not None:
        if name not in header:
            raise UnknownName("column", name, header, where=where)
        return header.index(name)
    lower = [one.lower() for one in header]
    for one in usual:
        if one in lower:
            return lower.index(one)
    raise BadData(
        f"no column is called as columns of {what} are ({', '.join(usual[:4])})",
        where=where,
        fix="Say by `time` which one it is." if what == "times" else "Name it so.",
    )


def _moments(rows: Sequence[Sequence[str]], place: int, zone: tzinfo, where: str) -> np.ndarray:
    found = np.empty(len(rows))
    for number, row in enumerate(rows):
        try:
            found[number] = moment_of(row[place], zone)
        except (ValueError, OverflowError):
            raise BadData(
                f"{row[place][:40]!r} in line {number + 2} is not a valid time",
                where=where,
                fix="Times are seconds since 1970 or as in 2026-03-01T12:00:00Z.",
            ) from None
    return found


def _values(rows: Sequence[Sequence[str]], place: int, where: str, is_asked: bool) -> np.ndarray:
    """(n,) numbers, NaN where there is none; all NaN for a column of text that nobody asked for."""
    found = np.full(len(rows), np.nan)
    told = 0
    for number, row in enumerate(rows):
        text = row[place].strip()
        if text.lower() in _NOTHING:
            continue
        try:
            found[number] = float(text)
        except ValueError:
            if not told and not is_asked:
                return np.full(len(rows), np.nan)
            raise BadData(
                f"{text[:40]!r} in line {number + 2} is not a number", where=where
            ) from None
        told += 1
    found[~np.isfinite(found)] = np.nan
    return found
