"""The simulator in plain Python, written to be read: the definition that the compiled one is held to.

Source: Prophet (ASPLOS 2017), Sec. 6: a ready-time table holds when the next task of each application is
ready; the earliest is submitted. A completion moves the entry of its application. Here an application has an
entry for each of its lanes, and a task may wait for one of another lane. Simultaneous events: completions
first, then submissions in the order of the tenants and lanes, so that runs are repeatable to the bit.
Kernels and transfers are served by facilities: `submit` takes a ticket now, `until_change` says
in how many seconds anything changes by itself, `advance` lets so much time pass and returns the tickets
that are done, within a tolerance, in the order of submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.gpu import Device, Schedule, Tenant
from jostle.gpu.applications._application_tasks import KERNEL, TO_HOST
from jostle.gpu.simulator._tenants import TOLERANCE

INFINITE = float("inf")


@dataclass(eq=False)
class Ticket:
    """One task in flight. tenant: whose. seconds: it takes alone. The rest as in DeviceTasks; most_pes:
    that its tenant may use at a time; partition: where. needs: (R,). lane: of all tenants' lanes."""

    tenant: int
    to_host: bool
    seconds: float
    chunks: int = 0
    size: float = 1.0
    work: float = 0.0
    needs: np.ndarray = field(default_factory=lambda: np.zeros(0))
    exclusive: bool = False
    link_ratio: float = 1.0
    partition: int = 0
    most_pes: float = INFINITE
    lane: int = 0


@dataclass
class _ChunkGroup:
    """Chunks of one kernel that started together and so end together. left: seconds unhindered."""

    ticket: Ticket
    chunks: int
    left: float


class ConcurrentFacility:
    """Prophet's concurrent model, fluid: Eq. 3 and 5 with rates renewed at every change. A kernel takes
    as many PEs as it has warps for; one behind it in the queue gets those left free (observations 1-3)."""

    def __init__(self, device: Device, resources: tuple[str, ...]) -> None:
        self.pools = [
            (
                pool.pes,
                np.array([device.resources.get(r, INFINITE) for r in resources])
                * pool.resource_ratio,
            )
            for pool in device.pools
        ]
        self.free = [float(pes) for pes, _ in self.pools]
        self.queue: list[Ticket] = []
        self.waiting: dict[Ticket, int] = {}
        self.resident: dict[Ticket, int] = {}
        self.groups: list[_ChunkGroup] = []
        self.stretch: dict[Ticket, float] = {}

    def submit(self, ticket: Ticket) -> None:
        self.queue.append(ticket)
        self.waiting[ticket] = ticket.chunks
        self.resident[ticket] = 0
        self._dispatch()

    def _dispatch(self) -> None:
        """Free PEs go to the oldest kernel with chunks left, then to the next."""
        blocked = set()
        for ticket in self.queue:
            pool = ticket.partition
            if pool in blocked or not self.waiting[ticket]:
                continue
            room = int((self.free[pool] + 1e-9) / ticket.size)
            own = min(1e18, (ticket.most_pes + 1e-9) / ticket.size)
            own = max(1, int(own)) - self.resident[ticket]
            started = min(self.waiting[ticket], room, own)
            if started > 0:
                self._start(ticket, started)
            if self.waiting[ticket] and own > started:
                blocked.add(pool)  # the head waits for PEs, and everyone behind it
        self._rates()

    def _start(self, ticket: Ticket, started: int) -> None:
        self.waiting[ticket] -= started
        self.resident[ticket] += started
        self.free[ticket.partition] -= started * ticket.size
        self.groups.append(_ChunkGroup(ticket, started, ticket.work))

    def _rates(self) -> None:
        """Stretch = max(1, load / capacity) over the resources that a kernel uses at all."""
        loads = [np.zeros(len(capacity)) for _, capacity in self.pools]
        for ticket in self.queue:
            pes = min(self.pools[ticket.partition][0], self.resident[ticket])
            loads[ticket.partition] += ticket.needs * pes
        for ticket in self.queue:
            ratios = loads[ticket.partition] / self.pools[ticket.partition][1]
            self.stretch[ticket] = float(np.max(ratios[ticket.needs > 0], initial=1.0))

    def until_change(self) -> float:
        return min((g.left * self.stretch[g.ticket] for g in self.groups), default=INFINITE)

    def advance(self, seconds: float, tolerance_seconds: float) -> list[Ticket]:
        going = []
        for group in self.groups:
            stretch = self.stretch[group.ticket]
            group.left -= seconds / stretch
            if group.left * stretch > tolerance_seconds:
                going.append(group)
            else:
                self.resident[group.ticket] -= group.chunks
                self.free[group.ticket.partition] += group.chunks * group.ticket.size
        if len(going) == len(self.groups):
            return []
        self.groups = going
        done = [t for t in self.queue if not self.waiting[t] and not self.resident[t]]
        for ticket in done:
            self.queue.remove(ticket)
            del self.waiting[ticket], self.resident[ticket], self.stretch[ticket]
        self._dispatch()
        return done


