"""Which workloads may share a device: how many batch instances fit beside a service.

Source: Prophet (ASPLOS 2017), Sec. 7.3: a co-location is safe where the predicted latency is within a
multiple of the solo latency and under a limit in seconds; up to 15 instances (MPS serves 16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.accelerator._application import Application
from jostle.accelerator._arrivals import Latency
from jostle.accelerator._device import Device
from jostle.accelerator._models import Model
from jostle.accelerator._simulate import Tenant, simulate
from jostle.errors import UnknownName, UsageError

MOST_INSTANCES = 15
# A service whose queries take so many times their solo time is starved: its latency is infinite.
HOPELESS = 50
# A query of seconds beside batch work of microseconds is as long as many.
MOST_QUERIES, FEWEST_QUERIES, MOST_TASKS = 50, 3, 1_000_000
STATISTICS = ("mean", "p95", "p99", "max")


@dataclass(frozen=True)
class Target:
    """What the service must keep. slowdown_ratio: of its solo latency; latency_seconds: at most; either may
    be None. statistic: mean, p95, p99 or max of the queries."""

    slowdown_ratio: float | None = 2.0
    latency_seconds: float | None = None
    statistic: str = "mean"

    def __post_init__(self) -> None:
        if self.slowdown_ratio is None and self.latency_seconds is None:
            raise UsageError("a target needs a slowdown, a latency or both")
        if self.slowdown_ratio is not None and not 1 <= self.slowdown_ratio < np.inf:
            raise UsageError(f"a slowdown of {self.slowdown_ratio} is not at least 1")
        if self.latency_seconds is not None and not 0 < self.latency_seconds < np.inf:
            raise UsageError(f"a latency of {self.latency_seconds} s is not above 0")
        if self.statistic not in STATISTICS:
            raise UsageError(
                f"unknown statistic {self.statistic!r}; known: {', '.join(STATISTICS)}"
            )

    def limit(self, solo_seconds: float) -> tuple[float, str]:
        """(seconds, which of the two it is)."""
        by_ratio = (self.slowdown_ratio or np.inf) * solo_seconds
        by_time = self.latency_seconds or np.inf
        return (by_ratio, "slowdown") if by_ratio <= by_time else (by_time, "latency")

    def of(self, latency: Latency) -> float:
        return float(getattr(latency, f"{self.statistic}_seconds"))


@dataclass(frozen=True)
class Mix:
    """One co-location. latency: of the service. batch_ratio: what each instance gets done, of alone.
    service_runs, batch_runs: that ended."""

    instances: int
    latency: Latency
    slowdown_ratio: float
    safe: bool


@dataclass(frozen=True)
class Fit:
    """How many instances fit. mixes: 0, 1, … as far as simulated. limit: which part of the target decides,
    limit_seconds: its value. reason: a sentence."""

    service: str
    batch: str
    instances: int
    solo_seconds: float
    limit_seconds: float
    limit: str
    reason: str
    mixes: tuple[Mix, ...]


def service_latency(
    service: Application,
    batches: Sequence[Application],
    device: Device,
    *,
    queries: int | None = 20,
    arrivals: np.ndarray | None = None,
    kernels: str | Model = "concurrent",
    transfers: str | Model = "pcie",
    engine: str = "auto",
    batch_pes: int | None = None,
) -> Latency:
    """Latency of the service's queries while every batch application repeats beside it.

    queries: one after the other (closed loop), where there are no arrivals; None: MOST_QUERIES, or fewer,
    but at least FEWEST_QUERIES, where that would be over MOST_TASKS tasks in all. Batch instances start
    spread over one of their runs, so that equal ones do not move in lockstep. On a device in partitions the
    service has the first and batch instances go to the others in turn. batch_pes: PEs that each batch
    instance may use at most (MPS active threads).
    """
    if queries is None:
        of_batches = sum(len(b.tasks) * service.solo_seconds / b.solo_seconds for b in batches)
        affordable = int(MOST_TASKS / (len(service.tasks) + of_batches))
        queries = max(FEWEST_QUERIES, min(MOST_QUERIES, affordable))
    runs = queries if arrivals is None else len(arrivals)
    tenants = [Tenant(service, runs, arrivals=arrivals)]
    others = max(1, len(device.partitions) - 1)
    for number, batch in enumerate(batches):
        start = batch.solo_seconds * _spread(number)
        part = 1 + number % others if len(device.partitions) > 1 else 0
        tenants.append(Tenant(batch, None, start_seconds=start, partition=part, most_pes=batch_pes))
    last = 0.0 if arrivals is None else float(arrivals[-1])
    until = last + HOPELESS * runs * service.solo_seconds + sum(t.start_seconds for t in tenants)
    found = simulate(
        *(tenants, device),
        kernels=kernels,
        transfers=transfers,
        engine=engine,
        until_seconds=until,
    )
    starved = np.full(runs - len(found.latencies[0]), np.inf)
    return Latency.of(np.concatenate([found.latencies[0], starved]))


def _spread(number: int) -> float:
    """0, 1/2, 1/4, 3/4, 1/8, … (van der Corput): spread out for every number of instances."""
    value, unit = 0.0, 0.5
    while number:
        value += unit * (number & 1)
        number >>= 1
        unit /= 2
    return value


def how_many_fit(
    service: Application,
    batch: Application,
    device: Device,
    target: Target,
    *,
    most: int = MOST_INSTANCES,
    every: bool = False,
    **how,
) -> Fit:
    """The most instances of `batch` such that they and every smaller number are safe.

    every: simulate all numbers up to `most` even past the first unsafe one. how: as service_latency.
    """
    if not 0 <= most <= 1000:
        raise UsageError(f"{most} instances is not a number from 0 to 1000")
    # Alone means without a queue: a closed loop, whatever the arrivals.
    solo = service.solo_seconds
    limit, which = target.limit(solo)
    mixes: list[Mix] = []
    fits, broken = -1, False
    for instances in range(most + 1):
        latency = service_latency(service, [batch] * instances, device, **how)
        value = target.of(latency)
        safe = value <= limit * (1 + 1e-9)
        mixes.append(Mix(instances, latency, value / solo, safe))
        broken = broken or not safe
        if not broken:
            fits = instances
        elif not every:
            break
    reason = _reason(service, batch, target, fits, most, mixes, limit, which)
    return Fit(service.name, batch.name, fits, solo, limit, which, reason, tuple(mixes))


def what_fits(
    applications: Mapping[str, Application],
    device: Device,
    target: Target,
    *,
    services: Sequence[str] | None = None,
    batches: Sequence[str] | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    **how,
) -> list[Fit]:
    """how_many_fit for every batch workload beside every service, all of `applications` by default, none
    beside itself. progress: called with (done, total, NaN). Raises UnknownName."""
    for name in (*(services or ()), *(batches or ())):
        if name not in applications:
            raise UnknownName("workload", name, sorted(applications))
    pairs = [
        (service, batch)
        for service in (sorted(applications) if services is None else services)
        for batch in (sorted(applications) if batches is None else batches)
        if service != batch or (services is not None and batches is not None)
    ]
    found = []
    for service, batch in pairs:
        found.append(
            how_many_fit(applications[service], applications[batch], device, target, **how)
        )
        if progress:
            progress(len(found), len(pairs), float("nan"))
    return found


def _reason(service, batch, target, fits, most, mixes, limit, which) -> str:
    limited = "slowdown" if which == "slowdown" else "latency"
    if fits == most:
        return f"all {most} keep the {limited} limit of {limit:.4g} s"
    broken = mixes[fits + 1]
    value = target.of(broken.latency)
    if fits < 0:
        return (
            f"{service.name} alone has a {target.statistic} latency of {value:.4g} s, over the "
            f"{limited} limit of {limit:.4g} s"
        )
    return (
        f"{fits + 1} of {batch.name} bring the {target.statistic} latency of {service.name} to "
        f"{value:.4g} s, over the {limited} limit of {limit:.4g} s"
    )


@dataclass(frozen=True)
class Cause:
    """What one kind of contention alone costs: latency with everything else without limit."""

    kernels_seconds: float
    transfers_seconds: float


def causes(service: Application, batches: Sequence[Application], device: Device, **how) -> Cause:
    """How much the service loses by its co-runners' kernels alone and by their transfers alone.

    Each is simulated with the other kind of the co-runners' tasks turned into idle time.
    """
    alone = service_latency(service, [], device, **how).mean_seconds

    def only(kinds: tuple[str, ...]) -> float:
        kept = [_without(batch, kinds) for batch in batches]
        beside = [batch for batch in kept if batch is not None]
        return service_latency(service, beside, device, **how).mean_seconds - alone

    return Cause(only(("kernel",)), only(("htod", "dtoh")))


def _without(batch: Application, kinds: tuple[str, ...]) -> Application | None:
    """The application with tasks of other kinds as gaps; None where nothing is left."""
    tasks, gap = [], 0.0
    for task in batch.tasks:
        if task.kind in kinds:
            tasks.append(replace(task, gap_seconds=task.gap_seconds + gap))
            gap = 0.0
        else:
            gap += task.gap_seconds + task.seconds
    if not tasks:
        return None
    tasks[0] = replace(tasks[0], gap_seconds=tasks[0].gap_seconds + gap)
    return Application(batch.name, tuple(tasks))
