"""Simple rules of the ensemble as methods of their own, which have the same bounds as any method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.learn import BaseLearner, FoldFit, Prepared, SimpleRules, StackedMethod
from jostle.learn.learners.bags import Bag
from jostle.learn.learners.latent_factors import ProductLearner

if TYPE_CHECKING:
    from jostle._base.progress import Progress

BOOSTED, PRODUCT = "trees of factors", "product 0.025"
# What people call it: what the ensemble does.
RULES = {
    "the time alone": "none",
    "the time alone times a constant": "level",
    "additive effects": "effects",
    "additive effects of seconds": "effects of seconds",
    "susceptibility times pressure": PRODUCT,
    "boosted trees": BOOSTED,
}
FOLDS = 5


@dataclass(frozen=True)
class SimpleRule(StackedMethod[Any]):
    """A simple rule as a rival of the default.

    label: of RULES, as the ensemble names it.
    """

    label: str

    name: ClassVar[str] = "simple_rule"

    def chosen_learners(self) -> list[BaseLearner]:
        if self.label == BOOSTED:
            return Bag(target="slowdown", rules=False).chosen_learners()
        if self.label == PRODUCT:
            return [ProductLearner(only=(self.label,))]
        return [SimpleRules(only=(self.label,))]

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[Any, list[FoldFit]]:
        """Learn from all runs, and five times without a fifth of the sets, by which answers are calibrated.

        Raises NotEnoughRuns.
        """
        everything = np.arange(len(prepared.runs))
        free = ~(prepared.inputs | prepared.required)
        unit = np.asarray(prepared.runs.units("together"), np.int64)
        codes, unit = np.unique(unit, return_inverse=True)
        fold = np.random.default_rng(seed).permutation(len(codes)) % FOLDS
        left_out = []
        for number in range(min(FOLDS, len(codes))):
            mine = np.flatnonzero(free & (fold[unit] == number))
            if 0 < len(mine) < len(everything):
                part = self._fit_one(prepared.take(np.setdiff1d(everything, mine)), seed)
                asked = prepared.runs.take(mine).colocations
                mine = mine[asked.known_in(part.workload_names, part.platform_names)]
                left_out.append(FoldFit(part, mine, unit[mine]))
        return self._fit_one(prepared, seed), left_out

    def _fit_one(self, prepared: Prepared, seed: int) -> Any:
        learners = self.chosen_learners()
        return self._learned(learners, prepared, seed, None, is_alone=True)[0]
