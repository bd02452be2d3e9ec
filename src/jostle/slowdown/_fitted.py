"""A fitted slowdown model, answered by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import Candidates
from jostle.methods import FromCounts, RunCounts
from jostle.rules import Ground, SlowdownRows
from jostle.slowdown._kept import stack_from_arrays, stack_to_arrays
from jostle.slowdown._stack import Stack
from jostle.slowdown.members._process import Process

if TYPE_CHECKING:
    from jostle.runs import Colocations


@dataclass(frozen=True)
class SoloTimes:
    """log_seconds: (platforms, workloads) alone, NaN where nothing tells them. unit_seconds: () seconds of
    extra time that 1 stands for; NaN where members learn the log slowdown."""

    log_seconds: np.ndarray
    unit_seconds: np.ndarray


class FittedSlowdown(FromCounts):
    """Predicts by the members of its stack. Immutable. workload_names, platform_names: sorted."""

    def __init__(
        self,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        solo: SoloTimes,
        ground: Ground,
        stack: Stack,
        counts: RunCounts,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.workload_names, self.platform_names = names
        self.solo, self.ground, self.stack = solo, ground, stack
        self.counts, self.notes = counts, notes

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

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays, listed = stack_to_arrays(self.stack)
        arrays |= {
            "log_solo": np.asarray(self.solo.log_seconds, order="C"),
            "unit_seconds": np.asarray(self.solo.unit_seconds),
            "design": np.asarray(self._design(), order="C"),
            "level": self.ground.level,
        }
        counts, counted = self.counts.to_arrays()
        return counts | arrays, {
            **counted,
            "workload_names": list(self.workload_names),
            "platform_names": list(self.platform_names),
            "notes": list(self.notes),
            "stack": listed,
        }

    def _design(self) -> np.ndarray:
        """What of the ground's design answering needs: all or nothing."""
        processes = [part for _, part in self.stack.parts if isinstance(part, Process)]
        if any(not process.settings.by_effects for process in processes):
            return self.ground.design
        return np.zeros((self.ground.cells, 0))

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedSlowdown:
        names = tuple(document["workload_names"]), tuple(document["platform_names"])
        ground = Ground(len(names[1]), len(names[0]), arrays["design"], arrays["level"])
        return cls(
            names,
            SoloTimes(arrays["log_solo"], arrays["unit_seconds"]),
            ground,
            stack_from_arrays(arrays, document["stack"]),
            RunCounts.from_arrays(arrays, document),
            tuple(document["notes"]),
        )
