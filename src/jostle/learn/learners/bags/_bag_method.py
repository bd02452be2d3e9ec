"""The method: run time of a bag of applications from features of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle.errors import NotEnoughRuns, UnknownName
from jostle.learn.contract._data import Data
from jostle.learn.contract._method_contract import FoldFit
from jostle.learn.contract._prepared import Prepared, first_solo_runs
from jostle.learn.ensemble._ensemble_method import StackedMethod
from jostle.learn.learners.bags._bag_settings import BagSettings

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Runs
    from jostle.learn.ensemble._base_learner import BaseLearner
    from jostle.learn.ensemble._stacked_model import FittedEnsemble
    from jostle.learn.learners.bags._fitted_bag import FittedBag


@dataclass(frozen=True)
class Bag(BagSettings, StackedMethod["FittedBag"]):
    """Run time of a bag of applications from features of each, by trees (Moolchandani et al.)."""

    name: ClassVar[str] = "bag"
    fits_again: ClassVar[bool] = True
    fitted: ClassVar[str] = "jostle.learn.learners.bags._fitted_bag:FittedBag"

    def chosen_learners(self, company: Runs | None = None) -> list[BaseLearner]:
        from jostle.learn.learners.bags._bag_learner import TreesLearner
        from jostle.learn.learners.simple_rules._rules_learner import SimpleRules

        trees = TreesLearner(self, company)
        return [SimpleRules(), trees] if self.has_rules else [trees]

    def prepare(self, data: Data) -> Prepared:
        """Prepare the runs. Those on the CPU platform are inputs: features are made of them, bounds are not.
        Answers are relative to the runtime alone, so one such run of each is required."""
        runs = data.runs
        inputs, required = self._is_on_cpu(runs), first_solo_runs(runs)
        return Prepared.of(data, runs, inputs=inputs, required=required, calibrate_by="together")

    def _is_on_cpu(self, runs: Runs) -> np.ndarray:
        """Mark runs on the CPU platform, (n,) bool."""
        c = runs.colocations
        return np.array([name == self.cpu_platform for name in c.platform_names], bool)[c.platform]

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[FittedBag, list[FoldFit]]:
        """Fit, and return also what was learned without some of the runs; nothing of trees alone.

        Raises NotEnoughRuns, UnknownName for a cpu_platform without runs, and MissingExtra where
        scikit-learn is wanted and not installed.
        """
        from jostle.learn.learners.bags._fitted_bag import FittedBag

        runs = prepared.runs
        c, cpu = runs.colocations, self.cpu_platform
        if cpu is not None and cpu not in c.platform_names:
            raise UnknownName("platform", cpu, c.platform_names)
        beside = c.number_of_corunners > 0
        is_company = self._is_on_cpu(runs) & beside
        if not (beside & ~is_company).any():
            raise NotEnoughRuns(
                "no run with co-runners",
                fix="Measure every application alone and some bags of them.",
            )
        kept = np.flatnonzero(~is_company)
        company = runs.take(is_company) if is_company.any() else None
        learners, alone = self.chosen_learners(company), not self.has_rules
        every, left_out = self._learned(learners, prepared.take(kept), seed, progress, alone)
        place = np.concatenate([kept, len(runs) + np.arange(len(prepared.validation))])
        named = () if cpu is None else (cpu,)

        def as_bag(one: FittedEnsemble) -> FittedBag:
            return FittedBag(one.state, one.learners, None, named)

        fitted = as_bag(every)
        notes = (*fitted.notes, *fitted.notes_of(self.groups))
        return as_bag(fitted.with_state(notes=notes)), [
            replace(one, fitted=as_bag(one.fitted), runs=place[one.runs]) for one in left_out
        ]
