"""A profile's tasks, of one device and on any number of streams, as one sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute

from jostle.accelerator._device import MEMORY
from jostle.accelerator.applications._tasks import (
    KERNEL,
    TO_DEVICE,
    TO_HOST,
    UNKNOWN_SHAPE,
    TaskColumns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.traces import Profile

pc: Any = pyarrow.compute

_READ = (
    *("device", "kind", "start_seconds", "duration_seconds", "pinned"),
    *("blocks", "threads_per_block", "occupancy_ratio", "bandwidth_per_pe"),
)


def flatten(
    profile: Profile, device: int | None, pinned: bool, memory_need: float | None
) -> tuple[TaskColumns, tuple[str, ...], float]:
    """(the tasks, what was assumed where the profile could not say, s at which the first starts); see
    Application.from_profile."""
    device = profile.devices[0] if device is None else device
    table = replace(profile, tasks=profile.tasks.select(_READ)).on(device)
    start = table["start_seconds"].to_numpy()
    seconds, gap, is_counted, is_cut = _in_sequence(start, table["duration_seconds"].to_numpy())
    table = table.filter(is_counted)
    kind = np.full(len(table), KERNEL, np.int8)
    kind[np.asarray(pc.equal(table["kind"], "htod"))] = TO_DEVICE
    kind[np.asarray(pc.equal(table["kind"], "dtoh"))] = TO_HOST
    is_kernel = kind == KERNEL

    exclusive, no_pinning = _with_default(table, "pinned", pinned)
    need, no_need = _with_default(table, "bandwidth_per_pe", memory_need or 0.0)
    need = np.where(is_kernel, need, 0.0)
    blocks, no_blocks = _with_default(table, "blocks", UNKNOWN_SHAPE)
    occupancy, _ = _with_default(table, "occupancy_ratio", 0.0)
    threads, _ = _with_default(table, "threads_per_block", 0)
    has_shape = is_kernel & ~no_blocks & (occupancy != 0)
    if (gpu := profile.gpus.get(device)) is None:
        has_shape[:] = False
    per_warp = 1 if gpu is None else gpu.threads_per_warp
    warps = -(-threads.astype(np.int64) // per_warp)
    resources = (MEMORY,) if need.any() else ()
    columns = TaskColumns(
        kind,
        seconds,
        gap,
        blocks=np.where(has_shape, blocks, UNKNOWN_SHAPE),
        warps_per_block=np.where(has_shape, warps, 1),
        occupancy_ratio=np.where(has_shape, occupancy, 1.0),
        needs=need[:, None] if resources else np.zeros((len(table), 0)),
        exclusive=exclusive & ~is_kernel,
        link_ratio=np.ones(len(table)),
        resources=resources,
    )
    assumed = (pinned, memory_need)
    counts = (
        len(is_counted) - len(table),
        int(is_cut.sum()),
        int((no_pinning & ~is_kernel).sum()),
        int((no_need & is_kernel).sum()),
        int((is_kernel & ~has_shape).sum()),
    )
    return columns, _notes(counts, *assumed), float(start[0])


def _in_sequence(
    start: np.ndarray, duration: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """((k,) seconds, (k,) gaps, (n,) whether a task counts at all, (k,) whether only a part of it does).

    A task counts for what it adds to the end of those before it, in the order of start.
    """
    stop = start + duration
    # A task so short that its end is its start leaves no mark on the clock.
    ends = np.where((stop > start) | (duration == 0), stop, -np.inf)
    end = np.maximum.accumulate(np.concatenate([start[:1], ends[:-1]]))
    seconds = stop - np.maximum(start, end)
    counted = (seconds > 0) | (duration <= 0)
    gap = np.maximum(start - end, 0.0)
    return np.maximum(seconds, 0.0)[counted], gap[counted], counted, (start < end)[counted]


def _with_default(table: pa.Table, name: str, default: float) -> tuple[np.ndarray, np.ndarray]:
    """((n,) a column, (n,) where it was null)."""
    column = table[name]
    return column.fill_null(default).to_numpy(), column.is_null().to_numpy()


def _notes(counts: tuple[int, ...], pinned: bool, memory_need: float | None) -> tuple[str, ...]:
    texts = (
        "tasks ran wholly beside others of the same application and are left out",
        "tasks overlap the one before and count for what they add to its end",
        "transfers do not say whether memory was pinned: taken as "
        + ("pinned" if pinned else "not pinned"),
        "kernels do not say what bandwidth they need: taken as "
        + (f"{memory_need:g} bytes/s per PE" if memory_need else "none")
        + " (say it with Profile.with_bandwidth, from a run too small to saturate memory)",
        "kernels, device copies and memsets have no launch shape: taken as the whole device",
    )
    return tuple(f"{count} {text}" for count, text in zip(counts, texts, strict=True) if count)
