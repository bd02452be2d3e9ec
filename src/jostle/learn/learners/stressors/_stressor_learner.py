"""Mixtures of stressors as a base learner: as they are, and with what runs of programs say beside them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.learners.stressors._stressor_mixture import coupling_of, mixtures_of
from jostle.learn.learners.stressors._stressor_tables import ProbeTables, fits, is_probing
from jostle.learn.training._additive_effects import RandomEffects, fit_effects
from jostle.learn.training._relative_error import relative_error
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.training._training_data import TrainingRuns

POWERS = (1.0, 0.5, 0.0)  # how pressures of n co-runners add: n^power times their mean
MIXTURES = tuple(f"mixture {power:g}" for power in POWERS)
SIDES = ("sensitivity", "pressure")  # of the target beside what is usual, and of usual targets
COUPLED = "learned mixture"
WITH_EFFECTS = ("mixture and effects", "learned mixture and effects")
USUAL = MIXTURES[0]
FEWEST_SEVERAL = 3  # rows with several co-runners, by which a power is chosen


@dataclass(frozen=True, eq=False)
class FittedMixtures(Serializable):
    """sensitivity, mixture: (cells, k) of k stressors; pressure: the same of each stressor beside the cell.
    power: () with which pressures of several are added up where that is learned; coupling: (k, k) what
    products of sensitivities and pressures are weighed with; effects: of what the mixture leaves, and of what
    these products leave, None where no runs of programs tell."""

    labels: tuple[str, ...]
    sensitivity: np.ndarray
    mixture: np.ndarray
    pressure: np.ndarray
    power: np.ndarray
    coupling: np.ndarray
    effects: tuple[RandomEffects, RandomEffects] | None = None
    notes: tuple[str, ...] = ()

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns."""
        mine, degree = self.sensitivity[rows.target], np.maximum(rows.degree, 1)
        mean = self.mean(rows)
        beside = self.mixture[rows.corunner] @ self.sensitivity.mean(axis=0)
        answer = {f"mixture {power:g}": degree**power * mean for power in POWERS}
        answer |= {SIDES[0]: mine @ self.mixture.mean(axis=0), SIDES[1]: degree * rows.mean(beside)}
        if self.effects is not None:
            bases = self.bases(rows)
            answer[COUPLED] = bases[1]
            for name, base, effects in zip(WITH_EFFECTS, bases, self.effects, strict=True):
                answer[name] = base + effects.value(rows, cell_table)
        return np.stack([answer[label] for label in self.labels])

    def mean(self, rows: SlowdownRows) -> np.ndarray:
        """Predict (n,) log slowdowns by the mixtures, the mean over the co-runners."""
        mine = self.sensitivity[rows.target][rows.row]
        return rows.mean((mine * self.mixture[rows.corunner]).sum(axis=1))

    def bases(self, rows: SlowdownRows) -> tuple[np.ndarray, np.ndarray]:
        """Return ((n,) log slowdowns by the mixtures, (n,) by the products), added up with the power."""
        power = np.maximum(rows.degree, 1) ** float(self.power)
        sensitivity, pressure = self.products(rows)
        coupled = np.einsum("nk,kl,nl->n", sensitivity, self.coupling, pressure)
        return power * self.mean(rows), coupled

    def products(self, rows: SlowdownRows) -> tuple[np.ndarray, np.ndarray]:
        """Return ((n, k) sensitivities, (n, k) pressures of all co-runners together)."""
        each = [rows.mean(one) for one in self.pressure[rows.corunner].T]
        power = np.maximum(rows.degree, 1) ** float(self.power)
        pressure = power * np.array(each).reshape(self.pressure.shape[1], len(rows))
        return self.sensitivity[rows.target], pressure.T

    def learned(self, rows: SlowdownRows, cell_table: CellTable) -> FittedMixtures:
        """Learn from these rows, at least one, too."""
        several = rows.take(rows.degree > 1)
        out = self
        if len(several) >= FEWEST_SEVERAL:
            each = [several.degree**power * self.mean(several) for power in POWERS]
            off = [relative_error(one - several.log_slowdown).mean() for one in each]
            out = replace(out, power=np.array(POWERS[int(np.argmin(off))]))
        out = replace(out, coupling=coupling_of(*out.products(rows), rows.log_slowdown))
        first, second = (
            fit_effects(replace(rows, log_slowdown=rows.log_slowdown - base), cell_table)
            for base in out.bases(rows)
        )
        return replace(out, effects=(first, second))


@dataclass(frozen=True)
class ProbesLearner(Restores):
    """What each workload is beside stressors. stressors: names, or patterns. learns: whether runs of programs
    beside each other are learned from."""

    stressors: tuple[str, ...] = ("probe-*",)
    learns: bool = True
    name: ClassVar[str] = "probes"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "probes"})
    usual: ClassVar[dict[str, int]] = {MIXTURES[0]: 1}
    fitted: ClassVar[str] = "jostle.learn.learners.stressors._stressor_learner:FittedMixtures"

    def names(self, campaign: TrainingRuns) -> tuple[str, ...]:
        """Name the stressors that ran."""
        ran = [campaign.names[0][code] for code in np.unique(campaign.whole.codes[0]).tolist()]
        return tuple(name for name in ran if fits(name, self.stressors))

    def inputs(self, campaign: TrainingRuns) -> np.ndarray:
        """Mark runs of one program beside one stressor, (n,) bool."""
        return is_probing(campaign.runs, self.names(campaign))

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        if not self.inputs(campaign.whole).any():
            return ()
        if not self.learns:
            return (USUAL,)
        mixtures = MIXTURES if (campaign.rows.degree > 1).any() else MIXTURES[:1]
        learned = (COUPLED, *WITH_EFFECTS) if campaign.is_training_row.any() else ()
        return (*mixtures, *SIDES, *learned)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedMixtures:
        labels = tuple(label for label in self.labels(campaign) if label in wanted)
        tables = ProbeTables.of(campaign.runs, campaign.names, self.names(campaign))
        mixtures = mixtures_of(tables.without_noise())
        flat = (campaign.size[0] * campaign.size[1], len(tables.stressor))
        plain = FittedMixtures(
            labels,
            mixtures.sensitivity.reshape(flat),
            mixtures.weights.reshape(flat),
            mixtures.pressure.reshape(flat),
            power=np.array(POWERS[0]),
            coupling=np.zeros((flat[1], flat[1])),
            notes=_notes(campaign, mixtures.guessed),
        )
        if not set(labels) & {COUPLED, *WITH_EFFECTS}:
            return plain
        return plain.learned(campaign.rows, campaign.cell_table)


def _notes(campaign: TrainingRuns, guessed: int) -> tuple[str, ...]:
    notes = []
    if guessed:
        notes.append(
            f"{guessed} pairs of workload and platform ran beside no stressor: they are taken as on "
            f"other platforms, or as typical"
        )
    if not campaign.is_training_row.any():
        notes.append(
            "no run of programs beside each other was learned from: pressures are added up"
        )
    return tuple(notes)
