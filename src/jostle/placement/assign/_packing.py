"""Set packing over columns in whole numbers, by HiGHS.

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


@dataclass(frozen=True)
class Packed:
    """A packing: x (n,) how often each column.

    at_most: no packing of these columns gains more.
    is_optimal: whether none gains more than x.
    """

    x: np.ndarray
    at_most: float
    is_optimal: bool


def packed(
    columns: Columns,
    gain: np.ndarray,
    *,
    at_least: tuple[np.ndarray, float] | None = None,
    limit_seconds: float,
) -> Packed | None:
    """Pack for the most gain in whole numbers.

    gain: (n,) of each column.
    at_least: another gain (n,), and how much of it there must be.
    limit_seconds: after which the best packing so far is taken.
    Returns None if none was found in time.
    """
    if not len(columns):
        return Packed(np.zeros(0, int), 0.0, True)
    optimize, problem = solver(), columns.problem
    upper = np.concatenate([problem.counts, problem.copies]).astype(float)
    rules: list[tuple[Any, Any, Any]] = [(packing_matrix(columns), -np.inf, upper)]
    if at_least is not None:
        rules.append((at_least[0][None], at_least[1] - TOLERANCE, np.inf))
    # HiGHS compares gains with absolute tolerances: they are brought to about one.
    scale = float(np.abs(gain).max()) or 1.0
    result = optimize.milp(
        -gain / scale,
        integrality=np.ones(len(gain)),
        bounds=optimize.Bounds(0, np.inf),
        constraints=[optimize.LinearConstraint(*rule) for rule in rules],
        options={"time_limit": limit_seconds, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None
    x = np.round(result.x).astype(int)
    is_optimal = result.status == 0
    bound: float | None = result.mip_dual_bound
    at_most = float("inf") if bound is None or not np.isfinite(bound) else -bound * scale
    return Packed(x, float(gain @ x) if is_optimal else at_most, is_optimal)


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
