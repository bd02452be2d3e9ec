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

from jostle.accelerator._arrivals import Latency, poisson_arrivals
from jostle.accelerator._device import Device, split_device
from jostle.accelerator._rest import LearnedRest
from jostle.accelerator.applications._application import Application
from jostle.accelerator.simulator._latencies import latencies_together, spread_out
from jostle.accelerator.simulator._sharing import KERNEL_MODELS, sharing_model_names
from jostle.accelerator.simulator._tenants import SimulationOptions, Tenant
from jostle.errors import UsageError

FEWEST_RUNS = 3
MOST_TASKS = 1_000_000  # of one simulation, as far as can be told beforehand
SHARES = "shares"  # the mode in which each tenant has a share of the PEs (MPS)
MOST_WAYS = 64  # to put tenants into slices


@dataclass(frozen=True, eq=False)
class DeviceTenant:
    """A service or batch workload as it is asked about. rate_per_second: of its queries, at random times;
    None: its runs follow each other. pes_ratio: of the PEs, what it may use at most; None: as the mode says.
    memory_bytes: of the device, that it takes, by default what its profile says."""

    application: Application
    rate_per_second: float | None = None
    pes_ratio: float | None = None
    memory_bytes: float = 0.0

    def __post_init__(self) -> None:
        rate, share = self.rate_per_second, self.pes_ratio
        if rate is not None and not 0 < rate < np.inf:
            raise UsageError(f"{self.application.name} has a rate of {rate} queries a second")
        if share is not None and not 0 < share <= 1:
            raise UsageError(f"{self.application.name} has a share of {share} of the PEs")
        if not self.memory_bytes:
            object.__setattr__(self, "memory_bytes", self.application.memory_bytes)


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
        """For people, given what the tenants are called."""
        if not self.slices:
            return self.mode
        by_way: dict[str, list[str]] = {}
        for name, part in zip(names, self.slices, strict=True):
            by_way.setdefault(part, []).append(name)
        return "; ".join(f"{part}: {', '.join(there)}" for part, there in sorted(by_way.items()))


def check_mode(device: Device, mode: str) -> None:
    """Raises UsageError for a mode that is neither a sharing model, `shares`, nor slices of the device."""
    if mode != SHARES and mode not in sharing_model_names(KERNEL_MODELS):
        split_device(device, mode)


def arrangements(
    tenants: Sequence[DeviceTenant],
    device: Device,
    mode: str,
    *,
    memory_bytes: float | None = None,
    queries: int = 50,
    seed: int = 0,
    rest: LearnedRest | None = None,
) -> Iterator[Arrangement]:
    """The ways for tenants to share a device in one mode: one, or each way to put them into its slices.

    mode: a sharing model, such as concurrent, sequential and time-sliced; `shares`, of the PEs, even unless
    the tenants have their own; or slices, such as `3g,4g` (see split_device). memory_bytes: of the device,
    by default its own; what does not fit is left out. queries: of the service with the fewest; the others
    go on as long. seed: of the arrivals. rest: what measured co-runs say; without it seconds are the
    simulation's. Raises UsageError.
    """
    for way in ways_to_arrange(tenants, device, mode, memory_bytes):
        yield arranged(tenants, device, mode, way, queries=queries, seed=seed, rest=rest)


def ways_to_arrange(
    tenants: Sequence[DeviceTenant], device: Device, mode: str, memory_bytes: float | None = None
) -> Iterator[tuple[int, ...]]:
    """Of each way to share the device in a mode, the number of each tenant's slice; () for the one way where
    the device is whole. None where the tenants do not fit into its memory. Raises UsageError."""
    check_mode(device, mode)
    memory_bytes = device.memory_bytes if memory_bytes is None else memory_bytes
    needed = sum(tenant.memory_bytes for tenant in tenants)
    if memory_bytes is not None and needed > memory_bytes:
        return
    if mode == SHARES or mode in sharing_model_names(KERNEL_MODELS):
        yield ()
        return
    sliced, names = split_device(device, mode), _slice_names(device, mode)
    for way in _ways(len(tenants), len(names), names):
        if memory_bytes is None or _fits(tenants, way, sliced, memory_bytes):
            yield way


