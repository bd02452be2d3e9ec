"""Simple rules as a base learner: medians and additive effects, of factors, of seconds and beyond turns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.ensemble._base_learner import NO_SLOWDOWN, TURNS_ALONE
from jostle.learn.learners.simple_rules._group_median import GroupMedian, fit_group_median
from jostle.learn.training._additive_effects import RandomEffects, fit_effects
from jostle.learn.training._cpu_sharing import cpu_sharing_log_slowdown
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.training._training_data import TrainingRuns

LEVEL, EFFECTS = "level", "effects"
FACTORS, SECONDS, TURNS = WAYS = "factors", "seconds", "turns"
MOST_ROWS = 4_000  # that rules are learned from
BEYOND = 4.0  # times what was seen, to which seconds are believed of shorter and longer workloads


@dataclass(frozen=True)
class RuleMember:
    """way: what the rule says: log factors or seconds, which are added up, or log factors beyond turns on
    shared cores. rule: None says nothing."""

    label: str
    way: str
    rule: GroupMedian | RandomEffects | None


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
            value = np.zeros(len(rows))
            if member.rule is not None:
                value = member.rule.value(mine, cell_table)
            out[at] = mine.as_log(value)
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
        turns = campaign.whole.cell_table.takes_turns
        own = [label_of(w, n) for w in WAYS for n in (LEVEL, EFFECTS) if turns or w != TURNS]
        every = (NO_SLOWDOWN, *([TURNS_ALONE] if turns else []), *own)
        return tuple(label for label in every if not self.only or label in self.only)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedRules:
        rows = campaign.rows.drawn(MOST_ROWS, [seed, 11])
        limits = np.array(
            [rows.scale.min(initial=1.0) / BEYOND, rows.scale.max(initial=1.0) * BEYOND]
        )
        plain = ((NO_SLOWDOWN, FACTORS), (TURNS_ALONE, TURNS))
        members = [RuleMember(label, way, None) for label, way in plain if label in wanted]
        for way in WAYS:
            part, cell_table = _rows_of(rows, way, limits), campaign.cell_table
            level, effects = label_of(way, LEVEL), label_of(way, EFFECTS)
            if way == TURNS and {level, effects} & set(wanted):
                left = rows.log_slowdown - cpu_sharing_log_slowdown(rows, cell_table)
                part = replace(part, log_slowdown=left)
            if level in wanted:
                members.append(RuleMember(level, way, fit_group_median(part, cell_table)))
            if effects in wanted:
                # How effects grow with the number of co-runners is found once for all folds.
                known = {} if best else campaign.common.learned.setdefault("powers", {})
                rule = fit_effects(part, cell_table, known.get(way))
                known[way] = float(rule.power)
                members.append(RuleMember(effects, way, rule))
        return FittedRules(tuple(members), limits)


def label_of(way: str, name: str) -> str:
    """Label the rule of this name that adds up factors or seconds."""
    return name if way == FACTORS else f"{name} of {way}"


def _rows_of(rows: SlowdownRows, way: str, limits: np.ndarray) -> SlowdownRows:
    low, high = limits.tolist()
    return rows.over_seconds((low, high)) if way == SECONDS else rows.over_factors()
