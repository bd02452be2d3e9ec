"""Susceptibility times pressure as a base learner."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.learners.latent_factors._product_equation import Sizes
from jostle.learn.learners.latent_factors._product_form import SlowdownForm, fit_forms
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows
from jostle.learn.training._training_data import TrainingRuns

PENALTIES = (0.004, 0.025, 0.15)  # of the form, over the variance of the log slowdown
# How far S and G share their numbers: jobs that take turns wait alike for each other.
APART, ALIKE = 0.0, 0.9
MOST_FORM_ROWS = 6_000  # that forms are learned from
STARTS_OF_TRIALS = 2  # of a form that answers what a fold leaves out


@dataclass(frozen=True)
class FormKind:
    """text: how its labels begin. designs: of the campaign's, of which the first that there is counts.
    is_timed: whether seconds are added up. alike: how far S and G share their numbers."""

    text: str
    designs: tuple[str, ...]
    is_timed: bool
    penalties: tuple[float, ...]
    alike: float = APART

    def labels(self) -> dict[str, float]:
        """Return {label: penalty}."""
        return {f"{self.text} {penalty:g}": penalty for penalty in self.penalties}

    def design(self, campaign: TrainingRuns) -> str | None:
        """Return the name of its design."""
        return next((name for name in self.designs if name in campaign.designs), None)


FORM_KINDS = (
    FormKind("product", ("here",), False, PENALTIES),
    FormKind("product of seconds", ("by name", "here"), True, PENALTIES[:1]),
    FormKind("product alike of seconds", ("by name", "here"), True, PENALTIES[1:2], ALIKE),
)


@dataclass(frozen=True)
class ProductMember:
    """is_timed: whether it adds up seconds, in units of the campaign."""

    label: str
    is_timed: bool
    part: SlowdownForm


@dataclass(frozen=True)
class FittedProduct(Serializable):
    """Its members, each with an answer of its own."""

    members: tuple[ProductMember, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(member.label for member in self.members)

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns."""
        plain, timed = rows.over_factors(), rows.over_seconds()
        out = np.empty((len(self.members), len(rows)))
        for at, member in enumerate(self.members):
            mine = timed if member.is_timed else plain
            out[at] = mine.as_log(member.part.value(mine, cell_table))
        return out


@dataclass(frozen=True)
class ProductLearner(Restores):
    """How much each workload suffers, times how much its co-runners press, in few types. starts: of a form
    that is kept. only: labels, where not all are to be tried."""

    rank: int = 6
    starts: int = 4
    steps: int = 300
    only: tuple[str, ...] = ()
    name: ClassVar[str] = "product"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fitted: ClassVar[str] = "jostle.learn.learners.latent_factors._product_learner:FittedProduct"

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        kinds = [kind for kind in FORM_KINDS if kind.design(campaign)]
        every = tuple(label for kind in kinds for label in kind.labels())
        return tuple(label for label in every if not self.only or label in self.only)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedProduct:
        rows, members = campaign.rows, []
        exponents = len(np.unique(rows.degree)) > 1
        platforms, workloads = campaign.size
        some = rows.drawn(MOST_FORM_ROWS, [seed, 13])
        starts = self.starts if best else STARTS_OF_TRIALS
        for kind in FORM_KINDS:
            mine = {label: each for label, each in kind.labels().items() if label in wanted}
            design = kind.design(campaign)
            if not mine or design is None:
                continue
            sizes = Sizes(
                *(platforms, workloads, self.rank, campaign.designs[design]),
                *(exponents, kind.is_timed, kind.alike),
            )
            about = some.over_seconds() if kind.is_timed else some.over_factors()
            forms = fit_forms(about, sizes, list(mine.values()), seed, starts, self.steps)
            members += [ProductMember(*one) for one in zip(mine, repeat(kind.is_timed), forms)]
        return FittedProduct(tuple(members))