class SequentialFacility:
    """One kernel at a time, first come first served (Eq. 1)."""

    def __init__(self) -> None:
        self.queue: list[Ticket] = []
        self.left = 0.0

    def submit(self, ticket: Ticket) -> None:
        if not self.queue:
            self.left = ticket.seconds
        self.queue.append(ticket)

    def until_change(self) -> float:
        return self.left if self.queue else INFINITE

    def advance(self, seconds: float, tolerance_seconds: float) -> list[Ticket]:
        if not self.queue:
            return []
        self.left -= seconds
        if self.left > tolerance_seconds:
            return []
        done = self.queue.pop(0)
        self.left = self.queue[0].seconds if self.queue else 0.0
        return [done]


class TimeSlicedFacility:
    """Processes take turns on the whole device. A slice begins when a second kernel arrives; one that
    arrives later goes to the end of the round; one that ends gives the rest of its slice away."""

    def __init__(self, slice_seconds: float) -> None:
        self.slice_seconds = slice_seconds
        self.round: list[Ticket] = []
        self.left: dict[Ticket, float] = {}
        self.slice_left = INFINITE

    def submit(self, ticket: Ticket) -> None:
        self.round.append(ticket)
        self.left[ticket] = ticket.seconds
        if len(self.round) == 2:
            self.slice_left = self.slice_seconds

    def until_change(self) -> float:
        return min(self.left[self.round[0]], self.slice_left) if self.round else INFINITE

    def advance(self, seconds: float, tolerance_seconds: float) -> list[Ticket]:
        if not self.round:
            return []
        now = self.round[0]
        self.left[now] -= seconds
        self.slice_left -= seconds
        if self.left[now] <= tolerance_seconds:
            self.round.pop(0)
            del self.left[now]
            self.slice_left = self.slice_seconds if len(self.round) > 1 else INFINITE
            return [now]
        if self.slice_left <= tolerance_seconds:
            self.round.append(self.round.pop(0))
            self.slice_left = self.slice_seconds
        return []


class _Link:
    """One link. Exclusive transfers (BE) go one by one at full speed, the others (BS) only when there is
    none, sharing max-min fairly; none goes faster than alone (Sec. 5.2, the three scenarios)."""

    def __init__(self) -> None:
        self.exclusive: list[Ticket] = []
        self.sharing: list[Ticket] = []
        self.left: dict[Ticket, float] = {}

    def submit(self, ticket: Ticket) -> None:
        (self.exclusive if ticket.exclusive else self.sharing).append(ticket)
        self.left[ticket] = ticket.seconds

    def rates(self) -> list[tuple[Ticket, float]]:
        """What moves now, and its speed relative to alone."""
        if self.exclusive:
            return [(self.exclusive[0], 1.0)]
        speed, room, waiting = {}, 1.0, len(self.sharing)
        for ticket in sorted(self.sharing, key=lambda t: t.link_ratio):
            ratio = min(ticket.link_ratio, room / waiting)
            speed[ticket] = ratio / ticket.link_ratio
            room -= ratio
            waiting -= 1
        return [(ticket, speed[ticket]) for ticket in self.sharing]

    def until_change(self) -> float:
        return min((self.left[t] / speed for t, speed in self.rates()), default=INFINITE)

    def advance(self, seconds: float, tolerance_seconds: float) -> list[Ticket]:
        done = []
        for ticket, speed in self.rates():
            self.left[ticket] -= seconds * speed
            if self.left[ticket] <= tolerance_seconds * speed:
                done.append(ticket)
        for ticket in done:
            (self.exclusive if ticket.exclusive else self.sharing).remove(ticket)
            del self.left[ticket]
        return done


class BusFacility:
    """A link for each direction, or one for both."""

    def __init__(self, shared: bool) -> None:
        to_device = _Link()
        self.links = (to_device, to_device if shared else _Link())

    def _each(self) -> tuple[_Link, ...]:
        return self.links[:1] if self.links[0] is self.links[1] else self.links

    def submit(self, ticket: Ticket) -> None:
        self.links[ticket.to_host].submit(ticket)

    def until_change(self) -> float:
        return min(link.until_change() for link in self._each())

    def advance(self, seconds: float, tolerance_seconds: float) -> list[Ticket]:
        return [t for link in self._each() for t in link.advance(seconds, tolerance_seconds)]


def simulate_plainly(
    tenants: Sequence[Tenant],
    device: Device,
    sharing: str = "concurrent",
    *,
    until_seconds: float = float("inf"),
) -> Schedule:
    """As jostle.gpu.simulate."""
    resources = tuple(sorted(set().union(*(t.application.columns.resources for t in tenants))))
    kernels: dict[str, Any] = {
        "concurrent": ConcurrentFacility(device, resources),
        "sequential": SequentialFacility(),
        "time-sliced": TimeSlicedFacility(device.time_slice_seconds),
    }
    return Reference(tenants, device, kernels[sharing], resources).run(until_seconds)


class Reference:
    """One simulation: state by tenant, and the events that change it."""

    def __init__(
        self,
        tenants: Sequence[Tenant],
        device: Device,
        kernels: Any,
        resources: tuple[str, ...],
    ) -> None:
        self.tenants = tenants
        self.tasks = [tenant.application.on(device, resources) for tenant in tenants]
        self.facilities = kernels, BusFacility(device.bus == "shared")
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
