"""Fitted probes, answered by NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.bounds import Candidates
from jostle.methods import FromCounts, RunCounts
from jostle.rules import Ground, RandomEffects, SlowdownRows, no_effects

if TYPE_CHECKING:
    from jostle.runs import Colocations

POWERS = (1.0, 0.5, 0.0)  # how pressures of n co-runners add: n^power times their mean
PLAIN = (*(f"mixture {power:g}" for power in POWERS), "target", "co-runners", "level", "none")
LEARNED = "learned mixture"
# What runs of programs themselves tell of names, alone and beyond the mixture.
NAMED = ("effects of names", "mixture and effects of names")
RULES = (*PLAIN, LEARNED, *NAMED)
MET = ("none", "some", "all")  # of the members, beside other programs in runs learned from
FEW_DEGREES = 2  # weights stand for one co-runner, and for more


@dataclass(frozen=True)
class FittedProbes(FromCounts):
    """names: workloads, platforms, stressors. log_solo: (platforms, workloads). sensitivity, mixture:
    (platforms * workloads, k); pressure: the same of each stressor beside it; coupling: (k, k) what products
    of sensitivities and pressures are weighed with. level: (2,) log slowdown that is typical of pairs, and of
    larger sets. weight: (MET, 2, rules) of the answers, for both, by who was met. effects: of names, the
    second of what the mixture leaves; met: (2, platforms * workloads) bool, as a target and as a co-runner of
    other programs; base: (2,) with which power pressures of several are added up where that is learned, and
    whether what lies under the second is the learned mixture. Immutable."""

    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    log_solo: np.ndarray
    sensitivity: np.ndarray
    mixture: np.ndarray
    pressure: np.ndarray
    coupling: np.ndarray
    level: np.ndarray
    weight: np.ndarray
    effects: tuple[RandomEffects, RandomEffects]
    met: np.ndarray
    base: np.ndarray
    counts: RunCounts
    notes: tuple[str, ...] = ()

    @classmethod
    def of_mixtures(
        cls,
        names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
        log_solo: np.ndarray,
        sensitivity: np.ndarray,
        mixture: np.ndarray,
        pressure: np.ndarray,
        counts: RunCounts,
    ) -> FittedProbes:
        """As long as no runs of several programs say otherwise: the mixture, pressures added up."""
        platforms, cells = log_solo.shape[0], log_solo.size
        weight = np.zeros((len(MET), FEW_DEGREES, len(RULES)))
        weight[..., 0] = 1.0
        nothing = no_effects(platforms, cells)
        return cls(
            names,
            log_solo,
            sensitivity.reshape(cells, -1),
            mixture.reshape(cells, -1),
            pressure.reshape(cells, -1),
            coupling=np.zeros((len(names[2]), len(names[2]))),
            level=np.zeros(FEW_DEGREES),
            weight=weight,
            effects=(nothing, nothing),
            met=np.zeros((2, cells), bool),
            base=np.array([POWERS[0], 0.0]),
            counts=counts,
        )

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

    def has_met(self, colocations: Colocations) -> np.ndarray:
        """(n,) bool: the target ran beside others in runs learned from, and so did all of its co-runners."""
        return self.who_met(self._rows(colocations)[1]) == MET.index("all")

    def candidates(self, colocations: Colocations) -> Candidates:
        """Ways to bound: the prediction with the same offset everywhere, or one that grows with the
        slowdown."""
        log_solo, log_slowdown = self._logs(colocations)
        return Candidates.with_slowdown(log_solo + log_slowdown, log_slowdown)

    def _logs(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """(log seconds alone (n,), log slowdown (n,))."""
        log_solo, rows = self._rows(colocations)
        return log_solo, np.where(rows.degree > 0, self.log_slowdown(rows), 0.0)

    def _rows(self, colocations: Colocations) -> tuple[np.ndarray, SlowdownRows]:
        """(log seconds alone (n,), what is asked)."""
        codes = colocations.codes_in(self.workload_names, self.platform_names)
        count, one = colocations.number_of_corunners, np.ones(len(colocations))
        rows = SlowdownRows.coded(codes, count, len(self.workload_names), 0 * one, one)
        return self.log_solo[codes[1], codes[0]], rows

    def log_slowdown(self, rows: SlowdownRows) -> np.ndarray:
        """(n,)."""
        several = np.clip(rows.degree, 1, FEW_DEGREES) - 1
        return (self.weight[self.who_met(rows), several].T * self.answers(rows)).sum(axis=0)

    def who_met(self, rows: SlowdownRows) -> np.ndarray:
        """(n,) numbers of MET."""
        target, known = self.met[0][rows.target], rows.mean(self.met[1][rows.corunner])
        return (target | (known > 0)).astype(int) + (target & (known == 1))

    def answers(self, rows: SlowdownRows) -> np.ndarray:
        """(rules, n) log slowdown by each of RULES."""
        degree = np.maximum(rows.degree, 1)
        usual_mixture, usual_sensitivity = self.mixture.mean(axis=0), self.sensitivity.mean(axis=0)
        both = self._mixed(rows)
        level = self.level[np.minimum(degree, FEW_DEGREES) - 1]
        return np.stack(
            [
                *(degree**power * both for power in POWERS),
                self.sensitivity[rows.target] @ usual_mixture,
                degree * rows.mean(self.mixture[rows.corunner] @ usual_sensitivity),
                level,
                np.zeros(len(level)),
                self.coupled(rows),
                *self.by_name(rows),
            ]
        )

    def by_name(self, rows: SlowdownRows) -> np.ndarray:
        """(2, n) log slowdown by each of NAMED."""
        plain, beyond = (effects.value(rows, self.ground) for effects in self.effects)
        return np.stack([plain, self.mixed(rows) + beyond])

    def mixed(self, rows: SlowdownRows) -> np.ndarray:
        """(n,) by the mixture that effects of names are added to."""
        if self.base[1]:
            return self.coupled(rows)
        return np.maximum(rows.degree, 1) ** float(self.base[0]) * self._mixed(rows)

    def coupled(self, rows: SlowdownRows) -> np.ndarray:
        """(n,) by the learned mixture."""
        sensitivity, pressure = self.products(rows)
        return np.einsum("nk,kl,nl->n", sensitivity, self.coupling, pressure)

    def products(self, rows: SlowdownRows) -> tuple[np.ndarray, np.ndarray]:
        """((n, k) sensitivities, (n, k) pressures of all co-runners together)."""
        power = np.maximum(rows.degree, 1) ** float(self.base[0])
        each = self.pressure[rows.corunner].T
        pressure = np.zeros((len(each), len(rows)))
        for number, one in enumerate(each):
            pressure[number] = power * rows.mean(one)
        return self.sensitivity[rows.target], pressure.T

    def _mixed(self, rows: SlowdownRows) -> np.ndarray:
        """(n,) the mean over the co-runners."""
        mine = self.sensitivity[rows.target]
        return rows.mean((mine[rows.row] * self.mixture[rows.corunner]).sum(axis=1))

    @property
    def ground(self) -> Ground:
        """What effects of names are read by."""
        p, w = self.log_solo.shape
        return Ground(p, w, np.zeros((p * w, 0)), np.zeros(p * w))
