"""Packings whose bounds follow a law known in closed form: brute force over all of them, without a model."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.placement import GOALS, Effort
from jostle.placement.assign._assign_requests import _packed
from jostle.placement.assign._column_search import Filling, greedy_columns
from jostle.placement.assign._packing_columns import Columns, list_columns
from jostle.placement.assign._packing_problem import Checked, Problem

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
                        cost = before + self.cost(goal, place, seconds)
                        costs[after] = min(cost, costs.get(after, np.inf))
        worth = {left: float(self.worth @ (self.counts - left)) for left in costs}
        most = max(worth.values())
        return most, min(cost for left, cost in costs.items() if worth[left] == most)

    def cost(self, goal: str, place: int, seconds: list[float]) -> float:
        if goal == "most_accepted":
            return float(not self.is_used[place])
        return self.prices[place] * max(seconds) / 3600


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


@pytest.mark.parametrize("seed", range(5))
def test_what_is_listed_and_packed_is_that_of_brute_force(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, effort = Law(seed), Effort(limit_seconds=60.0)
    columns, complete = list_columns(law)
    assert complete
    assert sets_in(columns) == law.feasible()
    assert list_columns(law, len(columns) // 2)[1] is False
    for goal in GOALS:
        (best, least), start = law.best(goal), np.zeros(len(columns), int)
        found = _packed(columns, start, goal, effort, is_complete=True)
        assert fits(law, columns, found.x)
        assert (columns.worth @ found.x, found.is_optimal, found.most) == (best, True, best)
        assert columns.cost(goal) @ found.x == pytest.approx(least, rel=1e-6)
        assert found.least == pytest.approx(least, rel=1e-6)
        some = Columns(law)
        start = greedy_columns(some, np.random.default_rng(seed))
        near = _packed(some, start, goal, effort, is_complete=False)
        assert fits(law, some, near.x)
        assert sets_in(some).items() <= law.feasible().items()
        assert start @ some.worth <= some.worth @ near.x <= best <= near.most
        assert not near.is_optimal
    # Without an answer in time the greedy filling stays, and nothing is proven.
    monkeypatch.setattr("jostle.placement.assign._assign_requests.packed", lambda *_, **__: None)
    start = greedy_columns(columns, np.random.default_rng(seed))
    found = _packed(columns, start, "most_accepted", effort, is_complete=True)
    assert found.x.tolist() == start.tolist()
    assert not found.is_optimal
    assert found.most >= law.best("most_accepted")[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_filling_leaves_nobody_out_whom_a_node_has_room_for(seed: int) -> None:
    law = Law(seed, lonely=False)
    columns, feasible = list_columns(law)[0], law.feasible()
    filling = Filling(law)
    filling.fill(np.random.default_rng(seed), tight=bool(seed % 2))
    filling.clear_unsafe()
    x = filling.chosen(columns)
    assert fits(law, columns, x)
    held = np.repeat(columns.items, x, axis=0)
    left = law.counts - np.bincount(held[held >= 0], minlength=KINDS)
    place = np.repeat(columns.place, x)
    there = [[p, *items[items >= 0]] for p, items in zip(place, held, strict=True)]
    free = law.copies - np.bincount([one[0] for one in there], minlength=PLACES)
    there += [[place] for place in np.flatnonzero(free)]
    for (at, *items), kind in product(there, np.flatnonzero(left)):
        assert (int(at), *sorted(int(i) for i in (*items, kind))) not in feasible
