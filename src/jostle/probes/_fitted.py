"""Fitted probes, answered by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import Candidates
from jostle.methods import FromCounts, RunCounts

if TYPE_CHECKING:
    from jostle.runs import Colocations

POWERS = (
    1.0,
    0.5,
    0.0,
)  # how pressures add with the number n of co-runners: n^power times their mean
RULES = (*(f"mixture {power:g}" for power in POWERS), "target", "co-runners", "level", "none")
FEW_DEGREES = 2  # weights stand for one co-runner, and for more


@dataclass(frozen=True)
class Asked:
    """Rows by number. cell: (n,) platform * workloads + workload. row, corunner: (m,) which row a co-runner
    belongs to, and its cell."""

    cell: np.ndarray
    row: np.ndarray
    corunner: np.ndarray

    @property
    def degree(self) -> np.ndarray:
        return np.bincount(self.row, minlength=len(self.cell))


@dataclass(frozen=True)
class FittedProbes(FromCounts):
    """names: workloads, platforms, stressors. log_solo: (platforms, workloads). sensitivity, mixture:
    (platforms * workloads, k). level: (2,) log slowdown that is typical of pairs, and of larger sets. weight:
    (2, rules) of the answers, for both. Immutable."""

    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    log_solo: np.ndarray
    sensitivity: np.ndarray
    mixture: np.ndarray
    level: np.ndarray
    weight: np.ndarray
    counts: RunCounts
    notes: tuple[str, ...] = ()

    @property
    def workload_names(self) -> tuple[str, ...]:
        return self.names[0]

    @property
    def platform_names(self) -> tuple[str, ...]:
        return self.names[1]

    @property
    def stressors(self) -> tuple[str, ...]:
        """Names, sorted."""
        return self.names[2]

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where the workload never ran alone on the platform.

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
        workload, platform, corunner = (
            codes.astype(np.int64)
            for codes in colocations.codes_in(self.workload_names, self.platform_names)
        )
        count, w = colocations.number_of_corunners, len(self.workload_names)
        row = np.repeat(np.arange(len(workload)), count)
        asked = Asked(platform * w + workload, row, platform[row] * w + corunner)
        each = self.answers(asked)
        several = np.minimum(count, FEW_DEGREES) - 1
        out = (self.weight[np.maximum(several, 0)].T * each).sum(axis=0)
        return self.log_solo[platform, workload], np.where(count > 0, out, 0.0)

    def answers(self, asked: Asked) -> np.ndarray:
        """(rules, n) log slowdown by each of RULES."""
        degree = np.maximum(asked.degree, 1)
        sensitivity, mixture = self.sensitivity, self.mixture
        usual_mixture, usual_sensitivity = mixture.mean(axis=0), sensitivity.mean(axis=0)

        def mean(each: np.ndarray) -> np.ndarray:
            return np.bincount(asked.row, each, len(asked.cell)) / degree

        mine = sensitivity[asked.cell]
        both = mean((mine[asked.row] * mixture[asked.corunner]).sum(axis=1))
        level = self.level[np.minimum(degree, FEW_DEGREES) - 1]
        return np.stack(
            [
                *(degree**power * both for power in POWERS),
                mine @ usual_mixture,
                degree * mean(mixture[asked.corunner] @ usual_sensitivity),
                level,
                np.zeros(len(level)),
            ]
        )

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        counts, counted = self.counts.to_arrays()
        names = ("log_solo", "sensitivity", "mixture", "level", "weight")
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in names}
        listed = [list(part) for part in self.names]
        return counts | arrays, counted | {"names": listed, "notes": list(self.notes)}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedProbes:
        workloads, platforms, stressors = (tuple(part) for part in document["names"])
        return cls(
            (workloads, platforms, stressors),
            log_solo=arrays["log_solo"],
            sensitivity=arrays["sensitivity"],
            mixture=arrays["mixture"],
            level=arrays["level"],
            weight=arrays["weight"],
            counts=RunCounts.from_arrays(arrays, document),
            notes=tuple(document["notes"]),
        )
