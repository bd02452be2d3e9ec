"""Whether runs beside others take another time than alone at all."""

from __future__ import annotations

import numpy as np

from jostle.rules._weights import nothing_but_noise

SHUFFLES = 999
MOST_SHUFFLED = 2_000  # runs, of whole cells
PLAIN, FAINT = 0.005, 0.1  # probabilities of such a difference by chance: plainly there, faintly
STRICT = 3.0  # standard errors by which answers must be closer than no slowdown where it is not even faint


def chance_of_shift(
    cell: np.ndarray, log_runtime: np.ndarray, beside: np.ndarray, seed: int
) -> float:
    """How often chance alone sets runs beside others so far from runs alone; NaN where no cell has both.

    cell: (n,) what ran where; beside: (n,) bool. Without interference all runs of a cell are alike, so that
    labels may be shuffled within it (a stratified permutation test, Fisher 1935): by the sum of all
    differences, and by that of their squares, twice the smaller probability.
    """
    _, at = np.unique(cell, return_inverse=True)
    both = np.bincount(at, beside) * np.bincount(at, ~beside) > 0
    if not both.any():
        return float("nan")
    random = np.random.default_rng([seed, 29])
    order = random.permutation(np.flatnonzero(both))
    total = np.cumsum(np.bincount(at)[order])
    drawn = np.isin(at, order[: max(1, int(np.searchsorted(total, MOST_SHUFFLED, "right")))])
    _, at = np.unique(at[drawn], return_inverse=True)
    y, label = log_runtime[drawn], beside[drawn]
    order = np.argsort(at, kind="stable")
    at, y, label = at[order], y[order], label[order]
    size, there = np.bincount(at), np.bincount(at, label)
    y = y - (np.bincount(at, y) / size)[at]
    scale = size / (there * (size - there))  # of a sum of those beside, to a difference of means
    # The first row is what was measured; all are in the order of the cells.
    mixed = np.argsort(at + random.random((SHUFFLES + 1, len(at))), axis=1)
    mixed[0] = np.arange(len(at))
    sums = np.add.reduceat(y * label[mixed], np.cumsum(size) - size, axis=1)
    statistics = np.stack([np.abs(sums.sum(1)), (scale * sums**2).sum(1)])
    exceeded = (statistics >= statistics[:, :1] * (1 - 1e-12)).mean(1)
    return float(min(1.0, 2 * exceeded.min()))


def is_noise(chance: float, gain: np.ndarray, sets: np.ndarray) -> bool:
    """Whether what rules answer is to be taken for noise. chance: of chance_of_shift. gain: (n,) by how much
    they are closer than no slowdown."""
    if chance <= PLAIN:
        return False
    if chance > FAINT:
        return nothing_but_noise(gain, sets, STRICT)
    return nothing_but_noise(gain, sets)
