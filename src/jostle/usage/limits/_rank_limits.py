"""Limits by exact ranks of peaks: of whole runs, and of what is left of those that have come as far.

Whole runs (split conformal prediction: Vovk et al., Algorithmic Learning in a Random World, 2005): of n
peaks and that of a new run, the new one is at most the ceil((n + 1) c)-th smallest with probability c. A run
whose peak was only seen to be at least so high stands above all others, which is true whatever it was. Where
that leaves no finite limit, its share is given to the higher peaks instead (redistribution to the right:
Efron, Proc. 5th Berkeley Symposium 4, 1967), which holds where what cut runs short did not depend on what
they would have used: the share of the new run above it, over what redistribution leaves, is a martingale in
the height, with mean 1.

What is left of a run: runs that have come as far are exchangeable with it, and so are scores of them, such as
what is left over the peak so far. Which of several scores tells most is chosen with the new run among those
that choose, for every value that it might have (full conformal prediction), so that the choice costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Literal

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle.conformal import conformal_rank

Outcome = Literal[
    "guaranteed", "censored", "estimated", "follows_trend", "unsteady", "too_few_runs"
]


@dataclass(frozen=True)
class RankedLimit:
    """Limit that a run stays below, by the rank of peaks.

    value: the limit, infinite where there is none. runs: behind it, `open_runs` of them with a peak that is
    only known to be at least so high. needed: how many runs a limit takes with as many open ones.
    confidence_now: the highest of four digits with a guaranteed limit from these runs; 0 where none has.
    raised_ratio: how far their order raised it above what ranks say, 1 for not at all. runs_before: how many
    older ones are left out, since peaks stepped after them.
    """

    value: float
    outcome: Outcome
    runs: int
    open_runs: int
    needed: int
    confidence_now: float
    raised_ratio: float = 1.0
    runs_before: int = 0


def runs_needed(confidence: float, open_runs: int = 0) -> int:
    """Return the least n of which so many may be open with ceil((n + 1) * confidence) <= n - open_runs."""
    share = exact_confidence(confidence)
    return -(-(share + open_runs) // (1 - share))


def most_confidence(n: int, open_runs: int) -> float:
    """Return the highest confidence of four digits with a guaranteed limit from n runs, so many of them
    open."""
    return (n - open_runs) * 10_000 // (n + 1) / 10_000


def share_of_each(peaks: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Return (n,) weights, sum 1, of runs as a law of whole ones: open runs hand theirs to all that are
    higher; the highest keeps what nobody is left to take."""
    order = np.lexsort((is_open, peaks))
    mass, weights = 1 / len(peaks), np.zeros(len(peaks))
    for place, row in enumerate(order.tolist()):
        left = len(peaks) - place - 1
        if is_open[row] and left:
            mass += mass / left
        else:
            weights[row] = mass
    return weights


def limit_of(peaks: np.ndarray, is_open: np.ndarray, confidence: float) -> RankedLimit:
    """Return the limit that a new run's peak does not exceed with this confidence.

    peaks: (n,). is_open: (n,) which of them are only known to be at least so high.
    """
    n, count = len(peaks), int(is_open.sum())
    facts = (n, count, runs_needed(confidence, count), most_confidence(n, count))
    rank = conformal_rank(n, confidence)
    if rank <= n - count:
        return RankedLimit(float(np.sort(peaks[~is_open])[rank - 1]), "guaranteed", *facts)
    value = _redistributed(peaks, is_open, exact_confidence(confidence)) if count else np.inf
    return RankedLimit(value, "censored" if np.isfinite(value) else "too_few_runs", *facts)


def _redistributed(peaks: np.ndarray, is_open: np.ndarray, share: Fraction) -> float:
    """Return the least peak with this share at or below it, where n peaks and one at infinity weigh the same
    and open ones hand theirs to all that are higher.

    A new run is above it, or there is none, at most as often as asked for. Where there is one only by luck,
    it is exceeded more often: so what may be above is less by the chance that there is one, as Greenwood's
    variance of what was left above the highest peak has it (Reports on Public Health 33, 1926).
    """
    order = np.lexsort((is_open, peaks))
    is_whole, left = ~is_open[order], np.arange(len(peaks), 0, -1)
    log_above = np.cumsum(np.where(is_whole, np.log(left / (left + 1)), 0.0))
    variance = float(np.where(is_whole, 1 / (left * (left + 1)), 0.0).sum())
    most = math.log(1 - share)
    most += math.log(NormalDist(log_above[-1], math.sqrt(variance) + 1e-9).cdf(most) + 1e-300)
    reached = np.flatnonzero(is_whole & (log_above <= most + 1e-12))
    return float(peaks[order[reached[0]]]) if len(reached) else float("inf")


