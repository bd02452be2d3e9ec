"""How much longer the simulator lets a workload take beside others, in every way that they may share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle.gpu import (
    BUSES,
    SHARINGS,
    Application,
    Device,
    Tenant,
    queries_beside,
    simulate,
    spread_out,
)

REPEATING, SINCE_START = "repeating", "since start"
MOST_TASKS = 30_000_000  # simulated at all to learn from co-runs, as far as can be told beforehand
MOST_RUNS = 20  # of a target beside co-runners that repeat
STARVED = 50  # times its own length after which a simulation is given up


@dataclass(frozen=True, order=True)
class Sharing:
    """One way to share. sharing: of kernels, by name. bus: see Device. corunners: they repeat; or run
    once, each process started together with the others."""

    sharing: str
    bus: str
    corunners: str


def ways_to_share(sharing: str | None, bus: str | None) -> list[Sharing]:
    """List all ways to share that are tried, with what is given only."""
    kernels = SHARINGS if sharing is None else (sharing,)
    buses = BUSES if bus is None else (bus,)
    ways = list(product((REPEATING, SINCE_START), buses, kernels))
    # Far apart ones first, should there be time for some only.
    order = sorted(range(len(ways)), key=lambda at: (5 * at) % 12)
    return [Sharing(kernel, one, how) for how, one, kernel in (ways[at] for at in order)]


# {what was simulated: s}: a method is fitted again and again on the same traces, to calibrate and to judge.
_KNOWN: dict[tuple, float] = {}
MOST_KNOWN = 200_000  # simulations that are kept


@dataclass(frozen=True, eq=False)
class Delays:
    """Simulations of applications, in the order of the workloads' names, each made once in a process.
    idle_seconds: (w,) that each run leaves the device idle before it begins, as far as that is known."""

    applications: Sequence[Application]
    device: Device
    idle_seconds: np.ndarray | None = None

    @cached_property
    def repeating(self) -> Sequence[Application]:
        """The applications as they repeat, with what they do before they use the device."""
        if self.idle_seconds is None:
            return self.applications
        every = zip(self.applications, self.idle_seconds.tolist(), strict=True)
        return [application.with_idle(seconds) for application, seconds in every]

    def alone(self, way: Sharing) -> np.ndarray:
        """Simulate the (w,) seconds that each takes alone."""
        return np.array([application.solo_seconds for application in self._as_in(way)])

    def _as_in(self, way: Sharing) -> Sequence[Application]:
        return self.repeating if way.corunners == REPEATING else self.applications

    def of(
        self,
        way: Sharing,
        target: np.ndarray,
        beside: np.ndarray,
        progress: Progress = no_progress,
    ) -> np.ndarray:
        """Simulate (n,) seconds that targets take longer than alone. target: (n,). beside: (n, w) counts."""
        delays = np.empty(len(target))
        device = repr(sorted(vars(self.device).items(), key=lambda item: item[0]))
        for row, (one, counts) in enumerate(zip(target.tolist(), beside, strict=True)):
            others = tuple(np.repeat(np.arange(len(counts)), counts.astype(int)).tolist())
            tasks = tuple(self._as_in(way)[number].digest for number in (one, *others))
            key = way, device, tasks
            if key not in _KNOWN:
                if len(_KNOWN) >= MOST_KNOWN:
                    _KNOWN.clear()
                _KNOWN[key] = self._simulate(way, one, others)
            delays[row] = _KNOWN[key]
            progress(row + 1, len(target), float("nan"))
        return delays

    def _simulate(self, way: Sharing, one: int, others: tuple[int, ...]) -> float:
        applications = [self._as_in(way)[number] for number in (one, *others)]
        target, *beside = applications
        first, runs, others_run = np.zeros(len(applications)), 1, 1
        if way.corunners == SINCE_START:
            first = np.array([application.first_seconds for application in applications])
            first -= first.min()
        elif way.corunners == REPEATING:
            # In the mean of many runs, however they happen to fall in step.
            each = [o.solo_seconds * spread_out(k) for k, o in enumerate(beside, start=1)]
            first = np.array([0.0, *each])
            runs, others_run = min(MOST_RUNS, queries_beside(target, beside)), None
        tenants = [
            Tenant(application, others_run if place else runs, start_seconds=float(start))
            for place, (application, start) in enumerate(zip(applications, first, strict=True))
        ]
        device = replace(self.device, bus=way.bus)
        until = float(first[0]) + STARVED * target.solo_seconds * runs
        ends = simulate(tenants, device, way.sharing, until_seconds=until).run_ends[0]
        end = float(ends[-1]) if len(ends) == runs else until
        spent = (end - float(first[0])) / (runs if len(ends) == runs else len(ends) + 1)
        return max(0.0, spent - target.solo_seconds)

    def affordable(
        self, ways: Sequence[Sharing], target: np.ndarray, beside: np.ndarray
    ) -> Sequence[Sharing]:
        """Keep as many of the ways as there is time for, at least one."""
        number = int(MOST_TASKS / max(self.tasks(target, beside), 1.0))
        return ways[: max(1, number)]

    def tasks(self, target: np.ndarray, beside: np.ndarray) -> float:
        """Estimate how many tasks one way of sharing takes to simulate."""
        size = np.array([len(application) for application in self.applications], float)
        solo = np.array([application.solo_seconds for application in self.applications])
        return float((size[target] + (beside * (size / solo)).sum(axis=1) * solo[target]).sum())


def trace_features(applications: Sequence[Application], log_solo: np.ndarray) -> np.ndarray:
    """Make (w, 6) features from traces: log time alone, first use of the device, and logs of the trace's
    length, of what kernels and transfers take, and of the number of tasks. 1% of the typical length counts as
    nothing. log_solo: (w,), NaN where unknown."""
    length = np.array([application.solo_seconds for application in applications])
    least = 0.01 * float(np.median(length))
    columns = [application.columns for application in applications]
    kernel, moved = (
        np.array([one.seconds[(one.kind == 0) == is_kernel].sum() for one in columns])
        for is_kernel in (True, False)
    )
    first = np.array([application.first_seconds for application in applications])
    return np.column_stack(
        [
            np.where(np.isnan(log_solo), np.nanmean([*log_solo, 0.0]), log_solo),
            within_fences(first),
            np.log(least + length),
            np.log(least + kernel),
            np.log(least + moved),
            np.log([float(len(application)) for application in applications]),
        ]
    )


def within_fences(values: np.ndarray) -> np.ndarray:
    """Move values far out to Tukey's fences, 1.5 times the interquartile range away. Returns (n,)."""
    low, high = np.percentile(values, (25, 75))
    return np.clip(values, low - 1.5 * (high - low), high + 1.5 * (high - low))
