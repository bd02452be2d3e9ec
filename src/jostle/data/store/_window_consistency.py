"""Windows of a campaign that cannot have been as they are written down."""

from __future__ import annotations

import numpy as np

from jostle.data.runs._runs import Runs

# Repetitions times seconds each fit into the window; both are rounded by what a beat lasts.
_FITS = 1.05
_NEEDED = ("repetitions", "window_seconds", "estimator")
_IN_WINDOW = ("quiet", "wall", "cpu")


def impossible_rows(runs: Runs) -> np.ndarray:
    """Find the rows of campaigns that contradict their window.

    The co-runners of a row are the other rows of its window, all on one platform; and what a kernel repeated
    took no longer than the window. Rows of other origin are passed over. Returns row numbers.
    """
    if not set(_NEEDED) <= set(runs.table.column_names):
        return np.zeros(0, np.int64)
    length = _floats(runs, "window_seconds")
    windows, window = np.unique(runs.window, return_inverse=True)
    c = runs.colocations
    # A sum of random numbers, one for each name, tells two multisets of names apart.
    numbers = np.random.default_rng(0).integers(1, 2**40, len(c.workload_names))
    own = numbers[c.workload]
    beside = np.concatenate([[0], np.cumsum(numbers[c.corunner])])
    stated = own + beside[c.corunner_offsets[1:]] - beside[c.corunner_offsets[:-1]]
    present = np.zeros(len(windows), np.int64)
    np.add.at(present, window, own)
    first = np.zeros(len(windows), np.int64)
    first[window[::-1]] = c.platform[::-1]
    wrong = (stated != present[window]) | (c.platform != first[window])
    is_raw = "raw_runtime_seconds" in runs.table.column_names
    each = _floats(runs, "raw_runtime_seconds") if is_raw else runs.runtime_seconds
    done = _floats(runs, "repetitions") * each
    estimator = np.array(runs.table.column("estimator").to_pylist(), str)
    # Beside a command line a kernel goes on until it is told to stop, which may be after the window.
    has_job = np.zeros(len(windows), bool)
    has_job[window[estimator == "executions"]] = True
    is_timed = np.isin(estimator, _IN_WINDOW) & ~has_job[window] & runs.is_ok
    wrong |= is_timed & (done > _FITS * length)
    return np.flatnonzero(wrong & np.isfinite(length))


def _floats(runs: Runs, name: str) -> np.ndarray:
    return np.array(runs.table.column(name).to_numpy(zero_copy_only=False), np.float64)
