"""What a workload was seen to suffer beside each co-runner alone, combined by a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle.errors import UsageError
from jostle.evaluate.rivals._beside import Beside, CorunRows, RuleAnswers
from jostle.evaluate.rivals._effects import AdditiveEffects
from jostle.evaluate.rivals._rival import Rival

if TYPE_CHECKING:
    from jostle.methods import Prepared
    from jostle.progress import Progress

PAIR_RULES = ("worst", "sum", "product", "mean")


@dataclass(frozen=True)
class OwnPairs(Rival):
    """Of the slowdowns beside each co-runner alone: the `worst`, the `sum` of what they add, their
    `product`, or their `mean`. Pairs never measured are those of the additive effects."""

    rule: str

    name: ClassVar[str] = "own_pairs"

    def __post_init__(self) -> None:
        if self.rule not in PAIR_RULES:
            raise UsageError(f"unknown rule {self.rule!r}", fix=f"One of {', '.join(PAIR_RULES)}.")

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
        seen, at = np.unique(key, return_inverse=True)
        mean = np.bincount(at, data.log_slowdown[rows.row[single]]) / np.bincount(at)

        def combined(asked: CorunRows) -> np.ndarray:
            key = _keys(asked, w)
            pairs = CorunRows(
                asked.platform[asked.row],
                asked.target[asked.row],
                np.ones(len(key), np.int64),
                asked.corunner,
                np.arange(len(key)),
            )
            each = additive(pairs)
            if len(seen):
                place = np.minimum(np.searchsorted(seen, key), len(seen) - 1)
                each = np.where(seen[place] == key, mean[place], each)
            if self.rule == "worst":
                worst = np.full(len(asked), -np.inf)
                np.maximum.at(worst, asked.row, each)
                return worst
            if self.rule == "product":
                return np.bincount(asked.row, each, len(asked))
            if self.rule == "mean":
                return asked.mean(each)
            more = np.bincount(asked.row, np.expm1(each), len(asked))
            return np.log1p(np.maximum(more, -0.99))

        return RuleAnswers(data.names, data.log_solo, combined)


def _keys(rows: CorunRows, workloads: int) -> np.ndarray:
    """(m,) platform, target and co-runner as one number."""
    target = rows.platform[rows.row] * workloads + rows.target[rows.row]
    return target * workloads + rows.corunner
