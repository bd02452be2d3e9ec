"""Columns that a caller gives, as a table in the types of runs, with what was left out filled in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.runs._colocations import require_entries
from jostle.data.runs._schema import ARROW_ERRORS, COLUMNS, OPTIONAL
from jostle.data.runs._segments import STRETCHES, STRETCHES_TYPE, longest_company, says_stretches
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData, BadRows


def columns_table(**columns: Any) -> pa.Table:
    """Return a table in the types of runs from the columns of :meth:`Runs.from_columns`.

    Rows are not checked yet. Raises BadRows for columns that differ in length or hold what their
    type cannot.
    """
    present = {name: values for name, values in columns.items() if values is not None}
    require_entries(present["workload"], "workload")
    n = len(present["workload"])
    if isinstance(present.get("campaign"), str):
        present["campaign"] = pa.repeat(pa.scalar(present["campaign"]), n)
    for name, values in present.items():
        if not name.isprintable():
            raise BadRows(f"{name!r:.80} cannot name a column", fix="Use letters and digits.")
        require_entries(values, name)
    lengths = {name: len(values) for name, values in present.items()}
    odd = ", ".join(f"{name} has {size}" for name, size in lengths.items() if size != n)
    if odd:
        raise BadRows(f"columns differ in length: workload has {n}, {odd}")
    arrays = {name: _array(name, values) for name, values in present.items()}
    stretches = arrays.get(STRETCHES)
    if "corunners" not in arrays and stretches is not None and says_stretches(stretches.type):
        arrays["corunners"] = longest_company(stretches, arrays["runtime_seconds"])
    elif "corunners" not in arrays:
        arrays["corunners"] = pa.ListArray.from_arrays(
            pa.array(np.zeros(n + 1, np.int32)), pa.array([], pa.string())
        )
    if "run_id" not in arrays:
        prefix = _hash(pa.table(arrays))
        arrays["run_id"] = pc.binary_join_element_wise(
            prefix, pc.utf8_lpad(pc.cast(pa.array(np.arange(n)), pa.string()), 8, "0"), "-"
        )
    arrays.setdefault("window_id", arrays["run_id"])
    arrays.setdefault("status", pa.repeat(pa.scalar("ok"), n))
    arrays.setdefault("campaign", pa.repeat(pa.scalar(""), n))
    for name in ("reason", "measured_at"):
        arrays.setdefault(name, pa.nulls(n, COLUMNS[name][0]))
    # A runtime that is NaN because there is none becomes null; a NaN that claims to be a
    # measurement stays, for the check to name. An empty reason is none.
    seconds = arrays["runtime_seconds"]
    absent = pc.and_(pc.is_nan(seconds), pc.not_equal(arrays["status"], "ok"))
    arrays["runtime_seconds"] = pc.if_else(absent, pa.scalar(None, pa.float64()), seconds)
    blank = pc.fill_null(pc.equal(arrays["reason"], ""), True)
    arrays["reason"] = pc.if_else(blank, pa.scalar(None, pa.string()), arrays["reason"])
    order = [*COLUMNS, *(name for name in arrays if name not in COLUMNS)]
    return pa.table({name: arrays[name] for name in order})


def features_table(features: pa.Table | Mapping[str, Any] | None) -> pa.Table | None:
    """Return a table from a table or a mapping of columns. Raises BadData for what Arrow cannot hold."""
    if features is None or isinstance(features, pa.Table):
        return features
    try:
        return pa.table({name: pa.array(values) for name, values in features.items()})
    except (*ARROW_ERRORS, ValueError) as error:
        raise BadData(f"the feature columns make no table: {error}") from None


def _array(name: str, values: Any) -> Any:
    known = COLUMNS | OPTIONAL
    kind = known[name][0] if name in known else None
    if name == STRETCHES and not isinstance(values, (pa.Array, pa.ChunkedArray)):
        kind = STRETCHES_TYPE
    try:
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return values if kind is None else values.cast(kind)
        if kind is not None and isinstance(values, np.ndarray) and values.dtype.kind == "O":
            values = values.tolist()
        if name == "corunners" and {str, bytes} & set(map(type, values)):
            raise pa.ArrowTypeError("a text, which Arrow would take as a list of letters")
        if kind == STRETCHES_TYPE and any(_has_text(name, row) for row in values):
            raise pa.ArrowTypeError("a text, which Arrow would take as a list of letters")
        if kind == pa.float64() and isinstance(values, np.ndarray):
            values = values.astype(np.float64)
        return pa.array(values, kind)
    except (*ARROW_ERRORS, UnicodeEncodeError, OverflowError) as error:
        raise _bad_values(name, values, kind, error) from None


def _has_text(name: str, value: Any) -> bool:
    """Return whether a text stands where a list of co-runners should."""
    parts = [value] if name == "corunners" else value if name == STRETCHES else ()
    for part in parts if isinstance(parts, (list, tuple)) else ():
        if name == STRETCHES and isinstance(part, Mapping):
            part = part.get("corunners")
        elif name == STRETCHES and isinstance(part, (list, tuple)) and part:
            part = part[-1]
        if isinstance(part, (str, bytes)):
            return True
    return False


def _bad_values(name: str, values: Any, kind: Any, error: Exception) -> BadRows:
    """Arrow says what it could not hold but not where: look for it entry by entry."""
    is_arrow = isinstance(values, (pa.Array, pa.ChunkedArray))
    bad: list[tuple[int, str]] = []
    for row, value in enumerate(values):
        try:
            value.cast(kind) if is_arrow else pa.array([value], kind)
            is_bad = _has_text(name, value)
        except (*ARROW_ERRORS, UnicodeEncodeError, OverflowError):
            is_bad = True
        if is_bad:
            plain = value.as_py() if isinstance(value, pa.Scalar) else value
            bad.append((row, f"{name} is {plain!r}"))
            if len(bad) == 20:
                break
    first = f"row {bad[0][0]}: {bad[0][1]}" if bad else str(error)
    expected = "text" if kind == pa.string() else kind or "one type of value"
    return BadRows(f"column {name!r} holds what is not {expected}: {first}", rows=bad)


def _hash(table: pa.Table) -> str:
    """12 hexadecimal digits of the table's content."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:12]
