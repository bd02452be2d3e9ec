"""What platforms and lengths of run still lack when every bound lies in proportion to the learned spread.

A platform that is covered less often than the others is so for good: its errors have another shape than their
learned size says. So for each level the quantile of its scaled errors is estimated and its bounds are
widened, or narrowed, towards it. A platform has few errors, so its distribution is mixed with that of
platforms alike, and theirs with that of all (shrinkage of distributions: a Dirichlet prior, Ferguson 1973).
The same is done for lengths of run. Calibration follows on other runs, so the overall promise stays exact.
"""

from __future__ import annotations

import numpy as np

WEIGHT_SEEN = 0.3  # of a training error beside a held-out one
PRIOR = 20.0  # errors that the wider group weighs
POWER = 0.85  # of the way towards the estimate
GRID = 512  # points at which the shape is found
FEWEST = 100  # errors under which it is left as it is


def evened(
    scaled: np.ndarray,
    weight: np.ndarray,
    codes: tuple[np.ndarray, np.ndarray],
    sizes: tuple[int, int],
    level: float,
) -> np.ndarray:
    """Compute (members,) logs of what widths are multiplied with.

    scaled: (n,) errors over their width, such that `level` of all lie under 1. weight: (n,). codes: (member
    (n,), group of each member (members,)). sizes: how many members and groups there are.
    """
    member, group_of = codes
    grid = np.unique(np.quantile(scaled, np.linspace(0, 1, GRID)))
    place = np.minimum(np.searchsorted(grid, scaled), len(grid) - 1)
    every = _cumulative(np.zeros(len(scaled), np.int64), place, weight, (1, len(grid)))
    of_group = _cumulative(group_of[member], place, weight, (sizes[1], len(grid)))
    of_member = _cumulative(member, place, weight, (sizes[0], len(grid)))
    of_group = _mixed(of_group, every)
    of_member = _mixed(of_member, of_group[group_of])
    widest = _quantile(every, grid, max(level, 0.99))[0]
    usual = _quantile(every, grid, level)[0]
    if not usual > 0:
        return np.zeros(sizes[0])
    widths = np.clip(_quantile(of_member, grid, level), 0.2 * usual, max(widest, usual))
    return POWER * np.log(widths / usual)


def _cumulative(
    code: np.ndarray, place: np.ndarray, weight: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Accumulate weights, (codes, grid)."""
    counts = np.bincount(code * shape[1] + place, weight, shape[0] * shape[1])
    return np.cumsum(counts.reshape(shape), axis=1)


def _mixed(own: np.ndarray, wider: np.ndarray) -> np.ndarray:
    """Mix both distributions, the wider one's worth PRIOR errors."""
    return own + PRIOR * wider / wider[..., -1:]


def _quantile(cumulative: np.ndarray, grid: np.ndarray, level: float) -> np.ndarray:
    """Find the least point of the grid up to which the share `level` lies, (codes,)."""
    enough = cumulative >= level * cumulative[:, -1:]
    return grid[enough.argmax(axis=1)]
