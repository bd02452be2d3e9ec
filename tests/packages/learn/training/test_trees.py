"""A forest's answers are those of a walk down each tree, node by node."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.learn import Boosting, TreeEnsemble, boost_trees
from jostle.learn.learners.bags._boosted_trees import ROWS_AT_ONCE


def walked(forest: TreeEnsemble, row: np.ndarray) -> float:
    total = float(forest.base)
    inner = forest.feature.shape[1]
    for feature, threshold, leaf in zip(forest.feature, forest.threshold, forest.leaf, strict=True):
        node = 0
        while node < inner:
            node = 2 * node + 1 + int(row[feature[node]] > threshold[node])
        total += leaf[node - inner]
    return total


@pytest.mark.parametrize(("depth", "rows", "trees"), [(1, 40, 5), (4, 900, 12), (9, 1500, 3)])
def test_answers_are_those_of_a_walk(depth: int, rows: int, trees: int) -> None:
    random = np.random.default_rng(depth)
    x = random.normal(size=(rows, 5))
    x[:, 2] = random.integers(0, 3, rows)
    y = x[:, 0] * x[:, 1] + x[:, 2] + 0.1 * random.normal(size=rows)
    how = Boosting(trees=trees, depth=depth)
    forest = boost_trees(x, y, np.ones(rows), how, 0)
    asked = np.concatenate([random.normal(size=(ROWS_AT_ONCE + 3, 5)), x])
    for at, odd in enumerate((np.nan, np.inf, -np.inf)):
        asked[at::97, at] = odd
    found = forest.value(asked)
    some = random.permutation(len(asked))[:200]
    assert np.allclose(found[some], [walked(forest, asked[at]) for at in some], rtol=1e-12)
    one_by_one = np.concatenate([forest.value(asked[at : at + 1]) for at in some])
    assert np.array_equal(found[some], one_by_one)
    assert forest.value(asked[:0]).shape == (0,)


def test_a_forest_without_trees_answers_its_base() -> None:
    empty = TreeEnsemble(
        np.zeros((0, 3), np.int32), np.zeros((0, 3)), np.zeros((0, 4)), np.array(2.5)
    )
    assert np.array_equal(empty.value(np.zeros((2, 1))), [2.5, 2.5])
