"""Runs in memory: a table of runs with the feature tables of its workloads and platforms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from jostle._base.report import Glance, duration
from jostle.data.runs._colocations import Colocations
from jostle.data.runs._feature_tables import merge_features
from jostle.data.runs._name_columns import (
    encode_lists,
    encode_text,
    filled,
    flags,
    number_text,
    numbers_of,
)
from jostle.data.runs._row_rules import find_bad_rows
from jostle.data.runs._schema import (
    ARROW_ERRORS,
    CHOSEN,
    COLUMNS,
    Origin,
    conform,
    conform_features,
    merged_origins,
    origins_of,
    runs_schema,
)
from jostle.data.runs._segments import (
    STRETCHES,
    STRETCHES_TYPE,
    Stretches,
    has_stretches,
    longest_company,
    says_stretches,
    stretch_names,
    stretches_of,
)
from jostle.data.tables.arrow_compute import pc, with_column
from jostle.errors import BadData, BadRows, UsageError

if TYPE_CHECKING:
    from jostle.data.runs._runs_plots import RunsPlots


class Runs(Glance):
    """n measured runtimes, immutable.

    table: `runs/v1`, or `runs/v2` where runs have stretches, with any free columns. workload_features,
    platform_features: tables keyed by `workload` and `platform`, one row per name, or None. Raises
    BadData or BadRows for what breaks the schema. checked: the tables come out of another Runs, so do not
    check them again. notes: what was settled where files of a dataset contradict each other.
    """

    def __init__(
        self,
        table: pa.Table,
        workload_features: pa.Table | None = None,
        platform_features: pa.Table | None = None,
        *,
        where: str | None = None,
        checked: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        if not checked:
            table = conform(table, where)
            if workload_features is not None:
                workload_features = conform_features(workload_features, "workload", where)
            if platform_features is not None:
                platform_features = conform_features(platform_features, "platform", where)
            findings = find_bad_rows(table, workload_features, platform_features)
            findings.require_none(where=where, fix="Correct these rows, or leave them out.")
        self.table = table
        self.workload_features = workload_features
        self.platform_features = platform_features
        self.notes = tuple(notes)

    @classmethod
    def from_columns(
        cls,
        *,
        workload: Any,
        platform: Any,
        corunners: Any = None,
        runtime_seconds: Any,
        status: Any = None,
        reason: Any = None,
        window_id: Any = None,
        run_id: Any = None,
        campaign: Any = None,
        measured_at: Any = None,
        workload_features: pa.Table | Mapping[str, Any] | None = None,
        platform_features: pa.Table | Mapping[str, Any] | None = None,
        **extra: Any,
    ) -> Runs:
        """Runs from columns of n entries: lists, NumPy or Arrow arrays. Extra columns are kept.

        corunners: n lists of names in any order; None means that all ran alone. An extra column `stretches`
        says who was beside a run from when on, n lists of (start_seconds, names) or None for one company;
        corunners are then those of the longest stretch, where they are not given. runtime_seconds:
        above 0, None or NaN where status is not ok. campaign: a column, or one name for all.
        What is left out is filled in: status ok; run_id from a hash of all columns and the row
        number, so that the same columns always get the same ids; every run its own window.

        Raises BadRows when columns differ in length or a row breaks the schema, BadData when a
        column or feature table cannot be read.
        """
        table = columns_table(
            workload=workload,
            platform=platform,
            corunners=corunners,
            runtime_seconds=runtime_seconds,
            status=status,
            reason=reason,
            window_id=window_id,
            run_id=run_id,
            campaign=campaign,
            measured_at=measured_at,
            **extra,
        )
        return cls(table, features_table(workload_features), features_table(platform_features))

    def to_table(self) -> pa.Table:
        """All columns as an Arrow table; `.to_pandas()` and `polars.from_arrow` make it one of theirs."""
        return self.table

    @property
    def plot(self) -> RunsPlots:
        """Pictures in one line each: `runs.plot.slowdowns()`, `.runtimes()`; both return matplotlib axes."""
        from jostle.data.runs._runs_plots import RunsPlots

        return RunsPlots(self)

    def __len__(self) -> int:
        return self.table.num_rows

    def facts(self) -> list[tuple[str, str]]:
        """How many runs of how many names, how many beside others, and how long they take."""
        c, times = self.colocations, self.runtime_seconds[self.is_ok]
        degree = c.number_of_corunners
        lines = [
            ("runs", f"{len(self)}"),
            ("workloads", f"{len(c.workload_names)}"),
            ("platforms", f"{len(c.platform_names)}"),
            ("alone", f"{int((degree == 0).sum())}"),
            ("beside others", f"{int((degree > 0).sum())}, up to {int(degree.max(initial=0))}"),
        ]
        if self.is_stretched:
            lines.append(("with changing company", f"{int((~self.is_steady).sum())}"))
        if len(times):
            low, middle, high = np.quantile(times, (0, 0.5, 1))
            spread = f"{duration(low)} to {duration(high)}, median {duration(middle)}"
            lines.append(("runtime", spread))
        if len(times) < len(self):
            lines.append(("without a runtime", f"{len(self) - len(times)}"))
        for key in ("workload", "platform"):
            table = getattr(self, f"{key}_features")
            if table is not None:
                lines.append((f"{key} features", f"{table.num_columns - 1}"))
        return lines

    def __eq__(self, other: object) -> bool:
        """Whether tables and features hold the same values in the same order."""
        if not isinstance(other, Runs):
            return NotImplemented
        pairs = (
            (self.table, other.table),
            (self.workload_features, other.workload_features),
            (self.platform_features, other.platform_features),
        )
        return all(a is b or (a is not None and b is not None and a.equals(b)) for a, b in pairs)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (equality reads every row)

    @cached_property
    def colocations(self) -> Colocations:
        """What ran where beside what; vocabularies hold only names that occur in these runs."""
        offsets, corunner, corunner_names = encode_lists(self.table.column("corunners"))
        workload, workload_names = encode_text(self.table.column("workload"))
        platform, platform_names = encode_text(self.table.column("platform"))
        during = stretch_names(self.table.column(STRETCHES)) if self.is_stretched else []
        names = sorted({*corunner_names, *workload_names, *during})
        code = {name: number for number, name in enumerate(names)}
        # Each vocabulary is sorted, so mapping one into the union keeps rows sorted.
        return Colocations(
            tuple(names),
            tuple(platform_names),
            np.array([code[name] for name in workload_names], np.int32)[workload],
            platform,
            offsets,
            np.array([code[name] for name in corunner_names], np.int32)[corunner],
        )

    @property
    def is_stretched(self) -> bool:
        """Whether the company of some run may have changed: whether the table says stretches."""
        return has_stretches(self.table.schema)

    @cached_property
    def is_steady(self) -> np.ndarray:
        """(n,) bool, read-only: one company from beginning to end."""
        return _frozen(self.stretches.counts == 1)

    @cached_property
    def runtime_error_ratio(self) -> np.ndarray:
        """(n,) standard errors of the runtimes, as shares of them, as `jostle measure` tells them in a column
        of this name; 0 where nothing is told."""
        if "runtime_error_ratio" not in self.table.column_names:
            return np.zeros(len(self))
        error = numbers_of(self.table, "runtime_error_ratio")
        return np.where(np.isfinite(error) & (error > 0), error, 0.0)

    @cached_property
    def stretches(self) -> Stretches:
        """Who was beside each run for how long; one stretch where its company was one."""
        column = self.table.column(STRETCHES) if self.is_stretched else None
        return stretches_of(column, self.colocations, self.runtime_seconds)

    @cached_property
    def runtime_seconds(self) -> np.ndarray:
        """(n,) float64, NaN where status is not ok; read-only."""
        return _frozen(np.array(filled(self.table.column("runtime_seconds"), np.nan), np.float64))

    @cached_property
    def is_ok(self) -> np.ndarray:
        """(n,) bool, read-only."""
        return _frozen(flags(pc.equal(self.table.column("status"), "ok")))

    @cached_property
    def is_chosen(self) -> np.ndarray:
        """(n,) bool, read-only: measured because somebody, or `Model.suggest`, chose them, by the free column
        `chosen` of true and false where there is one. Such runs are a random sample of nothing."""
        names = self.table.column_names
        if CHOSEN in names and pa.types.is_boolean(self.table.column(CHOSEN).type):
            return _frozen(flags(pc.fill_null(self.table.column(CHOSEN), False)))
        return _frozen(np.zeros(len(self), bool))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where imported campaigns come from and under which licence, as far as it is known."""
        return origins_of(self.table.schema)

    @cached_property
    def window(self) -> np.ndarray:
        """(n,) int64 codes, equal where window_id is; numbered by first appearance; read-only."""
        return _frozen(number_text(self.table.column("window_id")))

    def units(self, by: str) -> np.ndarray:
        """(n,) int64 codes of what is drawn as one in a split or a calibration.

        by: `window` (rows measured together), `row` (each alone), or `together` (all rows of the same
        workloads on the same platform: both sides of a pair and all its repeats). Raises UsageError.
        """
        if by == "row":
            return np.arange(len(self))
        if by == "window":
            return self.window
        if by == "together":
            return self.colocations.together
        raise UsageError(f"runs drawn by {by!r}", fix="Known: window, row, together.")

    def features_of(self, key: str) -> tuple[tuple[str, ...], pa.Table | None]:
        """(names, table without its key column) of the `workload` or `platform` features.

        The names are sorted and aligned with the table's rows; (), None when there are none.
        """
        table = {"workload": self.workload_features, "platform": self.platform_features}[key]
        if table is None:
            return (), None
        return tuple(table.column(key).to_pylist()), table.drop_columns([key])

    def take(self, indices: Any) -> Runs:
        """The runs at these indices, or where a boolean mask is true; features are kept."""
        index = np.arange(len(self))[indices].reshape(-1)
        return self._with(self.table.take(pa.array(index)))

    def _with(self, table: pa.Table) -> Runs:
        features = self.workload_features, self.platform_features
        return Runs(table, *features, checked=True, notes=self.notes)

    def with_one_company(self, runtime_seconds: np.ndarray) -> Runs:
        """The same runs, each in the company of its `corunners` throughout, with (n,) these runtimes."""
        table = self.table.drop_columns([STRETCHES]) if self.is_stretched else self.table
        table = with_column(table, "runtime_seconds", pa.array(runtime_seconds))
        return self._with(table.replace_schema_metadata(runs_schema(table.schema).metadata))

    def ok(self) -> Runs:
        """The runs that ended well."""
        return self if bool(self.is_ok.all()) else self.take(self.is_ok)

    @staticmethod
    def concatenate(parts: Sequence[Runs]) -> Runs:
        """All runs of all parts, in order; feature tables are merged.

        Raises BadRows for a run_id in two parts, BadData for features that contradict each other.
        """
        table = join_tables([(f"part {i}", part.table) for i, part in enumerate(parts)])
        workload, platform = (
            merge_features(
                [
                    (f"part {number}", features)
                    for number, part in enumerate(parts)
                    if (features := getattr(part, f"{key}_features")) is not None
                ],
                key,
            )
            for key in ("workload", "platform")
        )
        return Runs(table, workload, platform)


