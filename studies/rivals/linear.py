"""Linear scaling. Source: Pitot (MLSys 2025), App. B.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from studies.rivals.rival import Rival, RivalAnswers, alone
from studies.rivals.vocabulary import Vocabulary

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Colocations, Runs
    from jostle.learn import Baseline, Prepared


@dataclass(frozen=True)
class LinearScaling(Rival):
    """log runtime = workload + platform, least squares on the runs alone; blind to co-runners."""

    name: ClassVar[str] = "linear_scaling"

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _LinearAnswers:
        """Validation and seed change nothing. Raises NotEnoughRuns."""
        vocabulary = Vocabulary.of(prepared)
        return _LinearAnswers(vocabulary, additive_effects(vocabulary, alone(prepared.runs)))


@dataclass(frozen=True, eq=False)
class _LinearAnswers(RivalAnswers):
    vocabulary: Vocabulary
    baseline: Baseline

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where no chain of runs connects workload and platform."""
        workload, platform, _ = self.vocabulary.codes(query)
        b = self.baseline
        out = np.exp(b.workload[workload] + b.platform[platform])
        known = (workload >= 0) & (platform >= 0) & (b.workload_component[workload] >= 0)
        known &= b.workload_component[workload] == b.platform_component[platform]
        return np.where(known, out, np.nan)


def additive_effects(vocabulary: Vocabulary, runs: Runs) -> Baseline:
    """The linear-scaling baseline of these runs, hardly shrunken (App. B.1 has plain means)."""
    from jostle.learn import fit_baseline

    workload, platform, _ = vocabulary.codes(runs.colocations)
    return fit_baseline(
        workload,
        platform,
        np.log(runs.runtime_seconds),
        len(vocabulary.workload_names),
        len(vocabulary.platform_names),
        shrinkage=1e-6,
    )
