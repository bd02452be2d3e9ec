"""Several services and batch workloads on one device at once, and what each of them gets.

Some tenants do a number of runs, which ends the simulation; the others repeat until then. How a service is
kept apart from its neighbours is a decision: kernels side by side, one after the other or in time slices, a
share of the PEs for each (MPS), or slices of the device (MIG).
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.errors import UsageError
from jostle.gpu._arrivals import Latency, poisson_arrivals
from jostle.gpu._device import Device, split_device
from jostle.gpu._measured_residual import LearnedRest
from jostle.gpu.applications._application import Application
from jostle.gpu.simulator._latencies import latencies_together, spread_out
from jostle.gpu.simulator._tenants import SHARINGS, Tenant

FEWEST_RUNS = 3
MOST_TASKS = 1_000_000  # of one simulation, as far as can be told beforehand
SHARES = "shares"  # the mode in which each tenant has a share of the PEs (MPS)
MOST_WAYS = 64  # to put tenants into slices


@dataclass(frozen=True, eq=False)
class DeviceTenant:
    """A service or batch workload that may share a device.

    application: what one run or query does.
    rate_per_second: queries a second, at random times; None: runs follow each other.
    pes_ratio: largest share of the PEs that it may use; None: as the mode says.
    memory_bytes: device memory that it takes; 0: what its profile says.
    arrivals: (queries,) seconds at which its queries come, instead of a rate.
    """

    application: Application
    rate_per_second: float | None = None
    pes_ratio: float | None = None
    memory_bytes: float = 0.0
    arrivals: np.ndarray | None = None

    def __post_init__(self) -> None:
        rate, share = self.rate_per_second, self.pes_ratio
        if rate is not None and not 0 < rate < np.inf:
            raise UsageError(f"{self.application.name} has a rate of {rate} queries a second")
        if share is not None and not 0 < share <= 1:
            raise UsageError(f"{self.application.name} has a share of {share} of the PEs")
        if not self.memory_bytes:
            object.__setattr__(self, "memory_bytes", self.application.memory_bytes)

    @property
    def is_open(self) -> bool:
        """Tell whether queries come by themselves, at a rate or at given times."""
        return self.rate_per_second is not None or self.arrivals is not None

    @property
    def kind(self) -> tuple:
        """A sort key, the same for tenants that can stand for each other."""
        times = b"" if self.arrivals is None else self.arrivals.tobytes()
        own = self.rate_per_second or 0.0, self.pes_ratio or 0.0, self.memory_bytes, times
        return self.application.name, self.application.digest, *own


@dataclass(frozen=True)
class SimulatedLoad:
    """How much of a load is simulated, and with which arrivals.

    queries: of the service with the lowest rate; without any service, runs of the lead.
    seed: of the arrivals at a rate.
    lead: the tenant, by its number, that does a number of runs where none has queries, while the others
        repeat; None: the one whose run takes longest.
    fewest_runs: least number of runs of the lead.
    most_tasks: about as many tasks are simulated at most, with fewer queries where there would be more.
    """

    queries: int = 50
    seed: int = 0
    lead: int | None = None
    fewest_runs: int = FEWEST_RUNS
    most_tasks: int = MOST_TASKS


@dataclass(frozen=True)
class Arrangement:
    """How tenants share a device. mode: as it was asked for. slices: of each tenant its slice, empty where
    the device is whole. latencies: of each tenant's queries or runs. seconds: of each tenant (runs,), in
    the order in which they came. beside: of each tenant the others that share its slice. is_like_runs:
    whether measured runs were under such a load, on such a device, shared so."""

    mode: str
    slices: tuple[str, ...]
    latencies: tuple[Latency, ...]
    seconds: tuple[np.ndarray, ...] = field(default=(), compare=False, repr=False)
    beside: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)
    is_like_runs: bool = False

    def text(self, names: Sequence[str]) -> str:
        """Write for people how the device is shared, given the names of the tenants."""
        if not self.slices:
            return self.mode
        by_way: dict[str, list[str]] = {}
        for name, part in zip(names, self.slices, strict=True):
            by_way.setdefault(part, []).append(name)
        return "; ".join(f"{part}: {', '.join(there)}" for part, there in sorted(by_way.items()))


def check_mode(device: Device, mode: str) -> None:
    """Raise UsageError for a mode that is none of SHARINGS, nor `shares`, nor slices of the device."""
    if mode != SHARES and mode not in SHARINGS and not any(letter.isdigit() for letter in mode):
        ways = ", ".join((*SHARINGS, SHARES))
        raise UsageError(f"{mode!r} is no way to share: {ways}, or slices such as 3g,4g")
    if mode != SHARES and mode not in SHARINGS:
        split_device(device, mode)


def ways_to_arrange(
    tenants: Sequence[DeviceTenant], device: Device, mode: str, memory_bytes: float | None = None
) -> Iterator[tuple[int, ...]]:
    """List the ways to share the device in a mode, each as the number of every tenant's slice.

    Yields () alone where the device stays whole, and nothing where the memory is too small. Of ways that
    differ only between slices of one size, or tenants of one kind, the first. Raises UsageError.
    """
    check_mode(device, mode)
    memory_bytes = device.memory_bytes if memory_bytes is None else memory_bytes
    needed = sum(tenant.memory_bytes for tenant in tenants)
    if memory_bytes is not None and needed > memory_bytes:
        return
    if mode == SHARES or mode in SHARINGS:
        yield ()
        return
    sliced, names = split_device(device, mode), _slice_names(device, mode)
    for way in _ways(tenants, names):
        if memory_bytes is None or _fits(tenants, way, sliced, memory_bytes):
            yield way


def arranged(
    tenants: Sequence[DeviceTenant],
    device: Device,
    mode: str,
    way: Sequence[int] = (),
    draw: SimulatedLoad = SimulatedLoad(),
    rest: LearnedRest | None = None,
) -> Arrangement:
    """Simulate the tenants in one mode and one of its ways_to_arrange.

    mode: a way to share kernels (concurrent, sequential, time-sliced); `shares` of the PEs, even unless the
        tenants have their own; or slices, such as `3g,4g` (see split_device).
    rest: what measured co-runs say; without it seconds are the simulation's.
    """
    places = way or [0] * len(tenants)
    beside = [
        [o.application for k, o in enumerate(tenants) if k != n and places[k] == places[n]]
        for n in range(len(tenants))
    ]
    stretch = np.ones(len(tenants))
    is_like_runs = (
        rest is not None
        and not any(one.is_open or one.pes_ratio is not None for one in tenants)
        and rest.is_like_runs(device, mode)
    )
    if rest is not None and not is_like_runs:
        every = zip(tenants, beside, strict=True)
        stretch = np.array([rest.stretch(one.application, others) for one, others in every])
        if not np.isfinite(stretch).all():  # no bound
            never = (np.full(FEWEST_RUNS, np.inf),) * len(tenants)
            return Arrangement(mode, (), tuple(map(Latency.of, never)), never)
    if rest is not None:
        every = zip(tenants, stretch.tolist(), strict=True)
        tenants = [_as_measured(one, each, rest) for one, each in every]
    names: Sequence[str] = ()
    if mode in SHARINGS:
        seconds = _seconds(tenants, device, mode, draw)
    elif mode == SHARES:
        seconds = _seconds(with_shares(tenants), device, "concurrent", draw)
    else:
        parts = _slice_names(device, mode)
        names = [parts[part] for part in way]
        seconds = _seconds(tenants, split_device(device, mode), "concurrent", draw, way)
    companies = tuple(tuple(one.name for one in others) for others in beside)
    if is_like_runs and rest is not None:
        # Then what was learned is the mean, however the tenants happen to fall in step here.
        every = zip(tenants, companies, seconds, strict=True)
        stretch = np.array(
            [rest.seconds(one.application.name, c) / float(s.mean()) for one, c, s in every]
        )
        stretch = np.where(stretch > 0, stretch, 1.0)  # a starved one stays starved
    measured = tuple(each * of_one for each, of_one in zip(stretch, seconds, strict=True))
    latencies = tuple(Latency.of(of_one) for of_one in measured)
    return Arrangement(mode, tuple(names), latencies, measured, companies, is_like_runs)


def with_shares(tenants: Sequence[DeviceTenant]) -> list[DeviceTenant]:
    """Give every tenant a share of the PEs: its own, else an even one."""
    even = 1 / max(1, len(tenants))
    return [replace(one, pes_ratio=one.pes_ratio or even) for one in tenants]


def most_queries(asked: Sequence[DeviceTenant], most_tasks: int) -> int:
    """Count the queries of the service with the lowest rate that so many simulated tasks allow."""
    rates = [one.rate_per_second for one in asked if one.rate_per_second is not None]
    return int(min(rates) * most_tasks / _tasks_per_second(asked))


def _as_measured(one: DeviceTenant, stretch: float, rest: LearnedRest) -> DeviceTenant:
    """Turn measured seconds into those of the simulation; the load stays what it is."""
    return replace(
        one,
        application=rest.as_measured(one.application),
        rate_per_second=one.rate_per_second and one.rate_per_second * stretch,
        arrivals=None if one.arrivals is None else one.arrivals / stretch,
    )


def _slice_names(device: Device, mode: str) -> list[str]:
    parts = split_device(device, mode).partitions
    texts = [text.strip() for text in mode.split(",")]
    texts += ["rest"] * (len(parts) - len(texts))
    return [f"{text} ({number})" for number, text in enumerate(texts, start=1)]


def _ways(tenants: Sequence[DeviceTenant], names: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """List every tenant's slice in each different way, MOST_WAYS at most."""
    sizes = [name.rpartition(" (")[0] for name in names]
    kinds = [one.kind for one in tenants]
    alike = [[n for n, kind in enumerate(kinds) if kind == one] for one in dict.fromkeys(kinds)]
    choices = [
        itertools.combinations_with_replacement(range(len(names)), len(group)) for group in alike
    ]
    forms: set[tuple] = set()
    for chosen in itertools.product(*choices):
        way = [0] * len(tenants)
        for group, parts in zip(alike, chosen, strict=True):
            for n, part in zip(group, parts, strict=True):
                way[n] = part
        form = tuple(
            sorted(
                (sizes[part], sorted(kinds[n] for n, at in enumerate(way) if at == part))
                for part in range(len(names))
            )
        )
        key = tuple((size, tuple(there)) for size, there in form)
        if key not in forms:
            forms.add(key)
            yield tuple(way)
            if len(forms) >= MOST_WAYS:
                return


