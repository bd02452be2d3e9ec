"""Runs in memory: a `runs/v1` table with the feature tables of its workloads and platforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from jostle.errors import BadRows
from jostle.runs._colocations import Colocations, sort_inside_rows
from jostle.runs._schema import (
    COLUMNS,
    check_features,
    conform,
    require_good,
    runs_schema,
    sorted_lists,
)

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute


class Runs:
    """Measured runtimes, immutable.

    table: `runs/v1` with any free columns. workload_features, platform_features: tables keyed by
    `workload` and `platform`, or None. Raises BadData or BadRows for what breaks the schema.
    """

    def __init__(
        self,
        table: pa.Table,
        workload_features: pa.Table | None = None,
        platform_features: pa.Table | None = None,
        *,
        where: str | None = None,
        checked: bool = False,
    ) -> None:
        if not checked:
            table = conform(table, where)
            if workload_features is not None:
                workload_features = check_features(workload_features, "workload", where)
            if platform_features is not None:
                platform_features = check_features(platform_features, "platform", where)
            require_good(table, workload_features, platform_features, where)
        self.table = table
        self.workload_features = workload_features
        self.platform_features = platform_features

    @classmethod
    def from_columns(
        cls,
        *,
        workload: Sequence[str],
        platform: Sequence[str],
        corunners: Sequence[Sequence[str]] | None = None,
        runtime_seconds: Any,
        status: Sequence[str] | None = None,
        reason: Sequence[str | None] | None = None,
        window_id: Sequence[str] | None = None,
        run_id: Sequence[str] | None = None,
        campaign: Sequence[str] | str | None = None,
        measured_at: Any = None,
        workload_features: pa.Table | Mapping[str, Any] | None = None,
        platform_features: pa.Table | Mapping[str, Any] | None = None,
        **extra: Any,
    ) -> Runs:
        """Runs from n-long columns; extra keyword columns are kept.

        corunners: None means that all ran alone. runtime_seconds: (n,) above 0, None where status
        is not ok. What is left out is filled in: status ok, run_id by row number, every run its
        own window. Raises BadRows when columns differ in length or a row breaks the schema.
        """
        n = len(workload)
        runtime = [None if value is None else float(value) for value in runtime_seconds]
        if run_id is None:
            run_id = [f"run-{row:08d}" for row in range(n)]
        columns: dict[str, Any] = {
            "workload": workload,
            "platform": platform,
            "corunners": [[]] * n if corunners is None else sorted_lists(corunners),
            "runtime_seconds": pa.array(runtime, pa.float64(), from_pandas=False),
            "measured_at": [None] * n if measured_at is None else measured_at,
            "campaign": [campaign or ""] * n
            if campaign is None or isinstance(campaign, str)
            else campaign,
            "window_id": run_id if window_id is None else window_id,
            "run_id": run_id,
            "status": ["ok"] * n if status is None else status,
            "reason": [None] * n if reason is None else reason,
            **extra,
        }
        lengths = {name: len(values) for name, values in columns.items()}
        if set(lengths.values()) - {n}:
            odd = ", ".join(f"{name} has {size}" for name, size in lengths.items() if size != n)
            raise BadRows(f"columns differ in length: workload has {n}, {odd}")
        arrays = {}
        for name, values in columns.items():
            kind = COLUMNS[name][0] if name in COLUMNS else None
            try:
                arrays[name] = (
                    values
                    if isinstance(values, (pa.Array, pa.ChunkedArray))
                    else pa.array(values, kind)
                )
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise BadRows(f"column {name}: {error}") from None
        return cls(pa.table(arrays), _as_table(workload_features), _as_table(platform_features))

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        return f"Runs(n={len(self)})"

    @cached_property
    def colocations(self) -> Colocations:
        """What ran where beside what; vocabularies hold only names that occur."""
        lists = self.table.column("corunners").combine_chunks()
        if isinstance(lists, pa.ChunkedArray):
            lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
        counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        workload, flat = self.table.column("workload"), pc.list_flatten(lists)
        workload_names = _vocabulary(workload, flat)
        platform_names = _vocabulary(self.table.column("platform"))
        return Colocations(
            tuple(workload_names.to_pylist()),
            tuple(platform_names.to_pylist()),
            _codes(workload, workload_names),
            _codes(self.table.column("platform"), platform_names),
            offsets,
            sort_inside_rows(_codes(flat, workload_names), offsets),
        )

    @cached_property
    def runtime_seconds(self) -> np.ndarray:
        """(n,) float64, NaN where status is not ok; read-only."""
        values = np.array(self.table.column("runtime_seconds").to_numpy(), np.float64)
        values.flags.writeable = False
        return values

    @cached_property
    def is_ok(self) -> np.ndarray:
        """(n,) bool."""
        return np.asarray(pc.equal(self.table.column("status"), "ok"))

    @cached_property
    def window(self) -> np.ndarray:
        """(n,) int64 codes, equal where window_id is; numbered by first appearance."""
        encoded = self.table.column("window_id").combine_chunks().dictionary_encode()
        return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    def take(self, indices: Any) -> Runs:
        """The runs at these indices, or where a boolean mask is true; features are kept."""
        index = np.arange(len(self))[indices].reshape(-1)
        taken = Runs(
            self.table.take(pa.array(index)),
            self.workload_features,
            self.platform_features,
            checked=True,
        )
        if "colocations" in self.__dict__:
            taken.__dict__["colocations"] = self.colocations.take(index)
        return taken

    def ok(self) -> Runs:
        """The runs that ended well."""
        return self if bool(self.is_ok.all()) else self.take(self.is_ok)

    @staticmethod
    def concatenate(parts: Sequence[Runs]) -> Runs:
        """All runs of all parts, in order; feature tables are merged, see merge_features."""
        from jostle.runs._features import merge_features

        if not parts:
            return Runs(runs_schema().empty_table())
        table = pa.concat_tables([part.table for part in parts], promote_options="permissive")
        names = [f"part {number}" for number in range(len(parts))]
        features = [
            merge_features(
                [(name, t) for name, t in zip(names, tables, strict=True) if t is not None], key
            )
            for key, tables in (
                ("workload", [part.workload_features for part in parts]),
                ("platform", [part.platform_features for part in parts]),
            )
        ]
        return Runs(table, features[0], features[1])


def _as_table(features: pa.Table | Mapping[str, Any] | None) -> pa.Table | None:
    if features is None or isinstance(features, pa.Table):
        return features
    return pa.table({name: pa.array(values) for name, values in features.items()})


def _vocabulary(*columns: Any) -> pa.Array:
    parts = [pc.unique(column) for column in columns]
    parts = [p.combine_chunks() if isinstance(p, pa.ChunkedArray) else p for p in parts]
    # Sorted by Python, not by Arrow: code points, as Colocations does it.
    return pa.array(sorted(set().union(*(part.to_pylist() for part in parts))), pa.string())


def _codes(column: Any, names: pa.Array) -> np.ndarray:
    found = pc.index_in(column, value_set=names)
    return np.asarray(found).astype(np.int32)
