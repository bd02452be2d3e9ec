"""Many requests at once: which go where, and how far that is from the best.

Exact set packing where all feasible sets can be listed; else greedy fillings, and one exact round over the
sets that they came upon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.placement._reasons import REASONS
from jostle.placement.asked._requests import Request
from jostle.placement.assign._answer import Assignment, Placed, Unplaced
from jostle.placement.assign._columns import MOST_COLUMNS, Columns, list_columns
from jostle.placement.assign._packing import TOLERANCE, Packed, packed
from jostle.placement.assign._problem import Problem
from jostle.placement.assign._search import greedy_columns
from jostle.placement.sets._fleet_bounds import FleetBounds
from jostle.progress import Progress, no_progress

WORDS = tuple(REASONS)


@dataclass(frozen=True)
class Effort:
    """How long to search.

    limit_seconds: of each of the two programs in whole numbers.
    seed: of the order in which greedy fillings offer requests.
    list_up_to: number of sets up to which all are listed.
    """

    limit_seconds: float = 2.0
    seed: int = 0
    list_up_to: int = MOST_COLUMNS


@dataclass(frozen=True)
class _Solution:
    """How often each column is taken, x (columns,).

    most: no assignment places more worth.
    least: none of that worth costs less.
    """

    x: np.ndarray
    most: float
    least: float
    is_optimal: bool


def assign_requests(
    requests: Sequence[Request],
    fleet: FleetBounds,
    goal: str,
    effort: Effort,
    progress: Progress = no_progress,
) -> Assignment:
    """Place as much worth as finds a place, at the least of what the goal names.

    Raises UsageError for an unknown goal, MissingExtra without SciPy.
    """
    problem = Problem(requests, fleet)
    nobody = Columns(problem)
    nobody.cost(goal)
    if min(problem.size) == 0:
        solution = _Solution(np.zeros(0, int), 0.0, 0.0, True)
        return _answer(problem, nobody, solution, requests, fleet, goal)
    columns, complete = list_columns(problem, effort.list_up_to)
    progress(1, 3, float("nan"))
    # The whole list may be too much for the time that a program has: the greedy sets are a start.
    start = greedy_columns(columns, np.random.default_rng(effort.seed), clear=not complete)
    progress(2, 3, float("nan"))
    solution = _packed(columns, start, goal, effort, is_complete=complete)
    progress(3, 3, float("nan"))
    return _answer(problem, columns, solution, requests, fleet, goal)


def _packed(
    columns: Columns, start: np.ndarray, goal: str, effort: Effort, *, is_complete: bool
) -> _Solution:
    """Pack the columns for the most worth, then for the least cost of as much worth.

    start: (columns,) the best of the greedy fillings, which stays where the programs find nothing better.
    is_complete: whether the columns are all sets that there are.
    """
    worth, cost = columns.worth, columns.cost(goal)
    most_worth = columns.problem.most_worth()
    x = start
    first = packed(columns, worth, limit_seconds=effort.limit_seconds)
    if first is not None and first.x @ worth > x @ worth:
        x = first.x
    reached = float(x @ worth)
    most = min(most_worth, first.at_most) if is_complete and first is not None else most_worth
    most = max(reached, _reachable(columns, most))
    second = packed(columns, -cost, at_least=(worth, reached), limit_seconds=effort.limit_seconds)
    x, least = _cheaper(x, second, cost)
    proven = second is not None and second.is_optimal and is_complete
    is_optimal = proven and reached >= most - TOLERANCE
    return _Solution(x, most, least if is_complete else 0.0, is_optimal)


def _cheaper(x: np.ndarray, second: Packed | None, cost: np.ndarray) -> tuple[np.ndarray, float]:
    """Choose the cheaper of two packings; the bound from below on the cost, 0 if there is none."""
    if second is None:
        return x, 0.0
    least = max(0.0, -second.at_most)
    return (second.x if cost @ second.x < cost @ x else x), least


def _reachable(columns: Columns, value: float) -> float:
    """Round a bound on the worth down to what whole requests can reach."""
    unit = columns.problem.worth
    return float(np.floor(value + TOLERANCE)) if (unit == np.round(unit)).all() else value


def _answer(
    problem: Problem,
    columns: Columns,
    solution: _Solution,
    requests: Sequence[Request],
    fleet: FleetBounds,
    goal: str,
) -> Assignment:
    placed = _placed(problem, columns, solution.x)
    there = {one.request for one in placed}
    left = [request for request in requests if request.name not in there]
    return Assignment(
        goal,
        fleet.sets.standard,
        (*placed, *_unplaced(problem, columns, left, fleet)),
        worth=float(columns.worth @ solution.x),
        worth_at_most=solution.most,
        cost=float(columns.cost(goal) @ solution.x),
        cost_at_least=solution.least,
        is_optimal=solution.is_optimal,
        nodes_used=len({one.node for one in placed}),
    )


def _placed(problem: Problem, columns: Columns, x: np.ndarray) -> list[Placed]:
    """Name the requests and nodes of a packing."""
    names, nodes = [list(n) for n in problem.names], [list(n) for n in problem.nodes]
    placed: list[Placed] = []
    order = sorted(
        np.flatnonzero(x), key=lambda at: (int(columns.place[at]), tuple(columns.items[at]))
    )
    for at in np.repeat(np.array(order, int), x[order] if len(order) else 0):
        place = int(columns.place[at])
        node = nodes[place].pop(0)
        for item, seconds in zip(columns.items[at], columns.seconds[at], strict=True):
            if item < 0:
                continue
            limit = float(problem.limit[place, item])
            placed.append(
                Placed(
                    names[item].pop(0),
                    problem.kinds[item].workload,
                    node,
                    problem.places[place].platform,
                    float(seconds),
                    limit if np.isfinite(limit) else None,
                )
            )
    return placed


def _unplaced(
    problem: Problem, columns: Columns, requests: Sequence[Request], fleet: FleetBounds
) -> tuple[Unplaced, ...]:
    """Each with why: crowded out where a set with it is feasible, else what rules it out most often."""
    kind_of = {name: kind for kind, names in enumerate(problem.names) for name in names}
    could = np.zeros(problem.size[0] + 1, bool)
    could[columns.items.reshape(-1)] = True
    why: dict[int, str] = {}
    rows = []
    for request in sorted(requests, key=lambda r: r.name):
        kind = kind_of.get(request.name, -1)
        if kind not in why or kind < 0:
            if kind >= 0 and could[kind]:
                why[kind] = "crowded_out"
            else:
                reasons = fleet.assess(request).reason
                codes = np.bincount(reasons, minlength=len(WORDS))
                why[kind] = WORDS[int(codes.argmax())] if len(reasons) else "no_node"
        reason = "crowded_out" if why[kind] == "ok" else why[kind]
        rows.append(Unplaced(request.name, request.workload, reason))
    return tuple(rows)
