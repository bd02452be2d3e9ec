"""The runs that a model keeps to learn more later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn import KeptRuns

if TYPE_CHECKING:
    from jostle.data import Runs


@dataclass(frozen=True, eq=False)
class Kept(Serializable):
    """learned: a sample of the runs that a model has learned from, or all of them where `is_whole`, for a
    method that is fitted to them again. calibration: those that its bounds were calibrated on, in the order
    of its scores."""

    learned: KeptRuns
    calibration: KeptRuns
    is_whole: bool = False

    @classmethod
    def of(cls, learned: Runs, calibration: Runs, by: str, seed: int) -> Kept:
        return cls(KeptRuns.of(learned, by).sampled(seed), _plain(calibration, by))

    @classmethod
    def all_of(cls, learned: Runs, calibration: Runs, by: str) -> Kept:
        return cls(KeptRuns.of(learned, by), _plain(calibration, by), is_whole=True)

    def with_more(self, learned: KeptRuns, calibration: KeptRuns, seed: int, most: int) -> Kept:
        """After an update that learned some runs and calibrated on others, of which the last `most` of each
        number of co-runners stay."""
        more = self.learned.joined(learned)
        more = more if self.is_whole else more.sampled(seed)
        every = self.calibration.joined(calibration.without_features())
        return replace(self, learned=more, calibration=_last(every, most))


def _plain(runs: Runs, by: str) -> KeptRuns:
    """Without features, which are those of the runs learned from."""
    return KeptRuns.of(runs, by).without_features()


def _last(runs: KeptRuns, most: int) -> KeptRuns:
    """At most so many of each number of co-runners, the last ones, and no part of a unit but the whole."""
    degree, unit = runs.colocations.number_of_corunners, runs.unit
    late = np.zeros(len(runs), bool)
    for d in np.unique(degree).tolist():
        at = np.flatnonzero(degree == d)
        late[at[:-most]] = True
    if not late.any():
        return runs
    return runs.take(np.flatnonzero(~np.isin(unit, unit[late])))
