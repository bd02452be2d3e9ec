"""Tasks as one device sees them: kernels in chunks, each of which takes PEs for a time.

Source: Prophet (ASPLOS 2017), Sec. 4.3, 5. The time of one batch differs from Eq. 2: that takes all PEs
even where the last batch fills only some, so that the solo trace, replayed alone, would be shorter than
itself. Here Solo = t / sum_j max(1, need * pe_j / capacity) over the batches j that the task has alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jostle.gpu._device import Device
from jostle.gpu.applications._application_tasks import KERNEL, UNKNOWN_SHAPE, TaskColumns


class DeviceTasks(NamedTuple):
    """n tasks on a device.

    kind: (n,) int8. gap, seconds: (n,) s. chunks: (n,) how many units of work a kernel has; a chunk is what
    one PE takes at a time where blocks are packed, one block where they spread. size: (n,) PEs that a
    chunk takes. work: (n,) s that a chunk takes unhindered. needs: (n, R) per PE. exclusive: (n,) bool.
    link: (n,) ratio.
    """

    kind: np.ndarray
    gap: np.ndarray
    seconds: np.ndarray
    chunks: np.ndarray
    size: np.ndarray
    work: np.ndarray
    needs: np.ndarray
    exclusive: np.ndarray
    link: np.ndarray


def device_tasks(columns: TaskColumns, device: Device, resources: Sequence[str]) -> DeviceTasks:
    """Return the tasks on a device, needs in the order of `resources`, which hold at least their own."""
    needs = np.zeros((len(columns), len(resources)))
    needs[:, [resources.index(name) for name in columns.resources]] = columns.needs
    capacity = np.array([device.resources.get(name, np.inf) for name in resources])
    chunks, size = _chunks(columns, device)
    at_once = ((device.pes + 1e-9) / size).astype(np.int64)
    full, rest = np.divmod(chunks, at_once)

    def stretch(resident: np.ndarray) -> np.ndarray:
        pes = np.minimum(device.pes, resident)
        return np.max(needs * pes[:, None] / capacity, axis=1, initial=1.0)

    # Batches that a kernel has alone: full ones, and perhaps a last one that fills some PEs.
    stretched = full * stretch(at_once) + np.where(rest > 0, stretch(rest), 0.0)
    is_kernel = columns.kind == KERNEL
    return DeviceTasks(
        columns.kind,
        columns.gap_seconds,
        columns.seconds,
        np.where(is_kernel, chunks, 0),
        np.where(is_kernel, size, 1.0),
        np.where(is_kernel, columns.seconds / stretched, 0.0),
        needs,
        columns.exclusive,
        columns.link_ratio,
    )


def _chunks(columns: TaskColumns, device: Device) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n,) chunks, (n,) PEs that one takes)."""
    warps = device.warps_per_pe * columns.occupancy_ratio
    per_pe = np.maximum(1, ((warps + 1e-9) // columns.warps_per_block).astype(np.int64))
    if device.placement == "spread":
        chunks, size = columns.blocks, 1 / per_pe
    else:
        chunks, size = -(-columns.blocks // per_pe), np.ones(len(columns))
    is_unknown = columns.blocks == UNKNOWN_SHAPE
    return np.where(is_unknown, device.pes, chunks), np.where(is_unknown, 1.0, size)
