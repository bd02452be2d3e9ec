"""The simulator with what measured runs show it misses, as a predictor of runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._application import Application
from jostle.accelerator.learned._alone import idle_seconds
from jostle.accelerator.learned._coruns import CoRuns, asked_coruns
from jostle.accelerator.learned._delays import REPEATING, Delays, Sharing
from jostle.accelerator.learned._fit import EVERYWHERE, WithoutSets
from jostle.accelerator.learned._larger import larger_sets
from jostle.accelerator.learned._stack import CoRunStack
from jostle.bounds import Candidates
from jostle.methods import FitWithout, FromCounts, RunCounts

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs

LEAST_SCALE = 0.05  # log slowdown by which a run alone is unsure


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
        return Delays(
            tuple(self.applications.values()), self.device, idle_seconds(self.log_solo, self._trace)
        )

    @property
    def _trace(self) -> np.ndarray:
        return np.array([application.solo_seconds for application in self.applications.values()])

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
        way = Sharing(self.sharing, self.device.bus, REPEATING)
        raw = Delays(tuple(self.applications.values()), self.device)
        return self._trace[rows.target] + raw.of(way, rows.target, rows.beside)

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

    def left_out(self, runs: Runs, parts: Sequence[WithoutSets]) -> list[FitWithout]:
        """What answers about each part of the sets without having learned from it. runs: all of them."""
        names = self.workload_names, self.platform_names
        set_of = asked_coruns(runs.colocations, names, self.log_solo)
        place = np.array([name if name in self.stacks else EVERYWHERE for name in names[1]])
        alike, left = place[set_of.platform], []
        for part in parts:
            gone = np.isin(set_of.together, part.codes) & (set_of.degree > 0)
            mine = np.flatnonzero(gone & (alike == part.platform))
            counts = RunCounts.of(runs.take(np.flatnonzero(~gone)))
            if len(mine) and counts.platform_names == names[1]:
                stacks = {**self.stacks, part.platform: part.stack}
                fitted = replace(self, counts=counts, stacks=stacks)
                left.append(FitWithout(fitted, mine, set_of.together[mine], is_of_names=False))
        return left

    def candidates(self, asked: Colocations) -> Candidates:
        """The prediction with an offset that grows with the slowdown, as errors do."""
        seconds = self.predict(asked)
        alone = asked_coruns(asked, (self.workload_names, self.platform_names), self.log_solo).solo
        scale = LEAST_SCALE + np.abs(np.log(seconds / alone))
        return Candidates(("prediction",), np.log(seconds)[None], scale[None], seconds=seconds)
