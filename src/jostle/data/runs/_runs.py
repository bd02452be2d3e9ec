"""Runs in memory: a table of runs with the feature tables of its workloads and platforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from jostle._base.report import Glance, duration
from jostle._base.tabular import Tabular
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
from jostle.data.runs._runs_columns import columns_table, features_table
from jostle.data.runs._schema import (
    ARROW_ERRORS,
    CHOSEN,
    Origin,
    conform,
    conform_features,
    covariates_of,
    kept_metadata,
    origins_of,
    runs_schema,
    says_text,
    with_covariates,
)
from jostle.data.runs._segments import (
    STRETCHES,
    Stretches,
    has_stretches,
    stretch_names,
    stretches_of,
)
from jostle.data.runs._workload_groups import groups_of
from jostle.data.tables.arrow_compute import pc, with_column
from jostle.errors import BadData, UsageError

if TYPE_CHECKING:
    from jostle.data.runs._runs_plots import RunsPlots


class Runs(Tabular, Glance):
    """Immutable table of n measured runtimes.

    table: `runs/v1`, `runs/v2` or `runs/v3` (see `docs/runs.md`), with any free columns. workload_features,
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
        covariates: Sequence[str] = (),
        **extra: Any,
    ) -> Runs:
        """Return runs from columns of n entries: lists, NumPy or Arrow arrays. Extra columns are kept;
        covariates names those of them that are known before a run starts, numbers or text.

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
        table = with_covariates(table, covariates) if covariates else table
        return cls(table, features_table(workload_features), features_table(platform_features))

    @staticmethod
    def from_table(table: Any, **options: Any) -> Runs:
        """Make runs of a pandas, polars or Arrow table, as :func:`jostle.data.from_table` does."""
        return import_module("jostle.data").from_table(table, **options)

    def to_table(self) -> pa.Table:
        """Return all columns as an Arrow table; `polars.from_arrow` makes it one of polars."""
        return self.table

    @property
    def plot(self) -> RunsPlots:
        """Pictures in one line each: `runs.plot.slowdowns()`, `.runtimes()`; both return matplotlib axes."""
        from jostle.data.runs._runs_plots import RunsPlots

        return RunsPlots(self)

    def __len__(self) -> int:
        return self.table.num_rows

    def _facts(self) -> list[tuple[str, str]]:
        """Return how many runs of how many names, how many beside others, and how long they take."""
        c, times = self.colocations, self.runtime_seconds[self.is_ok]
        degree = c.number_of_corunners
        lines = [
            ("runs", f"{len(self)}"),
            ("workloads", f"{len(c.workload_names)}"),
            ("platforms", f"{len(c.platform_names)}"),
            ("alone", f"{int(((degree == 0) & ~self.unknown_corunners).sum())}"),
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
        if self.unknown_corunners.any():
            lines.append(("with unknown co-runners", f"{int(self.unknown_corunners.sum())}"))
        if self.covariates:
            lines.append(("covariates", ", ".join(self.covariates)))
        for key in ("workload", "platform"):
            table = getattr(self, f"{key}_features")
            if table is not None:
                lines.append((f"{key} features", f"{table.num_columns - 1}"))
        return lines

    def __eq__(self, other: object) -> bool:
        """Return whether tables and features hold the same values in the same order."""
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
        """The workload, platform and co-runners of each run; vocabularies hold only names that occur in these
        runs."""
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
            self.covariates,
        )

    @property
    def is_stretched(self) -> bool:
        """True if the company of some run may have changed: whether the table says stretches."""
        return has_stretches(self.table.schema)

    @cached_property
    def is_steady(self) -> np.ndarray:
        """True for runs with the same co-runners from beginning to end, (n,) bool, read-only."""
        return _frozen(self.stretches.counts == 1)

    @cached_property
    def runtime_error_ratio(self) -> np.ndarray:
        """Standard errors of the runtimes as shares of them, (n,), from the column of this name that `jostle
        measure` writes; 0 if unknown."""
        if "runtime_error_ratio" not in self.table.column_names:
            return np.zeros(len(self))
        error = numbers_of(self.table, "runtime_error_ratio")
        return np.where(np.isfinite(error) & (error > 0), error, 0.0)

    @cached_property
    def stretches(self) -> Stretches:
        """The co-runners of each run over time; one stretch if they stayed the same."""
        column = self.table.column(STRETCHES) if self.is_stretched else None
        return stretches_of(column, self.colocations, self.runtime_seconds)

    @cached_property
    def runtime_seconds(self) -> np.ndarray:
        """Runtimes, (n,) float64, read-only; NaN unless the status is ok."""
        return _frozen(np.array(filled(self.table.column("runtime_seconds"), np.nan), np.float64))

    @cached_property
    def is_ok(self) -> np.ndarray:
        """True for runs whose status is ok, (n,) bool, read-only."""
        return _frozen(flags(pc.equal(self.table.column("status"), "ok")))

    @cached_property
    def is_chosen(self) -> np.ndarray:
        """True for runs that somebody, or `Model.suggest`, chose to measure, (n,) bool, read-only; from the
        free column `chosen` of true and false, if there is one. Such runs are a random sample of nothing."""
        names = self.table.column_names
        if CHOSEN in names and pa.types.is_boolean(self.table.column(CHOSEN).type):
            return _frozen(flags(pc.fill_null(self.table.column(CHOSEN), False)))
        return _frozen(np.zeros(len(self), bool))

    @cached_property
    def covariates(self) -> dict[str, np.ndarray]:
        """Values known of each run before it starts, by column: (n,) float64, NaN if unknown, or (n,) text,
        empty if unknown; read-only."""
        columns = {name: self.table.column(name) for name in covariates_of(self.table.schema)}
        return {
            name: _frozen(
                filled(column, "").astype(str)
                if says_text(column.type)
                else numbers_of(self.table, name)
            )
            for name, column in columns.items()
        }

    @property
    def groups(self) -> tuple[str, ...]:
        """Regular expressions that say the group of a workload by its name."""
        return groups_of(self.table.schema)

    @cached_property
    def peak_memory_bytes(self) -> np.ndarray:
        """The most memory that each run had, (n,) float64, read-only; NaN if unknown."""
        return self._optional("peak_memory_bytes", np.nan)

    @cached_property
    def requested_memory_bytes(self) -> np.ndarray:
        """The memory limit of each run, (n,) float64, read-only; NaN if unknown."""
        return self._optional("requested_memory_bytes", np.nan)

    @cached_property
    def unknown_corunners(self) -> np.ndarray:
        """True for runs with co-runners that are not known, beside those of `corunners`, (n,) bool,
        read-only. Such a run says nothing of slowdowns; its memory and covariates are as good as any."""
        return self._optional("unknown_corunners", False)

    def _optional(self, name: str, unknown: Any) -> np.ndarray:
        if name not in self.table.column_names:
            return _frozen(np.full(len(self), unknown))
        return _frozen(filled(self.table.column(name), unknown).astype(type(unknown)))

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Sources and licences of imported campaigns, as far as they are known."""
        return origins_of(self.table.schema)

    @cached_property
    def window(self) -> np.ndarray:
        """Codes of the windows, (n,) int64, read-only: equal for equal window_id, numbered by first
        appearance."""
        return _frozen(number_text(self.table.column("window_id")))

    def units(self, unit: str) -> np.ndarray:
        """Return (n,) int64 codes of what is drawn as one in a split or a calibration.

        unit: `window` (rows measured together), `row` (each alone), or `together` (all rows of the same
        workloads on the same platform: both sides of a pair and all its repeats). Raises UsageError.
        """
        if unit == "row":
            return np.arange(len(self))
        if unit == "window":
            return self.window
        if unit == "together":
            return self.colocations.together
        raise UsageError(f"runs drawn by {unit!r}", fix="Known: window, row, together.")

    def features_of(self, key: str) -> tuple[tuple[str, ...], pa.Table | None]:
        """Return (names, table without its key column) of the `workload` or `platform` features.

        The names are sorted and aligned with the table's rows; (), None when there are none.
        """
        table = {"workload": self.workload_features, "platform": self.platform_features}[key]
        if table is None:
            return (), None
        return tuple(table.column(key).to_pylist()), table.drop_columns([key])

    def take(self, indices: Any) -> Runs:
        """Return the runs at these indices, or where a boolean mask is true; features are kept."""
        index = np.arange(len(self))[indices].reshape(-1)
        return self._with(self.table.take(pa.array(index)))

    def _with(self, table: pa.Table) -> Runs:
        features = self.workload_features, self.platform_features
        return Runs(table, *features, checked=True, notes=self.notes)

    def with_one_company(self, runtime_seconds: np.ndarray) -> Runs:
        """Return the same runs, each in the company of its `corunners` throughout, with (n,) these
        runtimes."""
        table = self.table.drop_columns([STRETCHES]) if self.is_stretched else self.table
        table = with_column(table, "runtime_seconds", pa.array(runtime_seconds))
        return self._with(table.replace_schema_metadata(runs_schema(table.schema).metadata))

    def ok(self) -> Runs:
        """Return the runs that ended well."""
        return self if bool(self.is_ok.all()) else self.take(self.is_ok)

    @staticmethod
    def concatenate(parts: Sequence[Runs]) -> Runs:
        """Return all runs of all parts, in order; feature tables are merged.

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
    """Return one table of all rows of conforming tables; free columns are null where a table lacks them.

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
    kept = kept_metadata([table.schema for _, table in tables])
    return joined.replace_schema_metadata(runs_schema(joined.schema.with_metadata(kept)).metadata)


def _frozen(array: np.ndarray) -> np.ndarray:
    array = array.view()
    array.flags.writeable = False
    return array
