"""The simulator: applications of any number on one device, task by task, to the end of what was asked.

Tenants and device become tables for the loop of `_engine`, which numba compiles at the first call.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jostle.errors import UsageError, require_choice
from jostle.gpu._device import Device
from jostle.gpu.applications._application_tasks import KERNEL, NO_TASK, TaskColumns
from jostle.gpu.applications._chunks import DeviceTasks
from jostle.gpu.simulator._tenants import SHARINGS, Schedule, Tenant


def simulate(
    tenants: Sequence[Tenant],
    device: Device,
    sharing: str = "concurrent",
    *,
    until_seconds: float = np.inf,
) -> Schedule:
    """Run the tenants together.

    sharing: how kernels share the device, one of SHARINGS: side by side (streams, MPS), one at a time, or in
        turns of the device's time slice (processes without MPS).
    until_seconds: stop there even if runs are left: exclusive transfers can starve the others for ever.
    Raises UsageError where nothing would ever end.
    """
    from jostle.gpu.simulator._engine import POOL, run

    require_choice("sharing", sharing, SHARINGS)
    _check(tenants, device)
    if not until_seconds > 0:
        raise UsageError(f"a simulation until {until_seconds} s ends before it begins")
    used = (tenant.application.columns.resources for tenant in tenants)
    resources = tuple(sorted(set().union(*used)))
    own: list[_InLanes] = [t.application.on(device, resources, _InLanes.of) for t in tenants]
    base, at = {}, 0
    for one in own:
        if id(one) not in base:
            base[id(one)], at = at, at + len(one.tasks)
    apart = {id(one): one for one in own}.values()
    tasks, needs = (np.concatenate(column) for column in list(zip(*apart, strict=True))[:2])
    lanes, arrivals = _lanes(tenants, own, [base[id(one)] for one in own])
    capacity = np.array([device.resources.get(name, np.inf) for name in resources])
    of_runs, ends, latencies, task_ends, count = run(
        tasks,
        needs,
        _classes(tasks, needs),
        lanes,
        arrivals,
        np.array([(pool.pes, pool.pes) for pool in device.pools], POOL),
        np.array([capacity * pool.resource_ratio for pool in device.pools], np.float64),
        device.time_slice_seconds if sharing == "time-sliced" else np.inf,
        1 if device.bus == "shared" else 2,
        sharing == "concurrent",
        float(until_seconds),
    )
    by_tenant = [of_runs == head for head in np.unique(lanes["head"])]
    first_runs, at = [], 0
    for one in own:
        first_runs.append(np.empty(len(one.tasks)))
        first_runs[-1][one.order] = task_ends[at : at + len(one.tasks)]
        at += len(one.tasks)
    return Schedule(
        tuple(ends[mine] for mine in by_tenant),
        tuple(latencies[mine] for mine in by_tenant),
        tuple(first_runs),
        int(count),
    )


def can_compile() -> bool:
    """Tell whether numba is there; without it the same loop runs in plain Python, a hundred times slower."""
    return bool(importlib.util.find_spec("numba"))


def _check(tenants: Sequence[Tenant], device: Device) -> None:
    if all(tenant.runs is None for tenant in tenants):
        raise UsageError(
            "no tenant has a number of runs, so the simulation would never end",
            fix="Give at least one tenant runs=1.",
        )
    for tenant in tenants:
        if not 0 <= tenant.partition < len(device.pools):
            raise UsageError(
                f"{tenant.application.name} is in partition {tenant.partition} of a device with "
                f"{len(device.pools)}"
            )


class _InLanes(NamedTuple):
    """An application lane by lane. tasks: (n,) TASK, needs: (n, R). order: (n,) the row of each task. first,
    length: of each lane."""

    tasks: np.ndarray
    needs: np.ndarray
    order: np.ndarray
    first: np.ndarray
    length: np.ndarray

    @classmethod
    def of(cls, on_device: DeviceTasks, columns: TaskColumns) -> _InLanes:
        rows = columns.rows_of_lanes()
        length, order = np.array([len(part) for part in rows]), np.concatenate(rows)
        from jostle.gpu.simulator._engine import TASK

        tasks = np.empty(len(order), TASK)
        for name, column in on_device._asdict().items():
            if name != "needs":
                tasks[name] = column[order]
        after = columns.after[order]
        tasks["after"] = np.where(after >= 0, np.argsort(order)[after], NO_TASK)
        return cls(tasks, on_device.needs[order], order, np.cumsum(length) - length, length)


def _classes(tasks: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """Return (classes, R) bool: kernels that use the same resources, set as `klass` of the tasks."""
    bits = 1 << np.arange(needs.shape[1])
    uses = (needs > 0) @ bits
    alike = np.unique(uses[tasks["kind"] == KERNEL])
    if not len(alike):
        alike = np.zeros(1, np.int64)
    tasks["klass"] = np.minimum(np.searchsorted(alike, uses), len(alike) - 1)
    return (alike[:, None] & bits) > 0


def _lanes(
    tenants: Sequence[Tenant], own: Sequence[_InLanes], base: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Make the (lanes,) LANE as they are given, and the arrivals of all."""
    from jostle.gpu.simulator._engine import LANE, LIMIT

    rows, arrivals, came = [], [], 0
    for tenant, one, at in zip(tenants, own, base, strict=True):
        times = np.asarray([] if tenant.arrivals is None else tenant.arrivals, np.float64)
        runs = -1 if tenant.runs is None else tenant.runs
        most = LIMIT if tenant.most_pes is None else tenant.most_pes
        whole = runs, came, len(times), tenant.partition, most, len(rows), len(one.first)
        for first, length in zip(one.first.tolist(), one.length.tolist(), strict=True):
            row = at, at + first, length, tenant.start_seconds, *whole
            rows.append((*[0] * (len(LANE.names or ()) - len(row)), *row))
        arrivals.append(times)
        came += len(times)
    return np.array(rows, LANE), np.concatenate(arrivals)
