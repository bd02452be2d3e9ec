"""What several residents of a node use together at any time: draws of their lives, added up.

Each resident is drawn from the recorded runs of its workload, of one that goes on from those that have come
as far, and lives on a common clock; what is asked about is the highest sum. Few runs leave open how far lives
go from their mean and where that is: both are drawn anew for each workload, as Student's law has it for the
mean of a normal law (Biometrika 6, 1908), for all its residents alike; of many runs nothing of that remains.
Where residents were recorded side by side often enough, whole windows are drawn, so that what is busy
together stays so. Beside one another they are slower: what takes longer is used longer, and counts per second
are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jostle._confidence import exact_confidence
from jostle._verbs import answers_verbs
from jostle.bridge.limits._likeness import Unlikeness
from jostle.bridge.limits._peaks import Peaks, Use
from jostle.bridge.limits._ranks import RankedLimit, most_confidence, runs_needed, share_of_each
from jostle.bridge.problem._windows import FEWEST_WINDOWS, common_rows
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.progress import no_progress
from jostle.traces import is_level

DRAWS = 2000
TIMES = 300  # of the common clock, at most: each the highest of what lies between
MOST_MORE = 1000  # further residents


@dataclass(frozen=True, eq=False)
class _Law:
    """One workload at its place: lives (n, T) of its runs, how likely each is drawn (n,), by how many times
    open ones may have gone higher than was seen, on the mean (n,), their windows."""

    lives: np.ndarray
    weights: np.ndarray
    beyond: np.ndarray
    windows: tuple[str | None, ...]

    def open_draws(self, draws: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(draws, T) means and (draws, 1) by how much lives go further from it than recorded ones did."""
        n = max(round(1 / float((self.weights**2).sum())), 2)  # as many of the same weight
        factor = np.sqrt(n / random.chisquare(n - 1, (draws, 1)))
        counts = random.multinomial(n, self.weights, draws) / n
        mean = self.weights @ self.lives
        return mean + factor * (counts @ self.lives - mean), factor

    def lived(
        self,
        rows: np.ndarray,
        drawn: tuple[np.ndarray, np.ndarray],
        random: np.random.Generator,
    ) -> np.ndarray:
        """(draws, T) lives like these runs, with the drawn means and factors."""
        means, factor = drawn
        lives = self.lives[rows]
        if self.beyond.any():
            lives *= 1 + self.beyond[rows, None] * random.standard_exponential((len(rows), 1))
        return np.maximum(means + factor * (lives - self.weights @ self.lives), 0.0)


