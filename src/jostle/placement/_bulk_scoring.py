"""A table of co-locations too large for this machine: scored batch by batch, here or on Dask workers.

A row is a workload on a platform beside its co-runners, with its own limit and, where they are known, those
of the co-runners. It is answered as `safe` answers, and only one batch is ever in memory.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jostle._base.dask_cluster import connected
from jostle._base.progress import Progress, no_progress
from jostle._base.untrusted import parquet_file, require_regular
from jostle.errors import BadData, NotPermitted, UnreadableFile, UsageError, require_known
from jostle.placement._reasons import CODES, REASONS
from jostle.placement.sets._fleet_bounds import JoinedSets
from jostle.placement.sets._set_bounds import SetBounds

WORDS = tuple(REASONS)
COLUMNS = (
    "workload",
    "platform",
    "corunners",
    "deadline_seconds",
    "slowdown",
    "corunner_limits_seconds",
)
ADDED = ("bound_seconds", "limit_seconds", "safe", "reason", "used_prediction")
ROWS_AT_ONCE = 100_000
IN_FLIGHT = 2  # batches for each worker
UNKNOWN = -1


def score_parquet(
    sets: SetBounds,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    scheduler: Any = None,
    rows_at_once: int = ROWS_AT_ONCE,
    progress: Progress = no_progress,
) -> tuple[dict[str, int], int]:
    """Score a Parquet table into another with the columns ADDED, in the same order; gives ({reason: rows},
    how many of the safe ones rest on a prediction).

    source: a row with `workload`, `platform`, `corunners` (a list, or names parted by semicolons), its
    limit as `deadline_seconds`, `slowdown` or both, and perhaps `corunner_limits_seconds`, a list as long
    as the co-runners'. columns: {name here: name in the table}. scheduler: the address of a Dask scheduler,
    or a client, whose workers see the same file. A row that cannot be read has the reason `bad_request`.
    progress: called with (rows done, all, NaN). Raises UnreadableFile, UnknownName, UsageError,
    NotPermitted, MissingExtra.
    """
    path, target, names = Path(source), Path(output), dict(columns or {})
    total, groups = _looked_at(path, names)
    if target.exists() and target.samefile(path):
        raise UsageError("the output would overwrite the table", where=str(target))
    counts: Counter[str] = Counter()
    done = guessed = 0
    writer = None
    partial = target.with_name(f".{target.name}.part")
    try:
        if scheduler is None:
            each = (_group(sets, path, names, group, rows_at_once) for group in range(groups))
            parts = chain.from_iterable(each)
        else:
            parts = _on_workers(scheduler, sets, path, names, groups, rows_at_once)
        for table in parts:
            if writer is None:
                writer = pq.ParquetWriter(partial, table.schema)
            writer.write_table(table)
            for entry in table.column("reason").value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
            guessed += int(np.sum(table.column("used_prediction").to_numpy()))
            done += len(table)
            progress(done, total, float("nan"))
        if writer is None:
            pq.write_table(_scored(sets, pq.read_table(path), names), partial)
        else:
            writer.close()
        partial.replace(target)
    except OSError as error:
        raise NotPermitted(f"cannot be written: {error.strerror}", where=str(target)) from None
    finally:
        partial.unlink(missing_ok=True)
    return {word: counts[word] for word in WORDS if counts[word]}, guessed


def _looked_at(path: Path, names: Mapping[str, str]) -> tuple[int, int]:
    """Return (rows, row groups) of the table, whose columns must be there."""
    try:
        require_regular(path)
        file = parquet_file(path, path, path.stat().st_size)
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFile(f"not a readable Parquet file: {error}", where=str(path)) from None
    present = file.schema_arrow.names
    require_known("column", names, COLUMNS)
    needed = (names.get(name, name) for name in ("workload", "platform"))
    require_known("column", (*needed, *names.values()), present, where=str(path))
    if clash := sorted(set(ADDED) & set(present)):
        raise BadData(
            f"the table has a column {clash[0]!r}, which is what is added", where=str(path)
        )
    return file.metadata.num_rows, file.num_row_groups


def _group(
    sets: SetBounds, path: Path, names: Mapping[str, str], group: int, rows: int
) -> Iterator[pa.Table]:
    """Return the scored batches of one row group. Each has bounds of its own: nothing grows with the
    table."""
    try:
        for batch in pq.ParquetFile(path).iter_batches(rows, row_groups=[group]):
            yield _scored(sets.fresh(), pa.Table.from_batches([batch]), names)
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFile(f"not a readable Parquet file: {error}", where=str(path)) from None


def _on_workers(
    scheduler: Any,
    sets: SetBounds,
    path: Path,
    names: Mapping[str, str],
    groups: int,
    rows: int,
) -> Iterator[pa.Table]:
    """Return the tables of all row groups in their order, a few for each worker under way at once."""
    with connected(scheduler) as client:
        sent = client.scatter(sets.fresh(), broadcast=True, hash=False)
        most = max(2, IN_FLIGHT * len(client.scheduler_info()["workers"]))
        waiting: deque[Any] = deque()
        left = iter(range(groups))
        try:
            while True:
                while len(waiting) < most and (group := next(left, None)) is not None:
                    waiting.append(
                        client.submit(
                            _whole_group, sent, str(path.absolute()), names, group, rows, pure=False
                        )
                    )
                if not waiting:
                    return
                future = waiting.popleft()
                yield future.result()
                future.release()
        except BaseException:
            client.cancel(list(waiting))
            raise


def _whole_group(
    sets: SetBounds, path: str, names: Mapping[str, str], group: int, rows: int
) -> pa.Table:
    return pa.concat_tables(list(_group(sets, Path(path), names, group, rows)))


def _scored(sets: SetBounds, table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Return the table with what was added."""
    n = len(table)
    rows = _Rows(sets, table, names)
    reason, limit = rows.reason, rows.limit(sets)
    bound, used = np.full(n, np.inf), np.zeros(n, bool)
    at = np.flatnonzero(reason == CODES["ok"])
    if len(at):
        joined = rows.joined(at, limit)
        reason[at], seconds, used[at] = joined.assess(sets)
        bound[at] = seconds[:, -1]
    is_safe = reason == CODES["ok"]

    def numbers(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=~np.isfinite(values))

    words = pa.DictionaryArray.from_arrays(pa.array(reason, pa.int32()), list(WORDS))
    added = (
        numbers(bound),
        numbers(limit),
        pa.array(is_safe),
        words.cast(pa.string()),
        pa.array(used & is_safe),
    )
    for name, column in zip(ADDED, added, strict=True):
        table = table.append_column(name, column)
    return table


