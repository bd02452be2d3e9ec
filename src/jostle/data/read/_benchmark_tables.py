"""Benchmark files of Snakemake as tables of runs: what their columns hold, and what they do not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from jostle.data.read._foreign_table import ForeignTable
from jostle.data.tables.quantities import is_nothing, require_numbers

_COLUMNS = frozenset(("s", "h:m:s", "max_rss"))
_RULES = ("rule", "rule_name")
_MIB = 1024.0**2
UNDERSTOOD = (
    "a benchmark file of Snakemake: seconds from s, peaks from max_rss; who ran beside is not known"
)


def is_benchmark(table: pa.Table) -> bool:
    """Tell by its columns whether a table is one of Snakemake's."""
    return set(table.column_names) >= _COLUMNS


def as_runs(foreign: ForeignTable) -> tuple[ForeignTable, dict[str, Any]]:
    """Add the columns of runs. Gives the table, and the options that it answers: without a column of rules
    all rows are of one, called as the file. Raises BadData for a peak that cannot be read."""
    table, n = foreign.table, foreign.table.num_rows
    rule = next((name for name in _RULES if name in table.column_names), "")
    if not rule:
        rule, stem = "rule", Path(foreign.where).name.split(".")[0]
        table = table.append_column(rule, pa.array([stem] * n, pa.string()))
    cells = ["" if one is None else str(one) for one in table.column("max_rss").to_pylist()]
    cells = ["" if is_nothing(cell) else cell for cell in cells]
    peaks = require_numbers(cells, "max_rss", foreign.row_name, foreign.where).values * _MIB
    table = table.append_column("peak_memory_bytes", pa.array(peaks, from_pandas=True))
    table = table.append_column("unknown_corunners", pa.array([True] * n))
    if "input_size_mb" in table.column_names:  # of files by name
        files = [json.loads(one or "{}") for one in table.column("input_size_mb").to_pylist()]
        sizes = [sum(one.values()) * _MIB if isinstance(one, dict) else None for one in files]
        table = table.append_column("input_bytes", pa.array(sizes, pa.float64()))
    told = ForeignTable(table, foreign.numbers, foreign.where, foreign.unit, foreign.ragged)
    known = tuple(name for name in ("threads", "input_bytes") if name in table.column_names)
    more = {"covariate": known} if known else {}
    return told, {"workload": rule, "runtime": "s", "unit": "s", "platform_name": "here", **more}
