"""Many requests at once: which go where, and how far that is from the best.

Exact set packing where all feasible sets can be listed; else greedy fillings of the fleet, and one exact
round over the sets that they came upon and those that were listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle.placement._reasons import REASONS
from jostle.placement.assign._assignment import Assignment, Placed, Unplaced
from jostle.placement.assign._column_search import greedy_columns
from jostle.placement.assign._packing import TOLERANCE, Relaxed, packed, relaxed
from jostle.placement.assign._packing_columns import MOST_COLUMNS, Columns, list_columns
from jostle.placement.assign._packing_problem import Problem
from jostle.placement.queries._requests import Request
from jostle.placement.sets._fleet_bounds import FleetBounds

WORDS = tuple(REASONS)
MOST_EXACT = 3_000  # columns that are packed in whole numbers at once


@dataclass(frozen=True)
class Effort:
    """Limits on how long to search.

    limit_seconds: of the program in whole numbers.
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
    start = greedy_columns(columns, np.random.default_rng(effort.seed))
    progress(2, 3, float("nan"))
    solution = _packed(columns, start, goal, effort, is_complete=complete)
    progress(3, 3, float("nan"))
    return _answer(problem, columns, solution, requests, fleet, goal)


def _packed(
    columns: Columns, start: np.ndarray, goal: str, effort: Effort, *, is_complete: bool
) -> _Solution:
    """Pack the columns for the most worth and, among equals, for the least cost.

    columns: sets of requests that fit on one kind of node. start: (columns,) how often the best filling
    takes each; it stays if the integer program finds nothing better.
    is_complete: whether the columns are all sets that there are.
    """
    worth, cost = columns.worth, columns.cost(goal)
    gain = worth - _share_of_costs(columns, cost) * cost
    program = relaxed(columns, gain)
    at, are_all = _worth_keeping(columns, gain, program, start)
    found = packed(columns.take(at), gain[at], limit_seconds=effort.limit_seconds)
    x = start
    if found is not None and found.x @ gain[at] > start @ gain:
        x = np.zeros(len(columns), int)
        x[at] = found.x
    is_optimal = found is not None and found.is_optimal and are_all and is_complete
    reached, most = float(worth @ x), columns.problem.most_worth()
    if is_optimal:
        most = reached
    elif is_complete:
        # Costs take less than the least worth off: rounded down, the bound is one of the worth.
        most = min(most, _reachable(columns, relaxed(columns, worth).value))
    return _Solution(x, most, float(cost @ x) if is_optimal else 0.0, is_optimal)


def _share_of_costs(columns: Columns, cost: np.ndarray) -> float:
    """Weight costs so that those of a whole packing are worth less than the least request."""
    most = np.zeros(columns.problem.size[1])
    np.maximum.at(most, columns.place, cost)
    whole = float(columns.problem.copies @ most)
    return 0.4 * float(columns.problem.worth.min()) / whole if whole > 0 else 0.0


def _reachable(columns: Columns, value: float) -> float:
    """Round a bound on the worth down to what whole requests can reach."""
    unit = columns.problem.worth
    return float(np.floor(value + TOLERANCE)) if (unit == np.round(unit)).all() else value


def _worth_keeping(
    columns: Columns, gain: np.ndarray, program: Relaxed, x: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Find the columns that a packing with at least the gain of x can hold, by their reduced costs.

    Returns their numbers, and whether those are all. If there are too many, the columns of x and of the
    linear program stay, and the best of the others, the larger first among equals.
    """
    can = program.value + program.reduced >= float(x @ gain) - TOLERANCE
    at = np.flatnonzero(can)
    if len(at) <= MOST_EXACT:
        return at, True
    has = (x > 0) | (program.shares > TOLERANCE)
    order = np.lexsort((-gain, -np.round(program.reduced, 6), ~has))
    return np.sort(order[: max(MOST_EXACT, int(has.sum()))]), False


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
    """Return each with why: crowded out where a set with it is feasible, else what rules it out most
    often."""
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
