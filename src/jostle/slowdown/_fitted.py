"""A fitted slowdown form, answered by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import Candidates
from jostle.methods import FromCounts, RunCounts
from jostle.slowdown._process import Process

if TYPE_CHECKING:
    from jostle.runs import Colocations

FLOOR = 0.02  # log slowdown below which errors no longer shrink with it


@dataclass(frozen=True)
class SlowdownParts:
    """m members, p platforms, w workloads, t types.

    log_solo: (p, w) log seconds alone, NaN where nothing tells them. susceptibility, pressure: (m, p, w, t)
    above 0, the platform's gain inside the pressure. constant: (m, p) at least 0. exponent: (m, w).
    offset: (m, p, w), the log speed-up or slowdown of having any co-runner; 0 with a floor.
    unit_seconds: () seconds of extra time that 1 stands for; NaN where the sum is a factor.
    """

    log_solo: np.ndarray
    susceptibility: np.ndarray
    pressure: np.ndarray
    constant: np.ndarray
    exponent: np.ndarray
    offset: np.ndarray
    unit_seconds: np.ndarray


class FittedSlowdown(FromCounts):
    """Predicts by the equations of `_settings`. Immutable. workload_names, platform_names: sorted."""

    def __init__(
        self,
        workload_names: tuple[str, ...],
        platform_names: tuple[str, ...],
        parts: SlowdownParts,
        counts: RunCounts,
        notes: tuple[str, ...] = (),
        process: Process | None = None,
    ) -> None:
        self.workload_names = workload_names
        self.platform_names = platform_names
        self.parts = parts
        self.counts = counts
        self.notes = notes
        self.process = process

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
        centre = log_solo + log_slowdown
        scale = np.stack([np.ones(len(centre)), FLOOR + np.abs(np.nan_to_num(log_slowdown))])
        return Candidates(
            ("same everywhere", "with the slowdown"), np.stack([centre, centre]), scale
        )

    def _logs(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """(log seconds alone (n,), log slowdown (n,))."""
        workload, platform, corunner = colocations.codes_in(
            self.workload_names, self.platform_names
        )
        counts = colocations.number_of_corunners
        row = np.repeat(np.arange(len(workload)), counts)
        e = self.parts
        solo = e.log_solo[platform, workload]
        total = np.zeros(len(workload))
        beside = counts > 0
        with np.errstate(invalid="ignore"):
            scale = np.where(np.isnan(e.unit_seconds), 1.0, e.unit_seconds / np.exp(solo))
        for m in range(len(e.exponent)):
            there = e.pressure[m][platform[row], corunner]
            pressed = np.stack(
                [np.bincount(row, there[:, t], len(workload)) for t in range(there.shape[1])], 1
            )
            reached = (e.susceptibility[m][platform, workload] * pressed).sum(1)
            value = np.log1p(scale * (e.constant[m][platform] + reached))
            total += e.exponent[m][workload] * value + e.offset[m][platform, workload]
        mean = total / len(e.exponent)
        if self.process is not None and beside.any():
            w = len(self.workload_names)
            at = np.flatnonzero(beside)
            number = np.cumsum(beside) - 1
            mean[at] = self.process.averaged(
                mean[at],
                platform[at].astype(np.int64) * w + workload[at],
                platform[row].astype(np.int64) * w + corunner,
                number[row],
            )
            if not e.offset.any():  # no co-runner speeds anything up
                mean = np.maximum(mean, 0.0)
        return solo, np.where(beside, mean, 0.0)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays = dict(vars(self.parts))
        if self.process is not None:
            arrays |= {f"process_{name}": value for name, value in vars(self.process).items()}
        counts, counted = self.counts.to_arrays()
        return counts | {name: np.asarray(value, order="C") for name, value in arrays.items()}, {
            **counted,
            "workload_names": list(self.workload_names),
            "platform_names": list(self.platform_names),
            "notes": list(self.notes),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedSlowdown:
        return cls(
            tuple(document["workload_names"]),
            tuple(document["platform_names"]),
            SlowdownParts(**{name: arrays[name] for name in SlowdownParts.__dataclass_fields__}),
            RunCounts.from_arrays(arrays, document),
            tuple(document["notes"]),
            Process(**{name: arrays[f"process_{name}"] for name in Process.__dataclass_fields__})
            if "process_share" in arrays
            else None,
        )
