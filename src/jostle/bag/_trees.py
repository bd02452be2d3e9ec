"""Regression trees as arrays, answered by NumPy.

Nodes of all trees stand in one set of arrays. A row goes left where its number, in single precision as
scikit-learn compares it, is at most the node's threshold; a leaf has -1 for its children. The answer is
`base` plus the weighted sum of the leaves' values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Trees:
    """feature, left, right: (nodes,) int32; threshold, value: (nodes,) float64; root: (trees,) int32 the
    first node of each; weight: (trees,) float64; base: () float64."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    root: np.ndarray
    weight: np.ndarray
    base: np.ndarray

    @classmethod
    def of(cls, fitted: list[Any], weight: float, base: float) -> Trees:
        """fitted: scikit-learn's `tree_` objects of single-output regressors."""
        start = np.cumsum([0, *(tree.node_count for tree in fitted)])

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(tree, name).reshape(-1) for tree in fitted])

        def moved(name: str) -> np.ndarray:
            parts = [
                np.where(getattr(tree, name) < 0, -1, getattr(tree, name) + shift)
                for tree, shift in zip(fitted, start[:-1], strict=True)
            ]
            return np.concatenate(parts).astype(np.int32)

        return cls(
            joined("feature").astype(np.int32),
            joined("threshold").astype(np.float64),
            moved("children_left"),
            moved("children_right"),
            joined("value").astype(np.float64),
            start[:-1].astype(np.int32),
            np.full(len(fitted), float(weight)),
            np.array(float(base)),
        )

    def predict(self, x: np.ndarray) -> np.ndarray:
        """(n,) from (n, features)."""
        out = np.full(len(x), float(self.base))
        for tree, weight in enumerate(self.weight):
            out += weight * self.value[self._leaves(x, tree)]
        return out

    def uses(self, x: np.ndarray, features: int) -> np.ndarray:
        """(n, features) how many questions about each feature a row meets, over all trees."""
        out = np.zeros((len(x), features), np.int64)
        for tree in range(len(self.root)):
            self._leaves(x, tree, out)
        return out

    def _leaves(self, x: np.ndarray, tree: int, met: np.ndarray | None = None) -> np.ndarray:
        """(n,) where each row ends in a tree. met: (n, features) counts the questions on the way."""
        x = np.asarray(x, np.float32)
        node = np.full(len(x), self.root[tree], np.int32)
        rows = np.flatnonzero(self.left[node] >= 0)
        while len(rows):
            here = node[rows]
            feature = self.feature[here]
            if met is not None:
                np.add.at(met, (rows, feature), 1)
            goes_left = x[rows, feature] <= self.threshold[here]
            node[rows] = np.where(goes_left, self.left[here], self.right[here])
            rows = rows[self.left[node[rows]] >= 0]
        return node
