"""Measured slowdowns beside each co-runner alone, combined by a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle._base.progress import Progress
from jostle.data import Colocations, solo_seconds
from jostle.errors import require_choice
from jostle.learn import Prepared
from jostle.operations import SimpleRule
from studies.rivals.rival import Rival, RivalAnswers

PAIR_RULES = ("worst", "sum", "mean")


@dataclass(frozen=True)
class OwnPairs(Rival):
    """Of the slowdowns beside each co-runner alone: the `worst`, the `sum` of what they add, or their `mean`.
    Pairs never measured are those of the additive effects."""

    rule: str

    name: ClassVar[str] = "own_pairs"

    def __post_init__(self) -> None:
        require_choice("rule", self.rule, PAIR_RULES)

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _OwnAnswers:
        """Raises NotEnoughRuns without runs alone."""
        runs = prepared.together()
        slow = np.log(runs.runtime_seconds / solo_seconds(runs, runs.colocations))
        known: dict[Any, list[float]] = {}
        for at in np.flatnonzero((runs.colocations.number_of_corunners == 1) & np.isfinite(slow)):
            known.setdefault(runs.colocations.row(int(at)), []).append(float(slow[at]))
        means = {key: float(np.mean(values)) for key, values in known.items()}
        return _OwnAnswers(self.rule, SimpleRule("effects").fit(prepared, seed=seed), means)


@dataclass(frozen=True, eq=False)
class _OwnAnswers(RivalAnswers):
    """known: mean log slowdowns of (workload, platform, (co-runner,))."""

    rule: str
    effects: Any
    known: dict[Any, float]

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; NaN for what never ran alone there."""
        rows = [query.row(at) for at in range(len(query))]
        pairs = [(w, p, (other,)) for w, p, beside in rows for other in beside]
        asked = [(w, p, ()) for w, p, _ in rows] + pairs
        workload, platform, corunners = zip(*asked, strict=True)
        seconds = self.effects.predict(
            Colocations.from_columns(
                workload=list(workload), platform=list(platform), corunners=list(corunners)
            )
        )
        alone, own = seconds[: len(rows)], seconds[len(rows) :]
        row = np.repeat(np.arange(len(rows)), query.number_of_corunners)
        each = np.log(own / alone[row])
        each = np.array(
            [self.known.get(p, e) for p, e in zip(pairs, each.tolist(), strict=True)], float
        )
        count = np.maximum(query.number_of_corunners, 1)
        if self.rule == "mean":
            return alone * np.exp(np.bincount(row, each, len(rows)) / count)
        if self.rule == "sum":
            more = np.bincount(row, np.expm1(each), len(rows))
            return alone * np.maximum(1 + more, 0.01)
        worst = np.where(query.number_of_corunners > 0, -np.inf, 0.0)
        np.maximum.at(worst, row, each)
        return alone * np.exp(worst)
