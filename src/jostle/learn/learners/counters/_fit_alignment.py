"""From traces to a fitted model: solo counters, rows, choice of counters, learners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.errors import UsageError
from jostle.learn.contract._method_contract import FoldFit
from jostle.learn.contract._prepared import Prepared
from jostle.learn.ensemble._ensemble_method import StackedMethod
from jostle.learn.learners.counters._alignment_settings import AlignmentSettings
from jostle.learn.learners.counters._counter_learners import PhasesLearner, StretchesLearner
from jostle.learn.learners.counters._fitted_alignment import FittedAlignment
from jostle.learn.learners.counters._traced_cells import TracedCells, cell_table_of, traces_of
from jostle.learn.learners.counters.learning._aligned_rows import Member, member_of
from jostle.learn.learners.counters.learning._blend import Blend
from jostle.learn.learners.counters.learning._fit_learner import fit_learner
from jostle.learn.learners.counters.learning._select_counters import select_counters
from jostle.learn.learners.counters.learning._traced_mixture import probe_counters
from jostle.learn.learners.counters.learning._traced_runs import probe_runs, runs_of_rows
from jostle.learn.learners.counters.solo._probed import EVERY_STRESSOR
from jostle.learn.learners.simple_rules._rules_learner import SimpleRules
from jostle.learn.learners.stressors._stressor_learner import ProbesLearner

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.learn.ensemble._base_learner import BaseLearner
    from jostle.learn.ensemble._stacked_model import FittedEnsemble

PLAIN = ("none", "level", "effects")  # rules that a few windows can tell of
NO_PROBES = (
    "not all programs were traced beside stressors: what one counts alone says little of how it suffers; "
    "jostle trace --probes records that, at the cost of a window for each program and stressor"
)


@dataclass(frozen=True)
class _Traced(StackedMethod):
    """Base learners of whole runs, and of stretches."""

    settings: AlignmentSettings
    cell_table: TracedCells
    name: ClassVar[str] = "alignment"

    def chosen_learners(self) -> list[BaseLearner]:
        return [
            SimpleRules(PLAIN),
            ProbesLearner((*EVERY_STRESSOR, *self.settings.stressors)),
            PhasesLearner(self.settings, self.cell_table),
            StretchesLearner(self.settings, self.cell_table),
        ]


def fit_one(settings: AlignmentSettings, prepared: Prepared, seed: int) -> FittedAlignment:
    """Fit the one learner that is named."""
    runs = prepared.together()
    cell_table = cell_table_of(settings, traces_of(settings, prepared.data), runs)
    counters = probe_counters(cell_table.offered)
    if settings.learner == "mixture" and not counters:
        raise UsageError(
            "the mixture learns from probes, and not all programs were traced beside some",
            fix="Trace them beside probes (`probes` of jostle trace), or choose another learner.",
        )
    if settings.learner != "mixture":
        counters = cell_table.offered
        if settings.counters is None:
            counters = select_counters(cell_table.rows, settings.most_counters)
    model = fit_learner(cell_table.rows.with_counters(counters), settings.learner, seed=seed)
    return FittedAlignment.on(cell_table, model, counters, runs, settings.stressors)


def fit_all(
    settings: AlignmentSettings, prepared: Prepared, seed: int, progress: Progress | None
) -> tuple[FittedAlignment, list[FoldFit]]:
    """Fit every base learner, weighed, and without some of the windows in turn."""
    every = prepared.together()
    cell_table = cell_table_of(settings, traces_of(settings, prepared.data), every)
    whole = traces_of(settings, prepared.data, probes=False)
    runs, members = runs_of_rows(
        cell_table.rows, cell_table.solos, probe_runs(whole, settings.stressors)
    )
    part = Prepared.of(prepared.data, runs)
    fitted, left_out = _Traced(settings, cell_table).fit_left_out(
        part, seed=seed, progress=progress
    )
    notes = cell_table.notes
    if settings.counters is None and not probe_counters(cell_table.offered):
        notes = (*notes, NO_PROBES)

    def as_aligned(one: FittedEnsemble) -> FittedAlignment:
        learned: dict[str, Any] = dict(one.learners)
        learners = {
            name: learned[name].fitted
            for name in ("phases", "stretches")
            if name in learned and learned[name].fitted is not None
        }
        counters = tuple(dict.fromkeys(c for each in learners.values() for c in each.counters))
        counters = counters or cell_table.rows.counters[:1]
        parts = tuple(
            (name, each.model, tuple(counters.index(c) for c in each.counters))
            for name, each in learners.items()
        )
        model = Blend(one.state, learned.get("rules"), learned.get("probes"), parts)
        aligned = FittedAlignment.on(cell_table, model, counters, every, settings.stressors)
        return replace(aligned, notes=(*notes, *one.notes))

    place: dict[Member, list[int]] = {}
    for number in np.flatnonzero(~prepared.inputs).tolist():
        place.setdefault(member_of(*every.colocations.row(number)), []).append(number)
    without = []
    for one in left_out:
        if one.left_out in ("larger", "again"):  # here a roll answers larger sets, not the ensemble
            continue
        asked = {
            member_of(members[at][1], members[at][0], members[at][2]): unit
            for at, unit in zip(one.runs.tolist(), one.unit.tolist(), strict=True)
            if at < len(members) and members[at][2]
        }
        found = [(number, unit) for key, unit in asked.items() for number in place.get(key, ())]
        if found:
            numbers, units = np.array(found).T
            without.append(FoldFit(as_aligned(one.fitted), numbers, units, one.left_out))
    return as_aligned(fitted), without
