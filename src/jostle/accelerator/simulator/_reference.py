"""The simulator in plain Python: the definition, for any model.

Source: Prophet (ASPLOS 2017), Sec. 6: a ready-time table holds when the next task of each application is
ready; the earliest is submitted. A completion moves the entry of its application. Here an application has an
entry for each of its lanes, and a task may wait for one of another lane. Simultaneous events: completions
first, then submissions in the order of the tenants and lanes, so that runs are repeatable to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._tasks import KERNEL, TO_HOST
from jostle.accelerator.simulator._facilities import INFINITE, Ticket
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
        # A lane is (tenant, the rows of its tasks); lanes of one tenant stand together.
        self.lanes = [
            (number, rows.tolist())
            for number, tenant in enumerate(tenants)
            for rows in tenant.application.columns.rows_of_lanes()
        ]
        self.at = [0] * len(self.lanes)  # the place of the next task of each
        self.ready = [INFINITE] * len(self.lanes)  # the ready-time table
        self.held = [False] * len(self.lanes)  # until a task of another lane has ended
        self.ended: list[set[int]] = [set() for _ in tenants]  # tasks of the run at hand
        self.began = [0.0] * len(tenants)
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
            for ticket in sorted((t for part in done for t in part), key=lambda t: t.lane):
                self._complete(ticket.lane, now)
            for lane in range(len(self.lanes)):
                if self.ready[lane] <= now + tolerance:
                    self._submit(lane)
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
            self.open -= 1
            return
        arrival = now
        if tenant.arrivals is not None:
            arrival = float(tenant.arrivals[run])
        self.began[number] = arrival
        self.ended[number] = set()
        for lane in self._lanes_of(number):
            self.at[lane] = 0
            self._await(lane, max(now, arrival))

    def _lanes_of(self, number: int) -> list[int]:
        return [lane for lane, (tenant, _) in enumerate(self.lanes) if tenant == number]

    def _await(self, lane: int, now: float) -> None:
        """When the next task of a lane is ready, as far as that is known."""
        number, rows = self.lanes[lane]
        if self.at[lane] == len(rows):
            return
        row = rows[self.at[lane]]
        after = int(self.tenants[number].application.columns.after[row])
        self.held[lane] = after >= 0 and after not in self.ended[number]
        self.ready[lane] = INFINITE if self.held[lane] else now + float(self.tasks[number].gap[row])

    def _submit(self, lane: int) -> None:
        self.ready[lane] = INFINITE
        number, rows = self.lanes[lane]
        tenant, tasks, i = self.tenants[number], self.tasks[number], rows[self.at[lane]]
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
            most_pes=INFINITE if tenant.most_pes is None else float(tenant.most_pes),
            lane=lane,
        )
        self.facilities[0 if kernel else 1].submit(ticket)

    def _complete(self, lane: int, now: float) -> None:
        number, rows = self.lanes[lane]
        i = rows[self.at[lane]]
        if not self.ends[number]:
            self.task_ends[number][i] = now
        self.count += 1
        self.at[lane] += 1
        self.ended[number].add(i)
        self._await(lane, now)
        mine = self._lanes_of(number)
        for other in mine:
            if self.held[other]:
                self._await(other, now)
        if len(self.ended[number]) < len(self.tasks[number].gap):
            return
        self.ends[number].append(now)
        self.latencies[number].append(now - self.began[number])
        self._begin(number, now)
