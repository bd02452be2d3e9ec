"""Regression trees as arrays, answered by NumPy.

Nodes of all trees stand in one set of arrays. A row goes left where its number, in single precision as
scikit-learn compares it, is at most the node's threshold; a leaf has -1 for its children. The answer is
`base` plus the weighted sum of the leaves' values.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        x = np.asarray(x, np.float32)
        out = np.full(len(x), float(self.base))
        for tree, weight in enumerate(self.weight):
            node = np.full(len(x), self.root[tree])
            for _, node in self.walk(x, tree):  # noqa: B007  (the last one is the leaf)
                pass
            out += weight * self.value[node]
        return out

    def walk(self, x: np.ndarray, tree: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Step by step down one tree: (rows that were asked, all rows' nodes after the step)."""
        x = np.asarray(x, np.float32)
        node = np.full(len(x), self.root[tree], np.int32)
        asked = np.flatnonzero(self.left[node] >= 0)
        yield np.zeros(0, np.int64), node.copy()
        while len(asked):
            here = node[asked]
            goes_left = x[asked, self.feature[here]] <= self.threshold[here]
            node[asked] = np.where(goes_left, self.left[here], self.right[here])
            yield asked, node.copy()
            asked = asked[self.left[node[asked]] >= 0]

    def uses(self, x: np.ndarray, features: int) -> np.ndarray:
        """(n, features) how many questions about each feature a row meets, over all trees."""
        out = np.zeros((len(x), features), np.int64)
        for tree in range(len(self.root)):
            before: np.ndarray | None = None
            for asked, node in self.walk(x, tree):
                if before is not None:
                    np.add.at(out, (asked, self.feature[before[asked]]), 1)
                before = node
        return out
