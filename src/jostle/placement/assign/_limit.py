"""How much worth any assignment could place at most, where its sets are too many to list.

Lagrange's relaxation of a packing (Fisher, The Lagrangian relaxation method for solving integer programming
problems, Management Science 1981): at any prices of requests, no assignment is worth more than the prices of
all requests and, for every node, the most that a set there is worth above its prices. Which sets a node can
hold is relaxed to those of which no pair is late, nor, as far as that was looked up, any larger part. What
that finds bounds the linear program over all sets, too.
"""

from __future__ import annotations

import numpy as np

from jostle.placement.assign._problem import Problem

MOST_SINGLES = 1_000_000  # requests on a kind of node whose bounds are asked for
MOST_PAIRS = 300_000  # pairs of requests on a kind of node, or of workloads on a platform
FEWEST_STEPS, MOST_STEPS = 20, 400  # of a search for the best set of one kind of node
MOST_LOOKED_AT = 100_000_000  # requests in all steps, about
MOST_SEARCHES = 2_000
MOST_DEEP = 3_000  # requests times kinds of nodes, up to which larger sets than pairs are looked at
MOST_LARGER = 300  # sets of two and more whose bounds beside one more are asked for
MOST_KEPT = 20_000_000  # pairs of kinds of requests that are remembered
ROUNDS = 24
LEAST_PROFIT = 1e-9


