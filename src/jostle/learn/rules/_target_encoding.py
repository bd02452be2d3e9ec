"""Boosting on target encodings: shrunken means by target, co-runner, platform and their pairs, out of fold.

Encodings of the rows that trees learn from are made from the other folds, whole sets of workloads at a
time; otherwise a row's own value, or that of its other side, would stand in its columns (Micci-Barreca,
SIGKDD Explorations 3, 2001).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.rules._boosted_trees import Boosting, TreeEnsemble, boost_trees
from jostle.learn.rules._shrunk_weights import folds_of
from jostle.learn.rules._slowdown_rows import CellTable, SlowdownRows, looked_up

FOLDS = 5
MANY, FEW_TREES = 300, 60  # rows under which fewer trees are grown
SHRINKAGE = 2.0  # rows that the overall mean weighs beside a name's own
KINDS = ("platform", "target", "corunner", "here", "beside", "pair", "set", "counted")
TURNED = (
    "here",
    "beside",
    "pair",
)  # encodings that are also looked up with target and co-runner exchanged


@dataclass(frozen=True)
class EncodedNames:
    """key: (k,) ascending numbers of names by kind, mean: (k,); start: (kinds + 1,) where each kind begins;
    overall: ()."""

    key: np.ndarray
    mean: np.ndarray
    start: np.ndarray
    overall: np.ndarray


@dataclass(frozen=True)
class Encoded:
    """forest: on the columns that the names make."""

    names: EncodedNames
    forest: TreeEnsemble

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        return self.forest.value(_columns(self.names, rows, cell_table))


def fit_encoded(
    rows: SlowdownRows, y: np.ndarray, sets: np.ndarray, cell_table: CellTable, seed: int
) -> Encoded:
    """y: (n,) what is to be learned of the rows. sets: (n,) codes of what is left out together."""
    fold = folds_of(sets, FOLDS, np.random.default_rng([seed, 5]))
    x = np.zeros((len(rows), len(KINDS) + len(TURNED) + 3))
    for part in np.unique(fold):
        held = fold == part
        if not held.all():
            tables = _tables(rows.take(~held), y[~held], cell_table)
            x[held] = _columns(tables, rows.take(held), cell_table)
    how = Boosting() if len(rows) >= MANY else Boosting(trees=FEW_TREES)
    forest = boost_trees(x, y, rows.weight, how, seed)
    return Encoded(_tables(rows, y, cell_table), forest)


def _tables(rows: SlowdownRows, y: np.ndarray, cell_table: CellTable) -> EncodedNames:
    overall = float(np.average(y, weights=rows.weight))
    weight = rows.weight[rows.row] / rows.degree[rows.row]
    keys, means, start = [], [], [0]
    for kind in KINDS:
        key, at = np.unique(_key(rows, kind, cell_table), return_inverse=True)
        count = np.bincount(at, weight) + SHRINKAGE
        means.append(overall + np.bincount(at, weight * (y[rows.row] - overall)) / count)
        keys.append(key)
        start.append(start[-1] + len(key))
    return EncodedNames(
        np.concatenate(keys), np.concatenate(means), np.array(start), np.array(overall)
    )


def _columns(tables: EncodedNames, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
    """(n, columns)."""

    def found(kind: str, default: float | np.ndarray, turned: bool = False) -> np.ndarray:
        number = KINDS.index(kind)
        inside = slice(tables.start[number], tables.start[number + 1])
        query = _key(rows, kind, cell_table, turned)
        return looked_up(tables.key[inside], tables.mean[inside], query, default)

    def encoded(kind: str, turned: bool = False) -> np.ndarray:
        overall = float(tables.overall)
        default = found("here", overall) if kind == "counted" else overall
        return rows.mean(found(kind, default, turned))

    return np.column_stack(
        [
            *(encoded(kind) for kind in KINDS),
            *(encoded(kind, turned=True) for kind in TURNED),
            cell_table.level[rows.target],
            rows.mean(cell_table.level[rows.corunner]),
            rows.degree,
        ]
    )


def _key(rows: SlowdownRows, kind: str, cell_table: CellTable, turned: bool = False) -> np.ndarray:
    """(m,) numbers of what the rows share."""
    w = cell_table.workloads
    one, other = rows.target[rows.row], rows.corunner
    if turned:
        one, other = other, one
    if kind == "platform":
        return one // w
    if kind == "target":
        return one % w
    if kind == "corunner":
        return other % w
    if kind == "here":
        return one
    if kind == "beside":
        return other
    if kind == "counted":  # the target beside so many
        return one + cell_table.cells * rows.degree[rows.row]
    low, high = np.minimum(one % w, other % w), np.maximum(one % w, other % w)
    return (one % w) * w + other % w if kind == "pair" else low * w + high
