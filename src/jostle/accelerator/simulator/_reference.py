"""The simulator in plain Python: the definition, for any model.

Source: Prophet (ASPLOS 2017), Sec. 6: a ready-time table holds when the next task of each application is
ready; the earliest is submitted. A completion moves the entry of its application. Simultaneous events:
completions first, then submissions in the order of the tenants, so that runs are repeatable to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._tasks import KERNEL, TO_HOST
from jostle.accelerator.simulator._facilities import Ticket
from jostle.accelerator.simulator._sharing import SharingModel
from jostle.accelerator.simulator._tenants import TOLERANCE, Schedule, Tenant


class Reference:
    """One simulation: state by tenant, and the events that change it."""

    def __init__(
        self,
        tenants: Sequence[Tenant],
        device: Device,
        sharing: SharingModel,
        transfers: SharingModel,
        resources: tuple[str, ...],
    ) -> None:
        self.tenants = tenants
        self.tasks = [tenant.application.on(device, resources) for tenant in tenants]
        self.facilities = tuple(model.facility(device, resources) for model in (sharing, transfers))
        self.at = [0] * len(tenants)  # the next task of each
        self.began = [0.0] * len(tenants)
        self.ready = [0.0] * len(tenants)  # the ready-time table
        self.ends: list[list[float]] = [[] for _ in tenants]
        self.latencies: list[list[float]] = [[] for _ in tenants]
        self.task_ends = [np.full(len(tasks.gap), np.nan) for tasks in self.tasks]
        self.open = sum(tenant.runs is not None for tenant in tenants)
        self.count = 0

    def run(self, until_seconds: float) -> Schedule:
        for number, tenant in enumerate(self.tenants):
            self._begin(number, tenant.start_seconds)
        now = 0.0
        while self.open:
            change = min(facility.until_change() for facility in self.facilities)
            then = min(now + change, min(self.ready))
            then = max(then, now)
            if then > until_seconds:
                break
            tolerance = TOLERANCE * then
            # Both facilities move before anything is submitted.
            done = [f.advance(then - now, tolerance) for f in self.facilities]
            now = then
            for ticket in sorted((t for part in done for t in part), key=lambda t: t.tenant):
                self._complete(ticket.tenant, now)
            for number in range(len(self.tenants)):
                if self.ready[number] <= now + tolerance:
                    self._submit(number)
        return Schedule(
            tuple(np.array(ends) for ends in self.ends),
            tuple(np.array(latencies) for latencies in self.latencies),
            tuple(self.task_ends),
            self.count,
            "reference",
        )

    def _begin(self, number: int, now: float) -> None:
        """The next run of a tenant, or its rest."""
        tenant, run = self.tenants[number], len(self.ends[number])
        if tenant.runs is not None and run == tenant.runs:
            self.ready[number] = float("inf")
            self.open -= 1
            return
        arrival = now
        if tenant.arrivals is not None:
            arrival = float(tenant.arrivals[run])
        self.began[number] = arrival
        self.at[number] = 0
        self.ready[number] = max(now, arrival) + float(self.tasks[number].gap[0])

    def _submit(self, number: int) -> None:
        self.ready[number] = float("inf")
        tenant, tasks, i = self.tenants[number], self.tasks[number], self.at[number]
        kernel = tasks.kind[i] == KERNEL
        ticket = Ticket(
            tenant=number,
            to_host=bool(tasks.kind[i] == TO_HOST),
            seconds=float(tasks.seconds[i]),
            chunks=int(tasks.chunks[i]),
            size=float(tasks.size[i]),
            work=float(tasks.work[i]),
            needs=tasks.needs[i],
            exclusive=bool(tasks.exclusive[i]),
            link_ratio=float(tasks.link[i]),
            partition=tenant.partition,
            most_pes=float("inf") if tenant.most_pes is None else float(tenant.most_pes),
        )
        self.facilities[0 if kernel else 1].submit(ticket)

    def _complete(self, number: int, now: float) -> None:
        i = self.at[number]
        if not self.ends[number]:
            self.task_ends[number][i] = now
        self.count += 1
        self.at[number] = i + 1
        if i + 1 < len(self.tasks[number].gap):
            self.ready[number] = now + float(self.tasks[number].gap[i + 1])
            return
        self.ends[number].append(now)
        self.latencies[number].append(now - self.began[number])
        self._begin(number, now)
