"""Which sets of services and batch jobs may share a device, and how: every set in every way to share.

A set fits in a way where each of its members keeps its objective. Tails are of simulated queries, so each
has an interval: a member keeps its limit where the whole interval is within, and is late where the whole
interval is over; between them more queries are simulated, and what remains between is not called safe. That
a co-runner never helps is not a law of packing (a small kernel can let another start earlier), so a set is
simulated even where a smaller one does not fit. What lies inside a set that fits is not asked, and who
misses its limit alone is left out of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np

from jostle.accelerator._arrivals import FEWEST_FOR, Latency, interval_of, queries_for
from jostle.accelerator._device import Device
from jostle.accelerator._rest import SIMULATED, LearnedRest
from jostle.accelerator._safe import Objective
from jostle.accelerator._together import (
    Arrangement,
    DeviceTenant,
    arranged,
    check_mode,
    ways_to_arrange,
)
from jostle.accelerator.simulator._tenants import SimulationOptions
from jostle.errors import UsageError
from jostle.progress import Progress, no_progress

MOST_WISHES = 10
MOST_QUERIES = 80_000  # of a set whose limits are too close to tell
MOST_TASKS = 20_000_000  # of one simulation, as far as can be told beforehand
MORE = 4  # times as many queries, where an interval holds the limit, and to confirm that a set fits
OTHER_SEED = 1_000_003
KEEPS, UNCLEAR, LATE = "keeps", "unclear", "late"
_NO_LIMIT, _TOLERANCE = float("inf"), 1e-9


@dataclass(frozen=True, eq=False)
class Wish:
    """Who wants a share of a device. objective: None for batch work that may take as long as it takes."""

    name: str
    tenant: DeviceTenant
    objective: Objective | None = None

    @property
    def limit_seconds(self) -> float:
        """In seconds of the simulation."""
        return self.limit_of(self.tenant.application.solo_seconds)

    def limit_of(self, solo_seconds: float) -> float:
        return _NO_LIMIT if self.objective is None else self.objective.limit(solo_seconds)[0]

    @property
    def statistic(self) -> str:
        return "mean" if self.objective is None else self.objective.statistic

    @property
    def kind(self) -> tuple:
        """The same for wishes that can stand for each other."""
        one = self.tenant
        held = one.rate_per_second, one.pes_ratio, one.memory_bytes, self.objective
        return one.application.digest, one.application.name, *held


@dataclass(frozen=True)
class MemberTime:
    """What one member gets. seconds: its statistic, between low and high with 95%, NaN where that is not
    known. verdict: keeps, unclear or late. bound_seconds, outcome: as of a Mix."""

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

    @property
    def over_ratio(self) -> float:
        """Its statistic over its limit."""
        return self.seconds / self.limit_seconds if self.limit_seconds < _NO_LIMIT else 0.0


@dataclass(frozen=True)
class TenantSet:
    """members: who shares. arrangement: the best way to, None where their memory fits into none. times: of
    each member."""

    members: tuple[str, ...]
    arrangement: Arrangement | None
    times: tuple[MemberTime, ...]

    @property
    def verdict(self) -> str:
        """keeps where all keep, late where one is late for certain; late, too, where there is no room."""
        verdicts = {one.verdict for one in self.times} or {LATE}
        return next(verdict for verdict in (LATE, UNCLEAR, KEEPS) if verdict in verdicts)

    @property
    def is_bounded(self) -> bool | None:
        """Whether every member's bound keeps its limit; None where nothing was measured."""
        if not any(one.outcome for one in self.times):
            return None
        return all(one.bound_seconds <= one.limit_seconds for one in self.times)

    @property
    def is_guaranteed(self) -> bool | None:
        """As is_bounded, by bounds of measured runs alone."""
        is_simulated = any(one.outcome == SIMULATED for one in self.times)
        return False if is_simulated else self.is_bounded

    @property
    def order(self) -> tuple:
        """Better ways first."""
        over = max((one.over_ratio for one in self.times), default=np.inf)
        return (KEEPS, UNCLEAR, LATE).index(self.verdict), self.is_bounded is False, over

    @property
    def shared(self) -> str:
        """How, for people."""
        if self.arrangement is None:
            return "no room in memory"
        return self.arrangement.text(self.members)


