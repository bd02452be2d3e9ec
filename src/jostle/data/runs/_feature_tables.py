"""Merging feature tables: several files may describe the same names, as long as they agree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from jostle.data.runs._name_columns import encode_text, filled
from jostle.data.runs._schema import ARROW_ERRORS, FEATURES_VERSION
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData


def merge_features(
    tables: Sequence[tuple[str, pa.Table]], key: str, notes: list[str] | None = None
) -> pa.Table | None:
    """Return one table with a row per name and the union of the columns, sorted by name.

    tables: (where it comes from, conforming table). A value may be given twice when it is the same,
    and a null gives way to a value; two different values for one name raise BadData with both
    sources. notes: given, what stands in an earlier table is kept instead, and a sentence is added for
    every column with such values. None when there is no table.
    """
    if len(tables) < 2:
        return tables[0][1] if tables else None
    alike = agreed(tables, f"the {key} feature", notes)
    together = pa.concat_tables([table for _, table in alike], promote_options="permissive")
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


def agreed(
    tables: Sequence[tuple[str, pa.Table]],
    called: str,
    notes: list[str] | None = None,
    without: Collection[str] = (),
) -> list[tuple[str, pa.Table]]:
    """Return the tables without columns whose type does not go with that in an earlier one, and a note on
    each; BadData where there are no notes. called: what stands before a column's name. without: columns that
    are not looked at."""
    alike = list(tables)
    schemas = [(where, table.schema) for where, table in tables]
    for number, name, text in columns_in_conflict(schemas, called, without):
        if notes is None:
            raise BadData(text, fix="Give one of the two columns another name.")
        where, table = alike[number]
        alike[number] = where, table.drop_columns([name])
        notes.append(f"{text}: the later one was passed over")
    return alike


def columns_in_conflict(
    schemas: Sequence[tuple[str, pa.Schema]], called: str, without: Collection[str] = ()
) -> list[tuple[int, str, str]]:
    """Return (place in schemas, column, a sentence) where its type does not go with that in an earlier
    one."""
    plain = [
        (
            where,
            pa.schema([(field.name, field.type) for field in schema if field.name not in without]),
        )
        for where, schema in schemas
    ]
    with suppress(*ARROW_ERRORS):  # as nearly always: all at once, which is quicker
        pa.unify_schemas([schema for _, schema in plain], promote_options="permissive")
        return []
    conflicts = []
    types: dict[str, tuple[pa.Schema, str]] = {}
    for number, (where, schema) in enumerate(plain):
        for field in schema:
            mine = pa.schema([field])
            before, first = types.setdefault(field.name, (mine, where))
            try:
                types[field.name] = (
                    pa.unify_schemas([before, mine], promote_options="permissive"),
                    first,
                )
            except ARROW_ERRORS:
                kinds = f"{before.field(0).type} in {first} and {field.type} in {where}"
                conflicts.append((number, field.name, f"{called} {field.name!r} is {kinds}"))
    return conflicts


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
