"""Many requests at once: which go where, how good that is, and what stands in the way of more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.placement._reasons import REASONS
from jostle.placement.asked._requests import Request
from jostle.placement.assign._answer import Assignment, Binding, Placed, Unplaced
from jostle.placement.assign._columns import MOST_COLUMNS, Columns, list_columns
from jostle.placement.assign._improve import improve
from jostle.placement.assign._limit import worth_at_most
from jostle.placement.assign._packing import (
    TOLERANCE,
    Relaxed,
    least_cost,
    packed,
    relaxed,
    rounded,
)
from jostle.placement.assign._problem import Problem
from jostle.placement.assign._search import Filling, generate, prices_of
from jostle.placement.sets._fleet_bounds import FleetBounds
from jostle.progress import Progress, no_progress

TURNS = 10  # of column generation, each with an assignment made of it
MOST_EXACT = 4_000  # columns that are packed in whole numbers at once
COUNTED = ("most_accepted", "fewest_platforms")  # goals whose cost is a number of nodes
MOST_BINDING = 5
WORDS = tuple(REASONS)


@dataclass(frozen=True)
class Effort:
    """limit_seconds: for a program in whole numbers. seed: of the search. rounds: of improving. list_up_to:
    sets to list."""

    limit_seconds: float = 2.0
    seed: int = 0
    rounds: int = 60
    list_up_to: int = MOST_COLUMNS


@dataclass(frozen=True)
class _Solution:
    """x: (columns,) how often each. most: no assignment places more worth. least: none of that worth costs
    less."""

    x: np.ndarray
    most: float
    least: float
    is_optimal: bool
    prices: Relaxed


def assign_requests(
    requests: Sequence[Request],
    fleet: FleetBounds,
    goal: str,
    effort: Effort,
    progress: Progress = no_progress,
) -> Assignment:
    """As much worth as finds a place, and of all ways to do so one with the least of what the goal names.

    Raises UsageError for an unknown goal, MissingExtra without SciPy.
    """
    problem = Problem(requests, fleet)
    nobody = Columns(problem)
    nobody.cost(goal)
    if min(problem.size) == 0:
        solution = _Solution(np.zeros(0, int), 0.0, 0.0, True, relaxed(nobody, nobody.worth))
        return _answer(problem, nobody, solution, requests, fleet, goal)
    columns, complete = list_columns(problem, effort.list_up_to)
    progress(1, TURNS + 2, float("nan"))
    search = _exact if complete else _searched
    solution = search(columns, goal, effort, progress)
    progress(TURNS + 2, TURNS + 2, float("nan"))
    return _answer(problem, columns, solution, requests, fleet, goal)


def _exact(columns: Columns, goal: str, effort: Effort, _: Progress) -> _Solution:
    """Over all feasible sets: optimal, unless they are too many for the whole numbers."""
    worth = columns.worth
    prices = relaxed(columns, worth)
    x, proven = _most(columns, prices, rounded(columns, prices.x, worth), effort)
    return _cheapest(columns, x, prices, goal, effort, proven=proven)


def _most(
    columns: Columns, prices: Relaxed, x: np.ndarray, effort: Effort
) -> tuple[np.ndarray, bool]:
    """(as much worth as can be found from x on, whether it is proven that there is no more)."""
    worth = columns.worth
    enough = _reachable(columns, prices.value)
    random = np.random.default_rng(effort.seed)
    x = improve(columns, x, worth, prices, random, rounds=effort.rounds, enough=enough)
    if x @ worth >= enough - TOLERANCE:
        return x, True
    few, at = _worth_keeping(columns, prices, float(x @ worth))
    if len(few) > MOST_EXACT:
        return x, False
    packing = packed(few, worth[at], limit_seconds=effort.limit_seconds)
    if packing is None:
        return x, False
    better = packing.x @ worth[at] > x @ worth
    return _among(columns, at, packing.x) if better else x, packing.is_optimal


def _among(columns: Columns, at: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(columns,) how often each, of some of which it is known."""
    every = np.zeros(len(columns), int)
    every[at] = x
    return every