@dataclass(frozen=True)
class SharingSets:
    """alone: each by itself. fitting: sets of two and more that fit and that no larger one holds, the largest
    first. others: sets that were simulated and do not, the largest first. simulated: how many ways."""

    alone: tuple[TenantSet, ...]
    fitting: tuple[TenantSet, ...]
    others: tuple[TenantSet, ...]
    simulated: int

    @property
    def all_fit(self) -> bool:
        return bool(self.fitting) and len(self.fitting[0].members) == len(self.alone)


def sets_that_fit(
    wishes: Sequence[Wish],
    device: Device,
    modes: Sequence[str],
    *,
    memory_bytes: float | None = None,
    queries: int | None = None,
    seed: int = 0,
    rest: LearnedRest | None = None,
    progress: Progress = no_progress,
) -> SharingSets:
    """Every set of the wishes, from all of them down, in every mode and way to share (see `arrangements`).

    memory_bytes: of the device, by default its own. rest: what measured co-runs say, in whose seconds the
    answers then are. queries: of the service with the fewest, to begin with; as many as the
    percentiles' intervals take by default. seed: of the arrivals. progress: called with (sets done, sets,
    NaN). Raises UsageError.
    """
    if not 1 <= len(wishes) <= MOST_WISHES:
        raise UsageError(
            f"{len(wishes)} tenants are not 1 to {MOST_WISHES}",
            fix="jostle place assign spreads any number over devices.",
        )
    names = [wish.name for wish in wishes]
    if len(set(names)) < len(names):
        raise UsageError("two tenants have the same name")
    for mode in modes:
        check_mode(device, mode)
    search = _Search(wishes, device, tuple(modes), memory_bytes, queries, seed, rest)
    sets = [part for k in range(len(wishes), 1, -1) for part in combinations(range(len(wishes)), k)]
    alone = []
    for number in range(len(wishes)):
        alone.append(search.best((number,)))
        progress(len(alone), len(wishes) + len(sets), float("nan"))
    hopeless = {n for n, tenant in enumerate(alone) if tenant.verdict == LATE}
    fitting: list[tuple[tuple[int, ...], TenantSet]] = []
    others = []
    for done, part in enumerate(sets, start=1):
        inside = any(set(part) <= set(f) for f, held in fitting if held.is_bounded is not False)
        if not hopeless.intersection(part) and not inside:
            tenant = search.best(part)
            if tenant.verdict == KEEPS:
                fitting.append((part, tenant))
            else:
                others.append(tenant)
        progress(len(wishes) + done, len(wishes) + len(sets), float("nan"))
    held = tuple(tenant for _, tenant in fitting)
    return SharingSets(tuple(alone), held, tuple(others), search.simulated)


