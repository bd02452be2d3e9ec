"""The table of runs and its feature tables: columns, types, units; and where runs come from.

A dataset may hold several campaigns; each keeps source and licence in an entry of the files' metadata.

History: v1, the first; v2, where a run may have `stretches`; v3, with memory, covariates or co-runners that
are partly unknown. A table has the lowest version that says all of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.runs._name_columns import repeated, sorted_inside_lists
from jostle.data.runs._segments import STRETCHES, STRETCHES_TYPE, conform_stretches, has_stretches
from jostle.data.runs._workload_groups import GROUPS, groups_of
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData

_ORIGINS, _COVARIATES = b"origins", b"covariates"


@dataclass(frozen=True)
class Origin:
    """Source of a campaign of runs.

    campaign: as in the runs' column. source: who published it, and where. licence: its name (SPDX where it
    has one), None where none was stated.
    """

    campaign: str
    source: str
    licence: str | None = None


def origins_of(schema: pa.Schema) -> tuple[Origin, ...]:
    """Return what the metadata of a schema says, sorted; () where it says nothing."""
    entries = json.loads((schema.metadata or {}).get(_ORIGINS, b"[]"))
    return tuple(sorted((Origin(**entry) for entry in entries), key=_order))


def with_origins(table: pa.Table, origins: Sequence[Origin]) -> pa.Table:
    """Return the table with these origins in its metadata."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **_metadata(origins)})


def covariates_of(schema: pa.Schema) -> tuple[str, ...]:
    """Name the columns that hold covariates of a run, in the order of the table."""
    named = json.loads((schema.metadata or {}).get(_COVARIATES, b"[]"))
    return tuple(name for name in schema.names if name in named)


