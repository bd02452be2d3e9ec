"""One calibration pool: scores in ascending order with their weights, and the way that bounds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle._base.confidence import DEFAULT_CONFIDENCE
from jostle.conformal._bounds import GUARANTEED
from jostle.conformal._conformal_rank import rank_by_weight, window_weights
from jostle.conformal._extreme_value import FEWEST, tail_offset
from jostle.conformal._predictor import Candidates

# Bounds are raised by this share, far under what anybody measures: the logarithm, the exponential and
# the order in which a prediction is summed up round, and a program that takes exactly as long each time
# would otherwise be late by the last digit.
ROUNDING = 2.0**-30


@dataclass(frozen=True)
class Way:
    """How a pool is bounded. stages: the candidates, mostly one. until: up to which confidence each of
    them speaks."""

    stages: tuple[int, ...]
    until: tuple[float, ...]


@dataclass(frozen=True)
class Pool:
    """scores: (r, n) ascending for each of r stages. cumulative: (n,) for each, running weight of units.
    total: the whole weight, a new unit's included. units: how many weigh alike. outcome: what stands behind
    its bounds."""

    name: str
    outcome: str
    way: Way
    scores: np.ndarray
    cumulative: np.ndarray
    total: int
    units: int

    @classmethod
    def of(
        cls,
        name: str,
        outcome: str,
        way: Way,
        scores: np.ndarray,
        unit: np.ndarray,
        weights: tuple[np.ndarray, int] | None = None,
    ) -> Pool:
        """scores: (h, n) of all candidates; unit: (n,) codes, equal for runs that were drawn as one.
        weights: (of each run (n,), in all with a new unit) where not every unit weighs the same."""
        weight, total = window_weights(unit) if weights is None else weights
        mine = scores[list(way.stages)]
        order = np.argsort(mine, axis=1, kind="stable")
        return cls(
            name,
            outcome,
            way,
            np.take_along_axis(mine, order, 1),
            np.cumsum(weight[order], axis=1),
            total,
            len(np.unique(unit)),
        )

    @property
    def n(self) -> int:
        return self.scores.shape[1]

    @cached_property
    def stands_alone(self) -> bool:
        """Whether it can answer the usual confidence by itself. One that cannot is passed over at every
        confidence: bounds that changed from it to a wider pool would have to be as wide as its largest
        score, or would fall."""
        return self.rank(DEFAULT_CONFIDENCE) <= self.n

    @property
    def highest_confidence(self) -> float:
        """Above which it has no finite bound; 0 for an empty one."""
        return int(self.cumulative[0, -1]) / self.total if self.n else 0.0

    def rank(self, confidence: float) -> int:
        """Of the score that is the offset at a confidence; above n where there is none."""
        return rank_by_weight(self.cumulative[self._stage(confidence)], self.total, confidence)

    def log_bound(
        self, candidates: Candidates, at: np.ndarray, confidence: float, *, largest: bool = False
    ) -> np.ndarray:
        """(len(at),) log seconds: the most of what the stages up to this confidence say, so that it holds
        and never falls. +inf where there is no offset; with `largest` the largest score there is."""
        value = np.full(len(at), -np.inf)
        for stage in range(self._stage(confidence) + 1):
            level = min(confidence, self.way.until[stage])
            rank = rank_by_weight(self.cumulative[stage], self.total, level)
            rank = min(rank, self.n) if largest else rank
            offset = float(self.scores[stage, rank - 1]) if 0 < rank <= self.n else np.inf
            place = self.way.stages[stage]
            value = np.maximum(
                value, candidates.centre[place, at] + candidates.scale[place, at] * offset
            )
        return value + ROUNDING

    def log_tail(
        self, candidates: Candidates, at: np.ndarray, confidence: float
    ) -> np.ndarray | None:
        """(len(at),) log seconds beyond what its runs can promise, never under that; None where they are
        fewer than a law of their tail can be read from."""
        place = self.way.stages[-1]
        scores = self.scores[-1]
        if self.units < FEWEST or np.isfinite(scores).sum() < FEWEST:
            return None
        if confidence not in self._tails:
            self._tails[confidence] = tail_offset(scores, 1 - confidence)
        value = candidates.centre[place, at] + candidates.scale[place, at] * self._tails[confidence]
        return np.maximum(
            value + ROUNDING, self.log_bound(candidates, at, confidence, largest=True)
        )

    @cached_property
    def _tails(self) -> dict[float, float]:
        """The offsets of its tail by confidence, as far as they were asked for."""
        return {}

    def _stage(self, confidence: float) -> int:
        """The last stage that speaks."""
        return next(number for number, end in enumerate(self.way.until) if confidence <= end)


def bound_of_chain(
    chain: list[Pool], candidates: Candidates, at: np.ndarray, confidence: float
) -> tuple[np.ndarray, Pool | None]:
    """((len(at),) log seconds, the pool that answers) of pools, each wider than the one before.

    The first that can answer the confidence does, with a bound never under what those before it gave at
    their highest: so bounds never fall as confidence rises. Where none stands alone, the one that answers the
    highest confidence. None where none can answer.
    """
    usable = [pool for pool in chain if pool.stands_alone]
    usable = usable or [max(chain, key=lambda pool: pool.highest_confidence)]
    floor = np.full(len(at), -np.inf)
    for pool in usable:
        if pool.rank(confidence) <= pool.n:
            return np.maximum(floor, pool.log_bound(candidates, at, confidence)), pool
        floor = np.maximum(floor, pool.log_bound(candidates, at, confidence, largest=True))
    return np.full(len(at), np.inf), None


def tail_of_chain(
    chain: list[Pool], candidates: Candidates, at: np.ndarray, confidence: float
) -> tuple[np.ndarray, Pool | None]:
    """As bound_of_chain where that answers no more: the tail of the widest pool that holds, if it has runs
    enough, and never under what the pools gave at their highest."""
    pools = [pool for pool in chain if pool.outcome in GUARANTEED]
    log_bound = pools[-1].log_tail(candidates, at, confidence) if pools else None
    if log_bound is None:
        return np.full(len(at), np.inf), None
    for pool in pools[:-1]:
        if pool.stands_alone:
            log_bound = np.maximum(
                log_bound, pool.log_bound(candidates, at, confidence, largest=True)
            )
    return log_bound, pools[-1]
