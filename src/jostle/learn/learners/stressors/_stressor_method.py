"""The method: every program is to others what a mixture of stressors is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn.contract._method_contract import FoldFit
from jostle.learn.contract._prepared import Prepared
from jostle.learn.ensemble._ensemble_method import StackedMethod

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.learn.contract._data import Data
    from jostle.learn.ensemble._base_learner import BaseLearner
    from jostle.learn.ensemble._stacked_model import FittedEnsemble


@dataclass(frozen=True)
class Probes(StackedMethod):
    """Slowdown beside anyone from runs beside stressors: a program presses as a mixture of them does."""

    stressors: Annotated[
        tuple[str, ...],
        "Names or patterns of the workloads that are stressors; jostle measure --probes runs probe-….",
    ] = ("probe-*",)
    learn_weights: Annotated[
        bool,
        "Where pairs of programs were measured too, weigh the mixture beside plain rules by them.",
    ] = True

    name: ClassVar[str] = "probes"
    fits_again: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.stressors or not all(name.strip() for name in self.stressors):
            raise UsageError("no stressors", fix="Name them, or a pattern such as 'probe-*'.")

    def chosen_learners(self) -> list[BaseLearner]:
        from jostle.learn.learners.simple_rules._rules_learner import SimpleRules
        from jostle.learn.learners.stressors._stressor_learner import ProbesLearner

        mixtures = ProbesLearner(self.stressors, self.learn_weights)
        return [SimpleRules(), mixtures] if self.learn_weights else [mixtures]

    def prepare(self, data: Data) -> Prepared:
        """Take runs beside one stressor, and of stressors beside one workload, as inputs. Of each workload
        one run alone is required. Raises NotEnoughRuns where no workload is a stressor."""
        from jostle.learn.learners.stressors._stressor_tables import is_probing, stressors_among

        prepared, runs = super().prepare(data), data.runs
        inputs = is_probing(runs, stressors_among(runs, self.stressors))
        return replace(prepared, inputs=inputs[runs.is_ok])

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[FittedEnsemble, list[FoldFit]]:
        """Fit, and return also what was learned without some of the runs; without `learn_weights`, without
        those of several programs. Raises NotEnoughRuns where nothing ran beside a stressor."""
        from jostle.learn.learners.stressors._stressor_tables import is_probing, stressors_among

        runs = prepared.together()
        stressors = stressors_among(runs, self.stressors)
        is_input = is_probing(runs, stressors)
        if not is_input.any():
            raise NotEnoughRuns(
                f"nothing ran beside one of the stressors {', '.join(stressors)} alone, and alone",
                fix="Measure beside probes (jostle measure).",
            )
        if self.learn_weights:
            return super().fit_left_out(prepared, seed=seed, progress=progress)
        asked = (runs.colocations.number_of_corunners > 0) & ~is_input
        part = replace(prepared.take(np.arange(0)), validation=runs.take(~asked))
        fitted, out = super().fit_left_out(part, seed=seed, progress=progress)
        kept, others = np.flatnonzero(~asked), np.flatnonzero(asked)
        out = [replace(one, runs=kept[one.runs]) for one in out]
        unit = runs.units("together")[others]
        return fitted, [*out, FoldFit(fitted, others, unit)]
