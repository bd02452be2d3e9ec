"""Beyond what so many calibration runs can promise: a generalised Pareto tail of their scores.

Source: Pickands (1975), Coles (2001), An Introduction to Statistical Modeling of Extreme Values, ch. 4: what
lies over a high threshold is close to a generalised Pareto law. The quantile asked for is the upper end of
its 95% profile-likelihood interval, with a prior on the shape, so that few runs give wider bounds. No theorem
holds for such a bound: it is as good as the law.
"""

from __future__ import annotations

import numpy as np

from jostle.conformal._constants import SHAPE, SHAPE_SPREAD, TOP

SHAPES = np.linspace(-0.29, 1.19, 75)  # none is 0, at which the law is another formula
SCALES = np.geomspace(1 / 20, 20, 400)  # over the median excess
# One-sided 95%: half the square of the normal quantile.
DROP = 0.5 * 1.6449**2


def tail_offset(scores: np.ndarray, miscoverage: float) -> float:
    """Estimate the score that a share `miscoverage` lies over, at most, as far as the law holds.

    scores: (n,) ascending, at least FEWEST_FOR_TAIL of them finite; miscoverage: under TOP. Never
    under the largest score, and never falling as the miscoverage does.
    """
    finite = scores[np.isfinite(scores)]
    top = max(int(TOP * len(finite)), 1)
    threshold, over = float(finite[-top - 1]), finite[-top:] - float(finite[-top - 1])
    share = miscoverage / (top / len(finite))
    if not over[-1] > 0 or share >= 1:
        return float(finite[-1])
    scales = SCALES * max(float(np.median(over)), 1e-3 * over[-1])
    likely = np.stack([_log_likelihoods(over, shape, scales) for shape in SHAPES.tolist()])
    unit_quantile = np.expm1(-SHAPES * np.log(share)) / SHAPES
    offset = (unit_quantile[:, None] * scales)[likely >= likely.max() - DROP].max()
    return max(threshold + float(offset), float(finite[-1]))


def _log_likelihoods(over: np.ndarray, shape: float, scales: np.ndarray) -> np.ndarray:
    """Compute, per scale, the log likelihood of the excesses over the threshold, plus the log prior of the
    shape; minus infinity where the law ends under one of them."""
    inside = np.maximum(1 + shape * over / scales[:, None], 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log(inside).sum(axis=1)
    prior = -0.5 * ((shape - SHAPE) / SHAPE_SPREAD) ** 2
    return prior - len(over) * np.log(scales) - (1 / shape + 1) * logs