class PairLimits:
    """Which kinds of requests, and which pairs of them, are not known to be late on a kind of node.

    alive: (places, kinds) bool, of single ones. Pairs are looked at beside the tenants that are there where
    they are few, else by workload and platform alone, as far as they are not too many.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.alive = problem.permitted.copy()
        kinds, places = problem.size
        if kinds * places <= MOST_SINGLES:
            place, kind = np.nonzero(self.alive)
            verdict = problem.check(place, kind[:, None])
            fits = problem.has_room(place, kind[:, None])
            self.alive[place, kind] = fits & ~verdict.late
        self.looks_deep = kinds * places <= MOST_DEEP
        self.is_exact = places * kinds * kinds <= 2 * MOST_PAIRS
        self._beside: dict[tuple[int, int], np.ndarray] = {}
        self._rows: dict[tuple[int, int], np.ndarray] = {}
        self._larger: dict[tuple[object, ...], np.ndarray] = {}
        self.workloads, self.place_in = np.unique(problem.codes, return_inverse=True)
        if not self.is_exact:
            self._pairs_of_workloads()

    def _pairs_of_workloads(self) -> None:
        problem, u = self.problem, len(self.workloads)
        first, second = np.triu_indices(u)
        levels = sorted(set(problem.level.tolist()))
        every = np.repeat(problem.platform, problem.copies)
        platforms, copies = np.unique(every, return_counts=True)
        most = MOST_PAIRS // (len(first) * len(levels))
        for p in platforms[np.argsort(-copies, kind="stable")][:most].tolist():
            for level in levels:
                pairs = self.workloads[np.column_stack([first, second])]
                seconds, _ = problem.sets.of(np.full(len(pairs), p), pairs, problem.levels[level])
                table = np.zeros((u, u))
                table[first, second], table[second, first] = seconds[:, 0], seconds[:, 1]
                # What is not bounded may be, beside more: it is taken for kept.
                self._beside[p, level] = np.where(np.isfinite(table), table, 0.0)

    def kept_beside(self, t: int, kind: int) -> np.ndarray:
        """(kinds,) bool: who may be beside this one on this kind of node, as far as pairs tell."""
        row = self._rows.get((t, kind))
        if row is None:
            row = self._row(t, kind)
            if self.problem.size[0] * (len(self._rows) + 1) <= MOST_KEPT:
                self._rows[t, kind] = row
        return row

    def _row(self, t: int, kind: int) -> np.ndarray:
        problem, fine = self.problem, self.alive[t].copy()
        if self.is_exact:
            at = np.flatnonzero(fine)
            pairs = np.sort(np.column_stack([np.full(len(at), kind), at]), axis=1)
            place = np.full(len(at), t)
            fine[at] = problem.has_room(place, pairs) & ~problem.check(place, pairs).late
            return fine
        p, level = int(problem.platform[t]), problem.level
        if (p, int(level[kind])) in self._beside:
            at = self.place_in
            fine &= self._beside[p, int(level[kind])][at[kind]][at] <= problem.limit[t, kind]
            for other in np.unique(level):
                theirs = self._beside[p, int(other)][:, at[kind]][at]
                fine &= (level != other) | (theirs <= problem.limit[t])
        if problem.has_apart:
            fine &= problem.compatible[kind]
        fine[kind] &= problem.counts[kind] > 1
        return fine

    def kept_with(self, t: int, taken: list[int]) -> np.ndarray | None:
        """(kinds,) bool: who may be beside all of these, and the tenants; None where that is not looked up
        any more."""
        problem = self.problem
        here = problem.tenants[t] >= 0
        taken = sorted(taken, key=lambda kind: int(problem.codes[kind]))
        people = [*problem.tenants[t, here].tolist(), *problem.codes[taken].tolist()]
        held = [*problem.tenant_limit[t, here].tolist(), *problem.limit[t, taken].tolist()]
        levels = [*problem.tenant_level[t, here].tolist(), *problem.level[taken].tolist()]
        fine = np.ones(len(self.place_in), bool)
        for level in {*levels, *problem.level.tolist()}:
            seconds = self._seconds_with(int(problem.platform[t]), people, level)
            if seconds is None:
                return None
            bounds = seconds[self.place_in]
            for place, (mine, most) in enumerate(zip(levels, held, strict=True)):
                if mine == level:
                    fine &= bounds[:, place] <= most
            fine &= (problem.level != level) | (bounds[:, -1] <= problem.limit[t])
        return fine

    def _seconds_with(self, platform: int, people: list[int], level: int) -> np.ndarray | None:
        """(workloads, people + 1) bounds of these people and of one more, by who that is."""
        key = (platform, level, *people)
        if key not in self._larger:
            if len(self._larger) >= MOST_LARGER:
                return None
            u, sets = len(self.workloads), self.problem.sets
            members = np.column_stack([np.tile(people, (u, 1)), self.workloads])
            seconds, _ = sets.of(np.full(u, platform), members, self.problem.levels[level])
            self._larger[key] = np.where(np.isfinite(seconds), seconds, 0.0)
        return self._larger[key]


def worth_at_most(problem: Problem, price: np.ndarray, reached: float) -> float:
    """price: (kinds,) of the requests to begin with, such as those of a linear program over some sets.
    reached: what was placed."""
    limits, best, scale = PairLimits(problem), float("inf"), 1.0
    kinds, places = problem.size
    rounds = max(1, min(ROUNDS, MOST_SEARCHES // max(1, places)))
    steps = int(np.clip(MOST_LOOKED_AT // (kinds * places * rounds), FEWEST_STEPS, MOST_STEPS))
    counts = problem.counts.astype(float)
    for _ in range(rounds):
        profit, load, value = problem.worth - price, np.zeros(kinds), float(counts @ price)
        for t in range(places):
            gain, chosen = _heaviest(limits, t, profit, steps)
            value += problem.copies[t] * gain
            np.add.at(load, chosen, float(problem.copies[t]))
        if value < best - 1e-9:
            best = value
        else:
            scale *= 0.7
        if best <= reached + 1e-9:
            break
        slope = counts - load
        slope[(price <= 0) & (slope > 0)] = 0.0
        size = float(slope @ slope)
        if size <= 0:
            break
        # Polyak's step towards what was reached, which is a bound from below.
        price = np.maximum(0.0, price - scale * (value - reached) / size * slope)
    return min(best, problem.most_worth())


def _heaviest(
    limits: PairLimits, t: int, profit: np.ndarray, steps: int
) -> tuple[float, list[int]]:
    """(no set that this kind of node can hold is worth more, the best that was found)."""
    alive = np.flatnonzero(limits.alive[t] & (profit > LEAST_PROFIT))
    order = alive[np.argsort(-profit[alive], kind="stable")]
    search = _Search(limits, t, profit, steps)
    search.grow(order, int(limits.problem.slots[t]), 0.0, [])
    return max(search.best, search.beyond), search.chosen


class _Search:
    """Branch and bound for the heaviest multiset of which no part is known to be late."""

    def __init__(self, limits: PairLimits, place: int, profit: np.ndarray, steps: int) -> None:
        self.limits, self.place, self.profit, self.left = limits, place, profit, steps
        self.counts = limits.problem.counts
        self.best = self.beyond = 0.0
        self.chosen: list[int] = []

    def grow(self, order: np.ndarray, room: int, gained: float, taken: list[int]) -> None:
        """order: kinds that may still come, the most profitable first."""
        if gained > self.best:
            self.best, self.chosen = gained, list(taken)
        if not room:
            return
        for place, kind in enumerate(order.tolist()):
            mine = gained + float(self.profit[kind])
            enough = max(self.best, self.beyond) + LEAST_PROFIT
            if gained + room * float(self.profit[kind]) <= enough:
                return
            left = order[place:]
            left = left[self.limits.kept_beside(self.place, kind)[left]]
            if self.limits.looks_deep and taken and room > 1 and len(left):
                together = self.limits.kept_with(self.place, [*taken, kind])
                left = left if together is None else left[together[left]]
            if len(left) and left[0] == kind and taken.count(kind) + 1 >= self.counts[kind]:
                left = left[1:]
            most = mine + self._most(left, room - 1)
            if most <= enough:
                continue
            if not self.left:
                self.beyond = most  # what is not looked at is not more than this
                continue
            self.left -= 1
            self.grow(left, room - 1, mine, [*taken, kind])

    def _most(self, order: np.ndarray, room: int) -> float:
        """That so many of these would bring, whoever may be beside whom."""
        first = order[:room]
        times = np.minimum(self.counts[first], room)
        return float(np.repeat(self.profit[first], times)[:room].sum())
