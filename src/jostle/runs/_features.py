"""Merging feature tables: several files may describe the same names, as long as they agree."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from jostle.errors import BadData


def merge_features(tables: Sequence[tuple[str, pa.Table]], key: str) -> pa.Table | None:
    """One table with a row per name and the union of the columns, sorted by name.

    tables: (where it comes from, table). A value may be given twice when it is the same, and a null
    gives way to a value; two different values for one name raise BadData with both sources.
    """
    if not tables:
        return None
    if len(tables) == 1:
        return tables[0][1]
    values: dict[str, dict[str, object]] = {}
    source: dict[tuple[str, str], str] = {}
    for where, table in tables:
        for row in table.to_pylist():
            merged = values.setdefault(row[key], {})
            for column, value in row.items():
                if value is None:
                    continue
                before = merged.get(column)
                if before is not None and before != value:
                    raise BadData(
                        f"{key} {row[key]!r} has {column} {before!r} in "
                        f"{source[row[key], column]} and {value!r} in {where}",
                        fix=f"Give one of the two another {key} name, or remove one file.",
                    )
                merged[column] = value
                source[row[key], column] = where
    schema = pa.unify_schemas(
        [table.schema.remove_metadata() for _, table in tables], promote_options="permissive"
    )
    rows = [values[name] for name in sorted(values)]
    merged_table = pa.Table.from_pylist(rows, schema=schema)
    return merged_table.replace_schema_metadata(tables[0][1].schema.metadata)
