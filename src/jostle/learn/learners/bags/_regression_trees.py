"""Regression trees as arrays, answered by NumPy.

Nodes of all trees stand in one set of arrays. A row goes left where its number, in single precision as
scikit-learn compares it, is at most the node's threshold; a node without questions is its own child. The
answer is the mean of the leaves' values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS_AT_ONCE = 1_024  # that go down the trees in one step


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
    def of_forest(cls, fitted: list[Any]) -> Trees:
        """Take over scikit-learn's `tree_` objects of single-output regressors."""
        fields = ("feature", "threshold", "children_left", "children_right", "value")
        return cls._joined(
            [[getattr(tree, name).reshape(-1) for name in fields] for tree in fitted]
        )

    @classmethod
    def of_boosting(cls, fitted: Any) -> Trees:
        """Take over a fitted HistGradientBoostingRegressor, whose leaves are added to a constant."""
        fields = ("feature_idx", "num_threshold", "left", "right", "value")
        nodes = [predictor.nodes for (predictor,) in fitted._predictors]
        parts = [[each[name] for name in fields] for each in nodes]
        base = float(np.ravel(fitted._baseline_prediction)[0])
        for part, each in zip(parts, nodes, strict=True):
            part[2:4] = (np.where(each["is_leaf"], -1, at.astype(np.int64)) for at in part[2:4])
            part[4] = base + len(parts) * part[4]
        return cls._joined(parts)

    @classmethod
    def _joined(cls, parts: list[list[np.ndarray]]) -> Trees:
        """Join trees. parts: of each its features, thresholds, left and right children (-1 for none) and
        values, (nodes,) each."""
        start = np.cumsum([0, *(len(part[0]) for part in parts)])
        for at, (first, part) in enumerate(zip(start[:-1], parts, strict=True)):
            own = np.arange(len(part[0]))
            left, right = (np.where(np.asarray(x, np.int64) < 0, own, x) for x in part[2:4])
            parts[at] = [
                np.where(left == own, 0, part[0]),
                part[1],
                left + first,
                right + first,
                part[4],
            ]
        feature, threshold, left, right, leaf = map(np.concatenate, zip(*parts, strict=True))
        return cls(
            *(feature.astype(np.int32), threshold.astype(np.float64)),
            *(left.astype(np.int32), right.astype(np.int32)),
            *(leaf.astype(np.float64), start[:-1].astype(np.int32)),
        )

    def value(self, x: np.ndarray) -> np.ndarray:
        """Predict (n,) values from (n, features)."""
        out = np.empty(len(x))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = x[start : start + ROWS_AT_ONCE]
            out[start : start + ROWS_AT_ONCE] = self.leaf[self._leaves(part)].mean(1)
        return out

    def uses(self, x: np.ndarray, features: int) -> np.ndarray:
        """Count, (n, features), the questions about each feature that a row meets, over all trees."""
        out = np.zeros((len(x), features), np.int64)
        self._leaves(x, out)
        return out

    def _leaves(self, x: np.ndarray, met: np.ndarray | None = None) -> np.ndarray:
        """Find where each row ends in each tree, (n, trees). met: (n, features) counts the questions on the
        way."""
        x, row = np.asarray(x, np.float32), np.arange(len(x))[:, None]
        node = np.tile(self.root, (len(x), 1))
        while (asks := self.left[node] != node).any():
            feature = self.feature[node]
            if met is not None:
                np.add.at(met, (np.broadcast_to(row, node.shape)[asks], feature[asks]), 1)
            goes_left = x[row, feature] <= self.threshold[node]
            node = np.where(goes_left, self.left[node], self.right[node])
        return node