def _fits(
    tenants: Sequence[DeviceTenant], way: Sequence[int], device: Device, memory_bytes: float
) -> bool:
    for number, part in enumerate(device.partitions):
        needed = sum(t.memory_bytes for t, at in zip(tenants, way, strict=True) if at == number)
        if needed > part.resource_ratio * memory_bytes:
            return False
    return True


def _seconds(
    asked: Sequence[DeviceTenant],
    device: Device,
    sharing: str,
    draw: SimulatedLoad,
    way: Sequence[int] = (),
) -> list[np.ndarray]:
    """Simulate the seconds of every run. Services get queries through a time that is long enough for each of
    them; without any, the lead runs a number of times and the others repeat beside it."""
    arrivals = _arrivals(asked, draw)
    longest = max(range(len(asked)), key=lambda n: asked[n].application.solo_seconds)
    lead = longest if draw.lead is None else draw.lead
    is_open = any(times is not None for times in arrivals)
    tenants, repeating = [], 0
    for number, one in enumerate(asked):
        runs, start, times = None, 0.0, arrivals[number]
        if times is not None:
            runs = len(times)
        elif number == lead and not is_open:
            runs = _affordable(asked, lead, draw)
        else:
            start = one.application.solo_seconds * spread_out(repeating)
            repeating += 1
        tenants.append(
            Tenant(
                one.application,
                runs,
                start_seconds=start,
                arrivals=times,
                partition=way[number] if way else 0,
                most_pes=None
                if one.pes_ratio is None
                else max(1, round(one.pes_ratio * device.pes)),
            )
        )
    return latencies_together(tenants, device, sharing)


