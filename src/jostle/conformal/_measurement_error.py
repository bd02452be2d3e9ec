"""What is left of errors once it is taken off that runs of a busy machine are known but for.

Such a run tells its undisturbed time with a standard error, so what an answer is off by there is wider than
what it is off by of the undisturbed time. As it stands a bound calibrated on it is wider than need be, and
holds. It is narrowed only as far as the runs confirm their errors: those known less well scatter more.
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
    """(n,) what answers would be off by from undisturbed times: as spread about their median as normal laws
    of variance v + share error^2 say, v of each kind's own, the share common and the least that is plausible.

    off: (n,) log measured less answered; error: (n,) standard errors of the log measured; kind: (n,) codes.
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
    """(the largest plausible of the variances (g,), rising; the best log likelihood)."""
    likelihood = [
        -0.5 * float((np.log(v + noise) + square / (v + noise)).sum()) for v in grid.tolist()
    ]
    best = max(likelihood)
    return float(grid[np.flatnonzero(np.array(likelihood) >= best - PLAUSIBLE / 2)[-1]]), best
