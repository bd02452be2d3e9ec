"""Relative errors of runtimes: what makes them least, and whether one is less than another."""

from __future__ import annotations

import numpy as np

EVIDENCE = 1.0  # standard errors by which answers must be closer than no slowdown
SHARPNESS = 8.0  # power of the error by which one of several counts less


def relative_error(log_ratio: np.ndarray) -> np.ndarray:
    """|answer / measured - 1| from the log of their ratio, one that is far too long at most exp(30)."""
    return np.abs(np.expm1(np.minimum(log_ratio, 30.0)))


def weights_by_error(error: np.ndarray, prior: np.ndarray | float = 1.0) -> np.ndarray:
    """Compute (k,) weights of sum 1, by the errors (k,) to minus the power SHARPNESS. prior: (k,) weight of
    each at equal errors."""
    error = np.maximum(error, 1e-300)
    weight = prior * (error / error.min()) ** -SHARPNESS
    return weight / weight.sum()


def weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the value of (n,) from which on half of the weight (n,) is reached."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(share, share[-1] / 2)])


def gain_is_insignificant(gain: np.ndarray, sets: np.ndarray, evidence: float = EVIDENCE) -> bool:
    """Tell whether answers are closer by no more than chance. gain: (n,) decrease of the error, where weights
    have not seen the row; NaN where they always have. evidence: in standard errors."""
    known = np.isfinite(gain)
    if not known.any():
        return False
    _, at = np.unique(sets[known], return_inverse=True)
    by_set = np.bincount(at, gain[known]) / np.bincount(at)
    error = by_set.std() / np.sqrt(max(len(by_set) - 1, 1))
    return bool(by_set.mean() <= evidence * error)
