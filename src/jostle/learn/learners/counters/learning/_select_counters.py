"""Which counters to learn from, in three steps.

Source: Saeed et al., MLCAD 2021, Sec. IV-A: drop what is always zero; of counters that go together, by
Spearman's rank correlation, keep one; order by permutation importance under ridge, and take the first.
Instructions are always kept. A counter stands for two columns, the workload's own and the others'.
"""

from __future__ import annotations

import numpy as np

from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS

SAME = 0.02  # 1 - |correlation|: counters no further apart tell the same
MOST_ROWS = 4_000  # by which counters are chosen


def select_counters(rows: AlignedRows, most: int, cut: float = SAME) -> tuple[str, ...]:
    """Return at most so many, instructions first, then those that matter most.

    cut: 1 - |correlation| up to which counters tell the same.
    """
    rows = rows.thinned(MOST_ROWS)
    heard = (np.abs(rows.own).max(axis=0) > 0) | (np.abs(rows.others).max(axis=0) > 0)
    left = [name for name, is_heard in zip(rows.counters, heard.tolist(), strict=True) if is_heard]
    distance = distances(rows.with_counters(left).own)
    names = []
    for cluster in _clusters(distance, cut):
        # The one nearest to the others stands for all.
        central = cluster[int(distance[np.ix_(cluster, cluster)].sum(axis=1).argmin())]
        is_axis = INSTRUCTIONS in [left[i] for i in cluster]
        names.append(INSTRUCTIONS if is_axis else left[central])
    importance = dict(zip(names, _importance(rows.with_counters(names)).tolist(), strict=True))
    ranked = sorted(names, key=lambda n: (n != INSTRUCTIONS, -importance[n], n))
    return tuple(ranked[:most])


def distances(values: np.ndarray) -> np.ndarray:
    """Compute (m, m) 1 - |Spearman's correlation| between the columns of (n, m); a constant column is far
    from all."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(column) for column in values.T], axis=1)
    ranks -= ranks.mean(axis=0)
    size = np.sqrt((ranks**2).sum(axis=0))
    unit = ranks / np.where(size > 0, size, 1.0)
    distance = 1.0 - np.abs(unit.T @ unit)
    np.fill_diagonal(distance, 0.0)
    return np.clip((distance + distance.T) / 2, 0.0, 1.0)


def _clusters(distance: np.ndarray, cut: float) -> list[list[int]]:
    """Group columns by average linkage."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(distance) == 1:
        return [[0]]
    tree = linkage(squareform(distance, checks=False), "average")
    labels = fcluster(tree, cut, "distance")
    return [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]


def _importance(rows: AlignedRows) -> np.ndarray:
    """Compute the importance (d,) of each counter, both its columns together, on the paper's plain features:
    rise of the slowdown's mean squared error, over all ways to shuffle a column."""
    x = np.concatenate([rows.own, rows.others], axis=1)
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    y = (rows.slowdown - rows.slowdown.mean()) / (rows.slowdown.std() or 1.0)
    weights = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)
    rise = 2 * weights * (weights * (x**2).mean(axis=0) + (y - x @ weights) @ x / len(x))
    return rise.reshape(2, -1).sum(axis=0)
