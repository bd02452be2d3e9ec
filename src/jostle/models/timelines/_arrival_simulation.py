"""Who ends when beside whom: nodes in small steps, from one change of company to the next.

Everybody on a node works at the rate 1 / time beside the others; when one ends the others' rates change.
Others come as they have lately come in the log: at a rate for each number of residents, named as they were
on that platform. Many nodes, and many draws of each, go on side by side, so that the rates of all sets that
come up in a step are asked for in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import Serializable
from jostle.data import Colocations
from jostle.learn import mixed_bits

if TYPE_CHECKING:
    from jostle.data import Runs

DRAWS = 9
_STEPS = 200  # changes of company, past which it stays as it is
_LATELY = 20_000  # runs, the last ones, of which newcomers are counted
_SHARED = 5.0  # newcomers on all platforms that count as much as one's own


@dataclass(frozen=True)
class Newcomers(Serializable):
    """Rates at which further jobs arrive on a platform. rate_per_second: (k,) by the number of co-runners
    that a run has, none beyond. share: (platforms, workloads), how often each name comes."""

    rate_per_second: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, runs: Runs, workloads: tuple[str, ...], platforms: tuple[str, ...]) -> Newcomers:
        """Count how co-runners came in runs whose company changed; unknown names do not come."""
        runs = runs.ok()
        if len(runs) > _LATELY:
            at = runs.table.column("measured_at").combine_chunks().cast("int64")
            latest = np.argsort(at.fill_null(0).to_numpy(), kind="stable")[-_LATELY:]
            runs = runs.take(np.sort(latest))
        parts = runs.stretches
        c = parts.colocations
        number = c.number_of_corunners
        stretch = np.repeat(np.arange(len(c)), number)
        follows = np.flatnonzero(np.diff(parts.row, prepend=-1) == 0)
        # What one stretch has more of than the one before it, name by name.
        names = len(c.workload_names)
        key, count = np.unique(stretch * names + c.corunner, return_counts=True)
        earlier = key - names
        place = np.searchsorted(key, earlier)
        place[place == len(key)] = 0
        had = np.where(key[place] == earlier, count[place], 0) if len(key) else count
        came = np.where(np.isin(key // names, follows), np.maximum(count - had, 0), 0)
        into = np.bincount(key // names, came, len(c))
        at = number - into.astype(np.int64)  # how many stayed as they came
        most = int(number.max(initial=0))
        joins = np.bincount(at[follows], into[follows], most + 1)
        seconds = np.bincount(number, parts.seconds, most + 1)
        rate = joins / np.maximum(seconds, 1e-9 * max(float(seconds.sum()), 1e-300))
        platform = c.recode(workloads, platforms)[1]
        known = {name: code for code, name in enumerate(workloads)}
        own = np.array([known.get(name, -1) for name in c.workload_names])
        who, where, times = own[key % names], platform[key // names], came
        good = (who >= 0) & (where >= 0) & (times > 0)
        counted = np.zeros((len(platforms), len(workloads)))
        np.add.at(counted, (where[good], who[good]), times[good])
        every = counted.sum(axis=0) + 1e-9
        counted += _SHARED * every / every.sum()
        return cls(rate, counted / counted.sum(axis=1, keepdims=True))

    def recoded(self, old: tuple[Any, Any], new: tuple[Any, Any]) -> Newcomers:
        """Extend to more names, of which no run has come. old, new: (workloads, platforms)."""
        row, column = (
            np.array([later.index(name) for name in earlier], np.int64)
            for earlier, later in ((old[1], new[1]), (old[0], new[0]))
        )
        every = self.share.mean(axis=0)
        share = np.zeros((len(new[1]), len(new[0])))
        share[:, column] = every
        share[np.ix_(row, column)] = self.share
        return Newcomers(self.rate_per_second, share)


def no_newcomers() -> Newcomers:
    """Return rates at which nobody comes."""
    return Newcomers(np.zeros(1), np.zeros((0, 0)))


class Rates:
    """Seconds that what was learned predicts for members of sets, each asked for once: by its quick answers,
    where it has any, as very many sets are asked about."""

    def __init__(self, fitted: Any) -> None:
        known = getattr(fitted, "predictor", fitted)
        self.fitted = fitted
        self._predict = getattr(known, "quick_seconds", fitted.predict)
        self.names = tuple(known.workload_names), tuple(known.platform_names)
        self._seconds: dict[int, np.ndarray] = {}
        self._code = mixed_bits(np.arange(len(self.names[0]) + 1, dtype=np.uint64))
        self._code[-1] = 0  # of nobody

    def seconds(self, asked: Colocations, unknown: float = np.inf) -> np.ndarray:
        """Predict (n,) seconds of co-locations; `unknown` for one with a name that was not learned."""
        known = asked.known_in(*self.names)
        seconds = np.full(len(asked), unknown)
        if known.any():
            seconds[known] = self._predict(asked.take(np.flatnonzero(known)))
        return seconds

    def of(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Predict (s, k) seconds, infinite for nobody. platform: (s,); members: (s, k) codes, -1 nobody."""
        key = self._code[members].sum(axis=1) + mixed_bits(~platform.astype(np.uint64))
        kinds, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        sets = np.sort(members[first], axis=1)
        keys = kinds.tolist()
        new = np.array([n for n, one in enumerate(keys) if one not in self._seconds], np.int64)
        if len(new):
            self._ask(platform[first[new]], sets[new], [keys[n] for n in new])
        seconds = np.full(sets.shape, np.inf)
        seconds[sets >= 0] = np.concatenate([self._seconds[one] for one in keys])
        out = np.empty(members.shape)
        order = np.argsort(members, axis=1)
        np.put_along_axis(out, order, seconds[inverse.reshape(-1)], 1)
        return out

    def _ask(self, platform: np.ndarray, sets: np.ndarray, keys: Sequence[int]) -> None:
        """Remember what is predicted for all members (s, k), ascending, of sets on platforms (s,)."""
        present = sets >= 0
        size = present.sum(axis=1)
        row, column = np.nonzero(present)
        others = present[row]
        others[np.arange(len(row)), column] = False
        offsets = np.concatenate([[0], np.cumsum(others.sum(axis=1))]).astype(np.int64)
        asked = sets[row, column], platform[row], offsets, sets[row][others]
        seconds = self._predict(Colocations(*self.names, *asked))
        each = np.split(seconds, np.cumsum(size)[:-1])
        self._seconds.update(zip(keys, each, strict=True))