class _Rows:
    """A batch as codes. reason: (n,) of what cannot be answered. row, place: of each co-runner."""

    def __init__(self, sets: SetBounds, table: pa.Table, names: Mapping[str, str]) -> None:
        def column(name: str) -> Any:
            theirs = names.get(name, name)
            if theirs not in table.column_names:
                return None
            return table.column(theirs).combine_chunks()

        n = len(table)
        self.workload = _codes(column("workload"), sets.workload_code)
        self.platform = _codes(column("platform"), sets.platform_code)
        count, names_beside, bad = _lists(column("corunners"), n)
        self.corunner = _codes(names_beside, sets.workload_code)
        self.row = np.repeat(np.arange(n), count)
        self.place = np.arange(len(self.row)) - np.repeat(np.cumsum(count) - count, count)
        self.deadline, odd = _numbers(column("deadline_seconds"), n, 0.0)
        self.slowdown, odd_too = _numbers(column("slowdown"), n, 1.0)
        limits, flat, bad_limits = _lists(column("corunner_limits_seconds"), n)
        seconds, is_odd = _numbers(flat, len(flat), 0.0)
        bad_limits |= (limits > 0) & (limits != count)
        bad_limits[np.repeat(np.arange(n), limits)[is_odd]] = True
        use = (limits > 0) & ~bad_limits
        self.theirs = np.full(len(self.row), np.inf)
        self.theirs[use[self.row]] = seconds[np.repeat(use, limits)]
        empty = _is_empty(column("workload")) | _is_empty(column("platform"))
        self.reason = np.full(n, CODES["ok"])
        self.reason[self.row[self.corunner == UNKNOWN]] = CODES["unknown_tenant"]
        self.reason[self.platform == UNKNOWN] = CODES["unknown_platform"]
        self.reason[self.workload == UNKNOWN] = CODES["unknown_workload"]
        self.reason[bad | odd | odd_too | bad_limits | empty] = CODES["bad_request"]

    def limit(self, sets: SetBounds) -> np.ndarray:
        """Return (n,) seconds; infinite without an objective, NaN for what cannot be answered."""
        is_known = self.reason == CODES["ok"]
        limit, has_slowdown = self.deadline.copy(), is_known & np.isfinite(self.slowdown)
        if has_slowdown.any():
            used, which = np.unique(self.platform[has_slowdown], return_inverse=True)
            solo = sets.solo(used)[which, self.workload[has_slowdown]]
            by_slowdown = self.slowdown[has_slowdown] * solo
            limit[has_slowdown] = np.minimum(limit[has_slowdown], by_slowdown)
        return np.where(is_known, limit, np.nan)

    def joined(self, at: np.ndarray, limit: np.ndarray) -> JoinedSets:
        """Return these rows, each with its co-runners. limit: (n,) of all rows."""
        shape = len(self.reason), int(self.place.max(initial=-1)) + 2
        members, seconds = np.full(shape, -1), np.full(shape, np.inf)
        members[self.row, self.place], seconds[self.row, self.place] = self.corunner, self.theirs
        members[:, -1], seconds[:, -1] = self.workload, limit
        return JoinedSets(self.platform[at], members[at], seconds[at], np.zeros(shape, int)[at])


def _codes(column: Any, known: Mapping[str, int]) -> np.ndarray:
    """Return (n,) UNKNOWN for names that the model has not met."""
    if not len(column):
        return np.zeros(0, int)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    words = [known.get(str(word), UNKNOWN) for word in column.dictionary.to_pylist()]
    codes = column.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    return np.array([*words, UNKNOWN], int)[codes]


def _is_empty(column: Any) -> np.ndarray:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def _lists(column: Any, n: int) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return (how many entries (n,), all of them in one, rows that are neither a list nor text)."""
    if column is None or pa.types.is_null(column.type):
        return np.zeros(n, int), pa.array([], pa.string()), np.zeros(n, bool)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        parts = [
            [part.strip() for part in (row or "").split(";") if part.strip()]
            for row in column.to_pylist()
        ]
        column = pa.array(parts, pa.list_(pa.string()))
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return np.zeros(n, int), pa.array([], pa.string()), np.ones(n, bool)
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return lengths.astype(int), column.flatten(), np.zeros(n, bool)


def _numbers(column: Any, n: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n,) infinite where there is none, rows without a finite number above 0, at least `least`)."""
    if column is None or pa.types.is_null(column.type):
        return np.full(n, np.inf), np.zeros(n, bool)
    try:
        values = column.cast(pa.float64())
    except pa.ArrowInvalid:
        return np.full(n, np.inf), ~_is_empty(column)
    present = ~_is_empty(values)
    amounts = values.fill_null(1.0).to_numpy(zero_copy_only=False)
    odd = present & ~(np.isfinite(amounts) & (amounts > 0) & (amounts >= least))
    return np.where(present & ~odd, amounts, np.inf), odd