def over_limits(peaks: np.ndarray, is_open: np.ndarray, limit: float) -> tuple[float, float]:
    """Return (low, high): what exchangeability leaves open of P(a new run's peak > limit). Open runs below
    the limit count as over it in the high one, and not in the low one."""
    n = len(peaks)
    over = int((peaks > limit).sum())
    unknown = int((is_open & (peaks <= limit)).sum())
    return over / (n + 1), (over + unknown + 1) / (n + 1)


@dataclass(frozen=True)
class _Score:
    """S = (peak - shift) / unit of each run and of the new one, the last."""

    shift: np.ndarray
    unit: np.ndarray
    ranked: np.ndarray

    @classmethod
    def of(cls, left: np.ndarray, shift: np.ndarray, unit: np.ndarray) -> _Score:
        return cls(shift, unit, np.sort((left - shift[:-1]) / unit[:-1]))

    def limit(self, quantile: float, row: int = -1) -> float:
        return float(self.shift[row] + self.unit[row] * quantile)

    def width(self, quantile: float) -> float:
        """Return the mean limit over all runs and the new one."""
        return float(self.shift.mean() + self.unit.mean() * quantile)

    def quantile_of(self, width: float) -> float:
        """Whose mean limit that is."""
        return (width - float(self.shift.mean())) / float(self.unit.mean())


def _scores(left: np.ndarray, level: np.ndarray, peak: np.ndarray) -> list[_Score]:
    one, zero = np.ones(len(peak)), np.zeros(len(peak))
    scores = [_Score.of(left, zero, one), _Score.of(left, peak, one), _Score.of(left, level, one)]
    return [*scores, _Score.of(left, zero, peak)] if (peak > 0).all() else scores


def limit_of_rest(
    left: np.ndarray,
    is_open: np.ndarray,
    level: np.ndarray,
    peak: np.ndarray,
    confidence: float,
) -> RankedLimit:
    """Return the limit that what is left of a run does not exceed, given what it has shown.

    left: (n,) peaks of what was left of runs that have come as far; is_open: (n,) as in `limit_of`. level,
    peak: (n + 1,) of these and last of the new run: what it used last, and at most so far.
    """
    plain = limit_of(left, is_open, confidence)
    if plain.outcome != "guaranteed":
        return plain
    rank = conformal_rank(len(left), confidence)
    scores = _scores(np.where(is_open, np.inf, left), level, peak)
    return replace(plain, value=_highest(scores, rank))


def _highest(scores: list[_Score], rank: int) -> float:
    """Find the largest value of a new run that the narrowest score accepts.

    Which score is narrowest depends on the value y itself: y takes part in the ranking, as one of n + 1. A
    score's quantile is then its rank-th smallest value, and rises with y. So y is accepted if some score
    accepts it that is as narrow as every score that rejects it.
    """
    own = [(one.limit(one.ranked[rank - 1]), one) for one in scores]
    own.sort(key=lambda pair: -pair[0])
    full = [one.width(one.ranked[rank - 1]) for _, one in own]
    for place in range(len(own)):
        narrowest = min(full[place + 1 :], default=np.inf)
        following = own[place + 1][0] if place + 1 < len(own) else -np.inf
        highest = -np.inf
        for limit, one in own[: place + 1]:
            quantile = min(one.quantile_of(narrowest), float(one.ranked[rank - 1]))
            low = float(one.ranked[rank - 2]) if rank > 1 else -np.inf
            if quantile >= low:
                # Up to its own limit, and to that of this place: above it others reject as well.
                highest = max(highest, min(limit, one.limit(quantile), own[place][0]))
        if highest > following:
            return highest
    return own[-1][0]


def over_of_rest(
    left: np.ndarray,
    is_open: np.ndarray,
    level: np.ndarray,
    peak: np.ndarray,
    confidence: float,
    limit: float,
) -> tuple[float, float]:
    """Return (low, high): what exchangeability leaves open of P(what is left > limit), by the score that is
    narrowest where the new run is at the limit. The rest as in `limit_of_rest`."""
    n, open_runs = len(left), int(is_open.sum())
    rank = min(conformal_rank(n, confidence), n - open_runs)
    if rank < 1:
        return over_limits(left, is_open, limit)

    def width(one: _Score) -> float:
        at = (limit - one.shift[-1]) / one.unit[-1]
        return one.width(float(np.sort(np.append(one.ranked, at))[rank - 1]))

    best = min(_scores(np.where(is_open, np.inf, left), level, peak), key=width)
    over = int((best.ranked > (limit - best.shift[-1]) / best.unit[-1]).sum())
    # Of open runs it is not known whether they stay below.
    return (over - open_runs) / (n + 1), (over + 1) / (n + 1)
