"""Foreign tables, CSV or Parquet, as runs: which column holds what, and which rows are no good.

A row that breaks a rule is never passed over in silence: the import fails and names it, or, when
asked to, sets it aside with the reason.
"""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa

from jostle._base.option_fields import Positional
from jostle._base.untrusted import understands
from jostle.data.read._benchmark_tables import UNDERSTOOD, as_runs, is_benchmark
from jostle.data.read._foreign_table import ForeignTable, read_parquet, read_table
from jostle.data.read._guess_import import import_command
from jostle.data.read._imported_runs import Imported, rejected_rows
from jostle.data.runs._row_rules import find_bad_rows
from jostle.data.runs._runs import Runs
from jostle.data.runs._runs_columns import columns_table
from jostle.data.runs._schema import COLUMNS, STATUSES, conform, conform_features, with_covariates
from jostle.data.runs._workload_groups import GroupRule, require_pattern, with_group
from jostle.data.tables._read_table import file_bytes
from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.cells import float_of, written_list
from jostle.data.tables.moments import NO_TIME, times_of
from jostle.data.tables.quantities import (
    GROUPED,
    OUTCOMES,
    STATUS_OF,
    ColumnOfNumbers,
    covariate_in,
    is_nobody,
    numbers_in,
    outcome_of,
    require_numbers,
    unit_in_name,
)
from jostle.errors import BadData, UsageError, require_choice

# (multiplier, divisor): dividing by a power of ten rounds better than multiplying by its inverse.
UNITS = {
    "s": (1, 1),
    "ms": (1, 1e3),
    "us": (1, 1e6),
    "ns": (1, 1e9),
    "min": (60, 1),
    "h": (3600, 1),
    "ratio": (1, 1),
}
_OF_TIMES = ("numbers", GROUPED, "numbers with a decimal comma", "durations")
_TEXTS = [name for name, (kind, _, _) in COLUMNS.items() if pa.types.is_string(kind)]


