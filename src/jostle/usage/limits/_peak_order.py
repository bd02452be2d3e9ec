"""Whether peaks turn on their order; and a limit that follows them where they trend or step.

Ranks hold for runs in any order. Tests ask whether this order is like any other: Spearman's correlation of
peaks with it and with its square; that of their distance from the middle, for spreads that grow; the rank
version of von Neumann's ratio, which sees steps and slow walks (Bartels, Journal of the American Statistical
Association 77, 1982); and the mean ranks of the latest runs. Where a straight line of peaks, or of their
logs, leaves residuals that pass all, by a stricter level since a line was fitted to them, the limit is the
next value of the line that fits best and the rank of those residuals. Where no line does, but up to two steps
do (binary segmentation of ranks: Fryzlewicz, Annals of Statistics 42, 2014), it is that of the runs since the
last step. Else there is none. Few runs make no trend plain: where a test nearly fails, the limit is no lower
than that of a form with what it looks for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from jostle.conformal import conformal_rank
from jostle.usage.limits._rank_limits import RankedLimit, limit_of, over_limits

_NORMAL = NormalDist()
_RARE, _NEARLY = 0.01, 0.1  # of all orders, by each test
# Of residuals: a line fits a walk, or a curve, well enough to hide it from less.
_RARE_ON_LINE, _NEARLY_ON_LINE = 0.05, 0.3
_LATEST = (2, 3, 5, 10)  # runs whose mean rank is tested
_MOST_STEPS, _LEAST_LEVEL = 2, 3  # steps that are looked for, runs of a level
_LEAST = 8  # runs from which on the tests are asked
_LINE = ("level", "trend")


def chances_of_order(values: np.ndarray) -> dict[str | int, float]:
    """Count how often a random order has as much of what each test looks for: a trend, a curve, a spread
    that grows, a series, so many latest runs that are high; nothing of few values, or of equal ones."""
    n = len(values)
    if n < _LEAST or np.ptp(values) == 0:
        return {}
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

    either = {"trend": along(ranks, order), "curve": along(ranks, order**2 - np.mean(order**2))}
    after = float(ranks[1:] @ ranks[:-1]) / spread
    above = {"spread": along(apart, order), "series": (after + 1 / n) * math.sqrt(n)}
    late = {
        m: float(ranks[-m:].mean()) / math.sqrt(spread / n * (n - m) / (m * (n - 1)))
        for m in _LATEST
        if 2 * m <= n
    }
    chances = {key: 2 * _NORMAL.cdf(-abs(z)) for key, z in either.items()}
    return chances | {key: _NORMAL.cdf(-z) for key, z in (above | late).items()}


def turns_on_order(values: np.ndarray) -> bool:
    """Test whether values are unlike those in a random order."""
    return min(chances_of_order(values).values(), default=1.0) < _RARE


def limit_in_order(peaks: np.ndarray, is_open: np.ndarray, confidence: float) -> RankedLimit:
    """Limit a new run's peak as `limit_of` does, or higher, where peaks do not turn on their order; else by
    the trend (`follows_trend`), from the runs since they stepped (`runs_before`), or not at all (`unsteady`).
    peaks: (n,) the oldest first."""
    plain = limit_of(peaks, is_open, confidence)
    chances, rank = chances_of_order(peaks), conformal_rank(len(peaks), confidence)
    is_steady = min(chances.values(), default=1.0) >= _RARE
    none = replace(plain, value=float("inf"), outcome="unsteady", confidence_now=0.0)
    if is_open.any() or (peaks <= 0).any() or (is_steady and rank > len(peaks)):
        return plain if is_steady else none
    if is_steady:
        return _raised(plain, peaks, rank, _doubts(chances, _NEARLY))
    return _on_line(plain, peaks, rank) or _since_step(peaks, confidence) or none


def over_in_order(peaks: np.ndarray, is_open: np.ndarray, limit: float) -> tuple[float, float]:
    """Return (low, high): what is left open of P(a new run's peak > limit), by exchangeability, or where
    peaks turn on their order by the confidences whose limit is below; (0, 1) where there is none."""
    if not turns_on_order(peaks):
        return over_limits(peaks, is_open, limit)
    n = len(peaks)

    def at(rank: int) -> float:
        return limit_in_order(peaks, is_open, rank / (n + 1)).value

    below = bisect_left(range(1, n + 1), True, key=lambda rank: at(rank) > limit)
    is_told = below < n and at(below + 1) < np.inf  # else it may be above all that runs can say
    return (n - below) / (n + 1) if is_told else 0.0, (n + 1 - below) / (n + 1)


def _raised(
    plain: RankedLimit, peaks: np.ndarray, rank: int, doubts: set[str | int]
) -> RankedLimit:
    """Return the limit, or a higher one where the order of peaks is in doubt."""
    doubts = doubts - {"series"}
    if not doubts:
        return plain
    wider = _limit(np.log(peaks), _LINE[:1], rank, doubts)
    raised = math.exp(min(wider, 700.0)) / plain.value
    return (
        plain
        if raised <= 1 + 1e-9
        else replace(plain, value=plain.value * raised, raised_ratio=raised)
    )


def _on_line(plain: RankedLimit, peaks: np.ndarray, rank: int) -> RankedLimit | None:
    """Return the limit by the line that fits peaks best; None where none does."""
    straight = np.polynomial.Polynomial.fit(np.arange(len(peaks)), peaks, 1)
    one = np.ones(len(peaks) + 1)
    best, found = 0.0, None
    # Growth by a factor, or by a number: noise goes with the level, or is the same all along.
    for line, is_log in (
        (one, True),
        (straight(np.arange(len(one))), True),
        (peaks.mean() * one, False),
    ):
        if (line <= 0).any():
            continue
        values = np.log(peaks / line[:-1]) if is_log else peaks / line[:-1]
        # Differences of rounding are none.
        chances = chances_of_order(np.round(_fitted(values, _LINE)[0], 9))
        fit = min(chances.values(), default=1.0)
        if fit < _RARE_ON_LINE:
            continue
        if rank > len(peaks):
            return replace(plain, value=float("inf"), outcome="too_few_runs")
        fit = min(fit, 2 * (1 - chances.get("spread", 0.5)))  # a spread that falls fits no better
        if fit > best:
            wider = _limit(values, _LINE, rank, _doubts(chances, _NEARLY_ON_LINE))
            value = float(line[-1]) * (math.exp(min(wider, 700.0)) if is_log else float(wider))
            found = replace(plain, value=value * (1 + 1e-9), outcome="follows_trend")
            best = fit
    return found


def _since_step(peaks: np.ndarray, confidence: float) -> RankedLimit | None:
    """Return the limit from the runs since peaks stepped; None where steps are not all that they do."""
    start = last_step(np.log(peaks))
    since = peaks[start:]
    chances, rank = chances_of_order(since), conformal_rank(len(since), confidence)
    if not start or min(chances.values(), default=1.0) < _RARE_ON_LINE:
        return None
    plain = limit_of(since, np.zeros(len(since), bool), confidence)
    plain = replace(plain, runs_before=start)
    if rank > len(since):
        return plain
    return _raised(plain, since, rank, _doubts(chances, _NEARLY_ON_LINE))


def last_step(values: np.ndarray) -> int:
    """Return the first run of the last level of values that do nothing but step, 0 where they do more: about
    the medians of levels their order is like any other."""
    ranks = np.argsort(np.argsort(values)).astype(float)
    cuts = [0, len(values)]
    for _ in range(_MOST_STEPS):
        size, place = max(_step(ranks[a:b], a) for a, b in pairwise(cuts))
        if not size:
            return 0
        cuts = sorted([*cuts, place])
        left = np.concatenate([values[a:b] - np.median(values[a:b]) for a, b in pairwise(cuts)])
        # Differences of rounding are none.
        if min(chances_of_order(np.round(left, 9)).values(), default=1.0) >= _RARE_ON_LINE:
            return cuts[-2]
    return 0


def _step(ranks: np.ndarray, start: int) -> tuple[float, int]:
    """Find where means of ranks before and after differ most. Returns (by how many standard errors, up to a
    factor; the place, counted from where `start` is that of the first), (0, 0) of few."""
    n = len(ranks)
    places = np.arange(_LEAST_LEVEL, n - _LEAST_LEVEL + 1)
    if not len(places):
        return 0.0, 0
    before = np.cumsum(ranks - ranks.mean())[places - 1]
    size = np.abs(before) / np.sqrt(places * (n - places) / n)
    return float(size.max()), start + int(places[size.argmax()])


def _doubts(chances: dict[str | int, float], nearly: float) -> set[str | int]:
    return {key for key, chance in chances.items() if chance < nearly}


def _limit(
    values: np.ndarray, form: Sequence[str | int], rank: int, doubts: set[str | int]
) -> float:
    """Limit the next value by the rank of residuals of a form, each as if its run had been left out, and the
    form as unsure as it is; no lower than with what is in doubt. form: columns of `_column`."""
    limits = []
    for what in (None, *doubts):
        more = () if what in (None, "spread", "series", *form) else (what,)
        left, kept, ahead, wider = _fitted(values, [*form, *more])
        order, scores = np.arange(len(values) + 1), left / kept
        size = np.ones(len(order))
        if what == "spread":
            start, growth = np.polynomial.polynomial.polyfit(order[:-1], np.abs(scores), 1)
            size = np.maximum(
                start + max(growth, 0.0) * order, 0.1 * np.abs(scores).mean() + 1e-300
            )
        if what == "series":  # which goes on from where it is
            steps = np.sort(np.diff(values))
            limits.append(float(values[-1] + steps[min(rank, len(steps)) - 1]))
        limits.append(ahead + float(np.sort(scores / size[:-1])[rank - 1]) * size[-1] * wider)
    return max(limits)


def _fitted(
    values: np.ndarray, form: Sequence[str | int]
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Fit a form by least squares. Returns ((n,) residuals, (n,) their spread over the noise, the next value,
    the spread of what it misses over the noise)."""
    columns = np.stack([_column(one, len(values)) for one in form], axis=1)
    turned, triangle = np.linalg.qr(columns[:-1])
    fitted = columns @ np.linalg.solve(triangle, turned.T @ values)
    ahead = np.linalg.solve(triangle.T, columns[-1])
    spread = np.sqrt(np.maximum(1 - (turned**2).sum(axis=1), 1e-9))
    return values - fitted[:-1], spread, float(fitted[-1]), math.sqrt(1 + float(ahead @ ahead))


def _column(part: str | int, n: int) -> np.ndarray:
    """Return (n + 1,) a part of a form, at n runs and the next; a number is a step before so many runs."""
    place = np.arange(n + 1)
    if isinstance(part, int):
        return (place >= n - part).astype(float)
    return ((place - (n - 1) / 2) / n) ** ("level", "trend", "curve").index(part)
