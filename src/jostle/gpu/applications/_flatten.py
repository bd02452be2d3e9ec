"""A profile's tasks, of one device and on any number of streams, as one sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData
from jostle.gpu._device import MEMORY
from jostle.gpu.applications._application_tasks import (
    KERNEL,
    TO_DEVICE,
    TO_HOST,
    UNKNOWN_SHAPE,
    TaskColumns,
)
from jostle.gpu.applications._lanes import branches, in_lanes

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.data import Gpu, Profile


NO_STREAM = -1
_READ = (
    *("device", "stream", "kind", "start_seconds", "duration_seconds", "pinned"),
    *("blocks", "threads_per_block", "occupancy_ratio", "bandwidth_per_pe", "graph_node"),
)


def flatten(
    profile: Profile, device: int | str | None, pinned: bool, memory_need: float | None
) -> tuple[TaskColumns, tuple[str, ...], float]:
    """Return (the tasks, what was assumed where the profile could not say, s at which the first starts); see
    Application.from_profile."""
    others = profile.devices
    device = device_of(profile, device)
    others = tuple(one for one in others if one != device)
    table = replace(profile, tasks=profile.tasks.select(_READ)).on(device)
    gpu = profile.gpus.get(device)
    start, duration = (table[name].to_numpy() for name in ("start_seconds", "duration_seconds"))
    kind = np.full(len(table), KERNEL, np.int8)
    kind[np.asarray(pc.equal(table["kind"], "htod"))] = TO_DEVICE
    kind[np.asarray(pc.equal(table["kind"], "dtoh"))] = TO_HOST
    stream, _ = _with_default(table, "stream", NO_STREAM)
    _, no_node = _with_default(table, "graph_node", 0)
    stream = branches(start, duration, stream, ~no_node & (kind == KERNEL))
    lanes = in_lanes(start, duration, kind, stream, _shares(table, gpu))
    table, kind = table.filter(lanes.counted), kind[lanes.counted]
    is_kernel = kind == KERNEL

    exclusive, no_pinning = _with_default(table, "pinned", pinned)
    need, no_need = _with_default(table, "bandwidth_per_pe", memory_need or 0.0)
    need = np.where(is_kernel, need, 0.0)
    blocks, no_blocks = _with_default(table, "blocks", UNKNOWN_SHAPE)
    occupancy, _ = _with_default(table, "occupancy_ratio", 0.0)
    threads, _ = _with_default(table, "threads_per_block", 0)
    has_shape = is_kernel & ~no_blocks & (occupancy != 0)
    if gpu is None:
        has_shape[:] = False
    per_warp = 1 if gpu is None else gpu.threads_per_warp
    warps = -(-threads.astype(np.int64) // per_warp)
    resources = (MEMORY,) if need.any() else ()
    columns = TaskColumns(
        kind,
        lanes.seconds,
        lanes.gap,
        blocks=np.where(has_shape, blocks, UNKNOWN_SHAPE),
        warps_per_block=np.where(has_shape, warps, 1),
        occupancy_ratio=np.where(has_shape, occupancy, 1.0),
        needs=need[:, None] if resources else np.zeros((len(table), 0)),
        exclusive=exclusive & ~is_kernel,
        link_ratio=np.ones(len(table)),
        lane=lanes.lane,
        after=lanes.after,
        resources=resources,
    )
    assumed = (pinned, memory_need)
    counts = (
        len(lanes.counted) - len(table),
        int(lanes.cut.sum()),
        int((no_pinning & ~is_kernel).sum()),
        int((no_need & is_kernel).sum()),
        int((is_kernel & ~has_shape).sum()),
    )
    notes = _notes(counts, *assumed)
    if others:
        gone = ", ".join(map(str, others))
        notes = (
            f"tasks of device {device} alone are taken, those of device {gone} left out",
            *notes,
        )
    return columns, notes, float(start[0])


def device_of(profile: Profile, device: int | str | None) -> int:
    """Return the number of a device with tasks, by its number or the name of its hardware; None: the
    first. Raises BadData for one that is not there, or a name that several have."""
    if device is None:
        return profile.devices[0]
    if not isinstance(device, str):
        return device
    if device.isdecimal():
        return int(device)
    names = {number: gpu.name for number in profile.devices if (gpu := profile.gpus.get(number))}
    mine = [number for number, name in names.items() if device.lower() in name.lower()]
    if len(mine) == 1:
        return mine[0]
    known = ", ".join(f"{number}: {names.get(number, 'unknown')}" for number in profile.devices)
    raise BadData(
        f"{len(mine)} devices are called {device!r}; with tasks: {known}",
        where=profile.run_id,
        fix="Say its number.",
    )


def _shares(table: pa.Table, gpu: Gpu | None) -> np.ndarray:
    """Return (n,) of the device that each kernel takes; all of it where the shape or the device is not
    known."""
    blocks, no_blocks = _with_default(table, "blocks", 0)
    occupancy, no_occupancy = _with_default(table, "occupancy_ratio", 1.0)
    threads, _ = _with_default(table, "threads_per_block", 0)
    if gpu is None:
        return np.ones(len(table))
    warps = np.maximum(-(-threads.astype(np.int64) // gpu.threads_per_warp), 1)
    per_pe = np.maximum(1, (gpu.warps_per_pe * occupancy + 1e-9) // warps)
    unknown = no_blocks | no_occupancy | (threads == 0)
    return np.where(unknown, 1.0, np.minimum(1.0, np.ceil(blocks / per_pe) / gpu.pes))


def _with_default(table: pa.Table, name: str, default: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n,) a column, (n,) where it was null)."""
    column = table[name]
    return column.fill_null(default).to_numpy(), column.is_null().to_numpy()


def _notes(counts: tuple[int, ...], pinned: bool, memory_need: float | None) -> tuple[str, ...]:
    texts = (
        "tasks ran wholly beside others that they cannot share the device with and are left out",
        "tasks overlap the one before in their lane and count for what they add to its end",
        "transfers do not say whether memory was pinned: taken as "
        + ("pinned" if pinned else "not pinned"),
        "kernels do not say what bandwidth they need: taken as "
        + (f"{memory_need:g} bytes/s per PE" if memory_need else "none")
        + " (say it with jostle import profile --counters, from a run too small to saturate memory)",
        "kernels, device copies and memsets have no launch shape: taken as the whole device",
    )
    return tuple(f"{count} {text}" for count, text in zip(counts, texts, strict=True) if count)
