"""What a stack of rules may be made of, and how the rules called so are learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.learn.ensemble._base_learner import NO_SLOWDOWN
from jostle.learn.learners.simple_rules._bilinear_form import Bilinear, Strength, fit_bilinear
from jostle.learn.training._additive_effects import RandomEffects, fit_effects
from jostle.learn.training._relative_error import weighted_median
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

FEWEST = 3  # rows of a platform and degree under which the platform's or everyone's median stands


@dataclass(frozen=True)
class GroupMedian:
    """place: (platforms, degrees + 1)."""

    place: np.ndarray

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        degree = np.minimum(rows.degree, self.place.shape[1] - 1)
        return self.place[rows.target // cell_table.workloads, degree]


def no_level(cell_table: CellTable) -> GroupMedian:
    return GroupMedian(np.zeros((cell_table.platforms, 1)))


def fit_group_median(rows: SlowdownRows, cell_table: CellTable) -> GroupMedian:
    """Medians, weighted so that the mean relative error of the runtime is least."""
    degree, place = rows.degree, rows.target // cell_table.workloads
    out = np.zeros((cell_table.platforms, int(degree.max(initial=1)) + 1))
    own = np.sqrt(rows.trust) * np.exp(-rows.log_slowdown)
    weight = np.sqrt(rows.weight) if rows.timed else own
    for p, d in np.ndindex(out.shape):
        here = place == p
        choices = (here & (degree == d), here, degree == d)
        at = next((rows for rows in choices if rows.sum() >= FEWEST), np.ones(len(rows), bool))
        out[p, d] = weighted_median(rows.value[at], weight[at])
    return GroupMedian(out)


SimpleRule = GroupMedian | RandomEffects | Bilinear  # what adds to a value
Rules = tuple[SimpleRule, ...]  # whose values are added up


def fit_simple_rules(
    names: Sequence[str],
    rows: SlowdownRows,
    cell_table: CellTable,
    seed: int,
    rests: Mapping[str, Strength],
    power: float | None = None,
) -> dict[str, Rules]:
    """Fit {name: its rules} for names of simple rules, on at least one row. rests: strengths of low-rank
    rests beside the effects, by name. power: of fit_effects."""
    effects, _ = fit_effects(rows, cell_table, power)
    rest = rows.value - effects.value(rows, cell_table)
    fits: dict[str, Callable[[], Rules]] = {
        NO_SLOWDOWN: lambda: (no_level(cell_table),),
        "level": lambda: (fit_group_median(rows, cell_table),),
        "effects": lambda: (effects,),
    }
    rules = {name: fits[name]() for name in names if name in fits}
    for name in (name for name in names if name in rests):
        rules[name] = (effects, fit_bilinear(rows, rest, cell_table, rests[name], seed))
    return rules


def value_of(rules: Sequence[SimpleRule], rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
    """Add up the rules' values (n,)."""
    return sum((rule.value(rows, cell_table) for rule in rules), np.zeros(len(rows)))