@dataclass(frozen=True)
class _Table(ABC):
    """Runs from a table in which each row is one run.

    file: a path, `-` for standard input, or an open binary file. Columns called as a column of runs/v1
    (`status`, `reason`, `measured_at` ...) fill it, and others that no option names are kept. Spaces
    around names do not count.

    A run_id, where no column gives it, is made of a hash of the file and the row, so that the
    same file is known again.
    """

    file: Annotated[str | os.PathLike[str] | BinaryIO, "The file.", Positional()]
    workload: Annotated[str | None, "Column of the workload's name."] = None
    runtime: Annotated[str | None, "Column of the measured runtime."] = None
    unit: Annotated[
        str | None,
        "Unit of the runtime: s, ms, us, ns, min or h.  [default: as cells or the column's name say]",
    ] = None
    platform: Annotated[str | None, "Column of the platform's name."] = None
    platform_name: Annotated[str | None, "The platform of all rows, instead of a column."] = None
    corunners: Annotated[
        tuple[str, ...], "Column of co-runners' names; may be repeated, one column for each."
    ] = ()
    separator: Annotated[str, "What parts several co-runners in one cell."] = ";"
    window: Annotated[str | None, "Column that is equal in rows that were measured together."] = (
        None
    )
    run_id: Annotated[str | None, "Column of a unique name; made from file and row by default."] = (
        None
    )
    campaign: Annotated[str | None, "A name for what measured these runs."] = None
    covariate: Annotated[
        tuple[str, ...],
        "Column of numbers or texts known before a run starts, as NAME or NAME=COLUMN; may be repeated.",
    ] = ()
    group: GroupRule = None
    workload_features: Annotated[
        Path | None, "CSV or Parquet file with a column 'workload' and features."
    ] = None
    platform_features: Annotated[
        Path | None, "CSV or Parquet file with a column 'platform' and features."
    ] = None
    drop_bad: Annotated[
        bool, "Set bad rows aside in rejected/ with the reason, and take the others."
    ] = False

    def __post_init__(self) -> None:
        if self.unit is not None:
            require_choice("unit", self.unit, UNITS)
        if self.platform is not None and self.platform_name is not None:
            raise UsageError("give either a platform column or one platform name")
        require_pattern(self.group)
        if not self.separator:
            raise UsageError("the separator of co-runners is empty")

    @abstractmethod
    def _read(self, content: bytes, where: str) -> ForeignTable: ...

    @property
    def _covariates(self) -> dict[str, str]:
        """The columns that hold covariates, by the names that they get."""
        return {text.partition("=")[0]: text.rpartition("=")[2] for text in self.covariate}

    @property
    def _columns(self) -> list[str]:
        """The columns that options name."""
        one = [self.workload, self.platform, self.runtime, self.window, self.run_id]
        return [*(name for name in one if name is not None), *self.corunners]

    @understands("file")
    def read(self) -> Imported:
        """Raises UnreadableFile, UnknownName for a missing column, and BadRows with the bad rows unless
        drop_bad sets them aside."""
        content, where = file_bytes(self.file)
        foreign = self._read(content, where)
        named, understood = self, []
        if is_benchmark(foreign.table) and not self.corunners:
            foreign, usual = as_runs(foreign)
            if self.platform is not None:
                del usual["platform_name"]
            usual = {name: value for name, value in usual.items() if not getattr(self, name)}
            named, understood = replace(self, **usual), [UNDERSTOOD]
        told = named._told(foreign)
        if named.unit is None:
            understood = [f"{told.runtime} is in {told.unit}, as it says"]
        foreign, of_covariates = _numeric_covariates(foreign, told._covariates)
        found = told._imported(foreign, content)
        is_made = UNDERSTOOD in understood
        return replace(found, understood=(*understood, *of_covariates), is_made=is_made)

    def _told(self, foreign: ForeignTable) -> _Table:
        """Return the import with what columns called as Jostle's hold, and the unit that the table says.

        Raises UnknownName for a missing column, UsageError that says how to go on."""
        where, table = foreign.where, foreign.table
        foreign.require([*self._columns, *self._covariates.values()])
        usual = {role: role for role in ("workload", "platform") if not getattr(self, role)}
        usual |= {} if self.runtime else {"runtime": "runtime_seconds"}
        if self.platform_name is not None:
            usual.pop("platform", None)
        named: dict[str, Any] = {r: name for r, name in usual.items() if name in table.column_names}
        if not self.corunners and "corunners" in table.column_names:
            named["corunners"] = ("corunners",)
        told = replace(self, **named)
        if told.unit is None and told.runtime in table.column_names:
            told = replace(
                told, unit=unit_told(str(told.runtime), table.column(told.runtime), foreign.comma)
            )
        lacks = [name for name in ("workload", "runtime", "unit") if getattr(told, name) is None]
        if told.platform is None and told.platform_name is None:
            lacks.append("platform` or `platform_name")
        if lacks:
            is_file = isinstance(self.file, (str, os.PathLike)) and str(self.file) != "-"
            such = f" Such as: {import_command(Path(self.file))}" if is_file else ""  # type: ignore[arg-type]
            names = "`, `".join(lacks)
            raise UsageError(
                "a table of runs, but nothing says which column holds what",
                where=where,
                fix=f"Say by `{names}`.{such}",
            )
        return told

    def _imported(self, foreign: ForeignTable, content: bytes) -> Imported:
        where = foreign.where
        features = (
            _features(self.workload_features, "workload", self.workload),
            _features(self.platform_features, "platform", self.platform),
        )
        table, unreadable = self._mapped(foreign, hashlib.sha256(content).hexdigest()[:12])
        table = conform(table, where)
        findings = find_bad_rows(table, *features, foreign.row_name)
        for row, reason in unreadable:
            findings.add(np.array([row]), reason)
        rows = findings.rows
        reasons = zip(foreign.numbers[rows].tolist(), findings.reasons(rows), strict=True)
        bad = sorted([*reasons, *foreign.ragged])
        good = np.ones(table.num_rows, bool)
        good[rows] = False
        rejected = rejected_rows(foreign, bad, self.drop_bad and bool(good.any()))
        if not good.any():
            raise BadData("the table has no rows", where=where)
        table = with_group(table, self.group)
        runs = Runs(table.filter(pa.array(good)), *features, where=where)
        return Imported(runs, where, bad, rejected)

    def _mapped(
        self, foreign: ForeignTable, content: str
    ) -> tuple[pa.Table, list[tuple[int, str]]]:
        """Return (table with the columns of runs/v1, (row, reason) of cells that could not be read).

        content: a hash of the file, from which run_ids are made.
        """
        table, n = foreign.table, foreign.table.num_rows
        assert self.workload is not None
        assert self.runtime is not None
        assert self.unit is not None
        seconds, bad = _seconds(table.column(self.runtime), *UNITS[self.unit], comma=foreign.comma)
        workloads = _names(table.column(self.workload))
        beside = [table.column(name) for name in self.corunners]
        columns: dict[str, Any] = {
            "workload": workloads,
            "platform": pa.array([self.platform_name] * n, pa.string())
            if self.platform is None
            else _names(table.column(self.platform)),
            "corunners": _lists(beside, n, self.separator, set(workloads.to_pylist())),
            "runtime_seconds": seconds,
            "run_id": pa.array(
                [f"{content}:{row}" for row in foreign.numbers.tolist()], pa.string()
            ),
        }
        free = [name for name in table.column_names if name not in self._columns]
        for name in ("measured_at", "campaign", "run_id", "window_id"):
            if name in free and not (name == "run_id" and _repeats(table.column(name))):
                columns[name] = table.column(name)
                free.remove(name)
        _outcomes(table, columns, free)
        if "measured_at" in columns and pa.types.is_string(columns["measured_at"].type):
            columns["measured_at"], unreadable = _times(columns["measured_at"])
            bad += unreadable
        for name, column in (("run_id", self.run_id), ("window_id", self.window)):
            if column is not None:
                columns[name] = _names(table.column(column))
        if self.campaign is not None:
            columns["campaign"] = self.campaign
        for name in free:
            column = table.column(name)
            if name.endswith("_memory_bytes") and pa.types.is_string(column.type):
                read = require_numbers(column.to_pylist(), name, foreign.row_name, foreign.where)
                column = pa.array(read.values, from_pandas=True)
            columns[f"source_{name}" if name in COLUMNS else name] = column
        told = columns_table(**columns)
        for name, column in self._covariates.items():
            told = told.append_column(name, told.column(column)) if name != column else told
        return (with_covariates(told, [*self._covariates]) if self._covariates else told), bad


