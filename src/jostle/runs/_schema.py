"""The `runs/v1` table: its columns, their units, and the checks that every row passes.

History: v1, the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from jostle.errors import BadData, BadRows

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute

VERSION = "runs/v1"
FEATURES_VERSION = {"workload": "workload_features/v1", "platform": "platform_features/v1"}
STATUSES = ("ok", "contaminated", "timeout", "failed")
SHOWN = 20

COLUMNS: dict[str, tuple[pa.DataType, str, str]] = {
    "workload": (pa.string(), "name", "the program with its input"),
    "platform": (pa.string(), "name", "where it ran: device and runtime"),
    "corunners": (pa.list_(pa.string()), "names", "workloads beside it, a multiset, sorted"),
    "runtime_seconds": (pa.float64(), "s", "measured runtime, null where status is not ok"),
    "measured_at": (pa.timestamp("us", tz="UTC"), "UTC", "when"),
    "campaign": (pa.string(), "name", "what measured it"),
    "window_id": (pa.string(), "name", "rows measured together share it"),
    "run_id": (pa.string(), "name", "unique"),
    "status": (pa.string(), "one of " + ", ".join(STATUSES), "how the run ended"),
    "reason": (pa.string(), "text", "why the status is not ok"),
}


def runs_schema(extra: pa.Schema | None = None) -> pa.Schema:
    """The schema with units in its metadata, followed by the free columns of `extra`."""
    fields = [
        pa.field(name, kind, metadata={"unit": unit, "meaning": meaning})
        for name, (kind, unit, meaning) in COLUMNS.items()
    ]
    fields += [field for field in extra or [] if field.name not in COLUMNS]
    return pa.schema(fields, metadata={"schema": VERSION})


def conform(table: pa.Table, where: str | None = None) -> pa.Table:
    """The table with the columns of `runs/v1` first, in their types; co-runners sorted.

    Raises BadData when a required column is missing or cannot be read in its type.
    """
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise BadData(
            f"the columns {', '.join(missing)} of {VERSION} are missing",
            where=where,
            fix="Use jostle import to bring foreign tables in.",
        )
    schema = runs_schema(table.schema)
    columns = []
    for field in schema:
        try:
            columns.append(table.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadData(
                f"column {field.name} cannot be read as {field.type}: {error}", where=where
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)


def bad_rows(
    table: pa.Table, workload_features: pa.Table | None, platform_features: pa.Table | None
) -> list[tuple[int, str]]:
    """(row number, reason) of every row of a conforming table that breaks a rule, in order."""
    n = table.num_rows
    found: list[tuple[int, str]] = []

    def report(mask: Any, reason: str, column: str | None = None) -> None:
        at = np.flatnonzero(_flags(mask))
        values = table.column(column).take(pa.array(at)).to_pylist() if column else [None] * len(at)
        found.extend(
            (int(row), reason.format(repr(value))) for row, value in zip(at, values, strict=True)
        )

    for name in ("workload", "platform", "run_id", "window_id"):
        column = table.column(name)
        report(pc.or_kleene(pc.is_null(column), pc.equal(column, "")), f"{name} is empty")
    lists = table.column("corunners")
    report(pc.is_null(lists), "corunners is null (an empty list means alone)")
    flat, parent = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    empty = _flags(pc.or_kleene(pc.is_null(flat), pc.equal(flat, "")))
    at = np.zeros(n, bool)
    at[parent[empty]] = True
    report(at, "a co-runner's name is empty")

    status = table.column("status")
    known = pc.is_in(status, value_set=pa.array(STATUSES))
    report(pc.invert(known), "status {} is none of " + ", ".join(STATUSES), "status")
    ok = _flags(pc.equal(status, "ok"))
    runtime = table.column("runtime_seconds").to_numpy()
    report(ok & np.isnan(runtime), "runtime_seconds is missing or NaN where status is ok")
    report(ok & np.isinf(runtime), "runtime_seconds is infinite")
    report(ok & (runtime <= 0), "runtime_seconds is {}, not above 0", "runtime_seconds")
    filled = ~ok & _flags(pc.is_valid(table.column("runtime_seconds")))
    report(filled, "runtime_seconds is given although status is not ok")
    report(_repeated(table.column("run_id")), "run_id {} is not unique", "run_id")

    for key, features in (("workload", workload_features), ("platform", platform_features)):
        if features is None:
            continue
        names = features.column(key).combine_chunks()
        absent = pc.invert(pc.is_in(table.column(key), value_set=names))
        report(absent, f"{key} {{}} is not in the {key} features", key)
        if key == "workload":
            lost = ~_flags(pc.is_in(flat, value_set=names)) & ~empty
            for row, name in zip(
                parent[lost], flat.filter(pa.array(lost)).to_pylist(), strict=True
            ):
                found.append((int(row), f"co-runner {name!r} is not in the workload features"))
    return sorted(found)


def require_good(
    table: pa.Table,
    workload_features: pa.Table | None,
    platform_features: pa.Table | None,
    where: str | None = None,
) -> None:
    """Raises BadRows, with the first rows and the total, unless every row passes."""
    rows = bad_rows(table, workload_features, platform_features)
    if rows:
        first = "; ".join(f"row {row}: {reason}" for row, reason in rows[:3])
        raise BadRows(f"{len({row for row, _ in rows})} bad rows: {first}", rows=rows, where=where)


def check_features(table: pa.Table, key: str, where: str | None = None) -> pa.Table:
    """A feature table with its key column as text. Raises BadData for missing or repeated keys."""
    if key not in table.column_names:
        raise BadData(f"the feature table has no column {key!r}", where=where)
    names = table.column(key).cast(pa.string())
    if names.null_count or pc.any(pc.equal(names, "")).as_py():
        raise BadData(f"a {key} name in the feature table is empty", where=where)
    if len(names) != len(pc.unique(names)):
        twice = sorted(set(names.filter(pa.array(_repeated(names))).to_pylist()))
        raise BadData(f"the feature table has {twice[0]!r} more than once", where=where)
    table = table.set_column(table.column_names.index(key), key, names)
    meta = {**(table.schema.metadata or {}), b"schema": FEATURES_VERSION[key].encode()}
    return table.replace_schema_metadata(meta)


def sorted_lists(lists: Sequence[Sequence[str]]) -> list[list[str]]:
    """Every list sorted, so that the order in which co-runners were named does not matter."""
    return [sorted(names) for names in lists]


def _flags(mask: Any) -> np.ndarray:
    if isinstance(mask, np.ndarray):
        return mask
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False).astype(bool)


def _repeated(column: Any) -> np.ndarray:
    """(n,) bool: every occurrence of a value after its first."""
    codes = pc.dictionary_encode(column)
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    indices = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    first = np.unique(indices, return_index=True)[1]
    repeated = np.ones(len(indices), bool)
    repeated[first] = False
    return repeated & (indices >= 0)
