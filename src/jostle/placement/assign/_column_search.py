"""Sets worth having where there are too many to list: those of greedy fillings of the fleet.

A filling offers every request a few nodes at a time, all in one call of the model.
"""

from __future__ import annotations

import numpy as np

from jostle.placement.assign._packing_columns import Columns
from jostle.placement.assign._packing_problem import Problem

OFFERS = 8  # nodes offered to each request in a round
PATIENCE = 4  # rounds without anyone placed, after which a filling ends
FILLINGS = 12  # in different orders, half onto the fullest nodes first
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

    def fill(self, random: np.random.Generator, *, tight: bool) -> None:
        """Put each remaining request on any node that takes it. tight: onto the fullest, else the
        emptiest."""
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
        """Return (n,) how often each of the columns stands here; all sets here must be among them."""
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


def greedy_columns(columns: Columns, random: np.random.Generator) -> np.ndarray:
    """Fill the fleet several times, each in another order, and add the sets that come of it.

    Returns (columns,) how often each stands in the filling of the most worth.
    """
    fillings = []
    for number in range(FILLINGS):
        filling = Filling(columns.problem)
        filling.fill(random, tight=number % 2 == 0)
        filling.clear_unsafe()
        filling.columns_into(columns)
        fillings.append(filling)
    return max((one.chosen(columns) for one in fillings), key=lambda x: float(x @ columns.worth))
