"""Company that changes while a run goes on: the column `stretches` of `runs/v2`, and the law of rates.

A stretch is a part of a run with one company. Stretches follow each other without a gap: each has its start,
in seconds from the start of the run, and ends where the next one starts, the last one with the run. A run
without stretches has one company throughout, that of its column `corunners`; with them `corunners` is the
company of the longest stretch (the first of several), so that who knows of no stretches reads the set that
comes nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.runs._colocations import Colocations
from jostle.data.runs._name_columns import (
    encode_lists,
    filled,
    lists_from_codes,
    sorted_inside_lists,
)
from jostle.data.tables.arrow_compute import pc

STRETCHES = "stretches"
_FIELDS = pa.struct([("start_seconds", pa.float64()), ("corunners", pa.list_(pa.string()))])
STRETCHES_TYPE = pa.list_(_FIELDS)


@dataclass(frozen=True)
class Stretches:
    """The m stretches of n runs, in their order; a run of one company has one.

    row: (m,) int64, the run of each. seconds: (m,) float64, how long each lasted; NaN where the run has no
    runtime. colocations: (m,) what ran beside what in each.
    """

    row: np.ndarray
    seconds: np.ndarray
    colocations: Colocations

    @property
    def counts(self) -> np.ndarray:
        """Number of stretches of each run, (n,) int64."""
        return np.bincount(self.row, minlength=int(self.row[-1]) + 1 if len(self.row) else 0)

    def take(self, runs: np.ndarray) -> Stretches:
        """Return those of some of the n runs, in the order of these, under the names of all."""
        counts = self.counts
        first, size = (np.cumsum(counts) - counts)[runs], counts[runs]
        start = np.cumsum(size) - size
        at = np.repeat(first - start, size) + np.arange(int(size.sum()))
        row = np.repeat(np.arange(len(size)), size)
        return Stretches(row, self.seconds[at], self.colocations.take(at))

    def work(self, log_times: np.ndarray) -> np.ndarray:
        """Return (m,) the share of the run's work that was done in each stretch. log_times: (m,) natural log
        of the seconds that the run would take in that company throughout."""
        least = np.full(len(self.counts), np.inf)
        np.minimum.at(least, self.row, log_times)  # no run overflows, however short it would be
        done = self.seconds * np.exp(least[self.row] - log_times)
        return done / np.bincount(self.row, done)[self.row]

    def log_runtime(self, log_times: np.ndarray) -> np.ndarray:
        """Return (n,) natural log of the seconds that each run takes, of those that it would take in each
        company throughout: work is done at the rate 1 / time, so that T = 1 / sum of f_k / t_k with f_k the
        share of the time that stretch k lasted."""
        share = self.seconds / np.bincount(self.row, self.seconds)[self.row]
        least = np.full(len(self.counts), np.inf)
        with np.errstate(
            invalid="ignore"
        ):  # what is not known is NaN, and so is all that rests on it
            np.minimum.at(least, self.row, log_times)
        rate = np.bincount(self.row, share * np.exp(least[self.row] - log_times))
        return least - np.log(rate)

    @property
    def longest(self) -> np.ndarray:
        """Position of each run's longest stretch, (n,) int64; of several the first."""
        order = np.lexsort((np.arange(len(self.row)), -self.seconds, self.row))
        return order[np.cumsum(self.counts) - self.counts]


def has_stretches(schema: pa.Schema) -> bool:
    """Return whether a table says them; a free column that only has the name is none."""
    return schema.names.count(STRETCHES) == 1 and says_stretches(schema.field(STRETCHES).type)


def says_stretches(kind: pa.DataType) -> bool:
    """Return whether a column of this type does."""
    inside = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    return pa.types.is_struct(inside) and {
        inside.field(i).name for i in range(inside.num_fields)
    } == {field.name for field in _FIELDS}


def conform_stretches(column: Any) -> Any:
    """Return the column in its type, co-runners sorted in each stretch; None where no row has any.

    Raises Arrow's errors for what cannot be read so.
    """
    column = column.cast(STRETCHES_TYPE)
    if column.null_count == len(column):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    start, beside = _parts(column)
    sorted_beside = sorted_inside_lists(beside)
    if sorted_beside is beside:
        return column
    counts = filled(pc.list_value_length(column), 0).astype(np.int64)
    return stretches_column(counts, start, sorted_beside, null=~_given(column))


