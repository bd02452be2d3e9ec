"""The simulator with what measured runs show it misses, as a predictor of runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._application import Application
from jostle.accelerator.learned._coruns import CoRuns, asked_coruns
from jostle.accelerator.learned._delays import REPEATING, Delays, Sharing
from jostle.accelerator.learned._fit import EVERYWHERE
from jostle.accelerator.learned._larger import larger_sets
from jostle.accelerator.learned._stack import CoRunStack
from jostle.bounds import Candidates
from jostle.methods import FromCounts, RunCounts

if TYPE_CHECKING:
    from jostle.runs import Colocations


@dataclass(frozen=True, eq=False)
class FittedAccelerator(FromCounts):
    """applications: {workload: its tasks}, sorted by name. sharing: the model of how kernels share the
    device, by name, where no run says otherwise. counts: of the runs learned from. log_solo: (platforms,
    workloads). stacks: {platform: what answers about co-runs there}, most: {platform: co-runners in any
    run learned from}, both with EVERYWHERE for platforms without one of their own."""

    applications: dict[str, Application]
    device: Device
    sharing: str
    counts: RunCounts
    log_solo: np.ndarray
    stacks: dict[str, CoRunStack]
    most: dict[str, int]
    learned_notes: tuple[str, ...] = ()

    @property
    def workload_names(self) -> tuple[str, ...]:
        """Those with a profile."""
        return tuple(self.applications)

    @property
    def platform_names(self) -> tuple[str, ...]:
        """Those of the runs learned from."""
        return self.counts.platform_names

    @property
    def notes(self) -> tuple[str, ...]:
        of_traces = (f"{a.name}: {note}" for a in self.applications.values() for note in a.notes)
        return (*self.learned_notes, *of_traces)

    @cached_property
    def delays(self) -> Delays:
        """Simulations of its applications, each made once."""
        return Delays(tuple(self.applications.values()), self.device)

    def way_to_share(self, platform: str) -> tuple[str, str]:
        """How kernels and transfers share there, as learned."""
        way = self.stacks.get(platform, self.stacks[EVERYWHERE]).main_way
        return (self.sharing, self.device.bus) if way is None else (way.sharing, way.bus)

    def simulated(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds by the simulator alone, nothing learned: one run of the workload, as long as its
        trace, its co-runners repeating.

        Raises UnknownName for a workload without a profile."""
        places = tuple(sorted({*self.platform_names, *asked.platform_names}))
        solo = np.zeros((len(places), len(self.applications)))
        rows = asked_coruns(asked, (self.workload_names, places), solo)
        trace = np.array([application.solo_seconds for application in self.applications.values()])
        way = Sharing(self.sharing, self.device.bus, REPEATING)
        return trace[rows.target] + self.delays.of(way, rows.target, rows.beside)

    def predict(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds. Raises UnknownName for a workload without a profile, a platform without runs."""
        rows = asked_coruns(asked, (self.workload_names, self.platform_names), self.log_solo)
        log_slowdown = np.zeros(len(rows))
        for code in np.unique(rows.platform):
            name = self.platform_names[code]
            stack = self.stacks.get(name, self.stacks[EVERYWHERE])
            most = self.most.get(name, self.most[EVERYWHERE])
            here = (rows.platform == code) & (rows.degree > 0)
            usual = np.flatnonzero(here & (rows.degree <= most))
            more = np.flatnonzero(here & (rows.degree > most))
            if len(usual):
                log_slowdown[usual] = stack.log_slowdown(rows.take(usual), self.delays)
            if len(more):

                def answer(some: CoRuns, stack: CoRunStack = stack) -> np.ndarray:
                    return stack.log_slowdown(some, self.delays)

                log_slowdown[more] = larger_sets(
                    rows.take(more), most, answer, self.delays, stack.main_way
                )
        return rows.solo * np.exp(log_slowdown)

    def candidates(self, asked: Colocations) -> Candidates:
        """The prediction with the same offset everywhere."""
        return Candidates.one_way(self.predict(asked))
