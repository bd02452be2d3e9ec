"""The method: co-runs on an accelerator, from measured runs and simulations of solo profiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from jostle._base.progress import Progress
from jostle.errors import require_known
from jostle.gpu import USUAL_SHARING
from jostle.learn.contract._method_contract import FoldFit
from jostle.learn.contract._prepared import Prepared
from jostle.learn.ensemble._base_learner import BaseLearner
from jostle.learn.ensemble._ensemble_method import StackedMethod
from jostle.learn.ensemble._stacked_model import FittedEnsemble
from jostle.learn.learners.simple_rules._rules_learner import SimpleRules
from jostle.learn.learners.simulation._accelerator_settings import AcceleratorSettings
from jostle.learn.learners.simulation._fitted_accelerator import FittedAccelerator
from jostle.learn.learners.simulation._simulation_learners import (
    SimulationLearner,
    TraceProcessLearner,
)


@dataclass(frozen=True)
class Accelerator(AcceleratorSettings, StackedMethod[FittedAccelerator]):
    """Runtimes on an accelerator, from measured runs and simulations of solo profiles, weighed by runs left
    out."""

    name: ClassVar[str] = "accelerator"
    fitted: ClassVar[str] = "jostle.learn.learners.simulation._fitted_accelerator:FittedAccelerator"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "profiles"})

    def chosen_learners(self) -> list[BaseLearner]:
        return [SimpleRules(), TraceProcessLearner(self), SimulationLearner(self)]

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[FittedAccelerator, list[FoldFit]]:
        """Learn from the runs, and without some of them.

        Raises NotEnoughRuns, UnknownName for a workload of the runs without a profile, BadData where the
        profiles are of different hardware, MissingExtra without SciPy.
        """
        data = prepared.data
        applications, device = self.hardware(data.profiles)
        require_known("workload", prepared.together().colocations.workload_names, applications)
        fitted, left_out = super().fit_left_out(prepared, seed=seed, progress=progress)
        usual = self.sharing or USUAL_SHARING, device.bus

        def own(one: FittedEnsemble) -> FittedAccelerator:
            return FittedAccelerator(one.state, one.learners, None, usual)

        return own(fitted), [replace(one, fitted=own(one.fitted)) for one in left_out]