def _reachable(columns: Columns, value: float) -> float:
    """The most that whole numbers can make of the value of the linear program."""
    unit = columns.problem.worth
    return float(np.floor(value + TOLERANCE)) if (unit == np.round(unit)).all() else value


def _worth_keeping(columns: Columns, prices: Relaxed, reached: float) -> tuple[Columns, np.ndarray]:
    """Columns that an assignment at least as good as what was reached can hold: the others' reduced costs say
    that with any of them less worth is placed."""
    reduced = prices.over(columns.worth, columns.place, columns.items)
    at = np.flatnonzero(prices.value + np.minimum(reduced, 0) >= reached - TOLERANCE)
    return columns.take(at), at


def _cheapest(
    columns: Columns, x: np.ndarray, prices: Relaxed, goal: str, effort: Effort, *, proven: bool
) -> _Solution:
    """Of the assignments with as much worth as x, one with the least cost."""
    worth, cost = columns.worth, columns.cost(goal)
    reached = float(x @ worth)
    if goal == "least_latest_finish":
        x, done = _earliest(columns, x, cost, reached, effort)
        least = float(cost[x > 0].max(initial=0.0)) if done and proven else 0.0
        return _Solution(x, prices.value, least, proven and done, prices)
    few, at = _worth_keeping(columns, prices, reached)
    least = least_cost(few, worth[at], cost[at], reached)
    if goal in COUNTED:
        least = float(np.ceil(least - TOLERANCE))
    scale = float(cost @ x) or 1.0
    if cost @ x > least + 1e-9 * scale:
        packing = None
        if len(few) <= MOST_EXACT:
            options = {"at_least": (worth[at], reached), "limit_seconds": effort.limit_seconds}
            packing = packed(few, -cost[at] / scale, **options)
        if packing is not None:
            if cost[at] @ packing.x < cost @ x:
                x = _among(columns, at, packing.x)
            return _Solution(x, prices.value, least, proven and packing.is_optimal, prices)
        # Never worth for cost: all costs together weigh less than the least worth there is.
        mixed = worth - cost / scale * 0.4 * float(columns.problem.worth.min())
        mixed_prices, random = relaxed(columns, mixed), np.random.default_rng(effort.seed)
        enough = mixed_prices.value
        x = improve(columns, x, mixed, mixed_prices, random, rounds=effort.rounds, enough=enough)
    done = cost @ x <= least + 1e-9 * scale
    return _Solution(x, prices.value, least, proven and bool(done), prices)


def _earliest(
    columns: Columns, x: np.ndarray, cost: np.ndarray, reached: float, effort: Effort
) -> tuple[np.ndarray, bool]:
    """The least latest finish by bisection: which of the columns' finishes is enough for the worth."""
    worth, done = columns.worth, True
    finishes = np.unique(cost)
    low, high = 0, int(np.searchsorted(finishes, cost[x > 0].max(initial=0.0)))
    while low < high:
        middle = (low + high) // 2
        at = np.flatnonzero(cost <= finishes[middle])
        few = columns.take(at)
        prices = relaxed(few, worth[at])
        if prices.value < reached - TOLERANCE:
            low = middle + 1
            continue
        counts, proven = _most(few, prices, rounded(few, prices.x, worth[at]), effort)
        if counts @ worth[at] >= reached - TOLERANCE:
            x, high = _among(columns, at, counts), middle
        else:
            done, low = done and proven, middle + 1
    return x, done


