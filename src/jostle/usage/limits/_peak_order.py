"""Whether peaks turn on their order; and a limit that follows them where they trend.

Ranks hold for runs in any order. Tests ask whether this order is like any other: Spearman's correlation of
peaks with it and with its square; that of their distance from the middle, for spreads that grow; the rank
version of von Neumann's ratio, which sees steps and slow walks (Bartels, Journal of the American Statistical
Association 77, 1982); and the mean ranks of the latest runs. Where a straight line of peaks, or of their
logs, leaves residuals that pass all, by a stricter level since a line was fitted to them, the limit is the
line's next value and the rank of those residuals; else there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from jostle.conformal import conformal_rank
from jostle.usage.limits._rank_limits import RankedLimit, limit_of

_NORMAL = NormalDist()
_RARE = 0.01  # of all orders, by each test
_RARE_ON_LINE = (
    0.05  # of residuals: a line fits a walk, or a curve, well enough to hide it from less
)
_LATEST = (3, 5, 10)  # runs whose mean rank is tested
_LEAST = 8  # runs from which on the tests are asked


def turns_on_order(values: np.ndarray, rare: float = _RARE) -> bool:
    """Test whether values are unlike those in a random order. rare: share of random orders that each
    test calls unlike."""
    n = len(values)
    if n < _LEAST or np.ptp(values) == 0:
        return False
    # Equal values share their mean rank.
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    ranks = ranks - ranks.mean()
    order = np.arange(n) - (n - 1) / 2
    spread = float(ranks @ ranks)
    apart = np.abs(ranks) - np.abs(ranks).mean()

    def along(some: np.ndarray, course: np.ndarray) -> float:
        size = float(some @ some) * float(course @ course)
        return math.sqrt(n - 1) * float(some @ course) / math.sqrt(size) if size > 0 else 0.0

    either = max(abs(along(ranks, course)) for course in (order, order**2 - np.mean(order**2)))
    after = float(ranks[1:] @ ranks[:-1]) / spread
    late = [
        float(ranks[-m:].mean()) / math.sqrt(spread / n * (n - m) / (m * (n - 1)))
        for m in _LATEST
        if 2 * m <= n
    ]
    above = max(along(apart, order), (after + 1 / n) * math.sqrt(n), *late)
    return either > _NORMAL.inv_cdf(1 - rare / 2) or above > _NORMAL.inv_cdf(1 - rare)


def limit_in_order(peaks: np.ndarray, is_open: np.ndarray, confidence: float) -> RankedLimit:
    """Limit a new run's peak as `limit_of` does, where peaks do not turn on their order; else by the trend
    (`follows_trend`) or not at all (`unsteady`). peaks: (n,) the oldest first."""
    plain = limit_of(peaks, is_open, confidence)
    if not turns_on_order(peaks):
        return plain
    none = replace(plain, value=float("inf"), outcome="unsteady", confidence_now=0.0)
    n, rank = len(peaks), conformal_rank(len(peaks), confidence)
    if is_open.any() or (peaks <= 0).any():
        return none
    lines = (_Line.of(peaks, np.log), _Line.of(peaks, lambda x: x))
    line = next((one for one in lines if one and not turns_on_order(one.left, _RARE_ON_LINE)), None)
    if line is None:
        return none
    if rank > n:
        return replace(plain, value=float("inf"), outcome="too_few_runs")
    return replace(plain, value=line.limit(rank), outcome="follows_trend")


@dataclass(frozen=True)
class _Line:
    """A straight line through peaks. left: (n,) logs of peaks over it; ahead: its next value."""

    left: np.ndarray
    ahead: float

    @classmethod
    def of(cls, peaks: np.ndarray, scale: Callable[[np.ndarray], np.ndarray]) -> _Line | None:
        """Fit peaks, or their logs, by their order; None where the line is not above zero."""
        order = np.arange(len(peaks))
        line = np.polynomial.Polynomial.fit(order, scale(peaks), 1)(np.arange(len(peaks) + 1))
        line = np.exp(np.minimum(line, 700)) if scale is np.log else line
        if (line <= 0).any():
            return None
        # Differences of rounding are none.
        return cls(np.round(np.log(peaks / line[:-1]), 9), float(line[-1]))

    def limit(self, rank: int) -> float:
        """Limit the next peak by the rank of residuals, each as if its run had been left out, and the line
        as unsure as it is."""
        n = len(self.left)
        order = np.arange(n) - (n - 1) / 2
        square, ahead = float(order @ order), (n + 1) / 2
        scores = np.sort(self.left / np.sqrt(1 - 1 / n - order**2 / square))
        wider = math.sqrt(1 + 1 / n + ahead**2 / square)
        return self.ahead * math.exp(float(scores[rank - 1]) * wider) * (1 + 1e-9)
