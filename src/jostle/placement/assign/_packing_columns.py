"""Columns of the packing: a kind of node with a feasible set of kinds of requests, each kept once."""

from __future__ import annotations

import numpy as np

from jostle.errors import UsageError
from jostle.placement.assign._packing_problem import Problem

GOALS = ("most_accepted", "least_cost")
MOST_COLUMNS = 400_000  # of a full list, past which sets are searched for instead
SECONDS_PER_HOUR = 3600.0


class Columns:
    """Sets of requests that fit on a kind of node, as columns of a packing problem. place: (n,) kinds of
    nodes. items: (n, k) ascending kinds of requests, -1 at the end. worth: (n,). seconds: (n, k) the bound of
    each, NaN where there is no item."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.place = np.zeros(0, int)
        self.items = np.zeros((0, 1), int)
        self.seconds = np.zeros((0, 1))
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.place)

    def add(self, place: np.ndarray, items: np.ndarray, seconds: np.ndarray) -> int:
        """Add sets of requests that fit on a kind of node, each with its bounds; skip those already here.
        Returns how many were new. Shapes as in the class, in any order of the items."""
        order = np.argsort(items, axis=1, kind="stable")
        items = np.take_along_axis(items, order, 1)
        seconds = np.take_along_axis(seconds, order, 1)
        keys = np.ascontiguousarray(np.column_stack([place, items]).astype(np.int32))
        fresh = []
        for number, row in enumerate(keys):
            key = row.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(number)
        if fresh:
            width = max(self.items.shape[1], items.shape[1])
            self.place = np.concatenate([self.place, place[fresh]])
            self.items = np.concatenate(
                [_wide(self.items, width, -1), _wide(items[fresh], width, -1)]
            )
            self.seconds = np.concatenate(
                [_wide(self.seconds, width, np.nan), _wide(seconds[fresh], width, np.nan)]
            )
        return len(fresh)

    def take(self, at: np.ndarray) -> Columns:
        """Keep only these columns, for reading."""
        few = Columns(self.problem)
        few.place, few.items, few.seconds = self.place[at], self.items[at], self.seconds[at]
        return few

    @property
    def worth(self) -> np.ndarray:
        """Worth of all requests in each column, (n,)."""
        return np.append(self.problem.worth, 0.0)[self.items].sum(axis=1)

    def cost(self, goal: str) -> np.ndarray:
        """Price each column: nodes that were empty, or money. Raises UsageError. Returns (n,)."""
        if goal == "most_accepted":
            return np.where(self.problem.is_used[self.place], 0.0, 1.0)
        if goal == "least_cost":
            stay = np.append(self.problem.stay, np.nan)[self.items]
            longest = np.nanmax(np.where(np.isnan(stay), self.seconds, stay), axis=1, initial=0.0)
            return self.problem.prices[self.place] * longest / SECONDS_PER_HOUR
        raise UsageError(f"assign for {goal!r}", fix=f"Known: {', '.join(GOALS)}.")


def list_columns(problem: Problem, most: int = MOST_COLUMNS) -> tuple[Columns, bool]:
    """Return (all feasible columns, True), or some and False where there are more sets than `most` to look
    at.

    Larger sets are made of smaller ones: one in which somebody is late stays so with any more (Agrawal and
    Srikant, Fast algorithms for mining association rules, VLDB 1994).
    """
    columns = Columns(problem)
    place, item = (axis.astype(int) for axis in np.nonzero(problem.permitted))
    items, left = item[:, None], most
    while len(items):
        left -= len(items)
        if left < 0:
            return columns, False
        verdict = problem.check(place, items)
        some = verdict.feasible
        columns.add(place[some], items[some], verdict.seconds[some])
        if items.shape[1] > 2 and not some.any():
            break  # sets of this size are nowhere calibrated, or nowhere kept
        alive = ~verdict.late & problem.has_room(place, items)
        wider = _wider(problem, place[alive], items[alive], 8 * most)
        if wider is None:
            return columns, False
        place, items = wider
    return columns, True


def _wider(
    problem: Problem, place: np.ndarray, items: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the sets with one more kind of which all smaller ones are among these; None where there are
    more than `most` to try."""
    kinds, k = problem.size[0], items.shape[1]
    order = np.lexsort((*items.T[::-1], place))
    place, items = place[order], items[order]
    # Two sets that differ in the last kind alone make one with both (or a set and itself with it twice).
    prefix = np.column_stack([place, items[:, :-1]])
    start = np.flatnonzero(np.append(True, (prefix[1:] != prefix[:-1]).any(axis=1)))
    end = np.append(start[1:], len(items))
    group_end = np.repeat(end, end - start)
    later = group_end - np.arange(len(items))
    if int(later.sum()) > most:
        return None
    first = np.repeat(np.arange(len(items)), later)
    second = first + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    sets = np.column_stack([items[first], items[second, -1]])
    where = place[first]
    fits = problem.has_room(where, sets)
    where, sets = where[fits], sets[fits]
    if k > 1 and problem.size[1] * float(kinds) ** k < 2**62:
        known = _keys(place, items, kinds)  # ascending, as the sets are
        for left_out in range(k - 1):
            keys = _keys(where, np.delete(sets, left_out, axis=1), kinds)
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            here = known[at] == keys
            where, sets = where[here], sets[here]
    return where, sets


def _keys(place: np.ndarray, items: np.ndarray, kinds: int) -> np.ndarray:
    key = place.astype(np.int64)
    for column in items.T:
        key = key * kinds + column
    return key


def _wide(rows: np.ndarray, width: int, filler: float) -> np.ndarray:
    missing = np.full((len(rows), width - rows.shape[1]), filler, rows.dtype)
    return np.column_stack([rows, missing])
