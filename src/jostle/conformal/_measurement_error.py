"""Prediction errors without the part due to imprecise measured times.

The undisturbed time of a run on a busy machine is known up to a standard error, so its prediction error
scatters more than the error against the undisturbed time. Bounds calibrated on such errors hold, but are
wider than need be. They are narrowed only if the data confirm it: less precise runs must scatter more.
"""

from __future__ import annotations

import numpy as np

from jostle.conformal._constants import FAR_ERROR, LITTLE_NOISE, NOISE_SHARES, PLAUSIBLE

_NORMAL_DEVIATION = 1.4826
_VARIANCES = np.geomspace(1e-3, 2.0, 40)  # over that of the errors


def deconvolved(off: np.ndarray, error: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """Remove from prediction errors the part due to imprecise measured times. Each error is shrunk towards
    its kind's median, by as little noise as the data plausibly support (normal, variance v + share error^2).

    off: (n,) log measured less predicted; error: (n,) its standard error; kind: (n,) codes. Returns (n,).
    """
    known, out = np.isfinite(off), off.copy()
    likelihood, shares = np.zeros(len(NOISE_SHARES)), np.array(NOISE_SHARES)
    fits: list[tuple[np.ndarray, np.ndarray, float, np.ndarray]] = []
    for one in np.unique(kind[known]):
        at = np.flatnonzero(known & (kind == one))
        middle = float(np.median(off[at]))
        left = off[at] - middle
        spread = max(_NORMAL_DEVIATION * float(np.median(np.abs(left))), 1e-9)
        square = np.minimum(np.abs(left), FAR_ERROR * spread) ** 2
        total, noise = float(square.mean()), error[at] ** 2
        if total <= 0 or noise.mean() <= LITTLE_NOISE * total:
            continue
        grid = total * _VARIANCES
        v = grid[:, None, None] + shares[:, None] * noise
        each = -0.5 * (np.log(v) + square / v).sum(axis=2)  # (variances, shares)
        best = each.max(axis=0)
        likelihood += best
        # The largest plausible variance of each share.
        last = len(grid) - 1 - np.argmax((each >= best - PLAUSIBLE / 2)[::-1], axis=0)
        fits.append((at, left, middle, grid[last]))
    share = int(np.flatnonzero(likelihood >= likelihood.max() - PLAUSIBLE)[0])
    for at, left, middle, variance in fits:
        v = variance[share]
        out[at] = middle + left * np.sqrt(v / (v + shares[share] * error[at] ** 2))
    return out