def join_tables(tables: Sequence[tuple[str, pa.Table]]) -> pa.Table:
    """One table of all rows of conforming tables; free columns are null where a table lacks them.

    tables: (where it comes from, table). Raises BadData when a free column has two types.
    """
    try:
        joined = pa.concat_tables(
            [runs_schema().empty_table(), *(table for _, table in tables)],
            promote_options="permissive",
        )
    except ARROW_ERRORS as error:
        where = " and ".join(where for where, _ in tables[:3])
        raise BadData(
            f"free columns of the same name have two types: {error}", where=where
        ) from None
    metadata = runs_schema(joined.schema).metadata | merged_origins(
        [table.schema for _, table in tables]
    )
    return joined.replace_schema_metadata(metadata)


def columns_table(**columns: Any) -> pa.Table:
    """A table in the types of runs from the columns of :meth:`Runs.from_columns`.

    Rows are not checked yet. Raises BadRows for columns that differ in length or hold what their
    type cannot.
    """
    present = {name: values for name, values in columns.items() if values is not None}
    n = len(present["workload"])
    if isinstance(present.get("campaign"), str):
        present["campaign"] = pa.repeat(pa.scalar(present["campaign"]), n)
    for name, values in present.items():
        if not name.isprintable():
            raise BadRows(f"{name!r:.80} cannot name a column", fix="Use letters and digits.")
        if isinstance(values, (str, bytes)):
            raise BadRows(f"column {name!r} is one text", fix="Give one entry per row.")
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
    """A table from a table or a mapping of columns. Raises BadData for what Arrow cannot hold."""
    if features is None or isinstance(features, pa.Table):
        return features
    try:
        return pa.table({name: pa.array(values) for name, values in features.items()})
    except (*ARROW_ERRORS, ValueError) as error:
        raise BadData(f"the feature columns make no table: {error}") from None


def _array(name: str, values: Any) -> Any:
    kind = COLUMNS[name][0] if name in COLUMNS else None
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
    """Whether a text stands where a list of co-runners should."""
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


def _frozen(array: np.ndarray) -> np.ndarray:
    array = array.view()
    array.flags.writeable = False
    return array
