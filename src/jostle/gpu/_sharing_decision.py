"""Whether tenants of a device stay within their limits: the one function that decides it for everybody.

A service whose queries come at random times waits in its own queue. `within_limits` first measures its
offered load, the time of its queries when they follow each other without a gap times their rate: from 1 on
the queue grows without end, whatever a few queries take. Below, as many queries are simulated as such a load
takes, doubled until the statistic's 95% interval lies on one side of the limit, the second half of the
queries takes no longer than the first, and other arrivals, twice as many, say the same. What is open at
MOST_QUERIES is undecided, which is not safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.errors import UsageError, require_choice
from jostle.gpu._arrivals import (
    BATCHES,
    FEWEST_FOR,
    STATISTICS,
    Latency,
    grows,
    interval_of,
    queries_for,
)
from jostle.gpu._device import Device
from jostle.gpu._device_tenants import (
    SHARES,
    Arrangement,
    DeviceTenant,
    SimulatedLoad,
    arranged,
    most_queries,
    ways_to_arrange,
    with_shares,
)
from jostle.gpu._measured_residual import SIMULATED, LearnedRest
from jostle.gpu.simulator._latencies import HOPELESS
from jostle.gpu.simulator._simulate import can_compile

MOST_QUERIES = 80_000  # of the service with the lowest rate
MOST_TASKS = 20_000_000  # of one simulation; a part of that where nothing is compiled
# A queue at load r forgets in about 1 / (1 - r)^2 queries; simulated are so many times that to begin with.
MEMORIES = 40
OTHER_SEED = 1_000_003
WITHIN = "within"
UNDECIDED = "undecided"
OVER = "over"
ROUNDING = 1e-9  # of a limit, by which a time that is above it is not
_NO_LIMIT = float("inf")


@dataclass(frozen=True)
class Objective:
    """What the latency of a service has to keep.

    slowdown_ratio: largest latency, over that alone; None: any.
    latency_seconds: largest latency; None: any.
    statistic: mean, p95, p99 or max of its queries.
    """

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
        """Return the limit in seconds, and which of the two it is."""
        by_ratio = (self.slowdown_ratio or np.inf) * solo_seconds
        by_time = self.latency_seconds or np.inf
        return (by_ratio, "slowdown") if by_ratio <= by_time else (by_time, "latency")


@dataclass(frozen=True, eq=False)
class Wish:
    """A tenant with its name and its objective; None for batch work that may take as long as it takes."""

    name: str
    tenant: DeviceTenant
    objective: Objective | None = None

    def limit_of(self, solo_seconds: float) -> float:
        """Return the limit in seconds, infinite without an objective."""
        return _NO_LIMIT if self.objective is None else self.objective.limit(solo_seconds)[0]

    def solo_seconds(self, rest: LearnedRest | None) -> float:
        """Return the time of a run alone, as measured runs say or as its profile does."""
        application = self.tenant.application
        return application.solo_seconds if rest is None else rest.seconds(application.name)

    @property
    def statistic(self) -> str:
        """Statistic that is held to the limit."""
        return "mean" if self.objective is None else self.objective.statistic

    @property
    def kind(self) -> tuple:
        """A sort key, the same for wishes that can stand for each other; those with an objective first."""
        one = self.objective
        limits = () if one is None else (one.slowdown_ratio or 0, one.latency_seconds or 0)
        return one is None, *limits, self.statistic, *self.tenant.kind


@dataclass(frozen=True)
class MemberTime:
    """What one member of a set gets.

    runs: how many were simulated.
    seconds: its statistic; infinite where its queue grows without end.
    low_seconds, high_seconds: 95% interval of the statistic, NaN where that is not known.
    verdict: within, undecided or over.
    bound_seconds: from measured co-runs; infinite where they say nothing of it, for the reason `outcome`,
        which is empty where nothing was measured.
    load_ratio: offered load of a service at a rate, else NaN.
    """

    name: str
    statistic: str
    runs: int
    seconds: float
    low_seconds: float
    high_seconds: float
    limit_seconds: float
    verdict: str
    bound_seconds: float = float("inf")
    outcome: str = ""
    load_ratio: float = float("nan")

    @property
    def held_seconds(self) -> float:
        """The statistic as the limit counts it: at most the limit if it is within, else more than that;
        HOPELESS times the limit for a queue that grows without end, which passes every number."""
        most = float(np.nanmax([self.seconds, self.high_seconds]))
        if self.verdict == WITHIN:
            return min(most, self.limit_seconds)
        if most == np.inf:
            return HOPELESS * self.limit_seconds
        return max(most, float(np.nextafter(self.limit_seconds, np.inf)))

    @property
    def over_ratio(self) -> float:
        """Its statistic over its limit."""
        return self.seconds / self.limit_seconds if self.limit_seconds < _NO_LIMIT else 0.0

    @property
    def remark(self) -> str:
        """Words for people on its queue; empty for none."""
        if self.load_ratio >= 1:
            return (
                f"the queue of {self.name} grows without end: its offered load is "
                f"{self.load_ratio:.3g}"
            )
        if self.verdict == UNDECIDED:
            return f"{self.runs} queries of {self.name} do not settle it, which is not safe"
        return ""


@dataclass(frozen=True)
class TenantSet:
    """Tenants in the best way to share a device.

    members: their names.
    arrangement: the way; None where their memory fits into none.
    times: of each member.
    simulated: number of simulations.
    """

    members: tuple[str, ...]
    arrangement: Arrangement | None
    times: tuple[MemberTime, ...]
    simulated: int = field(default=0, compare=False)

    def for_names(self, names: Sequence[str], order: Sequence[int]) -> TenantSet:
        """Return the same for members of these names. order: the place here of each of them."""
        way = self.arrangement
        if way is None:
            return replace(self, members=tuple(names))
        parts = {
            part: tuple(getattr(way, part)[n] for n in order if getattr(way, part))
            for part in ("slices", "latencies", "beside")
        }
        times = (replace(self.times[n], name=name) for n, name in zip(order, names, strict=True))
        way = replace(way, **parts, seconds=())
        return replace(self, members=tuple(names), arrangement=way, times=tuple(times))

    @property
    def verdict(self) -> str:
        """Return within where all are, over where one is for certain or where there is no room."""
        verdicts = {one.verdict for one in self.times} or {OVER}
        return next(verdict for verdict in (OVER, UNDECIDED, WITHIN) if verdict in verdicts)

    @property
    def is_bounded(self) -> bool | None:
        """True if every member's bound keeps its limit; None where nothing was measured."""
        if not any(one.outcome for one in self.times):
            return None
        return all(one.bound_seconds <= one.limit_seconds for one in self.times)

    @property
    def is_guaranteed(self) -> bool | None:
        """The same as is_bounded, by bounds of measured runs alone."""
        limited = [one for one in self.times if one.limit_seconds < _NO_LIMIT]
        return False if any(o.outcome == SIMULATED for o in limited) else self.is_bounded

    @property
    def order(self) -> tuple:
        """A sort key, better ways first: limits kept, then bounds, then the fastest."""
        over = max((one.over_ratio for one in self.times), default=np.inf)
        slow = sum(one.seconds for one in self.times)
        place = (WITHIN, UNDECIDED, OVER).index(self.verdict)
        return place, self.is_bounded is False, max(1.0, over), slow

    @property
    def shared(self) -> str:
        """The arrangement in words."""
        if self.arrangement is None:
            return "no room in memory"
        return self.arrangement.text(self.members)


