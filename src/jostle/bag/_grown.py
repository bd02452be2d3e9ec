"""Trees grown: boosting in NumPy, one tree or a forest by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.bag._settings import BagSettings
from jostle.bag._trees import Trees
from jostle.errors import MissingExtra
from jostle.rules import Boosting, Forest, grow_forest

FEWEST_IN_LEAF = {"tree": 1, "forest": 2, "boosting": 3}  # of CART: the paper's
# Of boosting: as deep as the leaves of a full tree hold so many rows.
LEAST_DEPTH, MOST_DEPTH, ROWS_IN_LEAF = 3, 5, 16


def grown(
    how: BagSettings, x: np.ndarray, y: np.ndarray, weight: np.ndarray, seed: int
) -> Forest | Trees:
    """x: (n, k), y, weight: (n,). Raises MissingExtra."""
    fewest = how.fewest or FEWEST_IN_LEAF[how.learner]
    if how.learner == "boosting":
        leaves = max(len(y) // ROWS_IN_LEAF, 1)
        depth = how.depth or min(max(leaves.bit_length() - 1, LEAST_DEPTH), MOST_DEPTH)
        boosting = Boosting(how.trees, depth, how.learning_rate, fewest=fewest)
        return grow_forest(x, y, weight, boosting, seed)
    try:
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.tree import DecisionTreeRegressor
    except ModuleNotFoundError:
        raise MissingExtra("scikit-learn", "fit") from None
    shared: dict[str, Any] = {
        "min_samples_leaf": fewest,
        "random_state": seed,
        "max_depth": how.depth,
    }
    x = x.astype(np.float32)
    if how.learner == "tree":
        return Trees.of([DecisionTreeRegressor(**shared).fit(x, y, weight).tree_])
    forest = RandomForestRegressor(how.trees, max_features=0.5, n_jobs=1, **shared)
    return Trees.of([tree.tree_ for tree in forest.fit(x, y, weight).estimators_])
