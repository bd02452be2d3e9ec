"""Which workloads may share a device: how many batch instances fit beside a service.

Source: Prophet (ASPLOS 2017), Sec. 7.3: a co-location is safe where the predicted latency is within a
multiple of the solo latency and under a limit in seconds; up to 15 instances (MPS serves 16).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.accelerator._arrivals import (
    FEWEST_FOR,
    STATISTICS,
    Latency,
    interval_of,
    poisson_arrivals,
    queries_for,
)
from jostle.accelerator._device import Device
from jostle.accelerator._rest import SIMULATED, LearnedRest
from jostle.accelerator.applications._application import Application
from jostle.accelerator.applications._tasks import KERNEL, TO_DEVICE, TO_HOST
from jostle.accelerator.simulator._latencies import (
    FEWEST_QUERIES,
    MOST_TASKS,
    latencies_together,
    queries_beside,
    spread_out,
)
from jostle.accelerator.simulator._simulate import can_compile
from jostle.accelerator.simulator._tenants import SimulationOptions, Tenant
from jostle.errors import UsageError, require_choice
from jostle.progress import Progress, no_progress

MOST_INSTANCES = 15
MOST_AT_RATE = 20_000  # queries at a rate, whose tail few of them do not show
ROUNDING = 1e-9  # of a latency, under which a difference is none


@dataclass(frozen=True)
class Objective:
    """What the latency of a service must keep. slowdown_ratio: of its solo latency; latency_seconds: at
    most; either may be None. statistic: mean, p95, p99 or max of the queries."""

    slowdown_ratio: float | None = 2.0
    latency_seconds: float | None = None
    statistic: str = "mean"

    def __post_init__(self) -> None:
        if self.slowdown_ratio is None and self.latency_seconds is None:
            raise UsageError("an objective needs a slowdown, a latency or both")
        if self.slowdown_ratio is not None and not 1 <= self.slowdown_ratio < np.inf:
            raise UsageError(f"a slowdown of {self.slowdown_ratio} is not at least 1")
        if self.latency_seconds is not None and not 0 < self.latency_seconds < np.inf:
            raise UsageError(f"a latency of {self.latency_seconds} s is not above 0")
        require_choice("statistic", self.statistic, STATISTICS)

    def limit(self, solo_seconds: float) -> tuple[float, str]:
        """(seconds, which of the two it is)."""
        by_ratio = (self.slowdown_ratio or np.inf) * solo_seconds
        by_time = self.latency_seconds or np.inf
        return (by_ratio, "slowdown") if by_ratio <= by_time else (by_time, "latency")

    def of(self, latency: Latency) -> float:
        """The statistic that the objective is about."""
        return latency.of_statistic(self.statistic)


@dataclass(frozen=True, eq=False)
class Service:
    """An application that answers queries and has an objective.

    arrivals: (queries,) s at which they come; None: one after the other (closed loop), `queries` of them.
    are_drawn: whether the arrivals are a draw, as at_rate makes it: then the objective has to hold with 95%.
    queries None: MOST_QUERIES, or fewer, but at least FEWEST_QUERIES, where that would be over MOST_TASKS
    tasks in all; as many as a percentile takes in any case.
    """

    application: Application
    objective: Objective = field(default_factory=Objective)
    queries: int | None = 20
    arrivals: np.ndarray | None = None
    are_drawn: bool = False

    @classmethod
    def at_rate(
        cls,
        application: Application,
        objective: Objective,
        rate_per_second: float,
        beside: Sequence[Application] = (),
        *,
        queries: int | None = None,
        seed: int = 0,
    ) -> Service:
        """Queries at random times. queries: None: as many as may be simulated beside the batch applications,
        and as an interval of the statistic takes in any case. Raises UsageError for fewer than it takes."""
        statistic = objective.statistic
        least = queries_for(statistic)
        if queries is None:
            of_batches = sum(len(one) / (rate_per_second * one.solo_seconds) for one in beside)
            most = MOST_TASKS if can_compile() else MOST_TASKS // 20
            affordable = int(most / (len(application) + of_batches))
            queries = max(least, min(MOST_AT_RATE, affordable))
        elif statistic in FEWEST_FOR and queries < least:
            raise UsageError(
                f"{queries} queries at random times say too little of the {statistic}",
                fix=f"Simulate at least {least}.",
            )
        times = poisson_arrivals(rate_per_second, queries, seed)
        return cls(application, objective, None, times, are_drawn=True)

    @property
    def name(self) -> str:
        return self.application.name

    def longest(self, seconds: np.ndarray) -> float:
        """What the objective's statistic may come to, of the latencies of its queries: with 95% no more,
        where they came at drawn times and are enough to tell."""
        value = self.objective.of(Latency.of(seconds))
        if not self.are_drawn:
            return value
        return float(np.nanmax([value, interval_of(seconds, self.objective.statistic)[1]]))

    def runs_beside(self, batches: Sequence[Application]) -> int:
        """How many queries to simulate beside batch applications. Raises UsageError for too few of them for
        the percentile of the objective."""
        least = FEWEST_FOR.get(self.objective.statistic, FEWEST_QUERIES)
        queries = self.queries if self.arrivals is None else len(self.arrivals)
        if queries is not None:
            if self.objective.statistic in FEWEST_FOR and queries < least:
                raise UsageError(
                    f"the {self.objective.statistic} of {queries} queries of {self.name} is the longest "
                    "of them",
                    fix=f"Simulate at least {least} queries.",
                )
            return queries
        return max(least, queries_beside(self.application, batches))


@dataclass(frozen=True)
class Mix:
    """One co-location. latency: of the service. slowdown_ratio: of the objective's statistic. high_seconds:
    what that may come to, see Service.longest. bound_seconds: from measured co-runs, infinite where they say
    nothing of it, for the reason `outcome`; empty where nothing was measured. Of queries at a rate it is
    simulated as if each took as long as its bound, and the outcome says so."""

    instances: int
    latency: Latency
    slowdown_ratio: float
    safe: bool
    high_seconds: float = float("nan")
    bound_seconds: float = float("inf")
    outcome: str = ""


@dataclass(frozen=True)
class Fit:
    """How many instances fit. mixes: 0, 1, … as far as simulated. limit: which part of the objective
    decides, limit_seconds: its value. reason: a sentence. Seconds are those of measured runs where a
    LearnedRest was given, else those of the simulation."""

    service: str
    batch: str
    instances: int
    solo_seconds: float
    limit_seconds: float
    limit: str
    reason: str
    mixes: tuple[Mix, ...]

    @property
    def guaranteed(self) -> int | None:
        """As bounded, by bounds of measured runs alone."""
        return self._most_where(lambda mix: mix.outcome != SIMULATED)

    @property
    def bounded(self) -> int | None:
        """The most instances such that their bound and that of every smaller number keep the limit; None
        where nothing was measured."""
        return self._most_where(lambda mix: True)

    def _most_where(self, counts: Callable[[Mix], bool]) -> int | None:
        if not self.mixes[0].outcome:
            return None
        limit = self.limit_seconds
        late = (m.instances for m in self.mixes[1:] if not (counts(m) and m.bound_seconds <= limit))
        return next(late, len(self.mixes)) - 1


def service_latency(
    service: Service,
    batches: Sequence[Application],
    device: Device,
    options: SimulationOptions | None = None,
    *,
    batch_pes: int | None = None,
    rest: LearnedRest | None = None,
) -> Latency:
    """Latency of the service's queries while every batch application repeats beside it.

    Batch instances start spread over one of their runs, so that equal ones do not move in lockstep. On a
    device in partitions the service has the first and batch instances go to the others in turn.
    batch_pes: PEs that each batch instance may use at most (MPS active threads). rest: what measured co-runs
    say beyond the simulation.
    """
    return Latency.of(_seconds(service, batches, device, options, batch_pes, rest))


def _seconds(
    service: Service,
    batches: Sequence[Application],
    device: Device,
    options: SimulationOptions | None,
    batch_pes: int | None,
    rest: LearnedRest | None,
) -> np.ndarray:
    runs, arrivals = service.runs_beside(batches), service.arrivals
    stretch = 1.0
    if rest is not None:
        there = [] if len(device.partitions) > 1 else batches
        stretch = rest.stretch(service.application, there)
        if not np.isfinite(stretch):
            return np.full(runs, np.inf)
        arrivals = None if arrivals is None else arrivals / stretch
        service, batches = _as_measured(service, batches, rest)
    tenants = [Tenant(service.application, runs, arrivals=arrivals)]
    others = max(1, len(device.partitions) - 1)
    for number, batch in enumerate(batches):
        start = batch.solo_seconds * spread_out(number)
        part = 1 + number % others if len(device.partitions) > 1 else 0
        tenants.append(Tenant(batch, None, start_seconds=start, partition=part, most_pes=batch_pes))
    return stretch * latencies_together(tenants, device, options)[0]


def _as_measured(
    service: Service, batches: Sequence[Application], rest: LearnedRest
) -> tuple[Service, list[Application]]:
    mine = replace(service, application=rest.as_measured(service.application))
    return mine, [rest.as_measured(batch) for batch in batches]


def how_many_fit(
    service: Service,
    batch: Application,
    device: Device,
    options: SimulationOptions | None = None,
    *,
    batch_pes: int | None = None,
    most: int = MOST_INSTANCES,
    every: bool = False,
    rest: LearnedRest | None = None,
) -> Fit:
    """The most instances of `batch` such that they and every smaller number are safe.

    every: simulate all numbers up to `most` even past the first unsafe one. batch_pes, rest: as
    service_latency.
    """
    if not 0 <= most <= 1000:
        raise UsageError(f"{most} instances is not a number from 0 to 1000")
    # Alone means without a queue: a closed loop, whatever the arrivals.
    solo = service.application.solo_seconds if rest is None else rest.seconds(service.name)
    limit, which = service.objective.limit(solo)
    bounds, at_most = [(float("inf"), "")] * (most + 1), None
    if rest is not None:
        alike = batch_pes is None and rest.is_like_runs(device, options or SimulationOptions())
        at_most = rest.at_most if alike and service.arrivals is not None else None
        members = [
            (service.name, [batch.name] * n, service.objective.statistic) for n in range(most + 1)
        ]
        bounds = rest.bounds(members, is_like_runs=alike and at_most is None)
    room = most_in_memory(service.application, batch, device, most)
    mixes: list[Mix] = []
    fits, broken = -1, False
    for instances in range(max(room, 0) + 1):
        beside = [batch] * instances
        seconds = _seconds(service, beside, device, options, batch_pes, rest)
        latency, high = Latency.of(seconds), service.longest(seconds)
        safe = high <= limit * (1 + ROUNDING)
        ratio = service.objective.of(latency) / solo
        if at_most is not None and safe:
            slow = _seconds(service, beside, device, options, None, at_most)
            bounds[instances] = service.longest(slow), SIMULATED
        mixes.append(Mix(instances, latency, ratio, safe, high, *bounds[instances]))
        broken = broken or not safe
        if not broken:
            fits = instances
        elif not every:
            break
    if room < 0:
        fits, mixes[0] = -1, replace(mixes[0], safe=False)
        reason = f"it alone does not fit into the device's memory of {_gigabytes(device)}"
    elif fits == room < most:
        reason = f"more do not fit into the device's memory of {_gigabytes(device)}"
    elif fits == most:
        reason = f"all {most} keep the {which} limit of {limit:.4g} s"
    else:
        reason = _reason(service, batch.name, mixes[fits + 1])
        reason += f", over the {which} limit of {limit:.4g} s"
    return Fit(service.name, batch.name, fits, solo, limit, which, reason, tuple(mixes))


def _gigabytes(device: Device) -> str:
    """Of the device, or of each of its slices."""
    sizes = [part.resource_ratio * (device.memory_bytes or 0) / 1e9 for part in device.pools]
    return " and ".join(f"{size:.4g} GB" for size in sizes)


def most_in_memory(service: Application, batch: Application, device: Device, most: int) -> int:
    """Up to `most` instances that fit into the memory of the device, or of its slices, with the service; -1
    where that alone does not, all where memory is not known."""
    if device.memory_bytes is None:
        return most
    free = [part.resource_ratio * device.memory_bytes for part in device.pools]
    free[0] -= service.memory_bytes
    if free[0] < 0:
        return -1
    others = free[1:] or free
    for instance in range(most):
        others[instance % len(others)] -= batch.memory_bytes
        if min(others) < 0:
            return instance
    return most


def _reason(service: Service, batch: str, broken: Mix) -> str:
    """What happens with the first number of instances that is not safe."""
    seconds = service.objective.of(broken.latency)
    value = f"{seconds:.4g} s"
    if broken.high_seconds > seconds:
        value += f" (with 95% at most {broken.high_seconds:.4g} s)"
    latency = f"{service.objective.statistic} latency"
    if not broken.instances:
        return f"{service.name} alone has a {latency} of {value}"
    return f"{broken.instances} of {batch} bring the {latency} of {service.name} to {value}"


def what_fits(
    services: Sequence[Service],
    batches: Sequence[Application],
    device: Device,
    options: SimulationOptions | None = None,
    *,
    batch_pes: int | None = None,
    most: int = MOST_INSTANCES,
    rest: LearnedRest | None = None,
    progress: Progress = no_progress,
) -> list[Fit]:
    """how_many_fit for every batch application beside every service, none beside itself.

    progress: called with (pairs done, pairs, NaN).
    """
    pairs = [(s, b) for s in services for b in batches if s.name != b.name]
    fits = []
    for service, batch in pairs:
        fit = how_many_fit(
            service, batch, device, options, batch_pes=batch_pes, most=most, rest=rest
        )
        fits.append(fit)
        progress(len(fits), len(pairs), float("nan"))
    return fits


@dataclass(frozen=True)
class Cause:
    """What one kind of contention alone costs: latency with everything else without limit."""

    kernels_seconds: float
    transfers_seconds: float


def causes(
    service: Service,
    batches: Sequence[Application],
    device: Device,
    options: SimulationOptions | None = None,
    *,
    batch_pes: int | None = None,
    rest: LearnedRest | None = None,
) -> Cause:
    """How much the service loses by its co-runners' kernels alone and by their transfers alone.

    Each is simulated with the other kind of the co-runners' tasks turned into idle time.
    """
    # What is learned of all co-runners says nothing of their parts: only the unit of time is of the runs.
    unit = 1.0
    if rest is not None:
        unit = rest.stretch(service.application)
        service, batches = _as_measured(service, batches, rest)
    if service.arrivals is not None:
        service = replace(service, arrivals=service.arrivals / unit)

    def latency(beside: Sequence[Application]) -> float:
        return service_latency(service, beside, device, options, batch_pes=batch_pes).mean_seconds

    alone = latency([])

    def lost(*kinds: int) -> float:
        reduced = [(batch.name, batch.columns.only(kinds)) for batch in batches]
        apart = [Application(name, tasks) for name, tasks in reduced if len(tasks)]
        loss = latency(apart) - alone
        return unit * loss if abs(loss) > ROUNDING * alone else 0.0

    return Cause(lost(KERNEL), lost(TO_DEVICE, TO_HOST))
