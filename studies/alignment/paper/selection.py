"""Which counters to learn from, in three steps that can be looked at.

Source: Saeed et al., MLCAD 2021, Sec. IV-A: drop what is always zero; cluster by Spearman's rank
correlation, cut at distance 0.4 and keep one of each cluster; order by permutation importance under ridge
and take the prefix with the least error. Instructions are always kept. A counter stands for two columns,
the workload's own and the others'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.errors import MissingExtra, NotEnoughRuns, UsageError
from jostle.learn.learners.counters import INSTRUCTIONS, AlignedRows
from studies.alignment.paper.ridge import fit_ridge, per_sample_error, ridge
from studies.alignment.paper.row_folds import folds_of

CUTS = (0.4, 0.15, 0.02)  # the paper's, and finer ones for hosts that count few things
MOST_ROWS = 4_000
SHUFFLES = 3  # of each column
CHECKS = 2  # folds of workloads left out that a prefix is assessed on


@dataclass(frozen=True)
class CounterSelection:
    """What each step did.

    counters: all that were offered. zero: those always zero or constant-zero on both sides. clusters: of
    the rest, by the cut. linkage: (m - 1, 4) SciPy's tree over `clustered`. kept: one per cluster.
    importance: {counter: rise of the mean squared error when shuffled}, ranked: kept ones by it, the
    highest first. errors: (len(ranked),) per-sample error on workloads left out with the first 1, 2,
    … of them. chosen: the prefix, instructions first.
    """

    counters: tuple[str, ...]
    zero: tuple[str, ...]
    clustered: tuple[str, ...]
    linkage: np.ndarray
    cut: float
    clusters: tuple[tuple[str, ...], ...]
    kept: tuple[str, ...]
    importance: dict[str, float]
    ranked: tuple[str, ...]
    errors: np.ndarray
    chosen: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }


def select_counters(
    rows: AlignedRows,
    validation: AlignedRows | None = None,
    *,
    cut: float = CUTS[0],
    most: int | None = None,
    form: str = "interacting",
    seed: int = 0,
) -> CounterSelection:
    """The three steps. A prefix is assessed on workloads left out, and on `validation`, rows of sets that
    are not in `rows`, where there are any.

    form: of the ridge that assesses a prefix. most: the longest prefix allowed, instructions included.
    Raises UsageError for a cut outside [0, 1],
    MissingExtra without SciPy.
    """
    if not 0 <= cut <= 1:
        raise UsageError(f"the cut {cut} is not between 0 and 1")
    rows = rows.thinned(MOST_ROWS)
    checks = [(rows.take(train), rows.take(test)) for train, test in folds_of(rows, seed)[:CHECKS]]
    if validation is not None and len(validation):
        checks.append((rows, validation.thinned(MOST_ROWS)))
    checks = [(train, test) for train, test in checks if len(train) > 1 and len(test)]
    if not checks:
        raise NotEnoughRuns(
            f"{len(rows)} periods of windows are too few to choose counters by",
            fix="Trace more windows, or say which counters to learn from.",
        )
    silent = (np.abs(rows.own).max(axis=0) == 0) & (np.abs(rows.others).max(axis=0) == 0)
    zero, left = (
        tuple(n for n, s in zip(rows.counters, silent, strict=True) if s == is_zero)
        for is_zero in (True, False)
    )
    distance = distances(rows.with_counters(left).own)
    tree, clusters = _clusters(left, distance, cut)
    middles = tuple(_middle(cluster, left, distance) for cluster in clusters)
    importance = _importance(rows.with_counters(middles), form, seed)
    rest = sorted((n for n in middles if n != INSTRUCTIONS), key=lambda n: (-importance[n], n))
    ranked = (INSTRUCTIONS, *rest)

    def error(counters: Sequence[str]) -> float:
        total = 0.0
        for train, test in checks:
            some = train.with_counters(counters)
            learned = fit_ridge(some, form, 1e-2, rounds=0)
            total += per_sample_error(learned, test.with_counters(counters))
        return total / len(checks)

    errors = np.full(len(ranked), np.nan)
    for size in range(1, min(len(ranked), most or len(ranked)) + 1):
        errors[size - 1] = error(ranked[:size])
    return CounterSelection(
        counters=rows.counters,
        zero=zero,
        clustered=left,
        linkage=tree,
        cut=cut,
        clusters=clusters,
        kept=middles,
        importance=importance,
        ranked=ranked,
        errors=errors,
        chosen=ranked[: int(np.nanargmin(errors)) + 1],
    )


def distances(values: np.ndarray) -> np.ndarray:
    """(m, m) 1 - |Spearman's correlation| between the columns of (n, m); a constant column is far from
    all."""
    try:
        from scipy.stats import rankdata
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "fit") from None

    ranks = np.stack([rankdata(column) for column in values.T], axis=1)
    ranks -= ranks.mean(axis=0)
    size = np.sqrt((ranks**2).sum(axis=0))
    unit = ranks / np.where(size > 0, size, 1.0)
    distance = 1.0 - np.abs(unit.T @ unit)
    np.fill_diagonal(distance, 0.0)
    return np.clip((distance + distance.T) / 2, 0.0, 1.0)


def _clusters(
    names: tuple[str, ...], distance: np.ndarray, cut: float
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """(SciPy's tree, clusters in the order of their first counters)."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(names) == 1:
        return np.zeros((0, 4)), (names,)
    tree = linkage(squareform(distance, checks=False), "average")
    clusters: dict[int, list[str]] = {}
    for name, label in zip(names, fcluster(tree, cut, "distance").tolist(), strict=True):
        clusters.setdefault(label, []).append(name)
    return tree, tuple(tuple(cluster) for cluster in clusters.values())


def _middle(cluster: tuple[str, ...], names: tuple[str, ...], distance: np.ndarray) -> str:
    """The one nearest to the others; instructions where they are among them."""
    if INSTRUCTIONS in cluster:
        return INSTRUCTIONS
    at = [names.index(n) for n in cluster]
    return cluster[int(np.argmin(distance[np.ix_(at, at)].sum(axis=1)))]


def _importance(rows: AlignedRows, form: str, seed: int) -> dict[str, float]:
    """Of each counter, both its columns together, on the paper's plain features: by how much the mean squared
    error rises when a column is shuffled."""
    x = np.concatenate([rows.own, rows.others], axis=1)
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    y = rows.count / rows.period_seconds if form == "linear" else rows.slowdown
    y = (y - y.mean()) / (y.std() or 1.0)
    weights, _ = ridge(x, y, np.ones(len(x)), 1.0 / len(x))
    rest = y - x @ weights
    random = np.random.default_rng(seed)
    rise = np.zeros(x.shape[1])
    for column, weight in enumerate(weights.tolist()):
        for _ in range(SHUFFLES):
            moved = (random.permutation(x[:, column]) - x[:, column]) * weight
            rise[column] += float(np.mean((rest - moved) ** 2 - rest**2)) / SHUFFLES
    d = len(rows.counters)
    return {n: float(rise[i] + rise[d + i]) for i, n in enumerate(rows.counters)}