def arranged(
    tenants: Sequence[DeviceTenant],
    device: Device,
    mode: str,
    way: Sequence[int] = (),
    *,
    queries: int = 50,
    seed: int = 0,
    most_tasks: int = MOST_TASKS,
    rest: LearnedRest | None = None,
) -> Arrangement:
    """What the tenants get in one mode and one of its ways_to_arrange. most_tasks: about so many are
    simulated at most, with fewer queries where that would be more. rest: as for `arrangements`."""
    drawn = _Drawn(queries, seed, most_tasks)
    names: Sequence[str] = ()
    places = way or [0] * len(tenants)
    beside = [
        [o.application for k, o in enumerate(tenants) if k != n and places[k] == places[n]]
        for n in range(len(tenants))
    ]
    stretch = np.ones(len(tenants))
    is_like_runs = (
        rest is not None
        and all(one.rate_per_second is None is one.pes_ratio for one in tenants)
        and rest.is_like_runs(device, SimulationOptions(mode))
    )
    if rest is not None and not is_like_runs:
        every = zip(tenants, beside, strict=True)
        stretch = np.array([rest.stretch(one.application, others) for one, others in every])
        if not np.isfinite(stretch).all():  # no bound
            never = (np.full(FEWEST_RUNS, np.inf),) * len(tenants)
            return Arrangement(mode, (), tuple(map(Latency.of, never)), never)
    if rest is not None:
        tenants = [
            replace(
                one,
                application=rest.as_measured(one.application),
                rate_per_second=one.rate_per_second and one.rate_per_second * each,
            )
            for one, each in zip(tenants, stretch.tolist(), strict=True)
        ]
    if mode in sharing_model_names(KERNEL_MODELS):
        seconds = _seconds(tenants, device, SimulationOptions(sharing=mode), drawn)
    elif mode == SHARES:
        even = 1 / max(1, len(tenants))
        tenants = [replace(t, pes_ratio=t.pes_ratio or even) for t in tenants]
        seconds = _seconds(tenants, device, None, drawn)
    else:
        parts = _slice_names(device, mode)
        names = [parts[part] for part in way]
        seconds = _seconds(tenants, split_device(device, mode), None, drawn, way)
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


@dataclass(frozen=True)
class _Drawn:
    queries: int
    seed: int
    most_tasks: int


def _slice_names(device: Device, mode: str) -> list[str]:
    parts = split_device(device, mode).partitions
    texts = [text.strip() for text in mode.split(",")]
    texts += ["rest"] * (len(parts) - len(texts))
    return [f"{text} ({number})" for number, text in enumerate(texts, start=1)]


def _ways(tenants: int, slices: int, names: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Each tenant's slice; of ways that differ only between slices of a size the first, MOST_WAYS at most."""
    sizes = [name.rpartition(" (")[0] for name in names]
    forms: set[tuple[tuple[str, tuple[int, ...]], ...]] = set()
    for way in itertools.product(range(slices), repeat=tenants):
        groups = [
            (sizes[part], tuple(n for n, at in enumerate(way) if at == part))
            for part in range(slices)
        ]
        key = tuple(sorted(groups))
        if key in forms:
            continue
        forms.add(key)
        yield way
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
    options: SimulationOptions | None,
    drawn: _Drawn,
    way: Sequence[int] = (),
) -> list[np.ndarray]:
    """Services with a rate get queries all through a time that is long enough for each of them; without any,
    the longest application runs a few times and the others repeat beside it."""
    arrivals = _arrivals(asked, drawn)
    longest = max(range(len(asked)), key=lambda n: asked[n].application.solo_seconds)
    is_open = any(times is not None for times in arrivals)
    tenants, repeating = [], 0
    for number, one in enumerate(asked):
        runs, start, times = None, 0.0, arrivals[number]
        if times is not None:
            runs = len(times)
        elif number == longest and not is_open:
            runs = _affordable(asked, drawn)
        elif one.rate_per_second is None:
            repeating += 1
            start = one.application.solo_seconds * spread_out(repeating)
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
    return latencies_together(tenants, device, options)


def _affordable(asked: Sequence[DeviceTenant], drawn: _Drawn) -> int:
    longest = max(one.application.solo_seconds for one in asked)
    tasks = sum(len(one.application) * longest / one.application.solo_seconds for one in asked)
    return max(FEWEST_RUNS, min(drawn.queries, int(drawn.most_tasks / tasks)))


def _arrivals(asked: Sequence[DeviceTenant], drawn: _Drawn) -> list[np.ndarray | None]:
    rates = [one.rate_per_second for one in asked if one.rate_per_second is not None]
    if not rates:
        return [None] * len(asked)
    repeated = [one.application.solo_seconds for one in asked if one.rate_per_second is None]
    horizon = max(drawn.queries / min(rates), FEWEST_RUNS * max(repeated, default=0.0))
    per_second = sum(
        len(one.application) * (one.rate_per_second or 1 / one.application.solo_seconds)
        for one in asked
    )
    horizon = max(min(horizon, drawn.most_tasks / per_second), FEWEST_RUNS / min(rates))
    arrivals: list[np.ndarray | None] = []
    for number, one in enumerate(asked):
        if one.rate_per_second is None:
            arrivals.append(None)
            continue
        count = max(FEWEST_RUNS, round(horizon * one.rate_per_second))
        # Alike ones have queries of their own, and each keeps its own whoever else is there.
        name = one.application.name
        own = zlib.crc32(name.encode()) + sum(o.application.name == name for o in asked[:number])
        arrivals.append(poisson_arrivals(one.rate_per_second, count, (drawn.seed, own)))
    return arrivals
