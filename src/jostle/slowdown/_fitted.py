"""A fitted slowdown model, answered by NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.bounds import Candidates
from jostle.methods import FromCounts, RunCounts
from jostle.rules import Ground, SlowdownRows
from jostle.slowdown._stack import Stack

if TYPE_CHECKING:
    from jostle.runs import Colocations


@dataclass(frozen=True)
class SoloTimes:
    """log_seconds: (platforms, workloads) alone, NaN where nothing tells them. unit_seconds: () seconds of
    extra time that 1 stands for; NaN where members learn the log slowdown."""

    log_seconds: np.ndarray
    unit_seconds: np.ndarray


@dataclass(frozen=True, eq=False)
class FittedSlowdown(FromCounts):
    """Predicts by the members of its stack. Immutable. workload_names, platform_names: sorted. ground:
    without a design where no member looks at it."""

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    solo: SoloTimes
    ground: Ground
    stack: Stack
    counts: RunCounts
    notes: tuple[str, ...] = ()

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where nothing tells how long the workload takes alone.

        Raises UnknownName for a workload, platform or co-runner that the model has never met.
        """
        log_solo, log_slowdown = self._logs(colocations)
        return np.exp(log_solo + log_slowdown)

    def slowdown(self, colocations: Colocations) -> np.ndarray:
        """(n,) runtime over runtime alone, 1 without co-runners."""
        return np.exp(self._logs(colocations)[1])

    def candidates(self, colocations: Colocations) -> Candidates:
        """Ways to bound: the prediction with the same offset everywhere, or one that grows with the
        slowdown."""
        log_solo, log_slowdown = self._logs(colocations)
        return Candidates.with_slowdown(log_solo + log_slowdown, log_slowdown)

    def _logs(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """(log seconds alone (n,), log slowdown (n,))."""
        codes = colocations.codes_in(self.workload_names, self.platform_names)
        counts = colocations.number_of_corunners
        solo = self.solo.log_seconds[codes[1], codes[0]]
        unit = float(self.solo.unit_seconds)
        timed = not np.isnan(unit)
        with np.errstate(invalid="ignore"):
            scale = unit / np.exp(solo) if timed else np.ones(len(solo))
        nothing = np.zeros(len(solo))
        every = SlowdownRows.coded(codes, counts, len(self.workload_names), nothing, scale, timed)
        out = np.zeros(len(solo))
        beside = counts > 0
        if beside.any():
            out[beside] = self.stack.log_slowdown(every.take(beside), self.ground)
        return solo, out
