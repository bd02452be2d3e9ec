"""Measured slowdowns beside each co-runner alone, combined by a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.errors import require_choice
from jostle.evaluate.rivals._beside import Beside, RuleAnswers
from jostle.evaluate.rivals._effects import AdditiveEffects
from jostle.evaluate.rivals._rival import Rival
from jostle.methods import Prepared
from jostle.progress import Progress
from jostle.rules import SlowdownRows, looked_up

PAIR_RULES = ("worst", "sum", "product", "mean")


@dataclass(frozen=True)
class OwnPairs(Rival):
    """Of the slowdowns beside each co-runner alone: the `worst`, the `sum` of what they add, their
    `product`, or their `mean`. Pairs never measured are those of the additive effects."""

    rule: str

    name: ClassVar[str] = "own_pairs"

    def __post_init__(self) -> None:
        require_choice("rule", self.rule, PAIR_RULES)

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> RuleAnswers:
        """Raises NotEnoughRuns without runs alone."""
        data = Beside.of(prepared)
        w = len(data.names[0])
        additive = AdditiveEffects().fit(prepared, seed=seed).rule
        rows = data.rows
        single = rows.degree[rows.row] == 1
        key = _keys(rows, w)[single]
        pair, at = np.unique(key, return_inverse=True)
        mean = np.bincount(at, rows.log_slowdown[rows.row[single]]) / np.bincount(at)

        def combined(query: SlowdownRows) -> np.ndarray:
            key = _keys(query, w)
            numbers, unknown = np.arange(len(key)), np.zeros(len(key))
            each = additive(
                SlowdownRows(query.target[query.row], query.corunner, numbers, unknown, unknown)
            )
            own = looked_up(pair, mean, key, np.nan)
            each = np.where(np.isnan(own), each, own)
            if self.rule == "worst":
                worst = np.full(len(query), -np.inf)
                np.maximum.at(worst, query.row, each)
                return worst
            if self.rule == "product":
                return np.bincount(query.row, each, len(query))
            if self.rule == "mean":
                return query.mean(each)
            more = np.bincount(query.row, np.expm1(each), len(query))
            return np.log1p(np.maximum(more, -0.99))

        return RuleAnswers(data.names, data.log_solo, combined)


def _keys(rows: SlowdownRows, workloads: int) -> np.ndarray:
    """(m,) platform, target and co-runner as one number."""
    return rows.target[rows.row] * workloads + rows.corunner % workloads
