"""Slowdowns that may be answered, and units of rates."""

from __future__ import annotations

import numpy as np

SLOWEST = 50.0  # slowdowns beyond are never answered
FASTEST = 0.5  # slowdowns below are never answered
LEARNED_QUANTILE, BEYOND = 0.002, 1.1  # what was learned from: all but so few, and a little more


def scale_of(own: np.ndarray) -> np.ndarray:
    """Return a high value of each rate that is not an outlier, (d,); 1 if it is always 0."""
    size = np.abs(own)
    high = np.quantile(size, 0.99, axis=0) if len(own) else np.zeros(own.shape[1])
    largest = size.max(axis=0, initial=0)
    return np.where(high > 0, high, np.where(largest > 0, largest, 1.0))


def limits_of(slowdown: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest slowdown that may be answered after learning from these."""
    low, high = np.quantile(slowdown, [LEARNED_QUANTILE, 1 - LEARNED_QUANTILE])
    return (
        float(np.clip(low / BEYOND, FASTEST, 1.0)),
        float(np.clip(high * BEYOND, BEYOND, SLOWEST)),
    )
