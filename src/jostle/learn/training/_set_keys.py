"""Codes of sets of workloads that ran together, in any order."""

from __future__ import annotations

import numpy as np

from jostle.learn.contract._run_counts import mixed_bits
from jostle.learn.training._slowdown_rows import SlowdownRows

FEWEST_REPEATS = 6  # runs beyond the first of each, by which a variance is told


def keys_of(rows: SlowdownRows) -> np.ndarray:
    """Hash rows to (n,) uint64, equal for the same target and co-runners in any order (sums of mixed bits:
    splitmix64, Steele et al. 2014)."""
    beside = np.zeros(len(rows), np.uint64)
    np.add.at(beside, rows.row, mixed_bits(rows.corunner.astype(np.uint64)))
    return mixed_bits(mixed_bits(rows.target.astype(np.uint64) + np.uint64(1 << 40)) ^ beside)


def members_key(workload: np.ndarray, corunner: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Hash sets to (n,) uint64, equal for the same workloads together. row: (m,) whose the co-runners are."""
    key = mixed_bits(workload.astype(np.uint64))
    np.add.at(key, row, mixed_bits(corunner.astype(np.uint64)))
    return key


def variance_of_repeats(code: np.ndarray, log_runtime: np.ndarray) -> float:
    """Estimate the variance within runs of the same code (n,); NaN if too few are repeated."""
    _, at, count = np.unique(code, return_inverse=True, return_counts=True)
    free = len(at) - len(count)
    if free < FEWEST_REPEATS:
        return float("nan")
    mean = np.bincount(at, log_runtime) / count
    return float(((log_runtime - mean[at]) ** 2).sum()) / free
