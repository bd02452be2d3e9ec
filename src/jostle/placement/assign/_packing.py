"""Set packing over columns by HiGHS: the linear program, its prices, and whole numbers.

Source: Balas and Padberg, Set partitioning: a survey (SIAM Review 1976); Huangfu and Hall, Parallelizing the
dual revised simplex method (2018), HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.errors import needing_extras
from jostle.placement.assign._columns import Columns

TOLERANCE = 1e-6
AT_ONCE = 2_000  # columns that come into a linear program in one turn


@dataclass(frozen=True)
class Relaxed:
    """The linear program. value: its optimum. x: (n,) share of each column. item_price, place_price: what
    one more request of a kind, one more node of a kind, would add."""

    value: float
    x: np.ndarray
    item_price: np.ndarray
    place_price: np.ndarray

    def over(self, gain: np.ndarray, place: np.ndarray, items: np.ndarray) -> np.ndarray:
        """(n,) how much more sets gain than what they take costs by these prices."""
        paid = np.append(self.item_price, 0.0)[items].sum(axis=1)
        return gain - paid - self.place_price[place]


@dataclass(frozen=True)
class Packed:
    """Whole numbers of each column. is_optimal: proven, over these columns."""

    x: np.ndarray
    is_optimal: bool


def relaxed(columns: Columns, gain: np.ndarray) -> Relaxed:
    """The most gain, (n,) of each column, if columns could be shared out.

    Where there are many columns, of few at first, and then of those that their prices call for, until there
    are none (sifting: Bixby et al., Very large-scale linear programming, Operations Research 1992).
    """
    problem, n = columns.problem, len(columns)
    kinds, places = problem.size
    if not n:
        return Relaxed(0.0, np.zeros(0), np.zeros(kinds), np.zeros(places))
    active = np.arange(n)
    if n > AT_ONCE:
        size = (columns.items >= 0).sum(axis=1)
        order = np.lexsort((-gain, columns.place))
        rank = np.arange(n) - np.searchsorted(columns.place[order], columns.place[order])
        active = np.union1d(
            order[rank < max(20, AT_ONCE // places // 4)], np.flatnonzero(size == 1)
        )
    while True:
        relaxation = _solved(columns.take(active), gain[active])
        reduced = relaxation.over(gain, columns.place, columns.items)
        reduced[active] = 0.0
        wanted = np.flatnonzero(reduced > 1e-7)
        if not len(wanted):
            break
        active = np.union1d(active, wanted[np.argsort(-reduced[wanted], kind="stable")[:AT_ONCE]])
    x = np.zeros(n)
    x[active] = relaxation.x
    return Relaxed(relaxation.value, x, relaxation.item_price, relaxation.place_price)


def _solved(columns: Columns, gain: np.ndarray) -> Relaxed:
    optimize, problem = solver(), columns.problem
    limits = np.concatenate([problem.counts, problem.copies]).astype(float)
    program = optimize.linprog(
        -gain, A_ub=packing_matrix(columns), b_ub=limits, bounds=(0, None), method="highs"
    )
    price = -program.ineqlin.marginals
    kinds = problem.size[0]
    return Relaxed(-float(program.fun), program.x, price[:kinds], price[kinds:])


def packed(
    columns: Columns,
    gain: np.ndarray,
    *,
    room: tuple[np.ndarray, np.ndarray] | None = None,
    at_least: tuple[np.ndarray, float] | None = None,
    limit_seconds: float,
) -> Packed | None:
    """The most gain in whole numbers. room: how many requests and nodes of each kind there are; all by
    default. at_least: (another gain (n,), how much of it there must be). None where none was found in time.
    """
    problem = columns.problem
    if not len(columns):
        return Packed(np.zeros(0, int), True)
    upper = np.concatenate(room or (problem.counts, problem.copies)).astype(float)
    rules: list[tuple[Any, Any, Any]] = [(packing_matrix(columns), -np.inf, upper)]
    if at_least is not None:
        rules.append((at_least[0][None], at_least[1] - TOLERANCE, np.inf))
    optimize = solver()
    result = optimize.milp(
        -gain,
        integrality=np.ones(len(gain)),
        bounds=optimize.Bounds(0, np.inf),
        constraints=[optimize.LinearConstraint(*rule) for rule in rules],
        options={"time_limit": limit_seconds, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None
    return Packed(np.round(result.x).astype(int), result.status == 0)


def least_cost(columns: Columns, worth: np.ndarray, cost: np.ndarray, reached: float) -> float:
    """A bound from below on the cost of so much worth, by the linear program; 0 where it gives none."""
    if not len(columns):
        return 0.0
    optimize, problem = solver(), columns.problem
    from scipy import sparse

    upper = np.concatenate([problem.counts, problem.copies, [TOLERANCE - reached]])
    matrix = sparse.vstack([packing_matrix(columns), sparse.csr_matrix(-worth[None])])
    result = optimize.linprog(cost, A_ub=matrix, b_ub=upper, bounds=(0, None), method="highs")
    return float(result.fun) if result.status == 0 else 0.0


def rounded(columns: Columns, x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """(n,) whole numbers: the columns with the largest shares first, as long as they fit."""
    problem = columns.problem
    left, free = problem.counts.copy(), problem.copies.copy()
    taken = np.zeros(len(columns), int)
    order = np.lexsort((-gain, -np.round(x, 6)))
    for at in order[x[order] > TOLERANCE]:
        items = columns.items[at]
        items = items[items >= 0]
        needed = np.bincount(items, minlength=len(left))
        while free[columns.place[at]] > 0 and taken[at] < np.ceil(x[at] - TOLERANCE):
            if (needed > left).any():
                break
            left -= needed
            free[columns.place[at]] -= 1
            taken[at] += 1
    return taken


def packing_matrix(columns: Columns) -> Any:
    """((kinds + places), n) how many requests and nodes of each kind a column takes."""
    from scipy import sparse

    kinds, places = columns.problem.size
    row, slot = np.nonzero(columns.items >= 0)
    up = np.concatenate([columns.items[row, slot], kinds + columns.place])
    across = np.concatenate([row, np.arange(len(columns))])
    values = np.ones(len(up))
    return sparse.csr_matrix((values, (up, across)), shape=(kinds + places, len(columns)))


def solver() -> Any:
    """Raises MissingExtra."""
    with needing_extras():
        from scipy import optimize
    return optimize
