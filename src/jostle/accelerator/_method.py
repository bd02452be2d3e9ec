"""The simulator as a predictor of runtimes, so that bounds can be calibrated on measured co-runs.

What the simulator says is corrected by what runs show: on the log scale one offset for solo runs and one
for co-runs, and for every workload its own, shrunk towards them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle.accelerator._application import Application, Task
from jostle.accelerator._device import MEMORY, Device, Partition
from jostle.accelerator._simulate import Tenant, simulate
from jostle.errors import BadData, UnknownName

SHRINKAGE = 2.0  # runs that the common offset counts for beside a workload's own
_TASK_KINDS = ("kernel", "htod", "dtoh")
_FIELDS = ("seconds", "gap_seconds", "occupancy_ratio", "link_ratio")


@dataclass(frozen=True)
class Accelerator:
    """profiles: a dataset folder with solo profiles, one per workload of the runs (the first by name where
    there are several). gpu: instead of the profiles' hardware. kernels: the model. Settings as in Device.
    """

    profiles: str
    gpu: str | None = None
    kernels: str = "concurrent"
    bus: str = "per_direction"
    placement: str = "pack"
    pinned: bool = False
    memory_need: float | None = None

    offers_choice = False  # there is but one way to bound, so no runs are spent on choosing

    @property
    def name(self) -> str:
        return "accelerator"

    def fit(self, runs: Any, validation: Any, *, seed: int = 0, progress: Any = None) -> Any:
        """Applications from the profiles, offsets from `runs` and `validation`. Raises UnknownName for a
        workload of the runs without a profile, BadData where the profiles are of different hardware."""
        applications, device = read_applications(
            self.profiles, self.gpu, pinned=self.pinned, memory_need=self.memory_need
        )
        device = Device(device.pes, device.warps_per_pe, device.resources, self.bus, self.placement)
        fitted = FittedAccelerator(applications, device, self.kernels, np.zeros(2), {})
        if validation is not None:
            runs = type(runs).concatenate([runs, validation])
        return fitted.corrected(runs)


def read_applications(
    folder: str | os.PathLike[str],
    gpu: str | None = None,
    *,
    pinned: bool = False,
    memory_need: float | None = None,
) -> tuple[dict[str, Application], Device]:
    """({workload: its application}, the device) of the profiles in a dataset folder.

    Raises BadData where the profiles name different hardware or none and gpu does not say it.
    """
    from jostle.traces import gpu_named, read_profiles

    profiles = read_profiles(Path(folder))
    applications: dict[str, Application] = {}
    seen = {}
    for profile in profiles.values():
        if profile.workload in applications:
            continue
        applications[profile.workload] = Application.from_profile(
            profile, pinned=pinned, memory_need=memory_need
        )
        row = profile.gpus.get(profile.devices[0])
        if row is not None:
            seen.setdefault((row.name, row.pes, row.warps_per_pe), row)
    if gpu is not None:
        return applications, Device.of(gpu_named(gpu))
    if len(seen) != 1:
        names = ", ".join(sorted(row.name for row in seen.values())) or "none"
        raise BadData(
            f"the profiles must be of one device; they name: {names}",
            where=str(folder),
            fix="Say which with `gpu`, or keep profiles of different devices in different folders.",
        )
    return applications, Device.of(next(iter(seen.values())))


class FittedAccelerator:
    """offsets: (2,) log, alone and beside others. own: {workload: log offset beside others}."""

    def __init__(
        self,
        applications: dict[str, Application],
        device: Device,
        kernels: str,
        offsets: np.ndarray,
        own: dict[str, float],
    ) -> None:
        self.applications, self.device, self.kernels = applications, device, kernels
        self.offsets, self.own = offsets, own
        self.notes = tuple(f"{a.name}: {note}" for a in applications.values() for note in a.notes)
        self._known: dict[tuple, float] = {}

    def simulated(self, colocations: Any) -> np.ndarray:
        """(n,) seconds without the correction: one run of the workload, its co-runners repeating."""
        columns = colocations.to_columns()
        answer = np.empty(len(columns["workload"]))
        rows = zip(columns["workload"], columns["corunners"], strict=True)
        for number, (workload, corunners) in enumerate(rows):
            key = (workload, tuple(sorted(corunners)))
            if key not in self._known:
                self._known[key] = self._simulate(*key)
            answer[number] = self._known[key]
        return answer

    def _simulate(self, workload: str, corunners: tuple[str, ...]) -> float:
        for name in (workload, *corunners):
            if name not in self.applications:
                raise UnknownName("workload", name, sorted(self.applications))
        tenants = [Tenant(self.applications[workload])]
        tenants += [Tenant(self.applications[name], None) for name in corunners]
        found = simulate(tenants, self.device, kernels=self.kernels)
        return float(found.run_ends[0][0])

    def _log_offsets(self, colocations: Any) -> np.ndarray:
        beside = np.asarray(colocations.number_of_corunners) > 0
        own = [self.own.get(name, 0.0) for name in colocations.to_columns()["workload"]]
        return self.offsets[beside.astype(int)] + np.where(beside, own, 0.0)

    def predict(self, colocations: Any) -> np.ndarray:
        """(n,) seconds. Raises UnknownName for a workload without a profile."""
        return self.simulated(colocations) * np.exp(self._log_offsets(colocations))

    def corrected(self, runs: Any) -> FittedAccelerator:
        """The same with offsets learned from runs."""
        colocations = runs.colocations
        off = np.log(runs.runtime_seconds) - np.log(self.simulated(colocations))
        beside = np.asarray(colocations.number_of_corunners) > 0
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
        return FittedAccelerator(self.applications, self.device, self.kernels, offsets, own)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays: dict[str, np.ndarray] = {"offsets": self.offsets}
        said = []
        for number, (workload, app) in enumerate(self.applications.items()):
            table = np.array([[getattr(t, f) for f in _FIELDS] for t in app.tasks], np.float64)
            needs = np.array([t.needs.get(MEMORY, 0.0) for t in app.tasks])
            arrays[f"application_{number}_times"] = np.column_stack([table, needs])
            arrays[f"application_{number}_shapes"] = np.array(
                [
                    (_TASK_KINDS.index(t.kind), t.blocks or 0, t.warps_per_block, t.exclusive)
                    for t in app.tasks
                ],
                np.int64,
            )
            said.append({"workload": workload, "notes": list(app.notes)})
        device = {
            "pes": self.device.pes,
            "warps_per_pe": self.device.warps_per_pe,
            "resources": dict(self.device.resources),
            "bus": self.device.bus,
            "placement": self.device.placement,
            "time_slice_seconds": self.device.time_slice_seconds,
            "partitions": [[p.pes, p.resource_ratio] for p in self.device.partitions],
        }
        return arrays, {
            "applications": said,
            "device": device,
            "kernels": self.kernels,
            "own": self.own,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], said: dict[str, Any]) -> FittedAccelerator:
        applications = {}
        for number, entry in enumerate(said["applications"]):
            times = arrays[f"application_{number}_times"].tolist()
            shapes = arrays[f"application_{number}_shapes"].tolist()
            tasks = tuple(
                Task(
                    _TASK_KINDS[kind],
                    *(seconds, gap),
                    blocks or None,
                    warps,
                    occupancy,
                    {MEMORY: need} if need else {},
                    bool(exclusive),
                    link,
                )
                for (seconds, gap, occupancy, link, need), (kind, blocks, warps, exclusive) in zip(
                    times, shapes, strict=True
                )
            )
            name = entry["workload"]
            applications[name] = Application(name, tasks, tuple(entry["notes"]))
        device = dict(said["device"])
        device["partitions"] = tuple(Partition(*p) for p in device["partitions"])
        return cls(
            applications, Device(**device), said["kernels"], arrays["offsets"], dict(said["own"])
        )
