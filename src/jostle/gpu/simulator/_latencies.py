"""What each tenant's runs take together, to the last run of those that do a number of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.gpu._device import Device
from jostle.gpu.applications._application import Application
from jostle.gpu.simulator._simulate import simulate
from jostle.gpu.simulator._tenants import Tenant

# A tenant whose runs take so many times their solo time is starved: its latency is infinite.
HOPELESS = 50
# A query of seconds beside batch work of microseconds is as long as many.
MOST_QUERIES, FEWEST_QUERIES, MOST_TASKS = 50, 3, 1_000_000


def latencies_together(
    tenants: Sequence[Tenant], device: Device, sharing: str = "concurrent"
) -> list[np.ndarray]:
    """Seconds of every run of every tenant, until those with a number of runs have done it; infinite for runs
    that a starved tenant did not get to. Of a tenant that repeats and ended no run, what its first would take
    at the speed so far."""
    until = 0.0
    for tenant in tenants:
        if tenant.runs is not None:
            last = 0.0 if tenant.arrivals is None else float(tenant.arrivals[-1])
            until = max(until, last + HOPELESS * tenant.runs * tenant.application.solo_seconds)
    until += sum(tenant.start_seconds for tenant in tenants)
    schedule = simulate(tenants, device, sharing, until_seconds=until)
    every = []
    for number, tenant in enumerate(tenants):
        seconds = schedule.latencies[number]
        if tenant.runs is not None:
            starved = np.full(tenant.runs - len(seconds), np.inf)
            every.append(np.concatenate([seconds, starved]))
        elif len(seconds):
            every.append(seconds)
        else:
            every.append(np.array([_extrapolated(tenant, schedule.task_ends[number])]))
    return every


def _extrapolated(tenant: Tenant, ends: np.ndarray) -> float:
    if not np.isfinite(ends).any():
        return float("inf")
    last = int(np.nanargmax(ends))
    alone = float(tenant.application.columns.ends_alone()[last])
    return tenant.application.solo_seconds * (float(ends[last]) - tenant.start_seconds) / alone


def spread_out(number: int) -> float:
    """0, 1/2, 1/4, 3/4, 1/8, … (van der Corput): spread out for every number of instances."""
    value, unit = 0.0, 0.5
    while number:
        value += unit * (number & 1)
        number >>= 1
        unit /= 2
    return value


def queries_beside(application: Application, batches: Sequence[Application]) -> int:
    """Return how many queries, one after the other, to simulate beside batch applications that repeat."""
    solo = application.solo_seconds
    of_batches = sum(len(batch) * solo / batch.solo_seconds for batch in batches)
    return max(FEWEST_QUERIES, min(MOST_QUERIES, int(MOST_TASKS / (len(application) + of_batches))))
