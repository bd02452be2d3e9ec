"""Windows of published co-runs: which rows are sides of one measurement."""

from __future__ import annotations

import numpy as np


def windows_of(
    platform: np.ndarray, workload: np.ndarray, members: np.ndarray, seconds: np.ndarray
) -> np.ndarray:
    """(n,) int64: the first row of the window that each row belongs to.

    Rows belong together when platform and the set of all that ran are the same. Such a set measured
    several times gives each member several rows: the r-th rows of all members make the r-th window.
    A row that repeats another to the last digit is a copy of it and stays in its window.
    """
    n, k = members.shape
    if k == 0:
        return np.arange(n)
    exact = np.column_stack([platform, workload, members, seconds.view(np.int64)])
    _, first, inverse = np.unique(exact, axis=0, return_index=True, return_inverse=True)
    original = first[inverse.reshape(-1)]
    real = np.flatnonzero(original == np.arange(n))
    everyone = np.sort(np.column_stack([workload, members]), axis=1)[real]
    # How often the workload occurs in the set: beside itself it has that many rows in one window.
    times = 1 + (members[real] == workload[real, None]).sum(axis=1)
    row_key = np.column_stack([platform[real], everyone, workload[real]])
    ordinal = _ordinal(np.unique(row_key, axis=0, return_inverse=True)[1].reshape(-1))
    window_key = np.column_stack([platform[real], everyone, ordinal // times])
    _, head, which = np.unique(window_key, axis=0, return_index=True, return_inverse=True)
    window = np.zeros(n, np.int64)
    window[real] = real[head[which.reshape(-1)]]
    return window[original]


def _ordinal(codes: np.ndarray) -> np.ndarray:
    """(n,) how many earlier elements are equal to this one."""
    order = np.argsort(codes, kind="stable")
    place = np.arange(len(codes))
    starts = np.r_[True, np.diff(codes[order]) != 0] if len(codes) else np.zeros(0, bool)
    out = np.empty(len(codes), np.int64)
    out[order] = place - np.maximum.accumulate(np.where(starts, place, 0))
    return out