@dataclass(frozen=True)
class CsvImport(_Table):
    """Import a CSV file in which each row is one run.

    Columns that no option names are kept. Bad rows are named, and then nothing is written.
    """

    name: ClassVar[str] = "csv"
    file: Annotated[
        str | os.PathLike[str] | BinaryIO,
        "A CSV file with a header; - reads standard input.",
        Positional(),
    ]
    delimiter: Annotated[
        str | None, "What parts the cells.  [default: a comma, or what the first line has]"
    ] = None

    def _read(self, content: bytes, where: str) -> ForeignTable:
        # Names are text, also 007; so is the runtime, for a bad cell to be a bad row and no more.
        texts = [*self._columns, *_TEXTS, "corunners", "runtime_seconds"]
        return read_table(content, where, texts, self.delimiter, self._columns)


@dataclass(frozen=True)
class ParquetImport(_Table):
    """Import a Parquet file in which each row is one run; co-runners may be lists.

    Columns that no option names are kept. Bad rows are named, and then nothing is written.
    """

    name: ClassVar[str] = "parquet"
    file: Annotated[
        str | os.PathLike[str] | BinaryIO, "A Parquet file; - reads standard input.", Positional()
    ]

    def _read(self, content: bytes, where: str) -> ForeignTable:
        return read_parquet(content, where)


def _numeric_covariates(
    foreign: ForeignTable, covariates: dict[str, str]
) -> tuple[ForeignTable, list[str]]:
    """Return the table with numbers in place of texts such as `3 GB`, and how each was read."""
    table, understood = foreign.table, []
    for name, column in covariates.items():
        at = table.schema.get_field_index(column)
        if not pa.types.is_string(table.schema.types[at]):
            continue
        numbers, how = covariate_in(table.column(at).to_pylist())
        is_typed = foreign.unit == "row"  # then texts of digits are meant as labels
        if numbers is not None and (numbers.unit or not is_typed):
            table = table.set_column(at, column, pa.array(numbers.values))
            understood.append(f"covariate {name}: {how}")
    return replace(foreign, table=table), understood


def _features(file: Path | None, key: str, column: str | None) -> pa.Table | None:
    if file is None:
        return None
    content, where = file_bytes(file)
    is_parquet = where.endswith((".parquet", ".pq"))
    foreign = read_parquet(content, where) if is_parquet else read_table(content, where, _TEXTS)
    table = foreign.table
    if key not in table.column_names and column in table.column_names:
        table = table.rename_columns([key if n == column else n for n in table.column_names])
    return conform_features(table, key, where)