def within_limits(
    wishes: Sequence[Wish],
    device: Device,
    modes: Sequence[str],
    *,
    memory_bytes: float | None = None,
    seed: int = 0,
    rest: LearnedRest | None = None,
) -> TenantSet:
    """Decide whether all of these tenants together stay within their limits, in the best way to share.

    modes: ways to share the device, see `arranged`; each is tried.
    memory_bytes: of the device, by default its own.
    seed: of the arrivals at a rate.
    rest: what measured co-runs say, in whose seconds the answer then is.
    Raises UsageError.
    """
    order = sorted(range(len(wishes)), key=lambda n: wishes[n].kind)
    search = _Search([wishes[n] for n in order], device, seed, rest)
    found = [
        search.settled(mode, way)
        for mode in modes
        for way in ways_to_arrange(search.tenants, device, mode, memory_bytes)
    ]
    names = tuple(wish.name for wish in wishes)
    if not found:
        return TenantSet(names, None, ())
    best = replace(min(found, key=lambda one: one.order), simulated=search.simulated)
    return best.for_names(names, [order.index(n) for n in range(len(wishes))])


@dataclass(eq=False)
class _Search:
    """One set of wishes, in the order of their kinds."""

    wishes: Sequence[Wish]
    device: Device
    seed: int
    rest: LearnedRest | None
    simulated: int = 0

    def __post_init__(self) -> None:
        self.tenants = [wish.tenant for wish in self.wishes]
        self.limits = [wish.limit_of(wish.solo_seconds(self.rest)) for wish in self.wishes]
        self.at_rate = [one.rate_per_second is not None for one in self.tenants]
        # Where nobody has queries, the longest of those that have a limit does a number of runs.
        limited = [n for n, limit in enumerate(self.limits) if limit < _NO_LIMIT]
        solo = [one.application.solo_seconds for one in self.tenants]
        self.lead = max(limited or range(len(solo)), key=lambda n: solo[n])

    def settled(self, mode: str, way: tuple[int, ...]) -> TenantSet:
        """Decide about one way to share."""
        if not any(self.at_rate):
            fewest = max(FEWEST_FOR.get(wish.statistic, 3) for wish in self.wishes)
            return self._look(mode, way, SimulatedLoad(50, self.seed, self.lead, fewest), None)
        loads = self._loads(mode, way)
        most_tasks = MOST_TASKS if can_compile() else MOST_TASKS // 200
        most = max(3, min(MOST_QUERIES, most_queries(self.tenants, most_tasks)))
        memory = 1 / (1 - loads[loads < 1].max(initial=0.0)) ** 2
        queries = int(min(most, max(self._fewest(), MEMORIES * memory)))
        look, was_within = 0, False
        while True:
            seed = self.seed + OTHER_SEED * look
            draw = SimulatedLoad(queries, seed, most_tasks=most_tasks)
            found, look = self._look(mode, way, draw, loads), look + 1
            if found.verdict == OVER and not was_within:
                return found
            if found.verdict == WITHIN and was_within:
                # An interval is of BATCHES sections, which are too short to speak of such a queue.
                return found if queries >= BATCHES * memory else _undecided(found)
            if queries >= most and found.verdict != WITHIN:
                return _undecided(found)
            was_within = found.verdict == WITHIN
            queries = min(most, 2 * queries)

    def _fewest(self) -> int:
        """Count the queries of the lowest rate by which each statistic has an interval."""
        return max(
            queries_for("p99" if wish.statistic == "max" else wish.statistic)
            for wish in self.wishes
        )

    def _loads(self, mode: str, way: tuple[int, ...]) -> np.ndarray:
        """Measure the offered load of each service at a rate, NaN for other tenants.

        All services answer queries without a gap first. Those that are faster so than their queries come
        are stable, and get their own arrivals in the next round; once none becomes so, the rest is unstable.
        """
        tenants = with_shares(self.tenants) if mode == SHARES else list(self.tenants)
        rates = np.array([one.rate_per_second or np.nan for one in tenants])
        loads, open_ones = np.full(len(tenants), np.nan), set(np.flatnonzero(self.at_rate).tolist())
        while open_ones:
            busy = [
                replace(one, rate_per_second=None) if n in open_ones else one
                for n, one in enumerate(tenants)
            ]
            lead = max(open_ones, key=lambda n: tenants[n].application.solo_seconds)
            self.simulated += 1
            found = arranged(
                busy, self.device, mode, way, SimulatedLoad(50, self.seed, lead), self.rest
            )
            for n in open_ones:
                seconds = found.seconds[n]
                loads[n] = rates[n] * seconds[len(seconds) // 2 :].mean()  # once it is busy
            stable = {n for n in open_ones if loads[n] < 1}
            if not stable or stable == open_ones:
                break
            open_ones -= stable
        return loads

    def _look(
        self, mode: str, way: tuple[int, ...], draw: SimulatedLoad, loads: np.ndarray | None
    ) -> TenantSet:
        """Simulate once and compare with the limits. loads: None where no queries come at a rate."""
        self.simulated += 1
        found = arranged(self.tenants, self.device, mode, way, draw, self.rest)
        times = self._times(found, loads)
        if self.rest is not None:
            bounds = self._bounds(self.rest, found)
            if self._is_like_but_open(mode) and all(one.verdict == WITHIN for one in times):
                slow = arranged(self.tenants, self.device, mode, way, draw, self.rest.at_most)
                held = self._times(slow, loads)
                bounds = [(float(np.fmax(t.seconds, t.high_seconds)), SIMULATED) for t in held]
            both = zip(times, bounds, strict=True)
            times = [replace(t, bound_seconds=b[0], outcome=b[1]) for t, b in both]
        return TenantSet(tuple(one.name for one in self.wishes), found, tuple(times))

    def _times(self, found: Arrangement, loads: np.ndarray | None) -> list[MemberTime]:
        every = zip(self.wishes, found.seconds, self.limits, strict=True)
        if loads is None:
            return [_exact(*one) for one in every]
        return [_of_a_draw(*one, load) for one, load in zip(every, loads.tolist(), strict=True)]

    def _is_like_but_open(self, mode: str) -> bool:
        """Tell whether measured runs were shared so, but under another load."""
        return (
            self.rest is not None
            and any(one.is_open for one in self.tenants)
            and all(one.pes_ratio is None for one in self.tenants)
            and self.rest.is_like_runs(self.device, mode)
        )

    def _bounds(self, rest: LearnedRest, found: Arrangement) -> list[tuple[float, str]]:
        names = [one.application.name for one in self.tenants]
        what = [wish.statistic for wish in self.wishes]
        if not found.beside:  # a run that has no bound at all
            return [(np.inf, SIMULATED)] * len(names)
        members = list(zip(names, found.beside, what, strict=True))
        return rest.bounds(members, is_like_runs=found.is_like_runs)


def _exact(wish: Wish, seconds: np.ndarray, limit: float) -> MemberTime:
    """Compare runs that no chance is in with the limit."""
    value, none = Latency.of(seconds).of_statistic(wish.statistic), float("nan")
    verdict = WITHIN if value <= limit * (1 + ROUNDING) else OVER
    return MemberTime(wish.name, wish.statistic, len(seconds), value, none, none, limit, verdict)


def _of_a_draw(wish: Wish, seconds: np.ndarray, limit: float, load: float) -> MemberTime:
    """Compare runs under random arrivals with the limit. load: NaN for a tenant that has no rate."""
    statistic, most = wish.statistic, limit * (1 + ROUNDING)
    value = Latency.of(seconds).of_statistic(statistic)
    low, high = interval_of(seconds, statistic)
    if load >= 1:
        value = low = high = np.inf
    enough = statistic == "max" or (np.isnan(load) and len(seconds) >= FEWEST_FOR.get(statistic, 3))
    if load >= 1:
        verdict = OVER
    elif limit == _NO_LIMIT:
        verdict = WITHIN
    elif np.isnan(low):
        verdict = UNDECIDED if not enough else WITHIN if value <= most else OVER
    else:
        verdict = WITHIN if high <= most else OVER if low > most else UNDECIDED
    if verdict == WITHIN and limit < _NO_LIMIT and not np.isnan(load) and grows(seconds):
        verdict = UNDECIDED
    runs = len(seconds)
    times = value, low, high, limit
    return MemberTime(wish.name, statistic, runs, *times, verdict, load_ratio=load)


def _undecided(found: TenantSet) -> TenantSet:
    """Call open what looks at such queues do not settle."""
    times = (
        replace(one, verdict=UNDECIDED) if one.limit_seconds < _NO_LIMIT else one
        for one in found.times
    )
    return replace(found, times=tuple(times))
