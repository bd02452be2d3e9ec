"""Merging feature tables: several files may describe the same names, as long as they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from jostle.errors import BadData
from jostle.runs._columns import encode_text, filled
from jostle.runs._schema import ARROW_ERRORS, FEATURES_VERSION

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute


def merge_features(
    tables: Sequence[tuple[str, pa.Table]], key: str, notes: list[str] | None = None
) -> pa.Table | None:
    """One table with a row per name and the union of the columns, sorted by name.

    tables: (where it comes from, conforming table). A value may be given twice when it is the same,
    and a null gives way to a value; two different values for one name raise BadData with both
    sources. notes: given, what stands in an earlier table is kept instead, and a sentence is added for
    every column with such values. None when there is no table.
    """
    if len(tables) < 2:
        return tables[0][1] if tables else None
    together = _stacked(tables, key, notes)
    codes, names = encode_text(together.column(key))
    columns = []
    for name in together.column_names:
        column = together.column(name).combine_chunks()
        valid = np.flatnonzero(filled(pc.is_valid(column), False))
        known, first = np.unique(codes[valid], return_index=True)
        source = np.full(len(names), -1)
        source[known] = valid[first]
        merged = column.take(pa.array(source, mask=source < 0))
        if not pa.types.is_null(column.type):
            differs = filled(pc.not_equal(column, merged.take(pa.array(codes))), False)
        else:
            differs = np.zeros(0, bool)
        if differs.any():
            second = int(np.argmax(differs))
            error = _conflict(tables, key, together, name, int(source[codes[second]]), second)
            if notes is None:
                raise error
            others = int(differs.sum()) - 1
            more = f", as were {others} more" if others else ""
            notes.append(f"{error.what}: the later one was passed over{more}")
        columns.append(merged)
    schema = together.schema.with_metadata({"schema": FEATURES_VERSION[key]})
    return pa.Table.from_arrays(columns, schema=schema)


def _stacked(tables: Sequence[tuple[str, pa.Table]], key: str, notes: list[str] | None) -> pa.Table:
    """All rows of all tables under the union of their columns."""
    try:
        return pa.concat_tables([table for _, table in tables], promote_options="permissive")
    except ARROW_ERRORS:
        alike = _of_one_sort(tables, key, notes)
        return pa.concat_tables(alike, promote_options="permissive")


def _of_one_sort(
    tables: Sequence[tuple[str, pa.Table]], key: str, notes: list[str] | None
) -> list[pa.Table]:
    """The tables without columns of another sort than in an earlier table."""
    types: dict[str, tuple[pa.DataType, str]] = {}
    alike = []
    for where, table in tables:
        for field in table.schema:
            if pa.types.is_null(field.type):
                continue
            kind, before = types.setdefault(field.name, (field.type, where))
            if _sort_of_value(kind) == _sort_of_value(field.type):
                continue
            text = (
                f"feature column {field.name!r} of the {key}s is {kind} in {before} and "
                f"{field.type} in {where}"
            )
            if notes is None:
                raise BadData(text, fix="Give one of the two columns another name.")
            notes.append(f"{text}: the later one was passed over")
            table = table.drop_columns([field.name])
        alike.append(table)
    return alike


def _sort_of_value(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "text"
    return "truth value" if pa.types.is_boolean(kind) else "number"


def _conflict(
    tables: Sequence[tuple[str, pa.Table]],
    key: str,
    together: pa.Table,
    column: str,
    first: int,
    second: int,
) -> BadData:
    ends = np.cumsum([table.num_rows for _, table in tables])

    def value(row: int) -> str:
        where = tables[int(np.searchsorted(ends, row, side="right"))][0]
        return f"{together.column(column)[row].as_py()!r} in {where}"

    name = together.column(key)[first].as_py()
    return BadData(
        f"{key} {name!r} has {column} {value(first)} and {value(second)}",
        fix=f"Give one of the two another {key} name, or remove one file.",
    )
