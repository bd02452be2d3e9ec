"""Exact optimal transport, by POT's network simplex: the bridge's limit for small eps."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np

from jostle.errors import needing_extras
from jostle.usage.snapshots._clouds import Cloud, squared_distances
from jostle.usage.solvers._coupling import Convergence, Coupling, SparseLaw

STEPS = 2_000_000  # of the simplex


@cache
def has_transport() -> bool:
    """Return whether Python Optimal Transport is installed."""
    return find_spec("ot") is not None


def transport(x: Cloud, y: Cloud, *, eps: float = 0.0) -> Coupling:
    """Return the exact optimal transport plan; eps: that which was too small for the entropic one, if any.

    Raises MissingExtra.
    """
    with needing_extras():
        import ot
    cost = squared_distances(x.atoms, y.atoms)
    plan, log = ot.emd(x.weights, y.weights, cost, numItermax=STEPS, log=True)
    i, j = np.nonzero(plan > 0)
    mass = plan[i, j]
    status = (
        "max_sweeps" if log["warning"] is not None else "exact_transport" if eps else "converged"
    )
    error = float(np.abs(np.bincount(i, mass, len(x)) - x.weights).sum())
    pairs = SparseLaw(i, j, mass / mass.sum())
    return Coupling(x, y, pairs, eps, Convergence(status, 0.0, error, 0))
