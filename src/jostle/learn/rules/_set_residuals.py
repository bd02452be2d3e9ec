"""What was measured of a set itself: the residual of the stack there, shrunken by what noise makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.contract._run_counts import mixed_bits
from jostle.learn.rules._slowdown_rows import SlowdownRows, looked_up

FEWEST_REPEATS = 6


@dataclass(frozen=True)
class SetResiduals:
    """key: (k,) ascending, of targets with their co-runners; residual: (k,) log slowdown to add."""

    key: np.ndarray
    residual: np.ndarray

    def of(self, rows: SlowdownRows) -> np.ndarray:
        """Look up the residuals (n,) to add; 0 for sets never measured."""
        return looked_up(self.key, self.residual, keys_of(rows))


def fit_set_residuals(rows: SlowdownRows, residual: np.ndarray, unseen: np.ndarray) -> SetResiduals:
    """Fit the residuals to add. residual: (n,) of the fitted stack; unseen: (n,) of out-of-fold answers, NaN
    if not tried.

    The mean residual of a target beside the same co-runners counts by v / (v + noise / runs of it), v being
    what the variance of unseen residuals is beyond the noise; the noise is that of repeated runs, and half of
    the variance where nothing was repeated.
    """
    key, at, count = np.unique(keys_of(rows), return_inverse=True, return_counts=True)
    mean = np.bincount(at, residual) / count
    tried = np.isfinite(unseen)
    spread = float(np.median(np.abs(unseen[tried] if tried.any() else residual)) * 1.4826) ** 2
    repeated = count[at] > 1
    if repeated.any():
        free = len(residual[repeated]) - int((count > 1).sum())
        noise = float(((residual - mean[at])[repeated] ** 2).sum() / free)
    else:
        noise = spread / 2
    beyond = max(spread - noise, 0.0)
    share = beyond / np.maximum(beyond + noise / count, 1e-300)
    return SetResiduals(key, share * mean)


def variance_of_repeats(code: np.ndarray, log_runtime: np.ndarray) -> float:
    """Estimate the variance within runs of the same code (n,); NaN if too few are repeated."""
    _, at, count = np.unique(code, return_inverse=True, return_counts=True)
    free = len(at) - len(count)
    if free < FEWEST_REPEATS:
        return float("nan")
    mean = np.bincount(at, log_runtime) / count
    return float(((log_runtime - mean[at]) ** 2).sum()) / free


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
