"""How many batch instances fit beside a service: `within_limits` of 0, 1, 2, … of them.

Source: Prophet (ASPLOS 2017), Sec. 7.3: a co-location is safe where the predicted latency is within a
multiple of the solo latency and under a limit in seconds; up to 15 instances (MPS serves 16).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jostle._base.progress import Progress, no_progress
from jostle.errors import UsageError
from jostle.gpu._device import Device
from jostle.gpu._device_tenants import DeviceTenant, SimulatedLoad, arranged
from jostle.gpu._measured_residual import LearnedRest
from jostle.gpu._sharing_decision import ROUNDING, WITHIN, TenantSet, Wish, within_limits
from jostle.gpu.applications._application import Application
from jostle.gpu.applications._application_tasks import KERNEL, TO_DEVICE, TO_HOST
from jostle.gpu.simulator._tenants import SHARINGS

MOST_INSTANCES = 15


@dataclass(frozen=True)
class Fit:
    """How many instances of a batch workload fit beside a service.

    instances: so many; -1 where the service alone is over its limit.
    solo_seconds: of a query alone.
    limit: which part of the objective decides, limit_seconds: its value.
    reason: one sentence.
    sets: the service with 0, 1, … instances as far as simulated, the service first.
    Seconds are those of measured runs where a LearnedRest was given, else those of the simulation.
    """

    service: str
    batch: str
    instances: int
    solo_seconds: float
    limit_seconds: float
    limit: str
    reason: str
    sets: tuple[TenantSet, ...]

    @property
    def guaranteed(self) -> int | None:
        """The most instances, as in `bounded`, by bounds of measured runs alone."""
        return self._most_where(lambda one: bool(one.is_guaranteed))

    @property
    def bounded(self) -> int | None:
        """The most instances such that their bound and that of every smaller number keep the limit; None
        where nothing was measured."""
        return self._most_where(lambda one: bool(one.is_bounded))

    def _most_where(self, holds: Callable[[TenantSet], bool]) -> int | None:
        if self.sets[0].is_bounded is None:
            return None
        late = (n for n, one in enumerate(self.sets) if n and not holds(one))
        return next(late, len(self.sets)) - 1


def how_many_fit(
    service: Wish,
    batch: Application,
    device: Device,
    modes: Sequence[str] = ("concurrent",),
    *,
    batch_share: float | None = None,
    most: int = MOST_INSTANCES,
    seed: int = 0,
    rest: LearnedRest | None = None,
) -> Fit:
    """Find the most instances of `batch` such that they and every smaller number are within the limit.

    service: with an objective.
    batch_share: share of the PEs that each instance may use at most (MPS active threads).
    modes, seed, rest: as for `within_limits`.
    """
    if not 0 <= most <= 1000:
        raise UsageError(f"{most} instances is not a number from 0 to 1000")
    if service.objective is None:
        raise UsageError(f"{service.name} has no objective")
    instance = DeviceTenant(batch, pes_ratio=batch_share)
    solo = service.solo_seconds(rest)
    limit, which = service.objective.limit(solo)
    sets: list[TenantSet] = []
    while len(sets) <= most and (not sets or sets[-1].verdict == WITHIN):
        beside = [Wish(f"{batch.name} {n}", instance) for n in range(1, len(sets) + 1)]
        sets.append(within_limits([service, *beside], device, modes, seed=seed, rest=rest))
    last = sets[-1]
    fits = len(sets) - 1 - (last.verdict != WITHIN)
    if last.arrangement is None:
        who = "more do" if fits >= 0 else "it alone does"
        reason = f"{who} not fit into the device's memory of {_gigabytes(device)}"
        sets = sets[:-1] or sets
    elif last.verdict == WITHIN:
        reason = f"all {most} keep the {which} limit of {limit:.4g} s"
    else:
        reason = (
            f"{_reason(service, batch.name, last)}, {_over(last)} {which} limit of {limit:.4g} s"
        )
    return Fit(service.name, batch.name, fits, solo, limit, which, reason, tuple(sets))


def _gigabytes(device: Device) -> str:
    return f"{(device.memory_bytes or 0) / 1e9:.4g} GB"


def _over(last: TenantSet) -> str:
    return "over the" if last.times[0].verdict == "over" else "too close to tell from the"


def _reason(service: Wish, batch: str, last: TenantSet) -> str:
    """Say what happens with the first number of instances that is not safe."""
    one, instances = last.times[0], len(last.members) - 1
    beside = f" beside {instances} of {batch}" if instances else " alone"
    if one.load_ratio >= 1:
        return f"{one.remark}{beside}"
    value = f"{one.seconds:.4g} s"
    if one.high_seconds > one.seconds:
        value += f" (with 95% at most {one.high_seconds:.4g} s)"
    latency = f"{one.statistic} latency"
    if not instances:
        return f"{service.name} alone has a {latency} of {value}"
    return f"{instances} of {batch} bring the {latency} of {service.name} to {value}"


def what_fits(
    services: Sequence[Wish],
    batches: Sequence[Application],
    device: Device,
    modes: Sequence[str] = ("concurrent",),
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> list[Fit]:
    """Ask how_many_fit of every batch application beside every service, none beside itself.

    progress: called with (pairs done, pairs, NaN).
    options: those of how_many_fit.
    """
    pairs = [(s, b) for s in services for b in batches if s.name != b.name]
    fits = []
    for service, batch in pairs:
        fits.append(how_many_fit(service, batch, device, modes, **options))
        progress(len(fits), len(pairs), float("nan"))
    return fits


@dataclass(frozen=True)
class Cause:
    """What one kind of contention alone costs a query in seconds, the other being without limit."""

    kernels_seconds: float
    transfers_seconds: float


def causes(
    service: Application,
    batches: Sequence[Application],
    device: Device,
    mode: str = "concurrent",
    rest: LearnedRest | None = None,
) -> Cause:
    """Measure how much a query loses by its co-runners' kernels alone and by their transfers alone.

    Queries follow each other. Each part is simulated with the other kind of the co-runners' tasks turned
    into idle time. mode: slices count as concurrent. rest: gives the unit of time.
    """
    # What is learned of all co-runners says nothing of their parts: only the unit of time is of the runs.
    unit = 1.0
    if rest is not None:
        unit = rest.stretch(service)
        service, *batches = [rest.as_measured(one) for one in (service, *batches)]
    mode = mode if mode in SHARINGS else "concurrent"

    def latency(beside: Sequence[Application]) -> float:
        tenants = [DeviceTenant(one) for one in (service, *beside)]
        return arranged(tenants, device, mode, draw=SimulatedLoad(lead=0)).latencies[0].mean_seconds

    alone = latency([])

    def lost(*kinds: int) -> float:
        reduced = [(batch.name, batch.columns.only(kinds)) for batch in batches]
        apart = [Application(name, tasks) for name, tasks in reduced if len(tasks)]
        loss = latency(apart) - alone
        return unit * loss if abs(loss) > ROUNDING * alone else 0.0

    return Cause(lost(KERNEL), lost(TO_DEVICE, TO_HOST))
