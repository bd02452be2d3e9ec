"""Gradient boosting with Huber's loss on binned columns, in NumPy: full trees of one depth.

Friedman, Greedy Function Approximation (Annals of Statistics 29, 2001), Algorithms 1 and 4. All nodes of a
level are split at once, from sums over bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.learn.training._relative_error import weighted_median

MOST_BINS, ROWS_IN_BIN = 32, 8
QUANTILE = 0.9  # of the residuals' sizes, where the loss turns linear
ROWS_AT_ONCE = 1_024


@dataclass(frozen=True)
class Boosting:
    """How trees are grown. share: of the rows that each tree sees. fewest: rows in a leaf."""

    trees: int = 100
    depth: int = 4
    rate: float = 0.1
    share: float = 0.7
    fewest: int = 3


@dataclass(frozen=True)
class TreeEnsemble:
    """feature, threshold: (trees, 2^depth - 1), a row goes right where its number is above; value: (trees,
    2^depth), the rate inside; base: ()."""

    feature: np.ndarray
    threshold: np.ndarray
    leaf: np.ndarray
    base: np.ndarray

    def value(self, x: np.ndarray) -> np.ndarray:
        """Predict (n,) values from (n, columns)."""
        trees, inner = self.feature.shape
        if not trees:
            return np.full(len(x), float(self.base))
        edges, level = self._edges
        coded = _coded(x, edges)
        feature, first = self.feature.ravel(), (inner + 1) * np.arange(trees)[:, None]
        leaf, out = self.leaf.ravel(), np.empty(len(x))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = coded[:, start : start + ROWS_AT_ONCE]
            right = part[feature] > level[:, None]
            reached = _leaf_of(right.reshape(trees, inner, -1))
            # From the first tree to the last whatever the number of rows: a sum of one row goes by pairs.
            alone = len(x) == start + 1
            each = leaf[first + (np.repeat(reached, 2, axis=1) if alone else reached)]
            out[start : start + ROWS_AT_ONCE] = each.sum(0)[: len(x) - start]
        return out + float(self.base)

    @cached_property
    def _edges(self) -> tuple[list[np.ndarray], np.ndarray]:
        """(for each column its thresholds, (trees * inner,) which of them each node has)."""
        feature, threshold = self.feature.ravel(), self.threshold.ravel()
        edges = [np.unique(threshold[feature == at]) for at in range(int(feature.max()) + 1)]
        level = np.empty(len(feature), np.uint8)  # of at most as many as there are bins
        for at, edge in enumerate(edges):
            mine = feature == at
            level[mine] = np.searchsorted(edge, threshold[mine])
        return edges, level


def _coded(x: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """Count the thresholds of its column that each number is above, (columns, n); 0 for NaN."""
    coded = np.empty((len(edges), len(x)), np.uint8)
    missing = np.isnan(x)
    for at, edge in enumerate(edges):
        coded[at] = edge.searchsorted(x[:, at])
    if missing.any():
        coded[missing[:, : len(edges)].T] = 0
    return coded


def _leaf_of(right: np.ndarray) -> np.ndarray:
    """Find the leaf that is reached, (trees, n). right: (trees, inner, n) where each node sends a row."""
    inner = right.shape[1]
    most = inner.bit_length()
    bit = right.view(np.uint8) if most <= 8 else right.astype(np.int64)
    below = bit[:, inner // 2 :]  # leaves under each node of a level, from the lowest up
    for height in range(1, most):
        first = 2 ** (most - height - 1) - 1
        mine = bit[:, first : 2 * first + 1]
        left, other = below[:, ::2], below[:, 1::2] | (1 << height)
        below = left ^ ((left ^ other) & (-mine))  # the right one where the bit is set
    return below[:, 0]


def boost_trees(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, how: Boosting, seed: int
) -> TreeEnsemble:
    """x: (n, columns), y, weight: (n,)."""
    random = np.random.default_rng([seed, 7])
    bins = int(np.clip(len(y) // ROWS_IN_BIN, 8, MOST_BINS))
    edges = [
        np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1], method="lower"))
        for column in x.T
    ]
    # A number goes right where it is above the edge, so a bin holds what is at most its edge.
    binned = np.stack(
        [np.searchsorted(edge, column) for edge, column in zip(edges, x.T, strict=True)], 1
    )
    thresholds = np.full((x.shape[1], bins), np.inf)
    for at, edge in enumerate(edges):
        thresholds[at, : len(edge)] = edge
    base = weighted_median(y, weight)
    current = np.full(len(y), base)
    inner, last = 2**how.depth - 1, int(QUANTILE * (len(y) - 1))
    feature = np.zeros((how.trees, inner), np.int32)
    threshold = np.full((how.trees, inner), np.inf)
    leaf = np.zeros((how.trees, inner + 1))
    for tree in range(how.trees):
        rest = y - current
        size = np.abs(rest)
        edge = max(float(np.partition(size, last)[last]), 1e-12)
        drawn = random.random(len(y)) < how.share if how.share < 1 else np.ones(len(y), bool)
        if drawn.sum() < 2 * how.fewest:
            drawn[:] = True
        robust = weight * np.minimum(1.0, edge / np.maximum(size, 1e-300))
        clipped = np.clip(rest, -edge, edge)
        node, feature[tree], at = _split(binned, (clipped, weight), drawn, how, bins)
        threshold[tree] = np.where(at < 0, np.inf, thresholds[feature[tree], np.maximum(at, 0)])
        inside = np.bincount(node[drawn], robust[drawn], inner + 1)
        total = np.bincount(node[drawn], (robust * rest)[drawn], inner + 1)
        leaf[tree] = how.rate * np.where(inside > 0, total / np.maximum(inside, 1e-300), 0.0)
        current = current + leaf[tree, node]
    return TreeEnsemble(feature, threshold, leaf, np.array(base))


def _split(
    binned: np.ndarray,
    pull: tuple[np.ndarray, np.ndarray],
    drawn: np.ndarray,
    how: Boosting,
    bins: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grow one tree. Returns ((n,) leaf of every row, (inner,) features, (inner,) the last bin that goes
    left, -1 where all do). pull: (n,) slopes of the loss, and weights."""
    n, columns = binned.shape
    slope, weight = pull
    plain = bool((weight == 1).all())
    node = np.zeros(n, np.int64)
    features, places = [], []
    offset = np.arange(columns) * bins
    inside = np.flatnonzero(drawn)
    mine = binned[inside] + offset
    for level in range(how.depth):
        nodes = 2**level
        key = (node[inside, None] * (columns * bins) + mine).ravel()
        size = nodes * columns * bins

        def summed(
            values: np.ndarray | None, key: np.ndarray = key, size: int = size
        ) -> np.ndarray:
            each = None if values is None else np.repeat(values[inside], columns)
            total = np.bincount(key, each, size)
            return np.cumsum(total.reshape(-1, columns, bins), axis=2)

        total, rows = summed(slope * weight), summed(None)
        count = rows if plain else summed(weight)
        whole, every = total[:, :, -1:], count[:, :, -1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = total**2 / count + (whole - total) ** 2 / (every - count) - whole**2 / every
        allowed = (rows >= how.fewest) & (rows[:, :, -1:] - rows >= how.fewest)
        gain = np.where(allowed & np.isfinite(gain), gain, -1.0).reshape(nodes, -1)
        best = np.argmax(gain, axis=1)
        feature = best // bins
        place = np.where(gain[np.arange(nodes), best] > 1e-15, best % bins, -1)
        features.append(feature)
        places.append(place)
        goes_right = (place[node] >= 0) & (
            binned[np.arange(n), feature[node]] > np.maximum(place[node], 0)
        )
        node = 2 * node + goes_right
    return node, np.concatenate(features), np.concatenate(places)