@dataclass(eq=False)
class _Search:
    """Sets in their best way, each kind of set once."""

    wishes: Sequence[Wish]
    device: Device
    modes: tuple[str, ...]
    memory_bytes: float | None
    queries: int | None
    seed: int
    rest: LearnedRest | None
    simulated: int = 0
    _known: dict[tuple, TenantSet] = field(default_factory=dict)

    def best(self, part: tuple[int, ...]) -> TenantSet:
        """The set in its best way."""
        members = [self.wishes[number] for number in part]
        key = tuple(member.kind for member in members)
        if key not in self._known:
            self._known[key] = self._found(members)
        tenant_set = self._known[key]
        names = tuple(member.name for member in members)
        named = zip(tenant_set.times, names, strict=bool(tenant_set.times))
        return replace(tenant_set, members=names, times=tuple(replace(j, name=n) for j, n in named))

    def _found(self, members: Sequence[Wish]) -> TenantSet:
        tenants = [member.tenant for member in members]
        queries = self.queries or max(queries_for(member.statistic) for member in members)
        ways = [
            (mode, way)
            for mode in self.modes
            for way in ways_to_arrange(tenants, self.device, mode, self.memory_bytes)
        ]
        arrangements = [(self._arranged(members, *way, queries), way) for way in ways]
        if not arrangements:
            return TenantSet(tuple(m.name for m in members), None, ())
        is_random = any(tenant.rate_per_second is not None for tenant in tenants)
        confirmed: set[tuple[str, tuple[int, ...]]] = set()
        while True:
            best, way = min(arrangements, key=_order)
            more = min(MORE * queries, MOST_QUERIES)
            if best.verdict == KEEPS and is_random and way not in confirmed:
                # Of many ways and looks one keeps by luck: it has to with other arrivals, and more, too.
                confirmed.add(way)
                again = self._arranged(members, *way, more, other=len(confirmed))
                arrangements = [(again if at == way else one, at) for one, at in arrangements]
            elif best.verdict == UNCLEAR and queries < MOST_QUERIES:
                queries, confirmed = more, set()
                arrangements = [
                    (self._arranged(members, *at, queries), at)
                    for one, at in arrangements
                    if one.verdict == UNCLEAR
                ]
            else:
                return best

    def _arranged(
        self,
        members: Sequence[Wish],
        mode: str,
        way: tuple[int, ...],
        queries: int,
        *,
        other: int = 0,
    ) -> TenantSet:
        """other: arrivals, of which there are as many as numbers."""
        self.simulated += 1
        arrange = partial(
            arranged,
            [member.tenant for member in members],
            self.device,
            mode,
            way,
            queries=queries,
            seed=self.seed + OTHER_SEED * other,
            most_tasks=MOST_TASKS,
        )
        tenant_set = arrange(rest=self.rest)
        every = zip(members, tenant_set.seconds, strict=True)
        if self.rest is None:
            times = [_member_time(one, seconds, one.limit_seconds) for one, seconds in every]
        else:
            alone = [self.rest.seconds(one.tenant.application.name) for one in members]
            limits = list(map(Wish.limit_of, members, alone))
            times = [_member_time(*one, at) for one, at in zip(every, limits, strict=True)]
            bounds = self._bounds(self.rest, members, tenant_set)
            if self._is_at_rates(members, mode) and all(one.verdict == KEEPS for one in times):
                most = arrange(rest=self.rest.at_most)
                slow = map(_member_time, members, most.seconds, limits)
                bounds = [(float(np.fmax(t.seconds, t.high_seconds)), SIMULATED) for t in slow]
            both = zip(times, bounds, strict=True)
            times = [replace(t, bound_seconds=b[0], outcome=b[1]) for t, b in both]
        bare = replace(tenant_set, seconds=())
        return TenantSet(tuple(member.name for member in members), bare, tuple(times))

    def _is_at_rates(self, members: Sequence[Wish], mode: str) -> bool:
        """Whether measured runs were shared so, but under another load."""
        tenants = [member.tenant for member in members]
        return (
            self.rest is not None
            and any(one.rate_per_second is not None for one in tenants)
            and all(one.pes_ratio is None for one in tenants)
            and self.rest.is_like_runs(self.device, SimulationOptions(mode))
        )

    def _bounds(
        self, rest: LearnedRest, members: Sequence[Wish], tenant_set: Arrangement
    ) -> list[tuple[float, str]]:
        names = [member.tenant.application.name for member in members]
        what = [member.statistic for member in members]
        return rest.bounds(
            list(zip(names, tenant_set.beside, what, strict=True)),
            is_like_runs=tenant_set.is_like_runs,
        )


def _order(found: tuple[TenantSet, object]) -> tuple:
    return found[0].order


def _member_time(member: Wish, seconds: np.ndarray, limit: float) -> MemberTime:
    statistic = member.statistic
    value = Latency.of(seconds).of_statistic(statistic)
    low, high = interval_of(seconds, statistic)
    bound = limit * (1 + _TOLERANCE)
    if limit == _NO_LIMIT:
        verdict = KEEPS
    elif statistic == "max" or (np.isnan(low) and len(seconds) >= FEWEST_FOR.get(statistic, 3)):
        verdict = KEEPS if value <= bound else LATE
    elif np.isnan(low):
        verdict = LATE if (seconds > bound).mean() > 0.5 else UNCLEAR
    else:
        verdict = KEEPS if high <= bound else LATE if low > bound else UNCLEAR
    return MemberTime(member.name, statistic, len(seconds), value, low, high, limit, verdict)
