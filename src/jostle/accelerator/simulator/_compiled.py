"""The simulator for speed: tenants and device as arrays for the loop that numba compiles.

The first call compiles (and keeps the result on disk beside this file or in the user's cache).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._chunks import DeviceTasks
from jostle.accelerator.applications._tasks import KERNEL
from jostle.accelerator.simulator._engine import (
    CONCURRENT,
    LIMIT,
    SEQUENTIAL,
    SLICED,
    KernelClasses,
    Pools,
    TenantTable,
    run,
)
from jostle.accelerator.simulator._sharing import Concurrent, Sequential, SharingModel
from jostle.accelerator.simulator._tenants import Schedule, Tenant


def simulate_compiled(
    tenants: Sequence[Tenant],
    device: Device,
    sharing: SharingModel,
    resources: tuple[str, ...],
    until_seconds: float,
) -> Schedule:
    """As simulate, for the built-in models."""
    own = [tenant.application.on(device, resources) for tenant in tenants]
    unique = {id(tasks): tasks for tasks in own}
    offsets = np.cumsum([0, *(len(tasks.gap) for tasks in unique.values())])
    first = dict(zip(unique, offsets.tolist(), strict=False))
    tasks = DeviceTasks(*(np.concatenate(column) for column in zip(*unique.values(), strict=True)))
    lengths = np.array([len(tasks.gap) for tasks in own])
    table = _table(tenants, [first[id(tasks)] for tasks in own], lengths)
    capacity = np.array([device.resources.get(name, np.inf) for name in resources])
    pools = Pools(
        np.array([pool.pes for pool in device.pools], np.float64),
        np.array([capacity * pool.resource_ratio for pool in device.pools], np.float64),
        float(device.time_slice_seconds),
        1 if device.bus == "shared" else 2,
    )
    merge = 0.0
    mode = SEQUENTIAL if isinstance(sharing, Sequential) else SLICED
    if isinstance(sharing, Concurrent):
        mode, merge = CONCURRENT, sharing.merge_ratio
    ends, latencies, runs_done, task_ends, count = run(
        tasks, _classes(tasks), table, pools, mode, float(merge), float(until_seconds)
    )
    done: list[Any] = [slice(0, int(n)) for n in runs_done]
    return Schedule(
        tuple(ends[a, part] for a, part in enumerate(done)),
        tuple(latencies[a, part] for a, part in enumerate(done)),
        tuple(np.split(task_ends, np.cumsum(lengths)[:-1])),
        int(count),
        "compiled",
    )


def _classes(tasks: DeviceTasks) -> KernelClasses:
    """Kernels that use the same resources; transfers use none and stand in the first class."""
    is_kernel = tasks.kind == KERNEL
    used = (tasks.needs > 0)[is_kernel]
    users, of_task = np.zeros((1, used.shape[1]), bool), np.zeros(len(is_kernel), np.int64)
    if used.size:
        users, inverse = np.unique(used, axis=0, return_inverse=True)
        of_task[is_kernel] = inverse.reshape(-1)
    return KernelClasses(users, of_task)


def _table(tenants: Sequence[Tenant], first: list[int], lengths: np.ndarray) -> TenantTable:
    arrivals = [
        np.zeros(0) if t.arrivals is None else np.asarray(t.arrivals, np.float64) for t in tenants
    ]
    return TenantTable(
        np.array(first),
        lengths,
        np.array([t.start_seconds for t in tenants], np.float64),
        np.array([-1 if t.runs is None else t.runs for t in tenants], np.int64),
        np.concatenate(arrivals),
        np.concatenate([[0], np.cumsum([len(a) for a in arrivals])]).astype(np.int64),
        np.array([t.partition for t in tenants], np.int64),
        np.array([LIMIT if t.most_pes is None else t.most_pes for t in tenants], np.float64),
    )
