"""Applications and their device from solo profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle._base.report import duration
from jostle.errors import BadData
from jostle.gpu._device import Device
from jostle.gpu.applications._application import Application
from jostle.gpu.applications._flatten import device_of

if TYPE_CHECKING:
    from jostle.data import Profile


def applications_of(
    profiles: Mapping[str, Profile],
    gpu: str | None = None,
    *,
    pinned: bool = False,
    memory_need: float | None = None,
    device: int | str | None = None,
) -> tuple[dict[str, Application], Device]:
    """Return ({workload: its application}, the device) of profiles; where a workload has several, the one of
    median length, with a note on how far apart they are. device: of each profile, its number or the name
    of its hardware; by default the first with tasks.

    Raises BadData where the profiles name different hardware or none and gpu does not say it.
    """
    from jostle.data import gpu_named

    recorded: dict[str, list[Application]] = {}
    devices = {}
    for profile in profiles.values():
        recorded.setdefault(profile.workload, []).append(
            Application.from_profile(profile, device, pinned=pinned, memory_need=memory_need)
        )
        row = profile.gpus.get(device_of(profile, device))
        if row is not None:
            devices.setdefault((row.name, row.pes, row.warps_per_pe), row)
    applications = {}
    for name, runs in recorded.items():
        most = max(run.memory_bytes for run in runs)
        applications[name] = replace(_typical(runs), memory_bytes=most)
    if gpu is not None:
        return applications, Device.of(gpu_named(gpu))
    if len(devices) != 1:
        names = ", ".join(sorted(row.name for row in devices.values())) or "none"
        raise BadData(
            f"the profiles must be of one device; they name: {names}",
            fix="Say which with `gpu`, or keep profiles of different devices in different folders.",
        )
    return applications, Device.of(next(iter(devices.values())))


def _typical(runs: list[Application]) -> Application:
    """Return the one of median length, of several the shorter in the middle."""
    if len(runs) == 1:
        return runs[0]
    ordered = sorted(runs, key=lambda run: run.solo_seconds)
    chosen = ordered[(len(ordered) - 1) // 2]
    shortest, longest = (duration(run.solo_seconds) for run in (ordered[0], ordered[-1]))
    note = (
        f"one of {len(runs)} profiles, the one of median length, {duration(chosen.solo_seconds)}, of "
        f"{shortest} to {longest}"
    )
    return replace(chosen, notes=(*chosen.notes, note))
