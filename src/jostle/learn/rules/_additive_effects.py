"""Additive random effects of target and co-runners.

value = m + platform + platform and degree + target + target on the platform
        + d^power mean_j (co-runner + co-runner on the platform) + target * log d

or with the largest over j in place of the mean, which is power infinity here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.learn.rules._random_effects import EffectsByKind, Side
from jostle.learn.rules._set_residuals import keys_of
from jostle.learn.rules._slowdown_rows import Ground, SlowdownRows

ROUNDS, ROUNDS_TO_CHOOSE = 14, 4  # at most; with each power, of which the best goes on
# How co-runners' effects grow with their number, tried where several are seen; and only the strongest counts.
POWERS, STRONGEST = (0.0, 0.5, 1.0), np.inf
ROUNDS_TO_ORDER = 2  # who is the strongest follows from what is learned of each


@dataclass(frozen=True)
class RandomEffects:
    """place: (platforms, degrees + 1); growth: (platforms,) of it past the most co-runners known, over
    d^power (over log d for power 0 and infinity); target, slope: (cells,); corunner: (cells,); power: ()."""

    place: np.ndarray
    growth: np.ndarray
    target: np.ndarray
    slope: np.ndarray
    corunner: np.ndarray
    power: np.ndarray

    def value(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        place, most = rows.target // ground.workloads, self.place.shape[1] - 1
        degree = np.maximum(rows.degree, 1)
        each = self.corunner[rows.corunner]
        if self.power == STRONGEST:
            beside = np.bincount(rows.row, each * rows.share_of_largest(each), len(rows))
        else:
            beside = degree**self.power * rows.mean(each)
        own = self.target[rows.target] + self.slope[rows.target] * np.log(degree)
        past = grown(np.maximum(degree, most), self.power) - grown(np.array(most), self.power)
        level = self.place[place, np.minimum(degree, most)] + self.growth[place] * past
        return level + own + beside


def grown(degree: np.ndarray, power: np.ndarray | float) -> np.ndarray:
    """What grows with the number of co-runners."""
    return degree**power if 0 < power < STRONGEST else np.log(degree)


def fit_effects(rows: SlowdownRows, ground: Ground) -> tuple[RandomEffects, np.ndarray]:
    """(effects, (n,) Huber's weights of the rows)."""
    degree = rows.degree
    # Where one number of co-runners is known, times are taken to add up, factors are not.
    powers = POWERS if len(np.unique(degree)) > 1 else POWERS[-1:] if rows.timed else POWERS[:1]
    by_name = replace(
        rows, target=rows.target % ground.workloads, corunner=rows.corunner % ground.workloads
    )
    of_set = np.unique(keys_of(by_name), return_inverse=True)[1].reshape(-1)
    fits = [_CoRunEffects(rows, ground, of_set, power) for power in powers]
    if len(fits) > 1:
        for each in fits:
            each.learn(ROUNDS_TO_CHOOSE)
        strongest = fits[0]
        for _ in range(ROUNDS_TO_ORDER):
            each = strongest.effects().corunner[rows.corunner]
            share = rows.share_of_largest(each)
            strongest = _CoRunEffects(rows, ground, of_set, STRONGEST, share)
            strongest.learn(ROUNDS_TO_CHOOSE)
        fits.append(strongest)
    best = min(fits, key=lambda each: each.noise)
    best.learn(ROUNDS)
    return best.effects(), best.robust


class _CoRunEffects(EffectsByKind):
    """Of rows with co-runners, whose numbers of them count to this power. of_set: (n,) codes, equal for the
    same target and co-runners everywhere. share: (m,) how much of each co-runner counts instead."""

    def __init__(
        self,
        rows: SlowdownRows,
        ground: Ground,
        of_set: np.ndarray,
        power: float,
        share: np.ndarray | None = None,
    ) -> None:
        degree = rows.degree
        self.rows, self.power, self.most = rows, power, int(degree.max(initial=1))
        self.share = degree[rows.row] ** (power - 1.0) if share is None else share
        self.size = (ground.platforms, ground.workloads)
        super().__init__(rows.value, rows.weight, self._sides(degree, of_set))

    def _sides(self, degree: np.ndarray, of_set: np.ndarray) -> list[Side]:
        rows, n, (p, w), most = self.rows, len(self.rows), self.size, self.most
        place, workload = rows.target // w, rows.target % w
        own, one = np.arange(n), np.ones(n)
        share, sets = self.share, int(of_set.max(initial=-1)) + 1
        by_degree = (own, degree, one, most + 1)
        if len(np.unique(degree)) == 1:
            by_degree = (own[:0], degree[:0], one[:0], most + 1)
        return [
            (own, place, one, p),
            (own, place * (most + 1) + degree, one, p * (most + 1)),
            by_degree,
            (own, workload, one, w),
            (own, rows.target, one, p * w),
            (own, workload, np.log(degree), w),
            (rows.row, rows.corunner % w, share, w),
            (rows.row, rows.corunner, share, p * w),
            # What a workload takes beside just these everywhere, so that what several platforms repeat is no
            # witness of its own; nothing is known of other sets by it.
            *([(own, of_set, one, sets)] if sets < n else []),
        ]

    def effects(self) -> RandomEffects:
        """With zeros where there is no column."""
        p = self.size[0]
        parts = self.parts()
        by_place = self.mean + parts[0][:, None] + parts[1].reshape(p, -1) + parts[2][None]
        target = np.tile(parts[3], p) + parts[4]
        corunner = np.tile(parts[6], p) + parts[7]
        slope = np.tile(parts[5], p)
        growth = self._growth(by_place)
        return RandomEffects(by_place, growth, target, slope, corunner, np.array(self.power))

    def _growth(self, by_place: np.ndarray) -> np.ndarray:
        """(platforms,) by least squares over the numbers of co-runners known; where that is one, in
        proportion or not at all."""
        count = np.bincount(self.rows.degree, self.weight)
        known = np.flatnonzero(count)
        if len(known) < 2:
            return self.power * by_place[:, -1] / self.most
        x = grown(np.maximum(known, 1), self.power)
        x = x - np.average(x, weights=count[known])
        return by_place[:, known] @ (count[known] * x) / (count[known] * x**2).sum()
