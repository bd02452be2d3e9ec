"""What every solver is told and answers: when to stop, how it ended, the joint law of two clouds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.errors import UsageError
from jostle.usage.snapshots._clouds import Cloud, median_cost

SMALL = 300_000  # entries: a matrix of more is made anew when it is asked for
INDEPENDENT = 10.0  # eps over the median cost from which a coupling is the product in all digits


@dataclass(frozen=True)
class Convergence:
    """How a solver ended.

    status: `converged`, `max_sweeps`, `stalled` (the residual fell no more: rounding), or `exact_transport`
    (eps was too small for the solver, and exact transport, its limit, was taken).
    hilbert: range of log(marginal wanted / marginal found) over the nodes, before the last sweep.
    marginal_l1: the largest sum of |found - wanted| over the nodes, after it. sweeps: how many.
    residuals: the Hilbert residual of every sweep, which a study draws.
    """

    status: str
    hilbert: float
    marginal_l1: float
    sweeps: int
    residuals: tuple[float, ...] = ()

    @property
    def converged(self) -> bool:
        """True if the solver reached its tolerance."""
        return self.status in ("converged", "exact_transport")


EXACT = Convergence("converged", 0.0, 0.0, 0)  # of a coupling that no solver was needed for


@dataclass(frozen=True)
class Stopping:
    """When a solver stops: Hilbert residual under `hilbert`, or L1 marginal error under `marginal_l1`
    (0: never by that), or after `sweeps`."""

    hilbert: float = 1e-8
    marginal_l1: float = 1e-6
    sweeps: int = 3000

    def __post_init__(self) -> None:
        if not (self.hilbert >= 0 and self.marginal_l1 >= 0 and self.sweeps >= 1):
            raise UsageError(
                f"{self} is not a valid rule for stopping", fix="Give positive numbers."
            )

    def reached(self, residual: float, error: float) -> bool:
        """Return whether a sweep with this Hilbert residual and L1 error is the last one."""
        return residual < self.hilbert or error < self.marginal_l1


@dataclass(frozen=True, eq=False)
class Potentials:
    """An entropic coupling by what its solver gave, O(n + m): log P = 2 <x, y> / eps + row + column for
    centred clouds. row: (n,), column: (m,)."""

    row: np.ndarray
    column: np.ndarray


@dataclass(frozen=True, eq=False)
class SparseLaw:
    """A coupling with few pairs, like exact transport's: mass[k] of x[i[k]] with y[j[k]]."""

    i: np.ndarray
    j: np.ndarray
    mass: np.ndarray


@dataclass(frozen=True, eq=False)
class Coupling:
    """The joint law of two clouds. x: (n,) atoms, y: (m,) atoms. eps: 0 for exact transport.

    law: the logarithm of the coupling (n, m), or what it follows from in less memory.
    """

    x: Cloud
    y: Cloud
    law: np.ndarray | Potentials | SparseLaw
    eps: float
    convergence: Convergence

    @property
    def log_coupling(self) -> np.ndarray:
        """The coupling as the solver left it, computed anew, (n, m)."""
        if isinstance(self.law, Potentials):
            logs = inner_products(self.x, self.y, self.eps)
            logs += self.law.row[:, None]
            logs += self.law.column
            return logs
        if isinstance(self.law, SparseLaw):
            logs = np.full((len(self.x), len(self.y)), -np.inf)
            logs[self.law.i, self.law.j] = np.log(self.law.mass)
            return logs
        return self.law

    @property
    def matrix(self) -> np.ndarray:
        """The coupling with exactly the marginals of the clouds, (n, m), kept if it is small. What an
        unfinished solver leaves over is made good by scaling down rows and columns that have too much and
        adding the product of what is missing (Altschuler, Weed, Rigollet, NeurIPS 2017, Alg. 2)."""
        if len(self.x) * len(self.y) <= SMALL:
            return self._small_matrix
        return self._rounded()

    @cached_property
    def pairs(self) -> SparseLaw:
        """The pairs that have mass: for sparse couplings."""
        if isinstance(self.law, SparseLaw):
            return self.law
        matrix = self.matrix
        i, j = np.nonzero(matrix > 0)
        return SparseLaw(i, j, matrix[i, j])

    @cached_property
    def cross(self) -> np.ndarray:
        """Covariance of x with y, (d, d)."""
        x, y = self.x.atoms - self.x.mean, self.y.atoms - self.y.mean
        if isinstance(self.law, SparseLaw):
            return (x[self.law.i] * self.law.mass[:, None]).T @ y[self.law.j]
        return x.T @ (self.matrix @ y)

    @cached_property
    def _small_matrix(self) -> np.ndarray:
        return self._rounded()

    def _rounded(self) -> np.ndarray:
        mu, nu = self.x.weights, self.y.weights
        mass = np.exp(self.log_coupling)
        for axis, wanted in ((1, mu), (0, nu)):
            sums = mass.sum(axis=axis)
            share = np.divide(wanted, sums, out=np.ones_like(sums), where=sums > wanted)
            mass *= np.expand_dims(share, axis)
        missing = np.maximum(mu - mass.sum(axis=1), 0)
        short = np.maximum(nu - mass.sum(axis=0), 0)
        if missing.sum() > 0 and short.sum() > 0:
            mass += np.outer(missing, short / short.sum())
        return mass

    @cached_property
    def median_cost(self) -> float:
        """Median of C, in the units of the costs; eps / median_cost says how blurred the coupling is."""
        return median_cost(self.x, self.y)

    @property
    def eps_over_median(self) -> float:
        """Divide eps by the median cost; NaN where the clouds are single atoms."""
        return self.eps / self.median_cost if self.median_cost > 0 else float("nan")

    @property
    def warning(self) -> str | None:
        """A sentence that a reader must know before using it; None without one."""
        if self.eps_over_median > INDEPENDENT:
            return (
                f"the coupling is numerically independent: eps is {self.eps_over_median:.3g} times "
                "the median cost"
            )
        if not self.convergence.converged and self.convergence.marginal_l1 > 1e-4:
            c = self.convergence
            return f"not converged ({c.status}): L1 marginal error {c.marginal_l1:.1e}"
        return None


def inner_products(x: Cloud, y: Cloud, eps: float) -> np.ndarray:
    """Return (n, m) 2 <x, y> / eps of centred clouds: -C/eps of squared distances up to a term for each
    row and each column, which do not change the coupling.

    An atom a million deviations away costs 1e12, of which double precision would keep too little of what
    tells its neighbours apart.
    """
    return (2 / eps) * ((x.atoms - x.mean) @ (y.atoms - y.mean).T)


def check_eps(eps: float) -> float:
    """Return the same eps. Raises UsageError where it is not above 0 and finite."""
    if not (eps > 0 and np.isfinite(eps)):
        raise UsageError(f"eps {eps} is not above 0 and finite")
    return eps


def edge_eps(x: Cloud, y: Cloud, eps: float, unit: str = "spread") -> float:
    """Compute eps of one edge in squared units of the atoms.

    unit: `spread` (times the mean squared distance to the centroid, averaged over both ends), `median`
    (times the median cost) or `absolute` (one eps for all edges, as the paper has it). Where both ends
    are single atoms any eps gives the same coupling, and 1 is returned.
    """
    if unit == "absolute":
        return eps
    if unit == "spread":
        scaled = eps * (x.spread + y.spread) / 2
    elif unit == "median":
        scaled = eps * median_cost(x, y)
    else:
        raise UsageError(f"eps_unit {unit!r} is not known", fix="One of spread, median, absolute.")
    return scaled if scaled > 0 else 1.0
