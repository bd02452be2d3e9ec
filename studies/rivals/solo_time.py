"""What any prediction beside others has to beat: the time alone, and the time alone and a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle._base.progress import Progress
from jostle.data import Colocations, all_names, solo_medians
from jostle.errors import NotEnoughRuns, require_choice
from jostle.learn import Data, Prepared, first_solo_runs, weighted_median
from studies.rivals.rival import Rival, RivalAnswers

KINDS = ("solo", "twice", "times", "plus")


@dataclass(frozen=True)
class SoloTime(Rival):
    """The median time alone: as it is (`solo`), once for every member of the bag (`twice`: as if all took
    turns, each as long as the target), times what is typical of the platform and so many co-runners
    (`times`), or plus their typical extra time (`plus`). The constants make the mean relative error of the
    runs to fit least."""

    kind: str

    name: ClassVar[str] = "solo_time"

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, KINDS)

    def prepare(self, data: Data) -> Prepared:
        runs = data.runs
        return Prepared.of(data, runs, required=first_solo_runs(runs))

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _SoloAnswers:
        """Raises NotEnoughRuns without runs alone."""
        runs = prepared.together()
        names = all_names(runs)
        solo = solo_medians(runs, *names)
        if np.isnan(solo).all():
            raise NotEnoughRuns("no run is without co-runners", fix="Measure workloads alone too.")
        workload, platform, _ = runs.colocations.recode(*names)
        own = np.exp(solo[platform, workload])
        seconds = runs.runtime_seconds
        beside = (runs.colocations.number_of_corunners > 0) & np.isfinite(own)
        degree = runs.colocations.number_of_corunners
        most = int(degree.max(initial=1))
        constant = np.full((len(names[1]), most + 1), 1.0 if self.kind == "times" else 0.0)
        for place, d in np.ndindex(constant.shape):
            here = beside & (platform == place)
            choices = (here & (degree == d), here, beside)
            at = next((rows for rows in choices if rows.any()), beside)
            if at.any() and self.kind == "times":
                constant[place, d] = weighted_median(seconds[at] / own[at], own[at] / seconds[at])
            if at.any() and self.kind == "plus":
                constant[place, d] = weighted_median(seconds[at] - own[at], 1 / seconds[at])
        return _SoloAnswers(self.kind, names, solo, constant)


@dataclass(frozen=True, eq=False)
class _SoloAnswers(RivalAnswers):
    """log_solo: (platforms, workloads). constant: (platforms, degrees) by which or plus which;
    past the last degree as there."""

    kind: str
    names: tuple[tuple[str, ...], tuple[str, ...]]
    log_solo: np.ndarray
    constant: np.ndarray

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; NaN for what never ran alone there."""
        workload, platform, _ = query.codes_in(*self.names)
        solo = np.exp(self.log_solo[platform, workload])
        count = query.number_of_corunners
        if self.kind == "twice":
            return solo * (1 + count)
        constant = self.constant[platform, np.minimum(count, self.constant.shape[1] - 1)]
        if self.kind == "times":
            return np.where(count > 0, solo * constant, solo)
        if self.kind == "plus":
            return np.where(count > 0, solo + constant, solo)
        return solo
