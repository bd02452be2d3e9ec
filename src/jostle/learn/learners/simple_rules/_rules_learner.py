"""Simple rules as a base learner: what is usual, additive effects and low rank, on factors and seconds,
and on what turns on shared cores leave."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.ensemble._base_learner import NO_SLOWDOWN, TURNS_ALONE
from jostle.learn.learners.simple_rules._bilinear_form import Strength, fit_bilinear
from jostle.learn.learners.simple_rules._simple_rules import (
    SimpleRule,
    fit_group_median,
    value_of,
)
from jostle.learn.training._additive_effects import RandomEffects, fit_effects
from jostle.learn.training._cpu_sharing import cpu_sharing_log_slowdown
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.training._training_data import TrainingRuns

RESTS = {
    f"effects and rest {number}": strength
    for number, strength in enumerate((Strength(2, 0.03), Strength(2, 0.15), Strength(3, 0.5)))
}
OF_FACTORS = ("level", "effects", *RESTS)
OF_SECONDS = ("level", "effects")
FACTORS, SECONDS, TURNS = "factors", "seconds", "turns"
WAYS = {
    FACTORS: OF_FACTORS,
    SECONDS: OF_SECONDS,
    TURNS: ("level", "effects"),
}
MOST_CELLS_OF_REST = 10_000  # each has a row of factors
MOST_ROWS = 4_000  # that rules are learned from
BEYOND = 4.0  # times what was seen, to which seconds are believed of shorter and longer workloads


@dataclass(frozen=True)
class RuleMember:
    """way: what the rules say: log factors or seconds, which are added up, or log factors beyond turns on
    shared cores."""

    label: str
    way: str
    rules: tuple[SimpleRule, ...]


@dataclass(frozen=True)
class FittedRules(Serializable):
    """limits: (2,) least and greatest scale of rows at which seconds are believed."""

    members: tuple[RuleMember, ...]
    limits: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(member.label for member in self.members)

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns, one row for each rule."""
        used = {member.way for member in self.members}
        ways = {way: _rows_of(rows, way, self.limits) for way in used}
        turns = cpu_sharing_log_slowdown(rows, cell_table) if TURNS in used else 0.0
        out = np.empty((len(self.members), len(rows)))
        for at, member in enumerate(self.members):
            mine = ways[member.way]
            out[at] = mine.as_log(value_of(member.rules, mine, cell_table))
            if member.way == TURNS:
                out[at] += turns
        return out


@dataclass(frozen=True)
class SimpleRules(Restores):
    """What anybody would try first. only: labels, where not all are to be tried."""

    only: tuple[str, ...] = ()
    name: ClassVar[str] = "rules"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    learns_from_all: ClassVar[bool] = True
    usual: ClassVar[dict[str, int]] = {
        **dict.fromkeys(("level of turns", "effects of turns"), 2),
        **dict.fromkeys(("level", "effects"), 3),
    }
    fitted: ClassVar[str] = "jostle.learn.learners.simple_rules._rules_learner:FittedRules"

    @staticmethod
    def adds_up(label: str) -> bool:
        return label.startswith("effects")

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        many = campaign.cell_table.cells > MOST_CELLS_OF_REST
        takes_turns = campaign.whole.cell_table.takes_turns
        own = [
            label_of(way, name)
            for way, names in WAYS.items()
            for name in names
            if not (many and name in RESTS) and (way != TURNS or takes_turns)
        ]
        every = (NO_SLOWDOWN, *([TURNS_ALONE] if takes_turns else []), *own)
        return tuple(label for label in every if not self.only or label in self.only)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedRules:
        rows = campaign.rows.drawn(MOST_ROWS, [seed, 11])
        limits = np.array(
            [rows.scale.min(initial=1.0) / BEYOND, rows.scale.max(initial=1.0) * BEYOND]
        )
        plain = ((NO_SLOWDOWN, FACTORS), (TURNS_ALONE, TURNS))
        members = [RuleMember(label, way, ()) for label, way in plain if label in wanted]
        for way, names in WAYS.items():
            mine = [name for name in names if label_of(way, name) in wanted]
            part, cell_table = _rows_of(rows, way, limits), campaign.cell_table
            if mine and way == TURNS:
                left = rows.log_slowdown - cpu_sharing_log_slowdown(rows, cell_table)
                part = replace(part, log_slowdown=left)
            effects: list[RandomEffects] = []
            if set(mine) - {"level"}:
                # How effects grow with the number of co-runners is found once for all folds.
                known = {} if best else campaign.common.learned.setdefault("powers", {})
                effects = [fit_effects(part, cell_table, known.get(way))]
                known[way] = float(effects[0].power)
            rest = part.value - value_of(effects, part, cell_table)
            for name in mine:
                rules: tuple[SimpleRule, ...] = tuple(effects)
                if name == "level":
                    rules = (fit_group_median(part, cell_table),)
                if name in RESTS:
                    low_rank = fit_bilinear(part, rest, campaign.design, RESTS[name], seed)
                    rules = (*effects, low_rank)
                members.append(RuleMember(label_of(way, name), way, rules))
        return FittedRules(tuple(members), limits)


def label_of(way: str, name: str) -> str:
    """Label the rule of this name that adds up factors or seconds."""
    return name if way == FACTORS else f"{name} of {way}"


def _rows_of(rows: SlowdownRows, way: str, limits: np.ndarray) -> SlowdownRows:
    if way == SECONDS:
        return replace(rows, timed=True, scale=np.clip(rows.scale, *limits))
    return replace(rows, timed=False, scale=np.ones(len(rows)))
