"""What writers say of the same thing who could not see each other, settled when it is read.

The word of the earlier file stands, in the order of the files' names, whoever reads and however often; a
later value is passed over with a sentence, and null where none is left. Files never change, so that what was
passed over can still be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from jostle.errors import BadData
from jostle.runs._columns import repeated
from jostle.runs._schema import ARROW_ERRORS, COLUMNS

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute

_SHOWN = 3


def columns_in_conflict(schemas: Sequence[tuple[str, pa.Schema]]) -> list[tuple[int, str, str]]:
    """Free columns whose type does not go with that of an earlier schema: (place in schemas, column,
    a sentence). schemas: (where it comes from, schema)."""
    try:
        _joined([_free(schema) for _, schema in schemas])
        return []
    except ARROW_ERRORS:
        pass
    conflicts = []
    types: dict[str, tuple[pa.Schema, str]] = {}
    for number, (where, schema) in enumerate(schemas):
        for field in _free(schema):
            mine = pa.schema([field])
            before, first = types.setdefault(field.name, (mine, where))
            try:
                types[field.name] = _joined([before, mine]), first
            except ARROW_ERRORS:
                text = (
                    f"the free column {field.name!r} is {before.field(0).type} in {first} and "
                    f"{field.type} in {where}"
                )
                conflicts.append((number, field.name, text))
    return conflicts


def require_columns_agree(
    there: Sequence[tuple[str, pa.Schema]], where: str, new: pa.Schema
) -> None:
    """Raises BadData where a free column of the new schema does not go with those that are there."""
    for number, name, text in columns_in_conflict([*there, (where, new)]):
        if number == len(there):
            raise BadData(text, fix=f"Give the column {name!r} another name; nothing was written.")


def with_agreed_columns(
    tables: list[tuple[str, pa.Table]], notes: list[str]
) -> list[tuple[str, pa.Table]]:
    """The tables without free columns that contradict an earlier table's type."""
    agreed = list(tables)
    schemas = [(where, table.schema) for where, table in tables]
    for number, name, text in columns_in_conflict(schemas):
        where, table = agreed[number]
        agreed[number] = where, table.drop_columns([name])
        notes.append(f"{text}: the later one was passed over")
    return agreed


def rows_settled(
    run_id: Any, file_of_row: np.ndarray, files: Sequence[str], notes: list[str]
) -> np.ndarray | None:
    """(n,) false for a run whose run_id stands in an earlier file; None where there is none.

    A run_id that stands twice in one file is not settled: nobody else was in the way of its writer.
    """
    rows, first = repeated(run_id)
    again = file_of_row[rows] != file_of_row[first]
    if not again.any():
        return None
    rows, first = rows[again], first[again]
    for number in np.unique(file_of_row[rows]):
        mine = file_of_row[rows] == number
        named, earlier = int(rows[mine][0]), int(file_of_row[first[mine][0]])
        notes.append(
            f"{int(mine.sum())} runs of {files[number]} were passed over, because their run_ids stand in an "
            f"earlier file already, the first is {run_id[named].as_py()!r} in {files[earlier]}"
        )
    settled = np.ones(len(run_id), bool)
    settled[rows] = False
    return settled


def with_rows_for(
    features: pa.Table | None, key: str, names: set[str], notes: list[str]
) -> pa.Table | None:
    """The features with a row of nulls for each of these names that has none, sorted by name."""
    if features is None:
        return None
    lost = sorted(names - {*features.column(key).to_pylist(), "", None})
    if not lost:
        return features
    notes.append(
        f"{len(lost)} {key}s have no row in the {key} features, which are unknown for them: "
        f"{', '.join(map(repr, lost[:_SHOWN]))}{' …' if len(lost) > _SHOWN else ''}"
    )
    columns = {key: pa.array(lost, pa.string())}
    more = pa.table(
        [columns.get(field.name, pa.nulls(len(lost), field.type)) for field in features.schema],
        schema=features.schema,
    )
    every = pa.concat_tables([features, more])
    listed = every.column(key).to_pylist()
    # Sorted by Python, by code point, as all feature tables are.
    order = sorted(range(len(listed)), key=listed.__getitem__)
    return every.take(pa.array(order, pa.int64()))


def _free(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, field.type) for field in schema if field.name not in COLUMNS])


def _joined(schemas: list[pa.Schema]) -> pa.Schema:
    return pa.unify_schemas(schemas, promote_options="permissive")
