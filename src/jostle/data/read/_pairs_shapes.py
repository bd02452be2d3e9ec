"""Tables of pairs in other shapes as rows of one: matrices, both sides in a row, other names of columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.read._foreign_table import ForeignTable, delimiter_of, first_line, read_csv
from jostle.data.tables._read_table import json_or_lines, text_of
from jostle.data.tables.quantities import ColumnOfNumbers, numbers_in
from jostle.errors import BadData

_CORNER = re.compile(r"[\w ]*[\\/|][\w ]*|")
_SIDES = (("_a", "_b"), ("_1", "_2"), ("1", "2"), ("_left", "_right"), ("_x", "_y"))
_WIDE = {
    "target": ("workload", "app", "job", "model", "program", "name", "target"),
    "solo": ("solo_seconds", "solo", "alone", "solo_time", "isolated", "baseline"),
    "corun": (
        "colocated_seconds",
        "corun_seconds",
        "corun",
        "shared_seconds",
        "colocated",
        "together",
        "time",
        "seconds",
        "runtime",
    ),
    "slowdown": ("slowdown",),
}
_USUAL = {
    "target": ("victim", "foreground", "workload", "fg"),
    "corunner": ("corunners", "aggressor", "background", "bg", "co_runner", "neighbor", "beside"),
    "platform": ("machine", "node", "device", "gpu", "host"),
}


def in_rows(content: bytes, where: str, options: Any) -> ForeignTable:
    """Return the table with columns platform, target, corunner and values. options: a PairsImport. Raises
    UnreadableFile, BadData, UnknownName."""
    foreign = _read(content, where)
    table = foreign.table
    told = dict(text.split("=", 1) for text in options.column if "=" in text)
    foreign.require(list(told.values()))
    names = {theirs: ours for ours, theirs in told.items()}
    for ours, usual in _USUAL.items():
        there = [name for name in table.column_names if name.lower() in usual and name not in names]
        if ours not in table.column_names and ours not in told and len(there) == 1:
            names[there[0]] = ours
    kept = [name for name in table.column_names if name in names or name not in told]
    table = table.select(kept).rename_columns([names.get(name, name) for name in kept])
    numbers = foreign.numbers
    sides = next((pair for pair in _SIDES if _side(table, pair[0]) and _side(table, pair[1])), None)
    if "target" not in table.column_names and sides is not None:
        table, numbers = _both_sides(table, numbers, sides)
    elif "target" not in table.column_names and _CORNER.fullmatch(table.column_names[0]):
        table, numbers = _matrix(table, numbers, where)
    n = table.num_rows
    given = {"platform": options.platform_name or Path(where).stem, "target": options.target_name}
    for name, value in (given | {"unit": options.unit}).items():
        if value and name not in table.column_names:
            table = table.append_column(name, pa.array([value] * n, pa.string()))
    return ForeignTable(_plain(table), numbers, where, foreign.unit, foreign.ragged)


def _plain(table: pa.Table) -> pa.Table:
    """Values as plain numbers where a whole column has decimal commas, or says its unit."""
    for name in {"solo", "corun", "slowdown"} & set(table.column_names):
        read = numbers_in(table.column(name).to_pylist())
        if not isinstance(read, ColumnOfNumbers) or read.rule in (
            "numbers",
            "percentages",
            "factors",
        ):
            continue
        texts = ["" if np.isnan(value) else repr(float(value)) for value in read.values]
        told = {name: pa.array(texts, pa.string())}
        if read.unit == "seconds":
            told["unit"] = pa.array(["s"] * table.num_rows, pa.string())
        for one, column in told.items():
            at = table.schema.get_field_index(one)
            table = (
                table.append_column(one, column) if at < 0 else table.set_column(at, one, column)
            )
    return table


def _read(content: bytes, where: str) -> ForeignTable:
    """Return all cells as text, of CSV or of lines of JSON."""
    if content.lstrip()[:1] in b"[{" and content.strip():
        rows = json_or_lines(text_of(content, where), where)
        rows = rows if isinstance(rows, list) else [rows]
        if not all(isinstance(row, dict) for row in rows):
            raise BadData("not a list of objects", where=where, fix="Give an object for each pair.")
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = {n: ["" if row.get(n) is None else str(row[n]) for row in rows] for n in names}
        table = pa.table({n: pa.array(values, pa.string()) for n, values in cells.items()})
        return ForeignTable(table, np.arange(len(rows)) + 1, where, "line")
    first = first_line(content)
    delimiter = delimiter_of(first)
    names = [name.strip(' "\r') for name in first.split(delimiter)]
    return read_csv(content, where, names, delimiter)


def _side(table: pa.Table, mark: str) -> dict[str, str]:
    """Return {column of ours: theirs} of one side; empty where it names no workload."""
    found = {
        ours: usual + mark
        for ours, names in _WIDE.items()
        for usual in reversed(names)
        if usual + mark in table.column_names
    }
    return found if "target" in found and len(found) > 1 else {}


def _both_sides(
    table: pa.Table, numbers: np.ndarray, sides: tuple[str, str]
) -> tuple[pa.Table, np.ndarray]:
    """Return a row for each side; what stands twice, as from a and from b, counts once."""
    rows: dict[tuple[Any, ...], int] = {}
    one, two = (_side(table, mark) for mark in sides)
    for number, row in zip(numbers.tolist(), table.to_pylist(), strict=True):
        shared = tuple((name, row[name]) for name in ("platform", "unit") if name in row)
        for own, other in ((one, two), (two, one)):
            cells = tuple((ours, row[theirs] or "") for ours, theirs in own.items())
            rows.setdefault((*shared, *cells, ("corunner", row[other["target"]] or "")), number)
    columns = [dict(row) for row in rows]
    for column in columns:  # times, or rates, are in seconds where no column says otherwise
        column.setdefault("unit", "s" if "corun" in column else "ratio")
        column.pop("slowdown", None) if column.get("corun") else None
    names = list(dict.fromkeys(name for column in columns for name in column))
    made = {
        name: pa.array([column.get(name, "") for column in columns], pa.string()) for name in names
    }
    return pa.table(made), np.array(list(rows.values()), np.int64)


def _matrix(table: pa.Table, numbers: np.ndarray, where: str) -> tuple[pa.Table, np.ndarray]:
    """Of rows of workloads and columns of co-runners, each cell a slowdown."""
    first, *others = table.column_names
    rows = [
        (row[first], other, row[other], number)
        for number, row in zip(numbers.tolist(), table.to_pylist(), strict=True)
        for other in others
        if row[other] not in (None, "")
    ]
    if not rows:
        raise BadData("no cell of the matrix holds a slowdown", where=where, fix="Give numbers.")
    targets, corunners, values, places = zip(*rows, strict=True)
    columns = {"target": targets, "corunner": corunners, "slowdown": values}
    made = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    return made, np.array(places, np.int64)
