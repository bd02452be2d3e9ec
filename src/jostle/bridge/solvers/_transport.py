"""Exact optimal transport, by POT's network simplex: the bridge's limit for small eps."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.solvers._coupling import Convergence, Coupling, SparseLaw
from jostle.errors import MissingExtra

STEPS = 2_000_000  # of the simplex


def pot() -> Any:
    """Python Optimal Transport. Raises MissingExtra."""
    try:
        import ot
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "fit") from None
    return ot


@cache
def has_transport() -> bool:
    """Whether Python Optimal Transport is installed."""
    return find_spec("ot") is not None


def wasserstein(x: Cloud, y: Cloud) -> float:
    """W2: the root of the least mean squared distance over all couplings, by POT's network simplex."""
    cost = squared_distances(x.atoms, y.atoms)
    value = pot().emd2(x.weights, y.weights, cost, numItermax=STEPS)
    return float(np.sqrt(max(float(value), 0.0)))


def duals(x: Cloud, y: Cloud) -> np.ndarray:
    """(n,) the potentials of x in the dual of exact transport. Raises MissingExtra."""
    cost = squared_distances(x.atoms, y.atoms)
    _, log = pot().emd(x.weights, y.weights, cost, numItermax=STEPS, log=True)
    return np.asarray(log["u"])


def transport(x: Cloud, y: Cloud, *, eps: float = 0.0) -> Coupling:
    """The exact optimal transport plan; eps: that which was too small for the entropic one, if any.

    Raises MissingExtra.
    """
    cost = squared_distances(x.atoms, y.atoms)
    plan, log = pot().emd(x.weights, y.weights, cost, numItermax=STEPS, log=True)
    i, j = np.nonzero(plan > 0)
    mass = plan[i, j]
    status = (
        "max_sweeps" if log["warning"] is not None else "exact_transport" if eps else "converged"
    )
    error = float(np.abs(np.bincount(i, mass, len(x)) - x.weights).sum())
    pairs = SparseLaw(i, j, mass / mass.sum())
    return Coupling(x, y, pairs, eps, Convergence(status, 0.0, error, 0))
