"""Runs of a log as what requests are learned from: peaks of memory in GB, or times in hours."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.data import Runs
from jostle.errors import NotEnoughRuns
from jostle.learn import Data
from jostle.usage import RunHistory

GB = 1e9
REQUESTED_SECONDS = "requested_seconds"  # a free column: the time limit of each run
_LATEST = 20_000  # runs that are replayed


def runs_of(data: Any) -> Runs:
    """Read the runs whose starts are known, of late ones the latest. Raises NotEnoughRuns."""
    runs = data if isinstance(data, Runs) else Data.of(data).runs
    start = starts_of(runs)
    if not len(runs):
        raise NotEnoughRuns("there are no runs", fix="Import a log.")
    if np.isfinite(start).any():
        rows = np.flatnonzero(np.isfinite(start))
        rows = rows[np.argsort(start[rows], kind="stable")][-_LATEST:]
        return runs.take(rows)
    return runs.take(np.arange(len(runs))[-_LATEST:])


def starts_of(runs: Runs) -> np.ndarray:
    """List when runs began. Returns (n,) seconds since 1970, NaN where not known."""
    times = runs.table.column("measured_at").to_numpy()
    seconds = times.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.where(np.isnat(times), np.nan, seconds)


def names_of(runs: Runs) -> np.ndarray:
    """List the workload of each run. Returns (n,) text."""
    return np.array(runs.colocations.workload_names)[runs.colocations.workload]


def memory_history(runs: Runs) -> RunHistory:
    """List peaks in GB. A run that died for want of memory needed more than it had or asked for; of runs that
    ended badly otherwise nothing is known."""
    status = np.array(runs.table.column("status").to_pylist())
    died = status == "out_of_memory"
    peak, requested = runs.peak_memory_bytes / GB, runs.requested_memory_bytes / GB
    value = np.where(died, np.fmax(peak, requested), np.where(_is_whole(status), peak, np.nan))
    return _history(runs, value, requested, died)


def time_history(runs: Runs) -> RunHistory:
    """List times in hours. A run that was ended by its time limit needed more."""
    status = np.array(runs.table.column("status").to_pylist())
    requested = np.full(len(runs), np.nan)
    if REQUESTED_SECONDS in runs.table.column_names:
        column = runs.table.column(REQUESTED_SECONDS).to_pylist()
        requested = np.array([np.nan if x is None else float(x) for x in column]) / 3600
    killed = (status == "timeout") & np.isfinite(requested)
    value = np.where(killed, requested, runs.runtime_seconds / 3600)
    return _history(runs, value, requested, killed)


def _is_whole(status: np.ndarray) -> np.ndarray:
    return (status == "ok") | (status == "contaminated")


def _history(
    runs: Runs, value: np.ndarray, requested: np.ndarray, is_open: np.ndarray
) -> RunHistory:
    names, start = names_of(runs), starts_of(runs)
    hours = np.array(runs.runtime_seconds / 3600)
    for name in np.unique(names[~np.isfinite(hours)]):
        # How long a run took that ended badly is not known: as long as others of its name.
        mine = names == name
        others = hours[mine & np.isfinite(hours)]
        hours[mine & ~np.isfinite(hours)] = np.median(others) if len(others) else 0.0
    if not np.isfinite(start).any():  # in the order of the table, one after the other
        start = np.arange(len(runs), dtype=float)
        end = start + 1
    else:
        end = start + 3600 * hours
    numbers = [one for one in runs.covariates.values() if one.dtype.kind == "f"]
    covariates = np.array(numbers).reshape(len(numbers), len(runs))
    value = np.where(value > 0, value, np.nan)
    return RunHistory(names, start, end, value, requested, hours, covariates, is_open)
