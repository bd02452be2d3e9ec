"""Tables of pairs in other shapes as rows of one: matrices, both sides in a row, other names of columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.read._foreign_table import ForeignTable, read_table
from jostle.data.tables.quantities import ColumnOfNumbers, is_nothing, numbers_in
from jostle.errors import BadData

_CORNER = re.compile(r"[\w ]*[\\/|][\w ]*|")
_SIDES = (("_a", "_b"), ("_1", "_2"), ("1", "2"), ("_left", "_right"), ("_x", "_y"))
_TOTALS = frozenset(("mean", "average", "avg", "geomean", "gmean", "median", "total", "sum"))
# What columns are called; in capitals or not, with blanks or underscores.
_CALLED = {
    "target": "target victim foreground fg workload app job model program name",
    "corunner": "corunner corunners aggressor background bg co_runner neighbor neighbour beside",
    "platform": "platform machine node device gpu host",
    "solo": "solo solo_seconds alone solo_time isolated baseline",
    "slowdown": "slowdown normalized_runtime normalized_time relative_runtime relative_time",
    "corun": "corun corun_seconds colocated_seconds shared_seconds colocated corun_time together co shared "
    "paired time seconds runtime",
}
_ANY_TIME = ("time", "seconds", "runtime")  # which may be of anything beside a slowdown
_AS_THEY_ARE = ("numbers", "percentages", "factors")  # rules of cells that are not rewritten
_WORDS = {ours: words.split() for ours, words in _CALLED.items()}


def in_rows(content: bytes, where: str, options: Any) -> ForeignTable:
    """Return the table with columns platform, target, corunner and values. options: a PairsImport. Raises
    UnreadableFile, BadData, UnknownName."""
    foreign = read_table(content, where, None)
    table = foreign.table
    told = dict(text.split("=", 1) for text in options.column if "=" in text)
    foreign.require(list(told.values()))
    names = {theirs: ours for ours, theirs in told.items()}
    for ours, usual in _WORDS.items():
        if ours in table.column_names or ours in told:
            continue
        if ours == "corun" and "slowdown" in {*table.column_names, *names.values()}:
            usual = [word for word in usual if word not in _ANY_TIME]
        there = [n for n in table.column_names if _plain_name(n) in usual and n not in names]
        if len(there) == 1:
            names[there[0]] = ours
    kept = [name for name in table.column_names if name in names or name not in told]
    table = table.select(kept).rename_columns([names.get(name, name) for name in kept])
    numbers = foreign.numbers
    sides = next((pair for pair in _SIDES if _side(table, pair[0]) and _side(table, pair[1])), None)
    if "target" not in table.column_names and sides is not None:
        table, numbers = _both_sides(table, numbers, sides)
    elif "corunner" not in table.column_names and _is_matrix(table):
        table, numbers = _matrix(table, numbers, where)
    n = table.num_rows
    given = {"platform": options.platform_name or Path(where).stem, "target": options.target_name}
    for name, value in (given | {"unit": options.unit}).items():
        if value and name not in table.column_names:
            table = table.append_column(name, pa.array([value] * n, pa.string()))
    table = _plain(table, foreign.comma)
    return ForeignTable(table, numbers, where, foreign.unit, foreign.ragged)


def _plain(table: pa.Table, comma: bool) -> pa.Table:
    """Values as plain numbers where a whole column has decimal commas, or says its unit."""
    for name in {"solo", "corun", "slowdown"} & set(table.column_names):
        read = numbers_in(table.column(name).to_pylist(), comma=comma)
        if not isinstance(read, ColumnOfNumbers) or (read.rule in _AS_THEY_ARE and not comma):
            continue
        if read.rule in _AS_THEY_ARE:
            texts = [(cell or "").replace(",", ".") for cell in table.column(name).to_pylist()]
        else:
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


def _plain_name(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _is_matrix(table: pa.Table) -> bool:
    """Tell by its corner, or by rows that are called as columns are."""
    first, *others = table.column_names
    rows = {str(cell) for cell in table.column(first).to_pylist()}
    return _CORNER.fullmatch(first) is not None or 2 * len(rows & set(others)) > len(others)


def _side(table: pa.Table, mark: str) -> dict[str, str]:
    """Return {column of ours: theirs} of one side; empty where it names no workload."""
    there = {_plain_name(name): name for name in table.column_names}
    found = {
        ours: there[usual + mark]
        for ours in ("target", "solo", "corun", "slowdown")
        for usual in reversed(_WORDS[ours])
        if usual + mark in there
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
    """Turn a matrix, with workloads in rows and co-runners in columns, into rows of pairs. Each cell is a
    slowdown, or a time if a column holds the times alone. Rows and columns of means are left out."""
    first, *others = table.column_names
    alone = next((name for name in others if _plain_name(name) in _WORDS["solo"]), None)
    rows = [
        (row[first], other, row[other], row[alone] if alone else "", number)
        for number, row in zip(numbers.tolist(), table.to_pylist(), strict=True)
        for other in others
        if other != alone
        and not is_nothing(row[other] or "")
        and not {_plain_name(row[first] or ""), _plain_name(other)} & _TOTALS
    ]
    if not rows:
        raise BadData("no cell of the matrix holds a slowdown", where=where, fix="Give numbers.")
    *cells, places = zip(*rows, strict=True)
    columns = dict(
        zip(("target", "corunner", "corun" if alone else "slowdown", "solo"), cells, strict=True)
    )
    made = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    return made, np.array(places, np.int64)
