"""Beyond what so many calibration runs can promise: a generalised Pareto tail of their scores.

Source: Pickands (1975), Coles (2001), An Introduction to Statistical Modeling of Extreme Values, ch. 4: what
lies over a high threshold is close to a generalised Pareto law. The quantile asked for is the upper end of
its 95% profile-likelihood interval, with a prior on the shape, so that few runs give wider bounds. No theorem
holds for such a bound: it is as good as the law.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# A thousand scores are too few: of a law with shape .6 three times as many lay over as should.
FEWEST = 2000
TOP = 0.05  # share of the scores over the threshold
SHAPE, SHAPE_SPREAD = 0.35, 0.15  # prior: scores of runtimes have heavy tails
SHAPES = np.linspace(-0.3, 1.2, 76)
# One-sided 95%: half the square of the normal quantile.
DROP = 0.5 * 1.6449**2


def tail_offset(scores: np.ndarray, miscoverage: float) -> float:
    """Estimate the score that a share `miscoverage` lies over, at most, as far as the law holds.

    scores: (n,) ascending, at least FEWEST of them finite; miscoverage: under TOP. Never under the largest
    score, and never falling as the miscoverage does.
    """
    from scipy.optimize import brentq

    finite = scores[np.isfinite(scores)]
    top = max(int(TOP * len(finite)), 1)
    threshold, over = float(finite[-top - 1]), finite[-top:] - float(finite[-top - 1])
    share = miscoverage / (top / len(finite))
    if not over[-1] > 0 or share >= 1:
        return float(finite[-1])
    likely = _log_likelihoods(over, SHAPES)
    least = max(value for value, _ in likely) - DROP
    offset = 0.0
    for shape, (value, scale) in zip(SHAPES.tolist(), likely, strict=True):
        if value >= least:
            # The largest scale of this shape that is still likely enough.
            high = 2 * scale
            while _log_likelihood(over, shape, high) >= least:
                high *= 2
            most: Any = brentq(lambda a, k=shape: _log_likelihood(over, k, a) - least, scale, high)
            offset = max(offset, float(most) * _unit_quantile(shape, share))
    return max(threshold + offset, float(finite[-1]))


def _unit_quantile(shape: float, share: float) -> float:
    """Return the value that a share of the law with scale one lies over."""
    if abs(shape) < 1e-9:
        return -math.log(share)
    return math.expm1(-shape * math.log(share)) / shape


def _log_likelihood(over: np.ndarray, shape: float, scale: float) -> float:
    """Compute the log likelihood of the excesses over the threshold, plus the log prior of the shape."""
    prior = -0.5 * ((shape - SHAPE) / SHAPE_SPREAD) ** 2
    if abs(shape) < 1e-9:
        return prior - len(over) * math.log(scale) - float(over.sum()) / scale
    inside = 1 + shape * over / scale
    if inside.min() <= 0:
        return -math.inf
    return prior - len(over) * math.log(scale) - (1 / shape + 1) * float(np.log(inside).sum())


def _log_likelihoods(over: np.ndarray, shapes: np.ndarray) -> list[tuple[float, float]]:
    """Find the likeliest scale of each shape. Returns (log likelihood, scale) pairs."""
    from scipy.optimize import minimize_scalar

    found = []
    for shape in shapes.tolist():
        # No scale is so small that the law would end under the largest.
        low = math.log(max(over.mean() / 20, -shape * over.max() * (1 + 1e-9)))
        at: Any = minimize_scalar(
            lambda a, k=shape: -_log_likelihood(over, k, math.exp(a)),
            bounds=(low, max(low, math.log(over.mean())) + math.log(20)),
            method="bounded",
        )
        found.append((-float(at.fun), math.exp(at.x)))
    return found
