"""The simulator for speed: tenants and device as arrays for the loop that numba compiles.

The first call compiles (and keeps the result on disk beside this file or in the user's cache).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._application import Application
from jostle.accelerator.applications._chunks import DeviceTasks
from jostle.accelerator.applications._tasks import KERNEL, NO_TASK
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
    laid: dict[int, _InLanes] = {}
    offset = 0
    for tenant in tenants:
        if id(tenant.application) not in laid:
            mine = _InLanes.of(tenant.application, device, resources, offset)
            laid[id(tenant.application)] = mine
            offset += len(mine.order)
    own = [laid[id(tenant.application)] for tenant in tenants]
    every = zip(*(one.tasks for one in laid.values()), strict=True)
    tasks = DeviceTasks(*(np.concatenate(column) for column in every))
    table = _table(tenants, own, np.concatenate([one.after for one in laid.values()]))
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
    heads = np.unique(table.head)
    first_runs = np.split(task_ends, np.cumsum([len(one.order) for one in own])[:-1])
    in_order = []
    for ended, one in zip(first_runs, own, strict=True):
        place = np.empty(len(ended))
        place[one.order] = ended
        in_order.append(place)
    return Schedule(
        tuple(ends[h, : runs_done[h]] for h in heads),
        tuple(latencies[h, : runs_done[h]] for h in heads),
        tuple(in_order),
        int(count),
        "compiled",
    )


class _InLanes(NamedTuple):
    """An application with its tasks lane by lane. tasks: in that order. first, length: of each lane among all
    tasks. order: (n,) the row of each task. after: (n,) see TenantTable."""

    tasks: DeviceTasks
    first: np.ndarray
    length: np.ndarray
    order: np.ndarray
    after: np.ndarray

    @classmethod
    def of(
        cls, application: Application, device: Device, resources: tuple[str, ...], offset: int
    ) -> _InLanes:
        tasks = application.on(device, resources)
        rows = application.columns.rows_of_lanes()
        length = np.array([len(part) for part in rows])
        first = offset + np.cumsum(length) - length
        after = application.columns.after
        if len(rows) == 1:
            return cls(tasks, first, length, rows[0], np.full(len(after), NO_TASK))
        order = np.concatenate(rows)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(offset, offset + len(order))
        waits = np.where(after >= 0, place[after], NO_TASK)[order]
        return cls(DeviceTasks(*(c[order] for c in tasks)), first, length, order, waits)


def _classes(tasks: DeviceTasks) -> KernelClasses:
    """Kernels that use the same resources; transfers use none and stand in the first class."""
    is_kernel = tasks.kind == KERNEL
    used = (tasks.needs > 0)[is_kernel]
    users, of_task = np.zeros((1, used.shape[1]), bool), np.zeros(len(is_kernel), np.int64)
    if used.size:
        users, inverse = np.unique(used, axis=0, return_inverse=True)
        of_task[is_kernel] = inverse.reshape(-1)
    return KernelClasses(users, of_task)


def _table(tenants: Sequence[Tenant], own: Sequence[_InLanes], after: np.ndarray) -> TenantTable:
    lanes = np.array([len(one.first) for one in own])
    head = np.cumsum(lanes) - lanes
    arrivals = [
        np.zeros(0) if t.arrivals is None else np.asarray(t.arrivals, np.float64) for t in tenants
    ]
    counts = np.zeros(int(lanes.sum()), np.int64)
    counts[head] = [len(a) for a in arrivals]
    most = [LIMIT if t.most_pes is None else t.most_pes for t in tenants]
    return TenantTable(
        np.concatenate([one.first for one in own]),
        np.concatenate([one.length for one in own]),
        np.repeat(np.array([t.start_seconds for t in tenants], np.float64), lanes),
        np.repeat(np.array([-1 if t.runs is None else t.runs for t in tenants], np.int64), lanes),
        np.concatenate(arrivals),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.repeat(np.array([t.partition for t in tenants], np.int64), lanes),
        np.repeat(np.array(most, np.float64), lanes),
        np.repeat(head, lanes),
        np.repeat(lanes, lanes),
        after,
    )
