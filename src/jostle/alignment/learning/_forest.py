"""Boosted trees on the rates' logarithms: for laws that no smooth form follows.

Friedman, Greedy Function Approximation (Annals of Statistics 29, 2001); grown and answered by NumPy, see
`jostle.rules`. Trees never answer beyond what they learned from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.alignment.learning._rows import AlignedRows
from jostle.rules import Boosting, Forest, grow_forest

SMALLEST = 1e-4  # of a rate's scale: what is less is as good as none
TREES = Boosting(trees=150, depth=4, rate=0.1, share=0.7)


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """scale: (d,) of the rates. forest: of log slowdowns. limits: as of the other learners."""

    scale: np.ndarray
    forest: Forest
    limits: tuple[float, float]

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) of (n, d) rates."""
        ratio = np.exp(self.forest.value(_columns(own, others, self.scale)))
        return np.where((others > 0).any(axis=1), np.clip(ratio, *self.limits), 1.0)


def _columns(own: np.ndarray, others: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(n, 3 d) logarithms of the own rates, of the others', and of how much they add to the own."""
    mine, theirs = np.maximum(own / scale, 0) + SMALLEST, np.maximum(others / scale, 0) + SMALLEST
    return np.log(np.concatenate([mine, theirs, 1 + theirs / mine], axis=1))


def fit_trees(
    rows: AlignedRows, scale: np.ndarray, limits: tuple[float, float], seed: int
) -> BoostedTrees:
    """scale: (d,) of the rates; limits: the least and the largest slowdown to answer."""
    log_slowdown = np.log(np.clip(rows.slowdown, *limits))
    weight = rows.solo_seconds / rows.solo_seconds.mean()
    columns = _columns(rows.own, rows.others, scale)
    return BoostedTrees(scale, grow_forest(columns, log_slowdown, weight, TREES, seed), limits)
