"""Additive random effects of target and co-runners.

value = m + platform + platform and degree + target + target on the platform
        + d^power mean_j (co-runner + co-runner on the platform) + target * log d

or with the largest over j in place of the mean, which is power infinity here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle._base.mixed_effects import Block, MixedEffects, fit_mixed_effects
from jostle.learn.training._set_keys import keys_of
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

# How co-runners' effects grow with their number, tried where several are seen; and only the strongest counts.
POWERS, STRONGEST = (0.0, 0.5, 1.0), np.inf
ROUNDS_TO_ORDER = 2  # who is the strongest follows from what is learned of each
# Share of the mean square in each block at first, so small that a set far off is no effect of its own.
EXPECTED = 0.03


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

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        place, most = rows.target // cell_table.workloads, self.place.shape[1] - 1
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
    """Scale numbers of co-runners to what effects grow with: a power, or the log."""
    return degree**power if 0 < power < STRONGEST else np.log(degree)


def fit_effects(
    rows: SlowdownRows, cell_table: CellTable, power: float | None = None
) -> RandomEffects:
    """Fit additive effects. power: of the number of co-runners that their effects grow with; None: that of
    the least noise."""
    degree = rows.degree
    several = len(np.unique(degree)) > 1
    # Where one number of co-runners is known, times are taken to add up, factors are not.
    powers = POWERS if several else POWERS[-1:] if rows.timed else POWERS[:1]
    tries_strongest = several and power in (None, STRONGEST)
    if several and power is not None:
        powers = powers[:1] if power == STRONGEST else (power,)
    fits = [(one, _fitted(rows, cell_table, degree[rows.row] ** (one - 1.0))) for one in powers]
    if tries_strongest:
        strongest = fits[0][1]
        for _ in range(ROUNDS_TO_ORDER):
            each = _of_corunners(strongest, cell_table)[rows.corunner]
            strongest = _fitted(rows, cell_table, rows.share_of_largest(each))
        fits = [*(fits if power is None else ()), (STRONGEST, strongest)]
    chosen, best = min(fits, key=lambda fit: fit[1].noise_variance[0])
    return _effects(best, rows, cell_table, chosen)


def _of_corunners(fit: MixedEffects, cell_table: CellTable) -> np.ndarray:
    return np.tile(fit.effect["corunner"], cell_table.platforms) + fit.effect["corunner there"]


def _fitted(rows: SlowdownRows, cell_table: CellTable, share: np.ndarray) -> MixedEffects:
    """Fit mixed effects. share: (m,) how much each co-runner counts."""
    degree, (p, w) = rows.degree, (cell_table.platforms, cell_table.workloads)
    place, workload, most = rows.target // w, rows.target % w, int(degree.max(initial=1))
    design = {
        "all": Block.of(np.zeros(len(rows), np.int64), 1),
        "platform": Block.of(place, p),
        "platform and number": Block.of(place * (most + 1) + degree, p * (most + 1)),
        "number": Block.of(np.where(len(np.unique(degree)) > 1, degree, -1), most + 1),
        "target": Block.of(workload, w),
        "target there": Block.of(rows.target, p * w),
        "target by number": Block.of(workload, w, np.log(degree)),
        "corunner": Block.of(rows.corunner % w, w, share, rows.row),
        "corunner there": Block.of(rows.corunner, p * w, share, rows.row),
    }
    # What a workload takes beside just these everywhere, so that what several platforms repeat is no witness
    # of its own; nothing is known of other sets by it.
    by_name = replace(rows, target=workload, corunner=rows.corunner % w)
    of_set = np.unique(keys_of(by_name), return_inverse=True)[1].reshape(-1)
    sets = int(of_set.max(initial=-1)) + 1
    if sets < len(rows):
        # Its size goes with the runtime, as the noise does: a long set is farther off than a short one.
        own = Block.of(of_set, sets, np.sqrt(rows.trust / rows.weight))
        design["set"] = replace(own, heavy=True)
    return fit_mixed_effects(design, rows.value, rows.weight, fixed=("all",), expected=EXPECTED)


def _effects(
    fit: MixedEffects, rows: SlowdownRows, cell_table: CellTable, power: float
) -> RandomEffects:
    p, e = cell_table.platforms, fit.effect
    by_place = e["all"] + e["platform"][:, None] + e["platform and number"].reshape(p, -1)
    by_place = by_place + e["number"]
    target = np.tile(e["target"], p) + e["target there"]
    slope = np.tile(e["target by number"], p)
    growth = _growth(rows, by_place, power)
    about = by_place, growth, target, slope, _of_corunners(fit, cell_table)
    return RandomEffects(*about, np.array(power))


def _growth(rows: SlowdownRows, by_place: np.ndarray, power: float) -> np.ndarray:
    """Estimate for each platform (platforms,) how much `by_place` rises for each unit of `grown`, to go past
    the most co-runners seen. It is the slope of a least-squares line through the numbers of co-runners seen.
    Where only one number was seen, the line goes through zero at no co-runners; at power 0 it is flat."""
    count = np.bincount(rows.degree, rows.weight)
    known = np.flatnonzero(count)
    if len(known) < 2:
        return power * by_place[:, -1] / (by_place.shape[1] - 1)
    x = grown(np.maximum(known, 1), power)
    x = x - np.average(x, weights=count[known])
    return by_place[:, known] @ (count[known] * x) / (count[known] * x**2).sum()
