"""The simulator: applications of any number on one device, task by task, to the end of what was asked.

Source: Prophet (ASPLOS 2017), Sec. 6: a ready-time table holds when the next task of each application is
ready; the earliest is submitted. A completion moves the entry of its application. Simultaneous events:
completions first, then submissions in the order of the tenants, so that runs are repeatable to the bit.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.accelerator._application import KERNEL, TO_HOST, Application, Prepared
from jostle.accelerator._device import Device
from jostle.accelerator._models import (
    KERNEL_MODELS,
    TRANSFER_MODELS,
    Concurrent,
    Model,
    PciExpress,
    Sequential,
    Ticket,
    TimeSliced,
    model_named,
)
from jostle.errors import MissingExtra, UsageError

TOLERANCE = 1e-13  # of the time since the start: what is closer together is simultaneous
ENGINES = ("auto", "reference", "compiled")


@dataclass(frozen=True, eq=False)
class Tenant:
    """One application on the device. runs: how often it runs; None: again and again, until every tenant
    with a number has done it. arrivals: (runs,) times at which a run may begin, ascending (queries); a run
    waits for the one before it. most_pes: a limit on PEs (MPS active-thread share), None for none.
    """

    application: Application
    runs: int | None = 1
    start_seconds: float = 0.0
    arrivals: np.ndarray | None = None
    partition: int = 0
    most_pes: int | None = None

    def __post_init__(self) -> None:
        where = self.application.name
        if self.runs is not None and self.runs < 1:
            raise UsageError(f"{self.runs} runs of {where} is not at least 1")
        if not 0 <= self.start_seconds < np.inf:
            raise UsageError(f"{where} starts at {self.start_seconds} s")
        if self.most_pes is not None and self.most_pes < 1:
            raise UsageError(f"{where} may use {self.most_pes} PEs")
        if self.arrivals is not None:
            times = np.asarray(self.arrivals, np.float64)
            if times.ndim != 1 or not len(times) or not np.all(np.isfinite(times)):
                raise UsageError(f"the arrivals of {where} are not a list of finite times")
            if times[0] < 0 or np.any(np.diff(times) < 0):
                raise UsageError(f"the arrivals of {where} are negative or out of order")
            if self.runs != len(times):
                raise UsageError(f"{len(times)} arrivals of {where} for {self.runs} runs")


@dataclass(frozen=True, eq=False)
class Schedule:
    """run_ends: for each tenant (runs done,) seconds at which they ended. latencies: for each (runs done,)
    seconds from arrival, or from the end of the run before, to the end. task_ends: for each (tasks,) ends
    of its first run's tasks, NaN where it was not reached. tasks: how many were simulated in all."""

    run_ends: tuple[np.ndarray, ...]
    latencies: tuple[np.ndarray, ...]
    task_ends: tuple[np.ndarray, ...]
    tasks: int
    engine: str


def simulate(
    tenants: Sequence[Tenant],
    device: Device,
    *,
    kernels: str | Model = "concurrent",
    transfers: str | Model = "pcie",
    engine: str = "auto",
    until_seconds: float = np.inf,
) -> Schedule:
    """Run the tenants together. kernels, transfers: models, or the names of registered ones.

    until_seconds: stop there even if runs are left: exclusive transfers can starve the others for ever.

    engine: `compiled` needs the extra `simulate` and built-in models, `reference` is plain Python and
    takes any; `auto` compiles where it can. Raises UsageError where nothing would ever end.
    """
    kernels = model_named(kernels, KERNEL_MODELS) if isinstance(kernels, str) else kernels
    transfers = model_named(transfers, TRANSFER_MODELS) if isinstance(transfers, str) else transfers
    _check(tenants, device, engine)
    if not until_seconds > 0:
        raise UsageError(f"a simulation until {until_seconds} s ends before it begins")
    resources = tuple(sorted(frozenset().union(*(t.application.resources for t in tenants))))
    if engine != "reference" and compiles(kernels, transfers):
        if importlib.util.find_spec("numba") and not os.environ.get("JOSTLE_REFERENCE"):
            from jostle.accelerator._compiled import simulate_compiled

            return simulate_compiled(tenants, device, kernels, resources, until_seconds)
        if engine == "compiled":
            raise MissingExtra("numba", "simulate")
    elif engine == "compiled":
        raise UsageError("only the built-in models are compiled", fix="Use the engine reference.")
    return _Reference(tenants, device, kernels, transfers, resources).run(until_seconds)


def compiles(kernels: Model, transfers: Model) -> bool:
    """Whether the compiled simulator has these models."""
    return type(kernels) in (Concurrent, Sequential, TimeSliced) and type(transfers) is PciExpress


def _check(tenants: Sequence[Tenant], device: Device, engine: str) -> None:
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}", fix=f"Known: {', '.join(ENGINES)}.")
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


def prepared_of(
    tenants: Sequence[Tenant], device: Device, resources: tuple[str, ...]
) -> list[Prepared]:
    """The arrays of each tenant; tenants of one application share them."""
    made: dict[int, Prepared] = {}
    for tenant in tenants:
        if id(tenant.application) not in made:
            made[id(tenant.application)] = tenant.application.prepare(device, resources)
    return [made[id(tenant.application)] for tenant in tenants]


class _Reference:
    """The definition, in plain Python."""

    def __init__(
        self,
        tenants: Sequence[Tenant],
        device: Device,
        kernels: Model,
        transfers: Model,
        resources: tuple[str, ...],
    ) -> None:
        self.tenants = tenants
        self.tasks = prepared_of(tenants, device, resources)
        self.stations = (kernels.station(device, resources), transfers.station(device, resources))
        self.at = [0] * len(tenants)  # the next task of each
        self.began = [0.0] * len(tenants)
        self.ready = [0.0] * len(tenants)  # the ready-time table
        self.ends: list[list[float]] = [[] for _ in tenants]
        self.latencies: list[list[float]] = [[] for _ in tenants]
        self.task_ends = [np.full(len(t.application.tasks), np.nan) for t in tenants]
        self.open = sum(tenant.runs is not None for tenant in tenants)
        self.count = 0

    def run(self, until_seconds: float) -> Schedule:
        for number, tenant in enumerate(self.tenants):
            self._begin(number, tenant.start_seconds)
        now = 0.0
        while self.open:
            change = min(station.until_change() for station in self.stations)
            then = min(now + change, min(self.ready))
            then = max(then, now)
            if then > until_seconds:
                break
            tolerance = TOLERANCE * then
            # Both stations move before anything is submitted.
            done = [s.advance(then - now, tolerance) for s in self.stations]
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
        self.stations[0 if kernel else 1].submit(ticket)

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
