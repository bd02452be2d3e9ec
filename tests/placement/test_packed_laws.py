"""Packings whose bounds follow a law known in closed form: brute force over all of them, without a model."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.placement import GOALS, Effort
from jostle.placement.assign._assign import _exact, _filled, _searched
from jostle.placement.assign._columns import Columns, list_columns
from jostle.placement.assign._improve import PATIENCE, improve
from jostle.placement.assign._limit import PairLimits, _heaviest, worth_at_most
from jostle.placement.assign._packing import Packed, least_cost, relaxed
from jostle.placement.assign._problem import Checked, Problem
from jostle.placement.assign._search import Filling, generate
from jostle.placement.assign._smoothed import smoothed
from jostle.progress import no_progress

KINDS, PLACES = 4, 3


class Law(Problem):
    """A request takes its time alone, times one and what each other one adds. On the last kind of node nobody
    is bounded alone, and everybody beside somebody else."""

    def __init__(self, seed: int, lonely: bool = True) -> None:
        random = np.random.default_rng(seed)
        self.lonely = lonely
        self.kinds, self.places = [None] * KINDS, [None] * PLACES  # type: ignore[list-item]
        self.counts, self.copies = random.integers(1, 3, KINDS), random.integers(1, 3, PLACES)
        self.copies[-1] = 1
        self.worth = random.integers(1, 4, KINDS).astype(float)
        self.stay, self.prices = np.full(KINDS, np.nan), random.uniform(1, 9, PLACES)
        self.is_used, self.slots = np.array([False, True, False]), np.array([4, 2, 2])
        self.permitted = random.random((PLACES, KINDS)) < 0.8
        self.permitted[0] = True
        self.has_apart, self.compatible = bool(seed % 2), np.ones((KINDS, KINDS), bool)
        self.compatible[0, 1] = self.compatible[1, 0] = False
        self._free, self._memory = np.full(PLACES, 6.0), random.integers(1, 4, KINDS).astype(float)
        self.alone, self.press = random.uniform(1, 5, KINDS), random.uniform(0, 0.5, KINDS)
        self.limit = self.alone * random.uniform(1, 2, (PLACES, KINDS))
        self.codes, self.platform = np.arange(KINDS)[::-1].copy(), np.arange(PLACES)
        self.tenants = np.where(self.is_used, self.codes[0], -1)[:, None]
        self.tenant_limit = np.full((PLACES, 1), 1.5 * self.alone[0])
        self.tenant_level = np.zeros((PLACES, 1), int)
        self.levels, self.level = [None], np.zeros(KINDS, int)
        self.sets = SimpleNamespace(of=self.of)  # type: ignore[assignment]

    def seconds(self, place: int, items: tuple[int, ...]) -> list[float]:
        if self.lonely and place == PLACES - 1 and len(items) == 1:
            return [np.inf]
        whole = sum(self.press[i] for i in items)
        return [self.alone[i] * (1 + whole - self.press[i]) for i in items]

    def of(self, platform: np.ndarray, members: np.ndarray, _: Any) -> tuple[np.ndarray, None]:
        rows = zip(platform, (self.codes[members]).tolist(), strict=True)  # codes are turned round
        return np.array([self.seconds(int(p), tuple(items)) for p, items in rows]), None

    def judged(self, place: int, items: list[int]) -> tuple[bool, bool, list[float]]:
        """(feasible, late, seconds) of a set beside the tenant, if there is one."""
        tenant = [0] if self.is_used[place] else []
        seconds = self.seconds(place, (*tenant, *items))
        limits = [*self.tenant_limit[place, : len(tenant)], *self.limit[place, items]]
        late = any(most < s < np.inf for s, most in zip(seconds, limits, strict=True))
        return max(seconds) < np.inf and not late, late, seconds[len(tenant) :]

    def check(self, place: np.ndarray, items: np.ndarray) -> Checked:
        fits, seconds = self.has_room(place, items), np.full(items.shape, np.inf)
        feasible, late = np.zeros((2, len(items)), bool)
        for at in np.flatnonzero(fits):
            found = self.judged(int(place[at]), items[at].tolist())
            feasible[at], late[at], seconds[at] = found
        return Checked(feasible, late, seconds)

    def feasible(self) -> dict[tuple[int, ...], list[float]]:
        """{(kind of node, kinds of requests): seconds} of all sets."""
        found = {}
        for place, k in product(range(PLACES), (1, 2, 3, 4)):
            for items in combinations_with_replacement(range(KINDS), k):
                few = all(items.count(i) <= self.counts[i] for i in items)
                few &= sum(self._memory[i] for i in items) <= self._free[place]
                few &= not (self.has_apart and 0 in items and 1 in items)
                keeps, _, seconds = self.judged(place, list(items))
                if few and k <= self.slots[place] and self.permitted[place, list(items)].all():
                    found |= {(place, *items): seconds} if keeps else {}
        return found

    def best(self, goal: str) -> tuple[float, float]:
        """(the most worth, the least cost of so much), node by node by what is left of the requests."""
        costs, feasible = {tuple(self.counts.tolist()): 0.0}, self.feasible()
        for node in np.repeat(np.arange(PLACES), self.copies).tolist():
            for left, before in list(costs.items()):
                for (place, *items), seconds in feasible.items():
                    after = tuple(n - items.count(i) for i, n in enumerate(left))
                    if place == node and min(after) >= 0:
                        cost = self.cost(goal, place, seconds)
                        cost = max(before, cost) if goal == "least_latest_finish" else before + cost
                        costs[after] = min(cost, costs.get(after, np.inf))
        worth = {left: float(self.worth @ (self.counts - left)) for left in costs}
        most = max(worth.values())
        return most, min(cost for left, cost in costs.items() if worth[left] == most)

    def cost(self, goal: str, place: int, seconds: list[float]) -> float:
        if goal in ("most_accepted", "fewest_platforms"):
            return float(not self.is_used[place])
        if goal == "least_cost":
            return self.prices[place] * max(seconds) / 3600
        return max(seconds) if goal == "least_latest_finish" else sum(seconds)


def sets_in(columns: Columns) -> dict[tuple[int, ...], list[float]]:
    rows = zip(columns.place, columns.items, columns.seconds, strict=True)
    return {
        (int(p), *(int(i) for i in items if i >= 0)): seconds[items >= 0].tolist()
        for p, items, seconds in rows
    }


def fits(law: Law, columns: Columns, x: np.ndarray) -> bool:
    items = np.repeat(columns.items, x, axis=0)
    taken = np.bincount(items[items >= 0], minlength=KINDS)
    nodes = np.bincount(np.repeat(columns.place, x), minlength=PLACES)
    return bool((taken <= law.counts).all() and (nodes <= law.copies).all())


def cost_of(columns: Columns, x: np.ndarray, goal: str) -> float:
    cost = columns.cost(goal)
    return float(cost[x > 0].max(initial=0.0) if goal == "least_latest_finish" else cost @ x)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_listed_and_packed_is_that_of_brute_force(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, effort = Law(seed), Effort(limit_seconds=60.0)
    columns, complete = list_columns(law)
    assert complete
    assert sets_in(columns) == law.feasible()
    assert list_columns(law, len(columns) // 2)[1] is False
    for goal in GOALS:
        best, least = law.best(goal)
        found = _exact(columns, goal, effort, no_progress)
        assert fits(law, columns, found.x)
        assert (columns.worth @ found.x, found.is_optimal) == (best, True)
        assert found.most >= best - 1e-6
        assert cost_of(columns, found.x, goal) == pytest.approx(least, rel=1e-6)
        assert found.least == pytest.approx(least, rel=1e-6) or found.least < least
        some = Columns(law)
        near = _searched(some, goal, effort, no_progress)
        assert fits(law, some, near.x)
        assert sets_in(some).items() <= law.feasible().items()
        assert some.worth @ near.x == best
        assert near.most >= best - 1e-6
        assert cost_of(some, near.x, goal) >= least - 1e-6
        # Where so many columns are not packed at once nothing is proven, and worth still comes first.
        monkeypatch.setattr("jostle.placement.assign._assign.MOST_EXACT", 0)
        found = _exact(columns, goal, effort, no_progress)
        monkeypatch.undo()
        assert columns.worth @ found.x == best
        if goal != "least_latest_finish":
            assert cost_of(columns, found.x, goal) == pytest.approx(least, rel=1e-6)
    monkeypatch.setattr("jostle.placement.assign._assign.packed", lambda *_, **__: None)
    found = _exact(columns, "most_accepted", Effort(rounds=0), no_progress)
    assert fits(law, columns, found.x)
    assert not found.is_optimal or columns.worth @ found.x == pytest.approx(found.most)
    prices = relaxed(columns, columns.worth)
    best, least = law.best("least_total_time")
    bound = least_cost(columns, columns.worth, columns.cost("least_total_time"), best)
    assert 0 < bound <= least + 1e-6
    assert least_cost(columns, columns.worth, columns.cost("least_total_time"), 99.0) == 0
    assert prices.value >= best - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_prices_over_sets_that_were_searched_for_are_those_over_all(seed: int) -> None:
    law, random = Law(seed), np.random.default_rng(seed)
    every, some = list_columns(law)[0], Columns(law)
    filling = Filling(law)
    filling.fill(random, tight=bool(seed % 2))
    filling.clear_unsafe()
    filling.columns_into(some)
    whole, found = relaxed(every, every.worth), generate(some, random, None, turns=20)
    assert found.value == pytest.approx(whole.value)
    assert whole.value - 1e-6 <= smoothed(every, every.worth).value <= 1.3 * whole.value
    # No prices of requests, however chosen, give a limit below what all sets allow.
    limits = [worth_at_most(law, price, 0.0) for price in (found.item_price, np.zeros(KINDS))]
    assert min(limits) >= whole.value - 1e-6
    assert max(limits) < law.most_worth() or whole.value == pytest.approx(law.most_worth())
    started = smoothed(every, every.worth, whole).value
    assert whole.value - 1e-6 <= started <= 1.3 * whole.value
    assert worth_at_most(law, found.item_price, whole.value) <= law.most_worth()


def test_sets_grow_until_every_slot_is_taken() -> None:
    """Eight requests that do not mind each other, for eight slots."""
    law = Law(0, lonely=False)
    law.press[:], law.limit[:], law.tenant_limit[:], law._free[:] = 0.0, 99.0, 99.0, 99.0
    law.permitted[:], law.counts, law.copies = True, np.full(KINDS, 2), np.ones(PLACES, int)
    found = generate(Columns(law), np.random.default_rng(0), None, turns=20)
    assert found.value == pytest.approx(law.counts @ law.worth) == law.most_worth()


@pytest.mark.parametrize("seed", range(5))
def test_the_heaviest_set_of_a_node_is_that_of_brute_force(seed: int) -> None:
    """Where every part was looked up, and memory is enough; with no steps left the limit holds as well."""
    law = Law(seed)
    law._free[:] = 99.0
    limits, profit = PairLimits(law), np.random.default_rng(seed).uniform(-0.5, 2, KINDS)
    for place in range(PLACES - 1):
        mine = [items for at, *items in law.feasible() if at == place]
        best = max((float(profit[items].sum()) for items in mine), default=0.0)
        gain, chosen = _heaviest(limits, place, profit, 400)
        assert gain == pytest.approx(max(best, 0.0))
        assert profit[chosen].sum() == pytest.approx(gain)
        for steps in (0, 1, 2):
            assert _heaviest(limits, place, profit, steps)[0] >= best - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_who_is_left_goes_wherever_there_is_room(seed: int) -> None:
    law, random = Law(seed, lonely=False), np.random.default_rng(seed)
    columns, feasible = list_columns(law)[0], law.feasible()
    for start in (np.zeros(len(columns), int), (np.arange(len(columns)) == seed).astype(int)):
        x = _filled(columns, start, random)
        assert fits(law, columns, x)
        assert x @ columns.worth >= start @ columns.worth
        held = np.repeat(columns.items, x, axis=0)
        left = law.counts - np.bincount(held[held >= 0], minlength=KINDS)
        place = np.repeat(columns.place, x)
        there = [[p, *items[items >= 0]] for p, items in zip(place, held, strict=True)]
        free = law.copies - np.bincount([one[0] for one in there], minlength=PLACES)
        there += [[place] for place in np.flatnonzero(free)]
        for (at, *items), kind in product(there, np.flatnonzero(left)):
            assert (int(at), *sorted(int(i) for i in (*items, kind))) not in feasible


def test_improving_ends_with_enough_or_out_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    law, calls = Law(0), []

    def none_in_time(*_: Any, **__: Any) -> None:
        calls.append(1)

    monkeypatch.setattr("jostle.placement.assign._improve.packed", none_in_time)
    columns = list_columns(law)[0]
    prices, x = relaxed(columns, columns.worth), np.zeros(len(columns), int)
    for enough, most, tried in ((0.0, 99, 0), (1.0, 3, 3), (1.0, 99, PATIENCE)):
        random = np.random.default_rng(0)
        same = improve(columns, x, columns.worth, prices, random, rounds=most, enough=enough)
        assert not same.any()
        assert len(calls) == tried
        calls.clear()

    def as_it_was(few: Columns, gain: np.ndarray, **__: Any) -> Packed:
        calls.append(1)
        return Packed(np.zeros(len(few), int), True)

    monkeypatch.setattr("jostle.placement.assign._improve.packed", as_it_was)
    random = np.random.default_rng(0)
    improve(columns, x, columns.worth, prices, random, rounds=99, enough=1.0)
    assert len(calls) == PATIENCE
