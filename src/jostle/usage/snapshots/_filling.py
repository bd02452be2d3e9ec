"""Values of single counters that are missing where others of the same sample are known.

`perf` counts more counters than there are registers by turns, and what was not its turn is not known. Leaving
such samples out leaves few or none, and those that are left are not alike. So each missing value is drawn
from a run that has it at the same time and was alike in what both have (hot-deck imputation: Andridge and
Little, International Statistical Review 78, 2010, Sec. 3): measured values only, in their own frequencies.
Where no run has a counter at a time, a run's own values just before and after stand in.
"""

from __future__ import annotations

import numpy as np

DONORS = 5  # alike runs of which one gives its value
REACH = 10  # times before and after from which a run's own value may come
FEWEST = 3  # runs that have a counter at a time: with fewer, runs' own values come first


def filled(states: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """states: (R, s, d), NaN where not known. Returns the same without NaN where a run has any value at a
    time and one can be found for the others, and (s, d) the share of values filled in."""
    partial = np.isfinite(states).any(axis=2) & ~np.isfinite(states).all(axis=2)
    shares = np.zeros(states.shape[1:])
    if not partial.any():
        return states, shares
    whole = states.copy()
    known = np.isfinite(states)
    unit = _units(states)
    for k in np.flatnonzero(partial.any(axis=0)).tolist():
        going = known[:, k].any(axis=1)
        for column in np.flatnonzero(~known[going, k].all(axis=0)).tolist():
            needing = np.flatnonzero(going & ~known[:, k, column])
            donors = np.flatnonzero(known[:, k, column])
            if len(donors) >= FEWEST:
                random = np.random.default_rng([seed, k, column])
                chosen = _alike(states[:, k] * unit, needing, donors, random)
                whole[needing, k, column] = states[chosen, k, column]
            else:
                whole[needing, k, column] = _own(states[needing, :, column], k)
            shares[k, column] = len(needing) / going.sum()
    return whole, shares


def _units(states: np.ndarray) -> np.ndarray:
    """Return (d,) 1 / a typical range of each component, 0 for one that never changes or is never known."""
    unit = np.zeros(states.shape[2])
    for column in range(len(unit)):
        values = states[:, :, column][np.isfinite(states[:, :, column])]
        if len(values):
            low, high = np.quantile(values, (0.1, 0.9))
            extent = high - low or np.ptp(values)
            unit[column] = 1 / extent if extent > 0 else 0.0
    return unit


def _alike(
    states: np.ndarray, needing: np.ndarray, donors: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return one donor for each run in need: of the DONORS nearest in what both know, each as seldom as
    can be."""
    order = donors[random.permutation(len(donors))]
    gap = states[needing, None] - states[None, order]
    shared = np.isfinite(gap).sum(axis=2)
    with np.errstate(invalid="ignore"):
        distance = np.nansum(np.abs(gap), axis=2) / np.maximum(shared, 1)
    distance = np.where(shared > 0, distance, np.inf)
    used = np.zeros(len(order))
    chosen = np.empty(len(needing), int)
    for row in random.permutation(len(needing)):
        near = np.argsort(distance[row], kind="stable")[: DONORS if shared[row].any() else None]
        best = near[np.argmin(used[near])]
        used[best] += 1
        chosen[row] = order[best]
    return chosen


def _own(values: np.ndarray, k: int) -> np.ndarray:
    """values: (m, s) of one counter. The runs' own at time k by the nearest known before and after it, NaN
    where none is within REACH."""
    estimate = np.full(len(values), np.nan)
    for row, series in enumerate(values):
        where = np.flatnonzero(np.isfinite(series))
        where = where[np.abs(where - k) <= REACH]
        if len(where):
            estimate[row] = np.interp(k, where, series[where])
    return estimate
