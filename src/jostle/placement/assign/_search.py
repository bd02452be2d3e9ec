"""Sets worth having where there are too many to list: a greedy start, then those that the prices call for.

The greedy start offers every request a few nodes at a time, all in one call of the model. Column generation
(Gilmore and Gomory 1961) then asks for sets whose worth is above the prices of the linear program over those
found so far; it looks among pairs of the most promising requests of each node and what grows from them, so
it finds many and not all.
"""

from __future__ import annotations

import numpy as np

from jostle.placement.assign._columns import Columns
from jostle.placement.assign._packing import Relaxed, relaxed
from jostle.placement.assign._problem import Problem
from jostle.placement.assign._smoothed import smoothed

OFFERS = 8  # nodes offered to each request in a round
PATIENCE = 4  # rounds without anyone placed, after which the greedy start ends
GROWN = 12  # requests by which a set is made larger
PLACES_AT_ONCE = 64  # kinds of nodes that are priced in one turn
KEPT = 1_200  # sets of one size that are kept in one turn
# Requests times kinds of nodes, and columns, up to which the linear program is solved for its prices.
MOST_EXACT_KINDS, MOST_EXACT_COLUMNS = 3_000, 6_000
MOST_ROWS = 40_000  # sets checked in one call


class Filling:
    """Nodes being filled. place: (n,) kind of each node. items: (n, most slots) kinds of requests, -1 where a
    slot is free. size: (n,)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.place = np.repeat(np.arange(problem.size[1]), problem.copies)
        widest = int(problem.slots.max(initial=1)) or 1
        self.items = np.full((len(self.place), min(widest, 64)), -1)
        self.size = np.zeros(len(self.place), int)
        self.seconds = np.full(self.items.shape, np.nan)
        self.left = problem.counts.copy()

    def put(self, place: int, items: np.ndarray, seconds: np.ndarray) -> None:
        """A set onto a node of this kind that is empty yet."""
        at = np.flatnonzero((self.place == place) & (self.size == 0))[0]
        k = len(items)
        self.items[at, :k], self.seconds[at, :k], self.size[at] = items, seconds, k
        np.subtract.at(self.left, items, 1)

    def fill(self, random: np.random.Generator, *, tight: bool) -> None:
        """Everyone who is left onto any node that takes it. tight: onto the fullest, else the emptiest."""
        problem, still = self.problem, 0
        fit = problem.permitted.sum(axis=0)
        while still < PATIENCE:
            waiting = np.repeat(np.arange(len(self.left)), self.left)
            waiting = waiting[fit[waiting] > 0]
            room = np.flatnonzero(
                self.size < np.minimum(problem.slots[self.place], self.items.shape[1])
            )
            if not len(waiting) or not len(room):
                return
            still = 0 if self._round(waiting, room, random, tight) else still + 1

    def _round(
        self, waiting: np.ndarray, room: np.ndarray, random: np.random.Generator, tight: bool
    ) -> int:
        offers = min(OFFERS, len(room))
        waiting = waiting[random.permutation(len(waiting))][: MOST_ROWS // offers]
        who = np.repeat(waiting, offers)
        # A walk over the nodes from a random start offers different ones to each request.
        start = random.integers(0, len(room), len(waiting))
        stride = random.permutation(len(room))
        at = room[stride[(start[:, None] + np.arange(offers)[None]) % len(room)]].reshape(-1)
        good = np.zeros(len(who), bool)
        seconds = np.full((len(who), self.items.shape[1]), np.nan)
        for size in np.unique(self.size[at]):
            rows = np.flatnonzero(self.size[at] == size)
            sets = np.column_stack([self.items[at[rows], :size], who[rows]])
            verdict = self.problem.check(self.place[at[rows]], sets)
            # Ground that holds nobody alone may hold two: the first one waits there for another.
            lonely = (size == 0) & ~verdict.late & self.problem.has_room(self.place[at[rows]], sets)
            good[rows] = verdict.feasible | lonely
            seconds[rows, : size + 1] = np.where(verdict.feasible[:, None], verdict.seconds, np.nan)
        return self._take(who, at, good, seconds, tight)

    def _take(
        self, who: np.ndarray, at: np.ndarray, good: np.ndarray, seconds: np.ndarray, tight: bool
    ) -> int:
        scarce = self.problem.permitted.sum(axis=0)[who]
        fullness = self.size[at] if tight else -self.size[at]
        order = np.lexsort((-fullness, scarce, -self.problem.worth[who]))
        changed, placed = np.zeros(len(self.place), bool), 0
        for row in order[good[order]]:
            node, item = at[row], who[row]
            if changed[node] or not self.left[item]:
                continue
            changed[node] = True
            self.left[item] -= 1
            self.items[node, self.size[node]] = item
            self.size[node] += 1
            self.seconds[node] = seconds[row]
            placed += 1
        return placed

    def clear_unsafe(self) -> None:
        """Take off what waits alone on ground that holds nobody alone."""
        bad = (self.size > 0) & np.isnan(self.seconds[:, 0])
        np.add.at(self.left, self.items[bad, 0], 1)
        self.items[bad], self.size[bad] = -1, 0

    def chosen(self, columns: Columns) -> np.ndarray:
        """(n,) how often each of the columns stands here; all sets here must be among them."""
        at = {
            (int(place), *(int(i) for i in items if i >= 0)): number
            for number, (place, items) in enumerate(zip(columns.place, columns.items, strict=True))
        }
        x = np.zeros(len(columns), int)
        for node in np.flatnonzero(self.size):
            items = sorted(int(i) for i in self.items[node, : self.size[node]])
            x[at[int(self.place[node]), *items]] += 1
        return x

    def columns_into(self, columns: Columns) -> None:
        for k in np.unique(self.size[self.size > 0]):
            rows = self.size == k
            columns.add(self.place[rows], self.items[rows, :k], self.seconds[rows, :k])


def generate(
    columns: Columns, random: np.random.Generator, start: Relaxed | None, turns: int = 2
) -> Relaxed:
    """Sets that the prices call for, into the columns; the prices over all of them at last."""
    prices = prices_of(columns, start)
    for _ in range(turns):
        if not _price(columns, prices, random):
            break
        prices = prices_of(columns, prices)
    return prices


def prices_of(columns: Columns, start: Relaxed | None) -> Relaxed:
    """Of the linear program over the columns; nearly so, near `start`, where that would take long."""
    kinds, places = columns.problem.size
    if kinds * places <= MOST_EXACT_KINDS and len(columns) <= MOST_EXACT_COLUMNS:
        return relaxed(columns, columns.worth)
    return smoothed(columns, columns.worth, start)


def _price(columns: Columns, prices: Relaxed, random: np.random.Generator) -> int:
    """How many sets came that are worth more than they take from others."""
    problem = columns.problem
    kinds, places = problem.size
    profit = problem.worth - prices.item_price
    some = np.sort(random.permutation(places)[:PLACES_AT_ONCE])
    few = int(min(np.sqrt(2 * MOST_ROWS / len(some)), kinds))
    # Among equal profits others are looked at in every turn.
    score = np.where(problem.permitted[some], profit[None], -np.inf)
    score = score + random.random(score.shape) * (0.05 + 0.2 * profit.std())
    best = np.argsort(-score, axis=1)[:, :few]
    first, second = np.triu_indices(few)
    place = np.repeat(some, len(first))
    items = np.column_stack([best[:, first].reshape(-1), best[:, second].reshape(-1)])
    came = _keep(columns, prices, np.repeat(some, few), best.reshape(-1, 1))[1]
    while len(items) and items.shape[1] <= int(problem.slots.max(initial=0)):
        alive, number = _keep(columns, prices, place, items)
        came += number
        gain = profit[items].sum(axis=1) - prices.place_price[place]
        order = np.lexsort((-gain, place))
        order = order[alive[order]]
        # The best few of each kind of node grow by its most promising requests.
        rank = np.arange(len(order)) - np.searchsorted(place[order], place[order])
        width = min(GROWN, few)
        order = order[rank < MOST_ROWS // (len(some) * width)]
        grown = best[np.searchsorted(some, place[order])][:, :width]
        items = np.column_stack([np.repeat(items[order], width, 0), grown.reshape(-1)])
        place = np.repeat(place[order], width)
    return came


def _keep(
    columns: Columns, prices: Relaxed, place: np.ndarray, items: np.ndarray
) -> tuple[np.ndarray, int]:
    """(which sets are feasible, or not known to be late; how many came that are worth their price)."""
    problem = columns.problem
    items = np.sort(items, axis=1)
    fits = problem.has_room(place, items)
    alive = np.zeros(len(place), bool)
    at = np.flatnonzero(fits)
    came = 0
    for start in range(0, len(at), MOST_ROWS):
        rows = at[start : start + MOST_ROWS]
        verdict = problem.check(place[rows], items[rows])
        alive[rows] = ~verdict.late
        profit = problem.worth - prices.item_price
        gain = profit[items[rows]].sum(axis=1) - prices.place_price[place[rows]]
        good = np.flatnonzero(verdict.feasible & (gain > 1e-7))
        # The best few of each kind of node: the linear program stays small.
        good = good[np.lexsort((-gain[good], place[rows][good]))]
        kind = place[rows][good]
        share = max(4, KEPT // max(1, len(np.unique(kind))))
        good = good[np.arange(len(good)) - np.searchsorted(kind, kind) < share]
        came += columns.add(place[rows][good], items[rows][good], verdict.seconds[good])
    return alive, came
