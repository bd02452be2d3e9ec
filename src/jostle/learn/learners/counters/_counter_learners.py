"""Learners of traces as base learners: counters inside phases, and what stressors showed of each stretch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.data import Colocations
from jostle.errors import JostleError
from jostle.learn.contract._method_registry import Restores
from jostle.learn.learners.counters._alignment_settings import AlignmentSettings
from jostle.learn.learners.counters._fitted_alignment import FittedAlignment
from jostle.learn.learners.counters._traced_cells import TracedCells, cell_table_of, traces_of
from jostle.learn.learners.counters.learning._aligned_rows import member_of
from jostle.learn.learners.counters.learning._fit_learner import MOST_ROWS_TO_CHOOSE, fit_learner
from jostle.learn.learners.counters.learning._select_counters import select_counters
from jostle.learn.learners.counters.learning._traced_mixture import probe_counters
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.contract._data import Data
    from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows
    from jostle.learn.training._training_data import TrainingRuns

LEAST_INSIDE = 0.5  # of the time alone, in periods inside one phase, for these to be learned from


@dataclass(frozen=True, eq=False)
class FittedTraceLearner(Serializable):
    """label: of its answers. names: (workloads, platforms) by their codes. fitted: None where there was too
    little to learn from."""

    label: str
    names: tuple[tuple[str, ...], tuple[str, ...]]
    fitted: FittedAlignment | None

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (1, n) log slowdowns; NaN for workloads that were not traced alone."""
        out = np.full((1, len(rows)), np.nan)
        if self.fitted is None or not len(rows):
            return out
        workloads, platforms = (np.array(each, object) for each in self.names)
        w, order = len(workloads), np.argsort(rows.row, kind="stable")
        traced = {(solo.platform, solo.workload) for solo in self.fitted.solos.all}
        beside = np.split(workloads[rows.corunner[order] % w], np.cumsum(rows.degree)[:-1])
        asked = [
            (platforms[target // w], workloads[target % w], others.tolist())
            for target, others in zip(rows.target.tolist(), beside, strict=True)
        ]
        known = [
            at for at, (p, name, o) in enumerate(asked) if traced >= {(p, n) for n in (name, *o)}
        ]
        if known:
            platform, workload, corunners = zip(*(asked[at] for at in known), strict=True)
            about = Colocations.from_columns(
                workload=list(workload), platform=list(platform), corunners=list(corunners)
            )
            out[0, known] = np.log(self.fitted.slowdown(about))
        return out


@dataclass(frozen=True)
class _TraceLearner(Restores, ABC):
    """settings: of what is traced. cell_table: what was laid already, of which is asked how fast workloads
    are while all run; by default that of the data, whose runs may go on alone."""

    settings: AlignmentSettings = field(default_factory=AlignmentSettings)
    cell_table: TracedCells | None = None
    name: ClassVar[str]
    learner: ClassVar[str]
    fitted: ClassVar[str] = "jostle.learn.learners.counters._counter_learners:FittedTraceLearner"

    @abstractmethod
    def counters(self, cell_table: TracedCells, rows: AlignedRows) -> tuple[str, ...]:
        """Name the counters that are learned from; none where there are not."""

    def trace_seconds(self, data: Data, learned: dict[Any, Any]) -> Mapping[str, float]:
        """Return {workload: seconds} of runs traced alone, if all are of one platform."""
        try:
            traces = data.traces
        except JostleError:
            return {}
        alone = [one for one in traces if one.solo and np.isfinite(one.runtime_seconds)]
        if len({one.platform for one in alone}) != 1:
            return {}
        seconds: dict[str, list[float]] = {}
        for one in alone:
            seconds.setdefault(one.workload, []).append(one.runtime_seconds)
        return {name: float(np.median(each)) for name, each in seconds.items()}

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        cell_table = self._cell_table(campaign)
        return (
            (self.name,)
            if cell_table is not None and self.counters(cell_table, cell_table.rows)
            else ()
        )

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedTraceLearner:
        """Fit; data that this learner cannot use is no reason to go without the others."""
        cell_table, names = self._cell_table(campaign), campaign.names
        none = FittedTraceLearner(self.name, names, None)
        if cell_table is None:
            return none
        runs = campaign.common.source.take(campaign.origin[campaign.is_training_row])
        rows = cell_table.rows_of({member_of(*runs.colocations.row(n)) for n in range(len(runs))})
        counters = self.counters(cell_table, rows) if len(rows) > 1 else ()
        if not counters:
            return none
        rows = rows.with_counters(counters)
        rows = rows if best else rows.thinned(MOST_ROWS_TO_CHOOSE)
        learner = fit_learner(rows, self.learner, seed=seed)
        fitted = FittedAlignment.on(cell_table, learner, counters, runs, self.settings.stressors)
        loop = cell_table.loop or self.cell_table is not None
        return FittedTraceLearner(self.name, names, replace(fitted, loop=loop, notes=()))

    def _cell_table(self, campaign: TrainingRuns) -> TracedCells | None:
        """None where the data have no traces that can be learned from."""
        if self.cell_table is not None:
            return self.cell_table
        about, key = campaign.common, ("traced", self.settings)
        if key not in about.learned:
            try:
                traces = traces_of(self.settings, about.data)
                about.learned[key] = cell_table_of(self.settings, traces, about.source)
            except (JostleError, ModuleNotFoundError):
                about.learned[key] = None
        return about.learned[key]


class PhasesLearner(_TraceLearner):
    """Counters of runs alone, inside phases."""

    name: ClassVar[str] = "phases"
    learner: ClassVar[str] = "phases"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "traces"})

    def counters(self, cell_table: TracedCells, rows: AlignedRows) -> tuple[str, ...]:
        if cell_table.rows.inside_share < LEAST_INSIDE:
            return ()
        if self.settings.counters is not None:
            return cell_table.offered
        return select_counters(rows, self.settings.most_counters)


class StretchesLearner(_TraceLearner):
    """What stressors showed of each stretch of a run, a mixture of them."""

    name: ClassVar[str] = "stretches"
    learner: ClassVar[str] = "mixture"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "traces"})

    def counters(self, cell_table: TracedCells, rows: AlignedRows) -> tuple[str, ...]:
        return probe_counters(cell_table.offered)