@answers_verbs("forecasts")
@dataclass(frozen=True, eq=False)
class Residents:
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
        return self.residents[0].component

    @property
    def _every(self) -> list[Peaks]:
        return [*self.residents, *([] if self.more is None else [self.more])]

    def ask(self, verb: Any, items: Any, question: Any, progress: Any = no_progress) -> Any:
        """What a verb about recorded runs answers."""
        return verb(self, items, question, progress)

    def ranked(self, confidence: float) -> RankedLimit:
        """The limit of the sum at any time: estimated, with what few runs leave open."""
        confidence = float(exact_confidence(confidence))
        value = float(np.quantile(self._sums.max(axis=1), confidence, method="higher"))
        counts = [len(one.going) for one in self.residents]
        open_runs = max(sum(use.is_open for use in one.going) for one in self.residents)
        needed, now = runs_needed(confidence, open_runs), most_confidence(min(counts), open_runs)
        return RankedLimit(value, "estimated", min(counts), open_runs, needed, now)

    def over(self, limit: float, confidence: float) -> tuple[float, float]:
        """P(the sum is above the limit at any time), twice."""
        share = float((self._sums.max(axis=1) > limit).mean())
        return share, share

    def unlikeness(self) -> Unlikeness | None:
        """Of the residents that go on, the one most unlike its recorded runs."""
        told = [one for one in (each.unlikeness() for each in self.residents) if one is not None]
        return min(told, key=lambda one: (one.p_ratio, -one.distance_ratio), default=None)

    def fits(self, limit: float, confidence: float) -> int:
        """How many more of `more` there is room for below the limit with this confidence, a thousand at most.
        They begin now, and as independent ones of each other."""
        random = np.random.default_rng([self.seed, 1])
        law = self._laws[-1]
        drawn, total = law.open_draws(DRAWS, random), self._sums
        for number in range(MOST_MORE):
            rows = random.choice(len(law.lives), DRAWS, p=law.weights)
            total = total + law.lived(rows, drawn, random)
            if (total.max(axis=1) > limit).mean() > 1 - confidence:
                return number
        return MOST_MORE

    @property
    def residents_text(self) -> str:
        """How they go together, in words."""
        how = "as measured side by side" if len(self._common) else "as independent ones"
        return f"{len(self.residents)} residents {how}"

    @cached_property
    def _laws(self) -> list[_Law]:
        """Of each resident, and of what is to be added, on the common clock."""
        slowdowns = [*(self.slowdowns or [1.0] * len(self.residents)), 1.0]
        # Some are drawn slower than this; what lies beyond is their end.
        ends = [
            slow * max(one.length_seconds - each.now_seconds for one in each.going)
            for each, slow in zip(self._every, slowdowns, strict=False)
        ]
        horizon, step = max(ends), min(each.interval_seconds for each in self._every)
        edges = np.linspace(0, horizon, min(TIMES, max(int(np.ceil(horizon / step)), 1)) + 1)
        laws = []
        for each, slow in zip(self._every, slowdowns, strict=False):
            rate = 1.0 if is_level(self.component) or self.component == "value" else 1 / slow
            lives = [rate * _life(use, each.now_seconds, edges / slow) for use in each.going]
            peaks = np.array([life.max() for life in lives])
            is_open = np.array([use.is_open for use in each.going])
            windows = tuple(use.window for use in each.going)
            # What goes above the middle is exponential, as far as what was cut short may have gone.
            over = np.maximum(peaks - np.median(peaks), 0.0)
            more = over.sum() / max((over[~is_open] > 0).sum(), 1)
            beyond = np.where(is_open, more / np.maximum(peaks, 1e-300), 0.0)
            laws.append(_Law(np.array(lives), share_of_each(peaks, is_open), beyond, windows))
        return laws

    @cached_property
    def _common(self) -> np.ndarray:
        """(windows, residents) runs of each resident in windows that all of them share; none of too few."""
        laws = self._laws[: len(self.residents)]
        each = [(id(one), law.windows) for one, law in zip(self.residents, laws, strict=True)]
        rows = common_rows(each)
        is_enough = len(self.residents) > 1 and len(rows) >= FEWEST_WINDOWS
        return rows if is_enough else rows[:0]

    @cached_property
    def _sums(self) -> np.ndarray:
        """(DRAWS, T) of all residents together."""
        random = np.random.default_rng(self.seed)
        laws = self._laws[: len(self.residents)]
        drawn: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        picked = random.integers(max(len(self._common), 1), size=DRAWS)
        total = np.zeros((DRAWS, laws[0].lives.shape[1]))
        for number, (each, law) in enumerate(zip(self.residents, laws, strict=True)):
            if len(self._common):
                rows = self._common[picked, number]
            else:
                rows = random.choice(len(law.lives), DRAWS, p=law.weights)
            if id(each) not in drawn:
                drawn[id(each)] = law.open_draws(DRAWS, random)
            lives = law.lived(rows, drawn[id(each)], random)
            if self.error:
                lives = _stretched(lives, np.exp(self.error * random.standard_normal(DRAWS)))
            total += lives
        return total


def _life(use: Use, now: float, edges: np.ndarray) -> np.ndarray:
    """(T,) the most that a run used between these times from now on; after its end 0, or where it was cut
    short as much as last."""
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
    """(draws, T) each life so many times slower; what had ended stays ended."""
    size = lives.shape[1]
    place = (np.arange(size) / ratios[:, None]).astype(int)
    inside = np.take_along_axis(lives, np.minimum(place, size - 1), axis=1)
    return np.where(place < size, inside, 0.0)
