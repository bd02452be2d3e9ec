"""A fitted alignment, answered by NumPy alone: solo counters of workloads, and the learned slowdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.conformal import Uncertainty
from jostle.errors import BadData, require_known
from jostle.learn.contract._run_counts import FromCounts, RunCounts
from jostle.learn.learners.counters._roll import roll
from jostle.learn.learners.counters.learning._aligned_rows import Member
from jostle.learn.learners.counters.learning._blend import Blend
from jostle.learn.learners.counters.learning._fit_learner import Learner
from jostle.learn.learners.counters.solo._axis import with_instructions
from jostle.learn.learners.counters.solo._probed import EVERY_STRESSOR, with_probes
from jostle.learn.learners.counters.solo._solo_counters import SoloCounters, Solos

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs, Traces
    from jostle.learn.learners.counters._traced_cells import TracedCells

# The least log slowdown that the size of an error is taken to be proportional to.
FLOOR = 0.01
# Times off all others: counts in thousands, where programs hardly differ so far.
OTHER_UNIT = 1000.0


def _rate(solo: SoloCounters) -> float:
    """Instructions a second."""
    return solo.instructions / solo.duration_seconds


@dataclass(frozen=True, eq=False)
class FittedAlignment(FromCounts):
    """Predicts the run time of workloads side by side from their counters and probes.

    solos: of every workload that it can answer for. model: the learned slowdown. counts: of the runs learned
    from. loop: whether co-runners begin anew until the workload ends. most: the most workloads of a window
    learned from.
    """

    solos: Solos
    model: Learner | Blend
    counts: RunCounts
    loop: bool = False
    most: int = 2
    notes: tuple[str, ...] = ()
    stressors: tuple[str, ...] = EVERY_STRESSOR
    _known: dict[tuple, float] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def on(
        cls,
        cell_table: TracedCells,
        model: Learner | Blend,
        counters: tuple[str, ...],
        runs: Runs,
        stressors: tuple[str, ...],
    ) -> FittedAlignment:
        """Assemble what was learned from these counters of a cell table, and from the runs on it."""
        solos = Solos(tuple(solo.narrowed(counters) for solo in cell_table.solos.all))
        of_cells = cell_table.loop, cell_table.most, cell_table.notes
        return cls(solos, model, RunCounts.of(runs), *of_cells, stressors)

    @property
    def workload_names(self) -> tuple[str, ...]:
        """Workloads whose counters alone it knows, sorted."""
        return tuple(sorted({solo.workload for solo in self.solos.all}))

    @property
    def platform_names(self) -> tuple[str, ...]:
        """Names of the platforms it knows, sorted."""
        return tuple(sorted({solo.platform for solo in self.solos.all}))

    @property
    def counters(self) -> tuple[str, ...]:
        """Counters that a trace has to have, instructions first."""
        return self.solos.all[0].counters

    def with_solo(self, traces: Traces) -> FittedAlignment:
        """Add the workloads traced alone in `traces` to the known ones; those it knew stay.

        A note says which execute so much more or less than all others that they may be in another unit.
        Raises UnknownName for a trace without a counter it needs, BadData for one of another kind.
        """
        traces = with_probes(with_instructions(traces), self.stressors)
        have = {(s.workload, s.platform) for s in self.solos.all}
        period = self.solos.all[0].period_seconds
        new = Solos.from_traces(traces, self.counters, period).all
        more = [s for s in new if (s.workload, s.platform) not in have]
        rates = [_rate(solo) for solo in self.solos.all]
        low, high = min(rates) / OTHER_UNIT, max(rates) * OTHER_UNIT
        odd = {s.workload: _rate(s) for s in more if not low < _rate(s) < high}
        notes = [
            f"{name} executes {rate:.3g} instructions a second alone, those learned from {min(rates):.3g} to "
            f"{max(rates):.3g}: its counts may be in another unit"
            for name, rate in odd.items()
        ]
        solos = Solos((*self.solos.all, *more))
        return replace(self, solos=solos, notes=(*self.notes, *notes))

    def predict(self, colocations: Colocations) -> np.ndarray:
        """Return (n,) seconds. Beside more co-runners than any window learned from had, a workload loses at
        most what it loses beside each of them, added up.

        Raises UnknownName for a workload without a trace alone, or a platform without any.
        """
        out = np.empty(len(colocations))
        for i in range(len(colocations)):
            workload, platform, corunners = colocations.row(i)
            require_known("platform", platform, self.platform_names)
            out[i] = self._seconds(workload, platform, corunners)
            if len(corunners) >= max(self.most, 2):
                beside = [self._seconds(workload, platform, [c]) for c in corunners]
                alone = self._alone(workload, platform)
                out[i] = min(out[i], alone + sum(max(b - alone, 0.0) for b in beside))
        return out

    def slowdown(self, colocations: Colocations) -> np.ndarray:
        """Return (n,) run time over run time alone, 1 without co-runners."""
        return self.predict(colocations) / self._times_alone(colocations)

    def uncertainty(self, colocations: Colocations) -> Uncertainty:
        """Let errors grow with the predicted slowdown."""
        seconds = self.predict(colocations)
        centre = np.log(seconds)
        slow = np.maximum(np.abs(centre - np.log(self._times_alone(colocations))), FLOOR)
        return Uncertainty(centre, np.log(slow)[None], np.zeros(1), seconds)

    def window(
        self, workloads: Sequence[str], platform: str, *, loop: Sequence[bool] | None = None
    ) -> np.ndarray:
        """Return when each of these ends, from the same moment on; see `roll`."""
        return self.roll([self.solos.of(name, platform) for name in workloads], loop=loop)

    def roll(
        self, solos: Sequence[SoloCounters], *, loop: Sequence[bool] | None = None
    ) -> np.ndarray:
        """See `roll`."""
        for solo in solos:
            if solo.counters != self.counters:
                raise BadData(
                    f"the solo counters of {solo.workload!r} are not those of the model",
                    fix="Make them with solo_counters(trace, model.counters, period).",
                )
        slowdowns = []
        for i, solo in enumerate(solos):
            others = tuple(one.workload for k, one in enumerate(solos) if k != i)
            slowdowns.append(self._slowdown((solo.platform, solo.workload, others)))
        return roll(solos, lambda i, *rates: slowdowns[i](*rates), loop=loop)

    def _slowdown(self, member: Member) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function from (n, d) rates to a workload's slowdown."""
        if not member[2]:
            return lambda own, others: np.ones(len(own))
        model = self.model
        return model.beside(member) if isinstance(model, Blend) else model.slowdown

    def _seconds(self, workload: str, platform: str, corunners: Sequence[str]) -> float:
        """Return the run time of the first of these."""
        members = (workload, *corunners)
        if (platform, *members) not in self._known:
            loop = [place > 0 for place in range(len(members))] if self.loop else None
            ends = self.window(members, platform, loop=loop)
            self._known[(platform, *members)] = float(ends[0])
        return self._known[(platform, *members)]

    def _alone(self, workload: str, platform: str) -> float:
        return self.solos.of(workload, platform).duration_seconds

    def _times_alone(self, colocations: Colocations) -> np.ndarray:
        return np.array([self._alone(*colocations.row(i)[:2]) for i in range(len(colocations))])