@dataclass(frozen=True)
class BusyNodes:
    """State of s simulated nodes. platform: (s,) codes. members: (s, k) workload codes, -1 for nobody. left:
    (s, k) shares of their work. pace: (s, k), how many times faster than predicted each is, if not as fast.
    slots: (s,) members at most, as many as were seen by default."""

    platform: np.ndarray
    members: np.ndarray
    left: np.ndarray
    pace: np.ndarray | None = None
    slots: np.ndarray | None = None


def spread_over(random: np.random.Generator) -> np.ndarray:
    """Draw (DRAWS,) uniform numbers, one in each equal part of 0 to 1: as even as so few draws can be."""
    return (random.permutation(DRAWS) + random.random(DRAWS)) / DRAWS


def ends(
    rates: Rates, nodes: BusyNodes, newcomers: Newcomers, *, watched: int, seed: int = 0
) -> np.ndarray:
    """Simulate (s, watched) seconds from now to the end of each of the nodes' first members; NaN for an empty
    place, and if a rate is unknown. A workload only ever seen beside others, such as a service that runs on,
    stays. Nodes are draws in turn; the same draw of each has the same luck, so what else is asked changes
    nothing."""
    platform, members, left = nodes.platform, nodes.members, nodes.left
    random = np.random.default_rng(seed)
    s, k = members.shape
    room = max(k, len(newcomers.rate_per_second)) - k if newcomers.rate_per_second.any() else 0
    members = np.concatenate([members, np.full((s, room), -1)], axis=1)
    left = np.concatenate(
        [np.where(members[:, :k] >= 0, left, np.inf), np.full((s, room), np.inf)], 1
    )
    speed = np.ones(members.shape)
    if nodes.pace is not None:
        speed[:, :k] = nodes.pace
    most = np.full(s, members.shape[1])
    if nodes.slots is not None:
        most = np.minimum(nodes.slots, most)
    hazard = np.append(newcomers.rate_per_second, 0.0)
    cumulative = np.cumsum(newcomers.share, axis=1)
    is_first = np.zeros(members.shape, bool)
    is_first[:, :watched] = members[:, :watched] >= 0
    clock, out = np.zeros(s), np.full((s, watched), np.nan)
    for step in range(_STEPS + 1):
        on = np.flatnonzero(is_first.any(axis=1))
        if not len(on):
            break
        seconds = rates.of(platform[on], members[on]) / speed[on]
        seconds[np.isnan(seconds)] = np.inf
        is_first[on] &= np.isfinite(seconds)
        watching = is_first[on].any(axis=1)
        on, seconds = on[watching], seconds[watching]
        with np.errstate(invalid="ignore"):
            until = np.where(np.isfinite(seconds), left[on] * seconds, np.inf)
        if step == _STEPS:
            rest = np.where(
                is_first[on], clock[on, None] + until, out_of(out[on], members.shape[1])
            )
            out[on] = rest[:, :watched]
            break
        luck, draw = (spread_over(random), spread_over(random)), on % DRAWS
        residents = (members[on] >= 0).sum(axis=1)
        rate = np.where(
            residents < most[on], hazard[np.minimum(residents - 1, len(hazard) - 1)], 0.0
        )
        with np.errstate(divide="ignore"):
            arrival = -np.log1p(-luck[0][draw]) / rate
        drawn = luck[1][draw]
        first = until.min(axis=1)
        dt = np.minimum(first, arrival)
        clock[on] += dt
        left[on] -= dt[:, None] / seconds
        over = (until <= dt[:, None] * (1 + 1e-12)) & (members[on] >= 0)
        row, column = np.nonzero(over & is_first[on])
        out[on[row], column] = clock[on[row]]
        row, column = np.nonzero(over)
        members[on[row], column], left[on[row], column] = -1, np.inf
        is_first[on[row], column], speed[on[row], column] = False, 1.0
        comes = np.flatnonzero(arrival < first)
        if len(comes):
            at = on[comes]
            free = np.argmax(members[at] < 0, axis=1)
            who = (cumulative[platform[at]] < drawn[comes, None]).sum(axis=1)
            members[at, free] = np.minimum(who, cumulative.shape[1] - 1)
            left[at, free], speed[at, free] = 1.0, 1.0
    return out


def out_of(ends: np.ndarray, width: int) -> np.ndarray:
    """Pad with columns of NaN up to the width."""
    more = np.full((len(ends), width - ends.shape[1]), np.nan)
    return np.concatenate([ends, more], axis=1)
