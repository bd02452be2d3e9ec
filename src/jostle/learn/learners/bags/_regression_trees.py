"""Regression trees as arrays, answered by NumPy.

Nodes of all trees stand in one set of arrays. A row goes left where its number, in single precision as
scikit-learn compares it, is at most the node's threshold; a node without questions has -1 for its children.
The answer is the mean of the leaves' values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.learn.learners.bags._boosted_trees import TreeEnsemble


@dataclass(frozen=True)
class Trees:
    """feature, left, right: (nodes,) int32; threshold, leaf: (nodes,) float64; root: (trees,) int32 the first
    node of each."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, fitted: list[Any]) -> Trees:
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
        )

    @classmethod
    def as_nodes(cls, grown: TreeEnsemble | Trees) -> Trees:
        """Convert to nodes with the same questions; none where all of a full tree's rows go left."""
        if isinstance(grown, Trees):
            return grown
        trees, inner = grown.feature.shape
        at, first = np.arange(2 * inner + 1), (2 * inner + 1) * np.arange(trees)[:, None]
        every = np.zeros((3, trees, 2 * inner + 1))
        every[0, :, :inner], every[1, :, :inner] = grown.feature, grown.threshold
        every[2, :, inner:] = grown.leaf
        below = first + np.where(at < inner, 2 * at + 1, -1 - first)
        left, right = below, np.where(below < 0, -1, below + 1)
        for node in range(inner - 1, -1, -1):  # from the lowest up
            is_none = ~np.isfinite(grown.threshold[:, node])
            child = left[is_none, node] - first[is_none, 0]
            for part in (left, right, *every):
                part[is_none, node] = part[is_none, child]
        feature, threshold, leaf = (part.ravel() for part in every)
        nodes = (left.ravel().astype(np.int32), right.ravel().astype(np.int32))
        return cls(
            *(feature.astype(np.int32), threshold.astype(np.float32).astype(np.float64)),
            *(*nodes, leaf, first[:, 0].astype(np.int32)),
        )

    def value(self, x: np.ndarray) -> np.ndarray:
        """Predict (n,) values from (n, features)."""
        out = np.zeros(len(x))
        for tree in range(len(self.root)):
            out += self.leaf[self._leaves(x, tree)]
        return out / len(self.root)

    def uses(self, x: np.ndarray, features: int) -> np.ndarray:
        """Count, (n, features), the questions about each feature that a row meets, over all trees."""
        out = np.zeros((len(x), features), np.int64)
        for tree in range(len(self.root)):
            self._leaves(x, tree, out)
        return out

    def _leaves(self, x: np.ndarray, tree: int, met: np.ndarray | None = None) -> np.ndarray:
        """Find where each row ends in a tree, (n,). met: (n, features) counts the questions on the way."""
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
