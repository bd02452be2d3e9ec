"""The simulator for speed: tenants and device as arrays for the loop that numba compiles.

The first call compiles (and keeps the result on disk beside this file or in the user's cache).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.accelerator._application import KERNEL
from jostle.accelerator._engine import CONCURRENT, LIMIT, SEQUENTIAL, SLICED, run
from jostle.accelerator._models import Concurrent, Model, Sequential
from jostle.accelerator._simulate import Schedule, Tenant, prepared_of

if TYPE_CHECKING:
    from jostle.accelerator._device import Device


def simulate_compiled(
    tenants: Sequence[Tenant],
    device: Device,
    kernels: Model,
    resources: tuple[str, ...],
    until_seconds: float,
) -> Schedule:
    """As simulate, for the built-in models."""
    prepared = prepared_of(tenants, device, resources)
    unique = {id(p): p for p in prepared}
    offset, first = 0, {}
    for key, p in unique.items():
        first[key], offset = offset, offset + len(p.gap)
    columns = [
        np.concatenate([getattr(p, name) for p in unique.values()])
        for name in next(iter(unique.values()))._fields
    ]
    arrivals = [
        np.zeros(0) if t.arrivals is None else np.asarray(t.arrivals, np.float64) for t in tenants
    ]
    capacity = np.array([device.resources.get(r, np.inf) for r in resources])
    # Kernels that use the same resources; transfers use none and stand in the first class.
    is_kernel = columns[0] == KERNEL
    used = (columns[6] > 0)[is_kernel]
    users, klass = np.zeros((1, len(resources)), bool), np.zeros(len(is_kernel), np.int64)
    if len(used) and len(resources):
        users, inverse = np.unique(used, axis=0, return_inverse=True)
        klass[is_kernel] = inverse.reshape(-1)
    merge = 0.0
    mode = SEQUENTIAL if isinstance(kernels, Sequential) else SLICED
    if isinstance(kernels, Concurrent):
        mode, merge = CONCURRENT, kernels.merge_ratio
    lengths = np.array([len(p.gap) for p in prepared])
    arguments: tuple[Any, ...] = (
        *columns,
        users,
        klass,
        np.array([first[id(p)] for p in prepared]),
        lengths,
        np.array([t.start_seconds for t in tenants], np.float64),
        np.array([-1 if t.runs is None else t.runs for t in tenants], np.int64),
        np.concatenate(arrivals),
        np.concatenate([[0], np.cumsum([len(a) for a in arrivals])]).astype(np.int64),
        np.array([t.partition for t in tenants], np.int64),
        np.array([LIMIT if t.most_pes is None else t.most_pes for t in tenants], np.float64),
        np.array([pool.pes for pool in device.pools], np.float64),
        np.array([capacity * pool.resource_ratio for pool in device.pools], np.float64),
        mode,
        float(device.time_slice_seconds),
        1 if device.bus == "shared" else 2,
        float(merge),
        float(until_seconds),
    )
    ends, latencies, runs_done, task_ends, count = run(*arguments)
    parts = np.split(task_ends, np.cumsum(lengths)[:-1])
    done: list[Any] = [slice(0, int(n)) for n in runs_done]
    return Schedule(
        tuple(ends[a, part] for a, part in enumerate(done)),
        tuple(latencies[a, part] for a, part in enumerate(done)),
        tuple(parts),
        int(count),
        "compiled",
    )
