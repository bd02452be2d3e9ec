"""The simulator with what measured runs show it misses, as a predictor of runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.accelerator._device import Device, Partition
from jostle.accelerator.applications._application import Application
from jostle.accelerator.applications._tasks import TaskColumns
from jostle.accelerator.learned._coruns import CoRuns, asked_coruns
from jostle.accelerator.learned._delays import REPEATING, Delays, Sharing
from jostle.accelerator.learned._fit import EVERYWHERE
from jostle.accelerator.learned._larger import larger_sets
from jostle.accelerator.learned._stack import CoRunStack
from jostle.bounds import Candidates
from jostle.errors import UnreadableFile
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

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        counts, counted = self.counts.to_arrays()
        arrays: dict[str, np.ndarray] = {**counts, "log_solo": self.log_solo}
        applications = []
        for number, app in enumerate(self.applications.values()):
            columns = app.columns.arrays()
            arrays |= {f"application_{number}_{name}": column for name, column in columns.items()}
            entry = {"name": app.name, "notes": app.notes, "resources": app.columns.resources}
            applications.append({**entry, "first_seconds": app.first_seconds})
        stacks = []
        for number, (name, stack) in enumerate(sorted(self.stacks.items())):
            more, document = stack.to_arrays(f"stack_{number}.")
            arrays |= more
            stacks.append({"platform": name, "most": self.most[name], **document})
        return {name: np.asarray(column, order="C") for name, column in arrays.items()}, {
            **counted,
            "applications": applications,
            "device": {
                **vars(self.device),
                "partitions": list(map(asdict, self.device.partitions)),
            },
            "sharing": self.sharing,
            "stacks": stacks,
            "notes": list(self.learned_notes),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedAccelerator:
        """Raises UnreadableFile for a model that was saved before co-runs were learned by a stack."""
        if "stacks" not in document:
            raise UnreadableFile(
                "this accelerator model was saved by an older version, which corrected the simulator by "
                "offsets alone",
                fix="Fit it again with jostle fit accelerator.",
            )
        applications = {}
        for number, entry in enumerate(document["applications"]):
            prefix = f"application_{number}_"
            found = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            columns = TaskColumns(**found, resources=tuple(entry["resources"]))
            applications[entry["name"]] = Application(
                entry["name"], columns, tuple(entry["notes"]), float(entry["first_seconds"])
            )
        device = dict(document["device"])
        device["partitions"] = tuple(Partition(**part) for part in device["partitions"])
        stacks, most = {}, {}
        for number, entry in enumerate(document["stacks"]):
            stacks[entry["platform"]] = CoRunStack.from_arrays(arrays, entry, f"stack_{number}.")
            most[entry["platform"]] = int(entry["most"])
        return cls(
            applications,
            Device(**device),
            document["sharing"],
            RunCounts.from_arrays(arrays, document),
            arrays["log_solo"],
            stacks,
            most,
            tuple(document["notes"]),
        )
