"""What is answered by default, period by period: learners of periods, and beside them whole runs.

    log slowdown = sum over answers of whole runs of weight * log slowdown + sum over learners of weight *
    that of the period

All are base learners of one ensemble, which weighs them by what they say of runs left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.data import Colocations
from jostle.learn.ensemble._stacked_model import EnsembleState, FittedEnsemble
from jostle.learn.learners.counters.learning._aligned_rows import Member
from jostle.learn.learners.counters.learning._fit_learner import Learner
from jostle.learn.learners.simple_rules._rules_learner import FittedRules
from jostle.learn.learners.stressors._stressor_learner import FittedMixtures


@dataclass(frozen=True, eq=False)
class Blend:
    """weighed, rules, mixtures: of whole runs, an ensemble. parts: the label of each learner, and places of
    its rates among those of the model."""

    state: EnsembleState
    rules: FittedRules | None
    mixtures: FittedMixtures | None
    parts: tuple[tuple[str, Learner, tuple[int, ...]], ...]

    @cached_property
    def ensemble(self) -> FittedEnsemble:
        learners = {"rules": self.rules, "probes": self.mixtures}
        return FittedEnsemble(
            self.state, {n: one for n, one in learners.items() if one is not None}
        )

    def beside(self, member: Member) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function from (n, d) rates to slowdowns (n,) of a workload beside its co-runners. A name
        that the ensemble has not met is as the known ones, on the mean."""
        (platform, workload, corunners), weighed = member, self.state
        place = dict(zip(weighed.workload_names, weighed.workload_code.tolist(), strict=True))
        names = (workload, *corunners)
        is_new = not place.keys() >= set(names)
        others = [n for n in place if weighed.sets_of_names[place[n]] or not is_new]
        drawn = [tuple(n if n in place else one for n in names) for one in others or list(place)]
        drawn = drawn if is_new else drawn[:1]
        asked = Colocations.from_columns(
            workload=[one[0] for one in drawn],
            platform=[platform] * len(drawn),
            corunners=[list(one[1:]) for one in drawn],
        )
        labels = tuple(label for label, _, _ in self.parts)
        logs, weights = self.ensemble.apart_from(asked, labels, is_new)
        base, of_parts = float(logs.mean()), weights.mean(axis=1).tolist()

        def slowdown(own: np.ndarray, others: np.ndarray) -> np.ndarray:
            logs = np.full(len(own), base)
            for weight, (_, learner, at) in zip(of_parts, self.parts, strict=True):
                if weight:
                    logs += weight * np.log(learner.slowdown(own[:, at], others[:, at]))
            return np.exp(np.where((others > 0).any(axis=1), logs, 0.0))

        return slowdown
