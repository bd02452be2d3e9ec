"""The simulator with what measured runs show of its error, as a predictor of runtimes.

What it simulates is corrected on the log scale: by one offset for solo runs and one for co-runs, and by one
of its own for every workload, shrunk towards them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.accelerator._device import Device, Partition
from jostle.accelerator.applications._application import Application
from jostle.accelerator.applications._tasks import TaskColumns
from jostle.accelerator.simulator._simulate import simulate
from jostle.accelerator.simulator._tenants import SimulationOptions, Tenant
from jostle.bounds import Candidates
from jostle.errors import UnknownName
from jostle.methods import FromCounts, RunCounts

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs

SHRINKAGE = 2.0  # runs that the common offset counts for beside a workload's own


@dataclass(frozen=True, eq=False)
class FittedAccelerator(FromCounts):
    """applications: {workload: its tasks}. sharing: the model of how kernels share the device, by name.
    counts: of the runs learned from. offsets: (2,) log, alone and beside others. own: {workload: log offset
    beside others}."""

    applications: dict[str, Application]
    device: Device
    sharing: str
    counts: RunCounts
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(2))
    own: dict[str, float] = field(default_factory=dict)
    _simulated: dict[tuple, float] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def learned(
        cls, applications: dict[str, Application], device: Device, sharing: str, runs: Runs
    ) -> FittedAccelerator:
        """With offsets learned from runs."""
        plain = cls(applications, device, sharing, RunCounts.of(runs))
        colocations = runs.colocations
        off = np.log(runs.runtime_seconds) - np.log(plain.simulated(colocations))
        beside = colocations.number_of_corunners > 0
        offsets = np.array(
            [float(np.median(off[part])) if part.any() else np.nan for part in (~beside, beside)]
        )
        known = offsets[~np.isnan(offsets)]
        offsets = np.where(np.isnan(offsets), known.mean() if len(known) else 0.0, offsets)
        names = np.array(colocations.to_columns()["workload"])
        own = {}
        for name in sorted(set(names[beside])):
            rest = off[beside & (names == name)] - offsets[1]
            own[str(name)] = float(rest.sum() / (len(rest) + SHRINKAGE))
        return replace(plain, offsets=offsets, own=own)

    @property
    def workload_names(self) -> tuple[str, ...]:
        """Those with a profile."""
        return tuple(sorted(self.applications))

    @property
    def platform_names(self) -> tuple[str, ...]:
        """Those of the runs learned from."""
        return self.counts.platform_names

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{a.name}: {note}" for a in self.applications.values() for note in a.notes)

    def simulated(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds without the correction: one run of the workload, its co-runners repeating.

        Raises UnknownName for a workload without a profile."""
        columns = asked.to_columns()
        rows = zip(columns["workload"], columns["corunners"], strict=True)
        keys = [(workload, tuple(sorted(corunners))) for workload, corunners in rows]
        for key in keys:
            if key not in self._simulated:
                self._simulated[key] = self._simulate(*key)
        return np.array([self._simulated[key] for key in keys], np.float64)

    def _simulate(self, workload: str, corunners: tuple[str, ...]) -> float:
        for name in (workload, *corunners):
            if name not in self.applications:
                raise UnknownName("workload", name, sorted(self.applications))
        tenants = [Tenant(self.applications[workload])]
        tenants += [Tenant(self.applications[name], None) for name in corunners]
        found = simulate(tenants, self.device, SimulationOptions(self.sharing))
        return float(found.run_ends[0][0])

    def predict(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds. Raises UnknownName for a workload without a profile, a platform without runs."""
        asked.codes_in(self.workload_names, self.platform_names)
        beside = asked.number_of_corunners > 0
        own = [self.own.get(name, 0.0) for name in asked.to_columns()["workload"]]
        log_offsets = self.offsets[beside.astype(int)] + np.where(beside, own, 0.0)
        return self.simulated(asked) * np.exp(log_offsets)

    def candidates(self, asked: Colocations) -> Candidates:
        """The prediction with the same offset everywhere."""
        return Candidates.one_way(self.predict(asked))

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        counts, counted = self.counts.to_arrays()
        arrays: dict[str, np.ndarray] = {**counts, "offsets": self.offsets}
        applications = []
        for number, app in enumerate(self.applications.values()):
            columns = app.columns.arrays()
            arrays |= {f"application_{number}_{name}": column for name, column in columns.items()}
            applications.append(
                {"name": app.name, "notes": app.notes, "resources": app.columns.resources}
            )
        return arrays, {
            **counted,
            "applications": applications,
            "device": {
                **vars(self.device),
                "partitions": list(map(asdict, self.device.partitions)),
            },
            "sharing": self.sharing,
            "own": self.own,
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedAccelerator:
        applications = {}
        for number, entry in enumerate(document["applications"]):
            prefix = f"application_{number}_"
            found = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            columns = TaskColumns(**found, resources=tuple(entry["resources"]))
            applications[entry["name"]] = Application(entry["name"], columns, tuple(entry["notes"]))
        device = dict(document["device"])
        device["partitions"] = tuple(Partition(**part) for part in device["partitions"])
        return cls(
            applications,
            Device(**device),
            document["sharing"],
            RunCounts.from_arrays(arrays, document),
            arrays["offsets"],
            dict(document["own"]),
        )
