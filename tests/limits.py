"""How far a share may be off by chance: what a test of drawn data holds its result to.

A test that draws gets its limits from the law of what it counts, so that a right program fails it on any
machine once in a million draws, and a wrong one is told by how much was drawn. A test that trains holds the
result to what is so after any training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from jostle.conformal import Bounds

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
    """(lowest, highest) mean of the law that independent repetitions were drawn from, by Student's law.
    values: one for each repetition; what depends on one another, as runs of a window or of a name, is one."""
    values = np.asarray(values, float)
    error = values.std(ddof=1) / math.sqrt(len(values))
    far = float(stats.t.ppf(1 - 0.5 / ONE_IN, len(values) - 1)) * error
    return float(values.mean()) - far, float(values.mean()) + far


def assert_covers(bounds: Bounds, runtime_seconds: np.ndarray) -> None:
    """That no pool of split conformal bounds covers fewer of n runs, drawn as those it was calibrated on,
    than chance lets it: see coverage_limits. Bounds that are raised to those of another stage or to the
    prediction cover more."""
    for pool, n, rank in {*zip(bounds.pool, bounds.n, bounds.rank, strict=True)}:
        here = (bounds.pool == pool) & (bounds.n == n) & (bounds.rank == rank) & bounds.is_valid
        if here.any():
            low, _ = coverage_limits(int(n), int(here.sum()), int(rank))
            share = float((runtime_seconds[here] <= bounds.seconds[here]).mean())
            assert share >= low, f"{pool}: {share:.3f} of {here.sum()} runs, at least {low:.3f}"


def errors_of(answers: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(n,) how far each answer is off, as a share of the truth."""
    return np.abs(np.asarray(answers) / truth - 1)


def assert_closer(errors: np.ndarray, rival: np.ndarray) -> None:
    """That errors are smaller on average than a rival's on the same rows, by more than chance."""
    low, _ = mean_limits(np.subtract(rival, errors))
    assert low > 0, f"{np.mean(errors):.4f}, and the rival's {np.mean(rival):.4f}"


def assert_not_farther(errors: np.ndarray, rival: np.ndarray) -> None:
    """That errors are not larger on average than a rival's on the same rows, by more than chance."""
    low, _ = mean_limits(np.subtract(errors, rival))
    assert low <= 0, f"{np.mean(errors):.4f}, and the rival's {np.mean(rival):.4f}"