def _searched(columns: Columns, goal: str, effort: Effort, progress: Progress) -> _Solution:
    """Over sets that a greedy start and the prices of the linear program bring up."""
    problem, random = columns.problem, np.random.default_rng(effort.seed)
    most = problem.most_worth()
    columns.clear()
    for tight in (True, False):
        filling = Filling(problem)
        filling.fill(random, tight=tight)
        filling.clear_unsafe()
        filling.columns_into(columns)
    x, prices = np.zeros(len(columns), int), None
    for turn in range(TURNS):
        progress(turn + 1, TURNS + 2, float("nan"))
        prices = generate(columns, random, prices)
        new = _filled(columns, rounded(columns, prices.x, columns.worth), random)
        x = np.append(x, np.zeros(len(columns) - len(x), int))
        x = new if new @ columns.worth > x @ columns.worth else x
        if x @ columns.worth >= most - TOLERANCE:
            break
    worth, prices = columns.worth, prices_of(columns, prices)
    x = improve(columns, x, worth, prices, random, rounds=effort.rounds, enough=prices.value)
    if goal != "most_accepted":  # there, whose nodes they are does not matter
        x = _cheapest(columns, x, prices, goal, effort, proven=False).x
    # The linear program over a part of all sets bounds nothing; its prices do, over all sets that there are.
    reached = float(x @ columns.worth)
    if reached < most - TOLERANCE:
        most = _reachable(columns, worth_at_most(problem, prices.item_price, reached))
    return _Solution(x, most, 0.0, reached >= most - TOLERANCE and goal == "most_accepted", prices)


def _filled(columns: Columns, x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """With everyone who is left where there is room; the columns gain the sets that come of it."""
    filling = Filling(columns.problem)
    for at in np.flatnonzero(x):
        items = columns.items[at][columns.items[at] >= 0]
        for _ in range(x[at]):
            filling.put(int(columns.place[at]), items, columns.seconds[at, : len(items)])
    filling.fill(random, tight=True)
    filling.clear_unsafe()
    filling.columns_into(columns)
    return filling.chosen(columns)


def _answer(
    problem: Problem,
    columns: Columns,
    solution: _Solution,
    requests: Sequence[Request],
    fleet: FleetBounds,
    goal: str,
) -> Assignment:
    names, nodes = [list(n) for n in problem.names], [list(n) for n in problem.nodes]
    placed: list[Placed] = []
    taken = np.flatnonzero(solution.x)
    order = sorted(taken, key=lambda at: (int(columns.place[at]), tuple(columns.items[at])))
    for at in order:
        place = int(columns.place[at])
        for _ in range(solution.x[at]):
            node = nodes[place].pop(0)
            for item, seconds in zip(columns.items[at], columns.seconds[at], strict=True):
                if item >= 0:
                    limit = float(problem.limit[place, item])
                    kind = problem.kinds[item]
                    placed.append(
                        Placed(
                            names[item].pop(0),
                            kind.workload,
                            node,
                            problem.places[place].platform,
                            float(seconds),
                            limit if np.isfinite(limit) else None,
                        )
                    )
    cost = columns.cost(goal)
    reached = float(cost[solution.x > 0].max(initial=0.0))
    if goal != "least_latest_finish":
        reached = float(cost @ solution.x)
    there = {one.request for one in placed}
    return Assignment(
        goal,
        fleet.sets.standard,
        (
            *placed,
            *_unplaced(problem, columns, [r for r in requests if r.name not in there], fleet),
        ),
        worth=float(columns.worth @ solution.x),
        worth_at_most=solution.most,
        cost=reached,
        cost_at_least=solution.least,
        is_optimal=solution.is_optimal,
        nodes_used=len({one.node for one in placed}),
        binding=_binding(problem, solution.prices),
    )


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


def _binding(problem: Problem, prices: Relaxed) -> tuple[Binding, ...]:
    """Kinds of nodes of which one more would place most."""
    order = np.argsort(-prices.place_price, kind="stable")[:MOST_BINDING]
    return tuple(
        Binding(problem.nodes[at][0], problem.places[at].platform, float(prices.place_price[at]))
        for at in order
        if prices.place_price[at] > TOLERANCE
    )
