"""Set packing over columns in whole numbers, by HiGHS.

Source: Balas and Padberg, Set partitioning: a survey (SIAM Review 1976); Huangfu and Hall, Parallelizing the
dual revised simplex method (2018), HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.errors import needing_extras
from jostle.placement.assign._packing_columns import Columns

TOLERANCE = 1e-6
AT_ONCE = 2_000  # columns that come into the linear program in one turn


@dataclass(frozen=True)
class Packed:
    """A packing: x (n,) how often each column, and whether none of these columns gains more."""

    x: np.ndarray
    is_optimal: bool


@dataclass(frozen=True)
class Relaxed:
    """The packing as a linear program: its value, and for each of n columns its share and its reduced cost.

    reduced: (n,) by how much the value falls if the column is taken once, 0 or less.
    """

    value: float
    shares: np.ndarray
    reduced: np.ndarray


def packed(columns: Columns, gain: np.ndarray, *, limit_seconds: float) -> Packed | None:
    """Pack for the most gain in whole numbers.

    gain: (n,) of each column.
    limit_seconds: after which the best packing so far is taken.
    Returns None if none was found in time.
    """
    if not len(columns):
        return Packed(np.zeros(0, int), True)
    optimize, problem = solver(), columns.problem
    upper = np.concatenate([problem.counts, problem.copies]).astype(float)
    result = optimize.milp(
        -gain,
        integrality=np.ones(len(gain)),
        bounds=optimize.Bounds(0, np.inf),
        constraints=[optimize.LinearConstraint(packing_matrix(columns), -np.inf, upper)],
        options={"time_limit": limit_seconds, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None
    return Packed(np.round(result.x).astype(int), result.status == 0)


def relaxed(columns: Columns, gain: np.ndarray) -> Relaxed:
    """Solve the packing as if columns could be shared out.

    Of many columns only some are in the program at first, and then those whose reduced cost calls for them
    (sifting: Bixby et al., Very large-scale linear programming, Operations Research 1992).
    gain: (n,) of each column.
    """
    problem, n = columns.problem, len(columns)
    kinds, places = problem.size
    if not n:
        return Relaxed(0.0, np.zeros(0), np.zeros(0))
    active = np.arange(n)
    if n > AT_ONCE:
        size = (columns.items >= 0).sum(axis=1)
        order = np.lexsort((-gain, columns.place))
        rank = np.arange(n) - np.searchsorted(columns.place[order], columns.place[order])
        best = order[rank < max(20, AT_ONCE // places // 4)]
        active = np.union1d(best, np.flatnonzero(size == 1))
    limits = np.concatenate([problem.counts, problem.copies]).astype(float)
    while True:
        matrix = packing_matrix(columns.take(active))
        program = solver().linprog(-gain[active], A_ub=matrix, b_ub=limits, bounds=(0, None))
        price = -program.ineqlin.marginals
        paid = np.append(price[:kinds], 0.0)[columns.items].sum(axis=1)
        reduced = gain - paid - price[kinds + columns.place]
        reduced[active] = np.minimum(reduced[active], 0.0)
        wanted = np.flatnonzero(reduced > 1e-7)
        if not len(wanted):
            shares = np.zeros(n)
            shares[active] = program.x
            return Relaxed(-float(program.fun), shares, reduced)
        active = np.union1d(active, wanted[np.argsort(-reduced[wanted], kind="stable")[:AT_ONCE]])


def packing_matrix(columns: Columns) -> Any:
    """Count the requests and nodes of each kind that a column takes. Returns a sparse (kinds + places, n)."""
    from scipy import sparse

    kinds, places = columns.problem.size
    row, slot = np.nonzero(columns.items >= 0)
    up = np.concatenate([columns.items[row, slot], kinds + columns.place])
    across = np.concatenate([row, np.arange(len(columns))])
    values = np.ones(len(up))
    return sparse.csr_matrix((values, (up, across)), shape=(kinds + places, len(columns)))


def solver() -> Any:
    """Import SciPy's optimisers. Raises MissingExtra."""
    with needing_extras():
        from scipy import optimize
    return optimize