def _names(column: Any) -> pa.Array:
    texts = [None if value is None else str(value).strip() for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _repeats(column: Any) -> bool:
    """Return whether a column called run_id holds none: most of its values stand there several times."""
    texts = column.to_pylist()
    return 2 * len(set(texts)) < len(texts)


def _outcomes(table: pa.Table, columns: dict[str, Any], free: list[str]) -> None:
    """Take columns called status and reason where they say how runs ended, in Jostle's words or others that
    are known; else they are the table's own."""
    if "status" not in free:
        return
    states = [str(cell or "").strip() for cell in table.column("status").to_pylist()]
    if set(states) <= set(STATUSES):
        for name in {"status", "reason"} & set(free):
            columns[name] = table.column(name)
            free.remove(name)
        return
    words = {re.split(r"[^a-z_]", state.lower())[0] for state in states}
    if not words <= {*OUTCOMES, "failed", "error", ""}:
        return
    free.remove("status")
    told = [STATUS_OF[outcome_of(state)] for state in states]
    columns["status"] = told
    pairs = zip(told, states, strict=True)
    columns["reason"] = [None if one == "ok" else state for one, state in pairs]
    is_ok = pa.array([one == "ok" for one in told])
    nothing = pa.scalar(None, pa.float64())
    columns["runtime_seconds"] = pc.if_else(is_ok, columns["runtime_seconds"], nothing)


def _lists(columns: list[Any], n: int, separator: str, workloads: set[Any]) -> pa.Array:
    """Return a sorted list of names for each row, from all columns that hold co-runners; words such as none,
    null or - say that there was nobody, unless a workload is called so."""

    def is_one(name: str) -> bool:
        return not is_nobody(name) or name in workloads or not name

    rows: list[list[str]] = [[] for _ in range(n)]
    known: dict[str, list[str]] = {"": []}
    for column in columns:
        for row, cell in zip(rows, column.to_pylist(), strict=True):
            if isinstance(cell, str):
                if cell not in known:
                    written = written_list(cell) if cell not in workloads else None
                    pieces = cell.split(separator) if written is None else map(str, written)
                    names = [name.strip() for name in pieces]
                    known[cell] = [] if names == [""] else list(filter(is_one, names))
                row.extend(known[cell])
            elif isinstance(cell, list):
                parts = ("" if name is None else str(name).strip() for name in cell)
                row.extend(filter(is_one, parts))
            elif cell is not None:
                row.append(str(cell))
    return pa.array([sorted(row) for row in rows], pa.list_(pa.string()))


def unit_told(name: str, column: Any, comma: bool = False) -> str | None:
    """Return the unit that a column's cells say, or that its name ends in; None where nothing does."""
    if pa.types.is_duration(column.type):
        return "s"
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        read = numbers_in(column.to_pylist(), comma=comma)
        if isinstance(read, ColumnOfNumbers) and read.unit == "seconds":
            return "s"
    return unit_in_name(name)


def _seconds(
    column: Any, multiplier: float, divisor: float, *, comma: bool
) -> tuple[pa.Array, list[tuple[int, str]]]:
    """Return ((n,) float64 seconds, null where the cell is empty; (row, reason) of unreadable cells).
    Durations say their unit themselves."""
    if pa.types.is_duration(column.type):
        column, multiplier, divisor = column.cast(pa.duration("ns")).cast(pa.int64()), 1, 1e9
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return pc.divide(pc.multiply(column.cast(pa.float64()), multiplier), divisor), []
    cells = [None if cell is None else str(cell) for cell in column.to_pylist()]
    read = numbers_in(cells, only=_OF_TIMES, comma=comma)
    if isinstance(read, ColumnOfNumbers):
        factor = (1, 1) if read.unit else (multiplier, divisor)
        return pa.array(read.values * factor[0] / factor[1], from_pandas=True), []
    why = read[1] if read[2] == 1.0 else ""
    values, bad = np.full(len(cells), np.nan), []
    for row, cell in enumerate(cells):
        try:
            values[row] = float_of(cell or "nan") * multiplier / divisor
        except ValueError:
            bad.append((row, f"runtime {cell!r} is not a number" + (f": {why}" if why else "")))
            values[row] = 1.0  # any good value, so that one reason is given and not two
    return pa.array(values, from_pandas=True), bad


def _times(column: Any) -> tuple[pa.Array, list[tuple[int, str]]]:
    """Return ((n,) times, without a zone in UTC; (row, reason) of unreadable cells)."""
    moments, _, unread = times_of(column, "UTC")
    bad = [
        (int(row), f"measured_at {column[int(row)].as_py()!r} is not a valid time")
        for row in np.flatnonzero(unread)
    ]
    times = pa.array(moments, mask=moments == NO_TIME)
    return times.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")), bad
