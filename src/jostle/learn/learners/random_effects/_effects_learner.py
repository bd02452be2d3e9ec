"""Random effects of names on the log runtime, with or without those of co-runners, as a base learner.

Where nothing ran alone, as in the log of a cluster, a slowdown over the time alone is a guess over a guess.
This learner looks at runtimes themselves, and leaves what co-runners cost to what runs left out say of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle._base.mixed_effects import MixedEffects, fit_mixed_effects
from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.ensemble._run_prior import FIXED, company_design, names_design
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.training._training_data import TrainingRuns

ALONE, TOGETHER = "names", "names and co-runners"
MOST_ROWS = 20_000  # that are learned from


@dataclass(frozen=True)
class FittedEffects(Serializable):
    """labels: of the answers. log_runtime: (k, cells) by names. log_unit: () of the extra time that counts as
    1. company: effects of co-runners, None where only names are asked."""

    labels: tuple[str, ...]
    log_runtime: np.ndarray
    log_unit: np.ndarray
    company: MixedEffects | None

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns."""
        # Whatever time alone the rows are over, the runtime is the same.
        log_solo = self.log_unit - np.log(rows.scale)
        out = self.log_runtime[:, rows.target] - log_solo
        if self.company is not None:
            w = cell_table.workloads
            codes = rows.target % w, rows.corunner % w
            design = company_design(rows.degree, *codes, w, rows.row)
            out[self.labels.index(TOGETHER)] += self.company.predict(design, len(rows))
        return out


@dataclass(frozen=True)
class NameEffects(Restores):
    """Settings: there are none to choose."""

    name: ClassVar[str] = "effects"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fitted: ClassVar[str] = "jostle.learn.learners.random_effects._effects_learner:FittedEffects"

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        """Name the answers; none if workloads were measured alone: their slowdowns tell more."""
        beside = campaign.ran_alone[campaign.cell[campaign.beside]]
        return () if not len(beside) or beside.mean() > 0.5 else (ALONE, TOGETHER)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedEffects:
        """Learn from all runs, those alone too."""
        rows = np.random.default_rng([seed, 83]).permutation(len(campaign))[:MOST_ROWS]
        keep = np.zeros(len(campaign), bool)
        keep[rows] = True
        part = campaign.take(keep)
        (p, w), (workload, platform, corunner), y = part.size, part.codes, part.log_runtime
        names = names_design(workload, platform, w, p)
        company = company_design(part.degree, workload, corunner, w)
        every = np.arange(p * w)
        grid = names_design(every % w, every // w, w, p)
        labels, tables, learned = [], [], None
        for label in (ALONE, TOGETHER):
            if label not in wanted:
                continue
            own = names | company if label == TOGETHER else names
            effects = fit_mixed_effects(own, y, fixed=FIXED)
            labels.append(label)
            tables.append(effects.predict(grid, p * w))
            learned = effects if label == TOGETHER else learned
        unit = np.log(np.array(campaign.unit_seconds))
        return FittedEffects(tuple(labels), np.reshape(tables, (-1, p * w)), unit, learned)
