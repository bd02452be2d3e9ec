"""Why a bag's prediction is what it is: the questions on its way down the trees.

Source: Moolchandani et al., Sec. VI: the decision path of an answer, the share of answers on whose path a
feature stands (Fig. 10), and how often it does (Fig. 11, 12). With one tree the path is the whole reason;
with many, uses are counted over all of them and the path shown is that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jostle._base.report import Report, Table, duration, percent
from jostle.learn.learners.bags._regression_trees import Trees

if TYPE_CHECKING:
    pass

MOST_SHOWN = 10  # features in the table of what all trees asked about


@dataclass(frozen=True)
class Step:
    """One question: is `feature` at most `threshold`? value: the bag's; None where it is not known."""

    feature: str
    value: float | None
    threshold: float
    is_below: bool


@dataclass(frozen=True)
class BagExplanation:
    """runtime_seconds, solo_seconds: predicted, and measured alone. trees: how many. path: of the first
    tree, from its root. uses: questions about each feature over all trees, most asked first, those never
    asked left out. weights: of the trees and of simple rules in the answer, where rules stand beside them."""

    workload: str
    platform: str
    corunners: tuple[str, ...]
    runtime_seconds: float
    solo_seconds: float
    learner: str
    trees: int
    path: tuple[Step, ...]
    uses: dict[str, int]
    weights: dict[str, float] = field(default_factory=dict)


def path_of(
    trees: Trees, x: np.ndarray, unknown: np.ndarray, names: tuple[str, ...]
) -> tuple[Step, ...]:
    """List the questions of the first tree to a row x: (k,). unknown: (k,) stands for an unknown number."""
    steps = []
    node = int(trees.root[0])
    while trees.left[node] != node:
        at, threshold = int(trees.feature[node]), float(trees.threshold[node])
        below = bool(np.float32(x[at]) <= threshold)
        steps.append(
            Step(names[at], None if x[at] == unknown[at] else float(x[at]), threshold, below)
        )
        node = int((trees.left if below else trees.right)[node])
    return tuple(steps)


def report_of(found: BagExplanation) -> Report:
    """Write the explanation as it is printed."""
    document = {
        "schema": "explain-bag/v1",
        **vars(found),
        "path": [vars(step) for step in found.path],
    }
    beside = " and ".join(found.corunners)
    where = f"{found.workload} on {found.platform} {f'beside {beside}' if beside else 'alone'}"
    alone = "unknown" if np.isnan(found.solo_seconds) else duration(found.solo_seconds)
    tables: list[Table | str] = [
        f"{where}: {duration(found.runtime_seconds)}; alone, as measured, {alone}"
    ]
    if found.weights:
        parts = sorted(found.weights.items(), key=lambda each: -each[1])
        shares = [[name, percent(weight)] for name, weight in parts]
        tables.append(Table(["the answer is made of", "weight"], shares))
    if found.path:
        rows = [
            [
                step.feature,
                "unknown" if step.value is None else f"{step.value:.4g}",
                f"{'at most' if step.is_below else 'above'} {step.threshold:.4g}",
            ]
            for step in found.path
        ]
        title = "the tree asked" if found.trees == 1 else f"the first of {found.trees} trees asked"
        tables.append(Table([title, "here", "so it is"], rows))
    if found.trees > 1 and found.uses:
        total = sum(found.uses.values())
        shares = [[name, percent(n / total)] for name, n in list(found.uses.items())[:MOST_SHOWN]]
        tables.append(Table(["all trees asked about", "share of questions"], shares))
    return Report(document, tables)
