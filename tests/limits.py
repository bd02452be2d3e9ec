"""How far a share may be off by chance: what a test of drawn data holds its result to.

A test that draws gets its limits from the law of what it counts, so that a right program fails it on any
machine once in a million draws, and a wrong one is told by how much was drawn. A test that trains holds the
result to what is so after any training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

ONE_IN = 1e6  # draws of which one fails a program that is right


def share_limits(n: int, share: float) -> tuple[float, float]:
    """(lowest, highest) share of n independent draws, each a hit with the chance `share`."""
    low, high = stats.binom.ppf([0.5 / ONE_IN, 1 - 0.5 / ONE_IN], n, share) / n
    return float(low), float(high)


def coverage_limits(calibration: int, n: int, rank: int) -> tuple[float, float]:
    """(lowest, highest) share of n new scores at most the rank-th of so many calibration scores, all of them
    drawn alike and without ties: given the calibration the share is Beta(rank, calibration + 1 - rank)."""
    law = stats.betabinom(n, rank, calibration + 1 - rank)
    return float(law.ppf(0.5 / ONE_IN) / n), float(law.ppf(1 - 0.5 / ONE_IN) / n)


def mean_limits(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """(lowest, highest) mean of the law that independent repetitions were drawn from. values: of each of at
    least a hundred repetitions, so that Student's law holds; what depends on one another is one of them."""
    values = np.asarray(values, float)
    assert len(values) >= 100, "too few repetitions for the law of their mean"
    error = values.std(ddof=1) / math.sqrt(len(values))
    far = float(stats.t.ppf(1 - 0.5 / ONE_IN, len(values) - 1)) * error
    return float(values.mean()) - far, float(values.mean()) + far