def with_covariates(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Mark columns of the table as covariates, beside those that are. Raises BadData for a column of runs/v1
    and for values that are neither numbers nor text."""
    for name in names:
        if name in COLUMNS or name in OPTIONAL or name == STRETCHES:
            raise BadData(
                f"{name!r} is a column of all runs", fix="Give the covariate another name."
            )
        column = _covariate(table.column(name), name)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    every = json.dumps(sorted({*covariates_of(table.schema), *names})).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _COVARIATES: every})


def _covariate(column: Any, name: str) -> Any:
    """Return float64, or text; null where a value is not known."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, pa.float64()))
    if pa.types.is_boolean(kind) or says_text(kind):
        column = column.cast(pa.string())
        return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    raise BadData(f"the covariate {name!r} holds {kind}", fix="A covariate is a number or a text.")


def says_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def kept_metadata(schemas: Sequence[pa.Schema]) -> dict[Any, Any]:
    """Return the entries of the metadata that tables made of these keep: every origin, covariate and group
    once."""
    origins = {origin for schema in schemas for origin in origins_of(schema)}
    covariates = sorted({name for schema in schemas for name in covariates_of(schema)})
    groups = sorted({pattern for schema in schemas for pattern in groups_of(schema)})
    lists = {
        key: json.dumps(some).encode()
        for key, some in ((_COVARIATES, covariates), (GROUPS, groups))
        if some
    }
    return (_metadata(sorted(origins, key=_order)) if origins else {}) | lists


def _metadata(origins: Sequence[Origin]) -> dict[bytes, bytes]:
    return {_ORIGINS: json.dumps([asdict(origin) for origin in origins]).encode()}


def _order(origin: Origin) -> tuple[str, str, str]:
    return origin.campaign, origin.source, origin.licence or ""


VERSIONS = ("runs/v1", "runs/v2", "runs/v3")
FEATURES_VERSION = {"workload": "workload_features/v1", "platform": "platform_features/v1"}
STATUSES = ("ok", "contaminated", "timeout", "failed", "out_of_memory")

COLUMNS: dict[str, tuple[pa.DataType, str, str]] = {
    "workload": (pa.string(), "name", "the program with its input"),
    "platform": (pa.string(), "name", "where it ran: device and runtime"),
    "corunners": (pa.list_(pa.string()), "names", "workloads beside it, a multiset, sorted"),
    "runtime_seconds": (pa.float64(), "s", "measured runtime, null where status is not ok"),
    "measured_at": (pa.timestamp("us", tz="UTC"), "UTC", "when, null where not known"),
    "campaign": (pa.string(), "name", "what measured it"),
    "window_id": (pa.string(), "name", "rows measured together share it"),
    "run_id": (pa.string(), "name", "unique in a dataset"),
    "status": (pa.string(), "one of " + ", ".join(STATUSES), "how the run ended"),
    "reason": (pa.string(), "text", "why the status is not ok, null where it is"),
}

# Columns that a table has only where something is known.
OPTIONAL: dict[str, tuple[pa.DataType, str, str]] = {
    "peak_memory_bytes": (pa.float64(), "B", "the most memory it had, null where not known"),
    "requested_memory_bytes": (pa.float64(), "B", "its memory limit, null where not known"),
    "unknown_corunners": (pa.bool_(), "", "whether it had co-runners that nobody knows"),
}

FREE = "the free column"  # as a sentence calls all others
# A free column: true where somebody, or Model.suggest, chose what to measure.
CHOSEN = "chosen"

ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def runs_schema(extra: pa.Schema | None = None) -> pa.Schema:
    """Return the schema with units in its metadata, followed by the free columns of `extra` with their
    metadata."""
    fields = [
        pa.field(name, kind, metadata={"unit": unit, "meaning": meaning})
        for name, (kind, unit, meaning) in COLUMNS.items()
    ]
    stretched = extra is not None and has_stretches(extra)
    if stretched:
        units = {"unit": "s, names", "meaning": "who was beside it from when on, null: one company"}
        fields.append(pa.field(STRETCHES, STRETCHES_TYPE, metadata=units))
    given = [] if extra is None else extra.names
    fields += [
        pa.field(name, kind, metadata={"unit": unit, "meaning": meaning})
        for name, (kind, unit, meaning) in OPTIONAL.items()
        if name in given
    ]
    there = {field.name for field in fields}
    fields += [field for field in extra or [] if field.name not in there]
    kept = {} if extra is None else kept_metadata([extra])
    version = 2 if _COVARIATES in kept or any(name in OPTIONAL for name in given) else stretched
    return pa.schema(fields, metadata={"schema": VERSIONS[version]} | kept)


def conform(table: pa.Table, where: str | None = None) -> pa.Table:
    """Return the table with the columns of runs first, in their types; co-runners sorted.

    Raises BadData when a required column is missing, stands twice, or cannot be read in its type.
    """
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise BadData(
            f"the columns {', '.join(missing)} of {VERSIONS[0]} are missing",
            where=where,
            fix="Bring foreign tables in with jostle import.",
        )
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise BadData(f"column {sorted(twice)[0]!r} stands more than once", where=where)
    columns, fields = [], []
    for field in runs_schema(table.schema):
        try:
            if field.name == STRETCHES and has_stretches(table.schema):
                column = conform_stretches(table.column(STRETCHES))
                if column is None:
                    continue
            else:
                column = table.column(field.name).cast(field.type)
        except ARROW_ERRORS as error:
            raise BadData(
                f"column {field.name} cannot be read as {field.type}: {error}", where=where
            ) from None
        columns.append(sorted_inside_lists(column) if field.name == "corunners" else column)
        fields.append(field)
    extra = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays(columns, schema=runs_schema(extra))


def conform_features(table: pa.Table, key: str, where: str | None = None) -> pa.Table:
    """Return a feature table with its key column first, one row per name, sorted by name.

    Other columns are numbers, truth values or text; NaN becomes null, because it says "not known".
    Raises BadData for a missing key column, empty or repeated names, and columns of other types.
    """
    if key not in table.column_names:
        raise BadData(f"the feature table has no column {key!r}", where=where)
    if len(set(table.column_names)) < table.num_columns:
        raise BadData("two columns of the feature table share a name", where=where)
    order = [key, *(name for name in table.column_names if name != key)]
    columns, fields = [], []
    for field in (table.schema.field(name) for name in order):
        column = _feature(table.column(field.name), field.name == key, field.name, where)
        columns.append(column)
        fields.append(pa.field(field.name, column.type, metadata=field.metadata))
    names = columns[0]
    if names.null_count or pc.any(pc.equal(names, "")).as_py():
        raise BadData(f"a {key} name in the feature table is empty", where=where)
    rows, _ = repeated(names)
    if len(rows):
        name = names[int(rows[0])].as_py()
        raise BadData(f"the feature table has {name!r} more than once", where=where)
    schema = pa.schema(fields, metadata={"schema": FEATURES_VERSION[key]})
    table = pa.Table.from_arrays(columns, schema=schema)
    listed = names.to_pylist()
    if all(a < b for a, b in pairwise(listed)):
        return table
    order_of_names = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
    return table.take(pa.array(order_of_names))


def _feature(column: pa.ChunkedArray, is_key: bool, name: str, where: str | None) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if is_key or says_text(kind):
        try:
            return column.cast(pa.string())
        except ARROW_ERRORS as error:
            raise BadData(f"feature column {name!r} is not text: {error}", where=where) from None
    if pa.types.is_floating(kind):
        bad = pc.is_nan(column)
        if pc.any(bad).as_py():
            return pc.if_else(bad, pa.scalar(None, kind), column)
        return column
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column
    raise BadData(
        f"feature column {name!r} holds {kind}",
        where=where,
        fix="A feature is a number, true or false, or text.",
    )