def _affordable(asked: Sequence[DeviceTenant], lead: int, draw: SimulatedLoad) -> int:
    solo = asked[lead].application.solo_seconds
    tasks = sum(len(one.application) * solo / one.application.solo_seconds for one in asked)
    return max(draw.fewest_runs, min(draw.queries, int(draw.most_tasks / tasks)))


def _tasks_per_second(asked: Sequence[DeviceTenant]) -> float:
    return sum(
        len(one.application) * (one.rate_per_second or 1 / one.application.solo_seconds)
        for one in asked
    )


def _arrivals(asked: Sequence[DeviceTenant], draw: SimulatedLoad) -> list[np.ndarray | None]:
    arrivals = [one.arrivals for one in asked]
    rates = [one.rate_per_second for one in asked if one.rate_per_second is not None]
    if not rates:
        return arrivals
    repeated = [one.application.solo_seconds for one in asked if not one.is_open]
    horizon = max(draw.queries / min(rates), FEWEST_RUNS * max(repeated, default=0.0))
    most = draw.most_tasks / _tasks_per_second(asked)
    horizon = max(min(horizon, most), FEWEST_RUNS / min(rates))
    for number, one in enumerate(asked):
        if one.rate_per_second is None:
            continue
        count = max(FEWEST_RUNS, round(horizon * one.rate_per_second))
        # Alike ones have queries of their own, and each keeps its own whoever else is there.
        name = one.application.name
        own = zlib.crc32(name.encode()) + sum(o.application.name == name for o in asked[:number])
        arrivals[number] = poisson_arrivals(one.rate_per_second, count, (draw.seed, own))
    return arrivals
