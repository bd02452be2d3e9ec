"""Applications and their device from solo profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jostle.accelerator._device import Device
from jostle.accelerator.applications._application import Application
from jostle.accelerator.applications._flatten import device_of
from jostle.errors import BadData

if TYPE_CHECKING:
    from jostle.traces import Profile


def applications_of(
    profiles: Mapping[str, Profile],
    gpu: str | None = None,
    *,
    pinned: bool = False,
    memory_need: float | None = None,
    device: int | str | None = None,
) -> tuple[dict[str, Application], Device]:
    """({workload: its application}, the device) of profiles, of the first where a workload has several.
    device: of each profile, its number or the name of its hardware; by default the first with tasks.

    Raises BadData where the profiles name different hardware or none and gpu does not say it.
    """
    from jostle.traces import gpu_named

    applications: dict[str, Application] = {}
    devices = {}
    for profile in profiles.values():
        if profile.workload in applications:
            continue
        applications[profile.workload] = Application.from_profile(
            profile, device, pinned=pinned, memory_need=memory_need
        )
        row = profile.gpus.get(device_of(profile, device))
        if row is not None:
            devices.setdefault((row.name, row.pes, row.warps_per_pe), row)
    if gpu is not None:
        return applications, Device.of(gpu_named(gpu))
    if len(devices) != 1:
        names = ", ".join(sorted(row.name for row in devices.values())) or "none"
        raise BadData(
            f"the profiles must be of one device; they name: {names}",
            fix="Say which with `gpu`, or keep profiles of different devices in different folders.",
        )
    return applications, Device.of(next(iter(devices.values())))