def stretches_column(
    counts: np.ndarray, start_seconds: Any, corunners: Any, null: np.ndarray | None = None
) -> pa.ListArray:
    """Make the column of stretches. counts: (n,) stretches of each run. start_seconds, corunners: (m,) of all
    of them. null: (n,) bool, runs that state none."""
    inside = pa.StructArray.from_arrays(
        [pa.array(start_seconds, pa.float64()), corunners], fields=list(_FIELDS)
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    mask = None if null is None or not null.any() else pa.array(null)
    return pa.ListArray.from_arrays(offsets, inside, mask=mask)


def longest_company(column: Any, runtime_seconds: Any) -> pa.ListArray:
    """Return (n,) lists of names: the company of each run's longest stretch; empty where it states none."""
    row, start, beside = _flat(column)
    n = len(column)
    lasted = _lasted(row, start, filled(runtime_seconds, np.nan))
    order = np.lexsort((np.arange(len(row)), -np.nan_to_num(lasted, nan=-np.inf), row))
    runs, first = np.unique(row[order], return_index=True)
    counts, codes, names = _decoded(beside)
    sizes_of = np.append(counts, 0)  # of a run without stretches, which is at place -1
    starts = np.cumsum(sizes_of) - sizes_of
    place = np.full(n, -1, np.int64)
    place[runs] = order[first]
    sizes = sizes_of[place]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.repeat(starts[place] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return lists_from_codes(offsets, codes[at], names)


def stretch_names(column: Any) -> list[str]:
    """Return all co-runners that stand in stretches, sorted."""
    return encode_lists(_flat(column)[2])[2]


def stretches_of(
    column: Any | None, colocations: Colocations, runtime_seconds: np.ndarray
) -> Stretches:
    """Split n runs into stretches with constant co-runners. column: None if each run has only one."""
    n = len(colocations)
    if column is None:
        return Stretches(np.arange(n), np.array(runtime_seconds), colocations)
    row, start, beside = _flat(column)
    counts, codes, names = _decoded(beside)
    known = {name: code for code, name in enumerate(colocations.workload_names)}
    codes = np.array([known[name] for name in names], np.int32)[codes]
    single = np.setdiff1d(np.arange(n), row)
    every = np.concatenate([row, single])
    order = np.argsort(every, kind="stable")
    sizes = np.concatenate([counts, colocations.number_of_corunners[single]])
    starts = np.concatenate(
        [np.cumsum(counts) - counts, len(codes) + colocations.corunner_offsets[:-1][single]]
    )
    pool = np.concatenate([codes, colocations.corunner])
    sizes, starts = sizes[order], starts[order]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    at = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    row_of = every[order]
    seconds = _lasted(
        row_of, np.concatenate([start, np.zeros(len(single))])[order], runtime_seconds
    )
    company = Colocations(
        colocations.workload_names,
        colocations.platform_names,
        colocations.workload[row_of],
        colocations.platform[row_of],
        offsets,
        pool[at],
        {name: values[row_of] for name, values in colocations.covariates.items()},
    )
    return Stretches(row_of, seconds, company)


def bad_stretches(
    table: pa.Table, workload_features: pa.Table | None
) -> list[tuple[np.ndarray, str]]:
    """Return (rows, what is wrong with them) of a table whose columns conform."""
    column = table.column(STRETCHES)
    row, start, beside = _flat(column)
    runtime = filled(table.column("runtime_seconds"), np.nan)
    given = _given(column)
    is_first = np.diff(row, prepend=-1) != 0
    rises = np.diff(start, prepend=0) > 0
    _, codes, names = encode_lists(beside)
    empty_name = (codes < 0) | (codes == (names.index("") if "" in names else -1))
    known = None if workload_features is None else workload_features.column("workload").to_pylist()
    lost = [] if known is None else [names.index(name) for name in {*names} - {*known, ""}]
    of_name = np.repeat(row, filled(pc.list_value_length(beside), 0))
    with np.errstate(invalid="ignore"):
        late = ~(start < runtime[row]) & np.isfinite(runtime[row])
    longest = (
        longest_company(column, table.column("runtime_seconds")).to_pylist() if given.any() else []
    )
    stated = table.column("corunners")
    other = [at for at in np.flatnonzero(given) if longest[at] != stated[int(at)].as_py()]
    empty = given & (filled(pc.list_value_length(column), 0) == 0)
    nothing = filled(pc.is_null(beside), False).astype(bool) | np.isnan(start)
    return [
        (np.flatnonzero(empty), "stretches is an empty list (null says: one company throughout)"),
        (row[is_first & (start != 0)], "the first stretch does not start at 0 s"),
        (row[~is_first & ~rises], "a stretch does not start after the one before it"),
        (row[late], "a stretch starts when the run is over already"),
        (row[nothing], "a stretch lacks its start or its corunners"),
        (of_name[empty_name], "the name of a co-runner in a stretch is empty"),
        (of_name[np.isin(codes, lost)], "a co-runner in a stretch is not in the workload features"),
        (
            np.flatnonzero(given & np.isnan(runtime)),
            "stretches are given although there is no runtime",
        ),
        (np.array(other, np.int64), "corunners is not the company of the longest stretch"),
    ]


def _given(column: Any) -> np.ndarray:
    return np.array(filled(pc.is_valid(column), False), bool)


def _parts(column: Any) -> tuple[np.ndarray, Any]:
    """Return (start_seconds (m,), corunners (m,)) of all rows."""
    flat = pc.list_flatten(column)
    if isinstance(flat, pa.ChunkedArray):
        flat = flat.combine_chunks()
    start, beside = (pc.struct_field(flat, name) for name in ("start_seconds", "corunners"))
    return np.array(filled(start, np.nan), np.float64), beside


def _flat(column: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return (row (m,), start_seconds (m,), corunners (m,))."""
    counts = filled(pc.list_value_length(column), 0).astype(np.int64)
    return np.repeat(np.arange(len(column)), counts), *_parts(column)


def _decoded(beside: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    offsets, codes, names = encode_lists(beside)
    return np.diff(offsets), codes, names


def _lasted(row: np.ndarray, start: np.ndarray, runtime_seconds: np.ndarray) -> np.ndarray:
    """Return (m,) seconds of each stretch. row: (m,) rising."""
    if not len(row):
        return np.zeros(0)
    end = np.append(start[1:], np.nan)
    is_last = np.append(np.diff(row) != 0, True)
    end[is_last] = np.asarray(runtime_seconds)[row[is_last]]
    return end - start
