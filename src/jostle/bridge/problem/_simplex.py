"""Shares of several laws: the mixture with the least score where the answer is known."""

from __future__ import annotations

import numpy as np

STEPS = 1000


def on_simplex(slope: np.ndarray, curve: np.ndarray, start: np.ndarray, faith: float) -> np.ndarray:
    """(c,) weights on the simplex with the least slope'w + w'curve w/2 + faith |w - start|^2, convex, by
    projected gradients with momentum (Beck and Teboulle, SIAM J. Imaging Sciences 2, 2009)."""
    curve = (curve + curve.T) / 2
    # Weights add up to one, so that a constant more in all of curve changes nothing: distances are convex.
    most = max(float(np.linalg.eigvalsh(curve)[-1]), 0.0) + 2 * faith + 1e-300
    weights = ahead = start / start.sum()
    pace = 1.0
    for _ in range(STEPS):
        now = slope + curve @ ahead + 2 * faith * (ahead - start)
        new = _projected(ahead - now / most)
        nextpace = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        ahead = new + (pace - 1) / nextpace * (new - weights)
        weights, pace = new, nextpace
    return weights


def _projected(point: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex (Held, Wolfe and Crowder, Mathematical Programming 6, 1974)."""
    high = np.sort(point)[::-1]
    over = (np.cumsum(high) - 1) / np.arange(1, len(point) + 1)
    return np.maximum(point - over[np.flatnonzero(high > over)[-1]], 0.0)
