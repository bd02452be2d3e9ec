"""Limits of what several workloads on a node use together, such as memory, over their whole lives.

Each resident is drawn from the recorded runs of its workload, of one that goes on from those that have come
as far, and lives on a common clock; what is asked about is the highest sum. How they go together, and what
few runs leave open, is as in `_sum_of_workloads`. Beside one another they are slower: what takes longer is
used longer, and counts per second are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle.data import is_level
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.usage.distributions._sum_of_workloads import Addend, draws_together, rows_side_by_side
from jostle.usage.limits._likeness import Unlikeness
from jostle.usage.limits._limit_verbs import LimitVerbs
from jostle.usage.limits._peaks import Peaks, Use
from jostle.usage.limits._rank_limits import (
    RankedLimit,
    most_confidence,
    runs_needed,
    share_of_each,
)

DRAWS = 2000
TIMES = 300  # of the common clock, at most: each the highest of what lies between
MOST_MORE = 1000  # further residents


@dataclass(frozen=True, eq=False)
class Residents(LimitVerbs):
    """Residents of a node, whose sum `limit` is asked about: `Residents([a, b, b]).limit(confidence=0.95,
    over=64e9)`. residents: Peaks of the same component, the same one for several of a workload. slowdowns: of
    each, how many times slower it is beside the others; error: of their logs, a standard deviation. more:
    of which workload the number that still fits is asked for. Raises UsageError, BadData, NotEnoughRuns for a
    workload with fewer than two runs.
    """

    residents: Sequence[Peaks]
    slowdowns: Sequence[float] = ()
    error: float = 0.0
    more: Peaks | None = None
    seed: int = 0
    live: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.residents:
            raise UsageError("no residents to add up")
        for one in self._every:
            if one.component != self.component:
                raise BadData(f"{one.component} and {self.component} cannot be added")
            if len(one.going) < 2:
                raise NotEnoughRuns(
                    f"{len(one.going)} run of a resident that came as far is not enough for a sum",
                    fix="Record each workload again, many times.",
                )
        if self.slowdowns and len(self.slowdowns) != len(self.residents):
            raise UsageError(f"{len(self.slowdowns)} slowdowns for {len(self.residents)} residents")
        if not all(0 < one < np.inf for one in self.slowdowns) or not 0 <= self.error < np.inf:
            raise UsageError("slowdowns are numbers above 0, their error one from 0 on")

    @property
    def component(self) -> str:
        """Counter that the limit is about."""
        return self.residents[0].component

    @property
    def _every(self) -> list[Peaks]:
        return [*self.residents, *([] if self.more is None else [self.more])]

    def ranked(self, confidence: float) -> RankedLimit:
        """Return the limit of the sum at any time: estimated, with what few runs leave open."""
        confidence = float(exact_confidence(confidence))
        value = float(np.quantile(self._sums.max(axis=1), confidence, method="higher"))
        counts = [len(one.going) for one in self.residents]
        open_runs = max(sum(use.is_open for use in one.going) for one in self.residents)
        needed, now = runs_needed(confidence, open_runs), most_confidence(min(counts), open_runs)
        return RankedLimit(value, "estimated", min(counts), open_runs, needed, now)

    def without_assumptions(self, confidence: float) -> tuple[float, float]:
        """Bound the sum however the residents go together: each by its own limit, at a confidence that leaves
        it one share of what may go wrong (Bonferroni). Returns (bound, the confidence that it has, less than
        was asked for where runs are too few); infinite where there is none."""
        count = len(self.residents)
        each = 1 - (1 - float(exact_confidence(confidence))) / count
        each = round(each + 5e-5, 4) if each < 0.9999 else each
        now = min(one.ranked(each).confidence_now for one in self.residents)
        each = min(each, now)
        if not each > 1 - 1 / count:
            return float("inf"), 0.0
        limits = [one.ranked(each).value for one in self.residents]
        return float(sum(limits)), min(confidence, round(1 - count * (1 - each), 9))

    def over(self, limit: float, confidence: float) -> tuple[float, float]:
        """P(the sum is above the limit at any time), twice."""
        share = float((self._sums.max(axis=1) > limit).mean())
        return share, share

    def unlikeness(self) -> Unlikeness | None:
        """Find the running resident that is most unlike its recorded runs, and return how unlike it is; None
        if none tells."""
        told = [one for one in (each.unlikeness() for each in self.residents) if one is not None]
        return min(told, key=lambda one: (one.p_ratio, -one.distance_ratio), default=None)

    def fits(self, limit: float, confidence: float) -> int:
        """Return how many more of `more` there is room for below the limit with this confidence, a
        thousand at most. They begin now, and as independent ones of each other."""
        random = np.random.default_rng([self.seed, 1])
        part = self._parts[-1]
        opened, total = part.open_draws(DRAWS, random), self._sums
        for number in range(MOST_MORE):
            rows = random.choice(len(part.values), DRAWS, p=part.weights)
            total = total + part.drawn(rows, opened, random)
            if (total.max(axis=1) > limit).mean() > 1 - confidence:
                return number
        return MOST_MORE

    @property
    def is_measured(self) -> bool:
        """True if enough windows are shared to tell how residents go together."""
        return bool(len(self._common))

    @property
    def residents_text(self) -> str:
        """A sentence on how the residents go together."""
        how = "as measured side by side" if self.is_measured else "assumed to be independent"
        return f"{len(self.residents)} residents {how}"

    @cached_property
    def _parts(self) -> list[Addend]:
        """Use of each resident, and of what is to be added, on the common clock."""
        slowdowns = [*(self.slowdowns or [1.0] * len(self.residents)), 1.0]
        # Some are drawn slower than this; what lies beyond is their end.
        ends = [
            slow * max(one.length_seconds - each.now_seconds for one in each.going)
            for each, slow in zip(self._every, slowdowns, strict=False)
        ]
        horizon, step = max(ends), min(each.interval_seconds for each in self._every)
        edges = np.linspace(0, horizon, min(TIMES, max(int(np.ceil(horizon / step)), 1)) + 1)
        parts = []
        for each, slow in zip(self._every, slowdowns, strict=False):
            rate = 1.0 if is_level(self.component) or self.component == "value" else 1 / slow
            lives = [rate * _life(use, each.now_seconds, edges / slow) for use in each.going]
            peaks = np.array([life.max() for life in lives])
            is_open = np.array([use.is_open for use in each.going])
            # What goes above the middle is exponential, as far as what was cut short may have gone.
            over = np.maximum(peaks - np.median(peaks), 0.0)
            more = over.sum() / max((over[~is_open] > 0).sum(), 1)
            beyond = np.where(is_open, more / np.maximum(peaks, 1e-300), 0.0)
            weights = share_of_each(peaks, is_open)
            runs = round(1 / float((weights**2).sum()))  # as many of the same weight
            parts.append(Addend(id(each), np.array(lives), weights, runs, beyond))
        return parts

    @cached_property
    def _common(self) -> np.ndarray:
        """Runs of each resident in windows that all of them share, (windows, residents); none if these are
        too few."""
        return rows_side_by_side(
            [(id(each), [use.window for use in each.going]) for each in self.residents]
        )

    @cached_property
    def _sums(self) -> np.ndarray:
        """Use of all residents together, (DRAWS, T)."""
        random = np.random.default_rng(self.seed)
        parts = self._parts[: len(self.residents)]
        total = np.zeros((DRAWS, parts[0].values.shape[1]))
        for lives in draws_together(parts, self._common, DRAWS, random):
            slower = np.exp(self.error * random.standard_normal(DRAWS)) if self.error else None
            total += lives if slower is None else _stretched(lives, slower)
        return total


def _life(use: Use, now: float, edges: np.ndarray) -> np.ndarray:
    """Return (T,) the most that a run used between these times from now on; after its end 0, or where it
    was cut short as much as last."""
    times, values = use.times_seconds - now, use.values
    # A sample stands for the time until the one before it ended.
    first = np.searchsorted(times, edges[:-1] * (1 + 1e-9), side="right")
    last = np.searchsorted(times, edges[1:] * (1 - 1e-9), side="left")
    life = np.zeros(len(edges) - 1)
    for place in np.flatnonzero(first < len(values)).tolist():
        life[place] = values[first[place] : min(int(last[place]), len(values) - 1) + 1].max()
    life[edges[:-1] >= use.length_seconds - now] = values[-1] if use.is_open else 0.0
    return life


def _stretched(lives: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Return (draws, T) each life so many times slower; what had ended stays ended."""
    size = lives.shape[1]
    place = (np.arange(size) / ratios[:, None]).astype(int)
    inside = np.take_along_axis(lives, np.minimum(place, size - 1), axis=1)
    return np.where(place < size, inside, 0.0)
