"""Runs from a table in memory: pandas, polars, Arrow, or a mapping of columns."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from jostle.data.read._runs_table import ParquetImport, unit_told
from jostle.data.runs._runs import Runs
from jostle.data.runs._runs_columns import features_table
from jostle.data.runs._schema import ARROW_ERRORS
from jostle.data.store._import_doubts import doubts
from jostle.errors import BadData, UsageError


def from_table(
    table: Any,
    *,
    runtime: str = "runtime_seconds",
    unit: str | None = None,
    workload_features: Any = None,
    platform_features: Any = None,
    covariates: Sequence[str] = (),
    **options: Any,
) -> Runs:
    """Make runs from a pandas, polars or Arrow table, or a mapping of columns, with a run in each row.

    runtime: the column of the measured time. unit: s, ms, us, ns, min, h or ratio; it may be left out if the
    name of the column ends in it (runtime_seconds, ms) or its cells say it (durations, "20 ms"). options:
    those of ParquetImport: workload, platform and corunners say what columns are called (by default so),
    platform_name stands instead of a column, separator parts co-runners in a cell, and window, run_id,
    campaign, group, drop_bad. covariates: columns known before a run starts, as NAME or NAME=COLUMN. Other
    columns are kept. workload_features, platform_features: tables of any kind. Warns of what looks otherwise
    than it was meant, such as co-runners parted by another separator. Raises UsageError if the unit is not
    known, UnknownName for a column that is missing, BadRows with every bad row and the reason.
    """
    arrow = arrow_of(table)
    options = {"workload": "workload"} | options
    if "platform_name" not in options:
        options = {"platform": "platform"} | options
    others = options.get("corunners", ())
    options["corunners"] = (others,) if isinstance(others, str) else tuple(others)
    at = arrow.schema.get_field_index(runtime)
    if at >= 0 and pa.types.is_duration(arrow.schema.types[at]):  # which knows its own unit
        nanoseconds = arrow.column(at).cast(pa.duration("ns")).cast(pa.int64())
        arrow, unit = arrow.set_column(at, runtime, nanoseconds), "ns"
    if unit is None and at >= 0 and unit_told(runtime, arrow.column(at)) is None:
        what = f"the unit of column {runtime!r} is not known"
        raise UsageError(what, fix='Give it, such as unit="ms".')
    sink = io.BytesIO()
    # Plain types: pandas and polars have kinds of text that Arrow cannot take rows of.
    pyarrow.parquet.write_table(arrow, sink, store_schema=False)
    sink.seek(0)
    sink.name = "the table"
    table_import = ParquetImport(
        sink, runtime=runtime, unit=unit, covariate=tuple(covariates), **options
    )
    runs = table_import.read().runs
    for doubt in doubts(runs):
        warnings.warn(doubt, stacklevel=2)
    workload, platform = (
        features_table(None if one is None else arrow_of(one))
        for one in (workload_features, platform_features)
    )
    if workload is None and platform is None:
        return runs
    return Runs(runs.table, workload, platform, where="the table")


def arrow_of(table: Any) -> pa.Table:
    """Return an Arrow table of anything with columns. Raises BadData, UsageError."""
    if isinstance(table, pa.Table):
        return table
    try:
        if isinstance(table, Mapping) or hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
        if isinstance(table, list) and all(isinstance(row, Mapping) for row in table):
            return pa.Table.from_pylist(table)
        if hasattr(table, "to_dict"):  # pandas of before Arrow's interface
            return pa.Table.from_pandas(table, preserve_index=False)
    except ARROW_ERRORS as error:
        raise BadData(f"not a table: {error}", where="the table") from None
    raise UsageError(
        f"a {type(table).__name__} is not a table", fix="Give pandas, polars, Arrow, or columns."
    )
