"""Prediction errors without the part due to imprecise measured times.

The undisturbed time of a run on a busy machine is known up to a standard error, so its prediction error
scatters more than the error against the undisturbed time. Bounds calibrated on such errors hold, but are
wider than need be. They are narrowed only if the data confirm it: less precise runs must scatter more.
"""

from __future__ import annotations

import numpy as np

SHARES = np.linspace(0.0, 1.0, 5)  # of the runs' squared errors, that may be in what is seen
PLAUSIBLE = 0.82  # log likelihood below the best, of a one-sided 90% interval
EDGE = 4.0  # robust standard deviations at which what is far off counts no more
LITTLE = 0.02  # of the variance: errors so small are left alone
_NORMAL_DEVIATION = 1.4826
_STEPS = 40


def deconvolved(off: np.ndarray, error: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """Remove from prediction errors the part due to imprecise measured times. Each error is shrunk towards
    its kind's median, by as little noise as the data plausibly support (normal, variance v + share error^2).

    off: (n,) log measured less predicted; error: (n,) its standard error; kind: (n,) codes. Returns (n,).
    """
    known = np.isfinite(off)
    parts = [np.flatnonzero(known & (kind == one)) for one in np.unique(kind[known])]
    out = off.copy()
    likelihood = np.zeros(len(SHARES))
    fits: list[tuple[np.ndarray, np.ndarray, float, np.ndarray]] = []
    for at in parts:
        middle = float(np.median(off[at]))
        left = off[at] - middle
        spread = max(_NORMAL_DEVIATION * float(np.median(np.abs(left))), 1e-9)
        square = np.minimum(np.abs(left), EDGE * spread) ** 2
        total, noise = float(square.mean()), error[at] ** 2
        if total <= 0 or noise.mean() <= LITTLE * total:
            continue
        grid = total * np.geomspace(1e-3, 2.0, _STEPS)
        found = np.array([_best(square, noise * share, grid) for share in SHARES])
        likelihood += found[:, 1]
        fits.append((at, left, middle, found[:, 0]))
    if not fits:
        return out
    share = int(np.flatnonzero(likelihood >= likelihood.max() - PLAUSIBLE)[0])
    for at, left, middle, variance in fits:
        v = variance[share]
        out[at] = middle + left * np.sqrt(v / (v + SHARES[share] * error[at] ** 2))
    return out


def _best(square: np.ndarray, noise: np.ndarray, grid: np.ndarray) -> tuple[float, float]:
    """Return (the largest plausible one of the variances (g,), which ascend; the best log likelihood)."""
    likelihood = [
        -0.5 * float((np.log(v + noise) + square / (v + noise)).sum()) for v in grid.tolist()
    ]
    best = max(likelihood)
    return float(grid[np.flatnonzero(np.array(likelihood) >= best - PLAUSIBLE / 2)[-1]]), best
