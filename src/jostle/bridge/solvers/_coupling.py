"""What every solver is told and answers: when to stop, how it ended, the joint law of two clouds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.bridge.problem._clouds import Cloud, median_cost
from jostle.errors import UsageError

SMALL = 300_000  # entries: a matrix of more is made anew when it is asked for, in parts
BLOCK = 2_000_000  # entries of such a part
INDEPENDENT = 10.0  # eps over the median cost from which a coupling is the product in all digits


@dataclass(frozen=True)
class Convergence:
    """How a solver ended.

    status: `converged`, `max_sweeps`, `stalled` (the residual fell no more: rounding), or `exact_transport`
    (eps was too small for the solver, and exact transport, its limit, was taken).
    hilbert: range of log(marginal wanted / marginal found) over the nodes, before the last sweep.
    marginal_l1: the largest sum of |found - wanted| over the nodes, after it. sweeps: how many.
    residuals: the Hilbert residual of every sweep.
    """

    status: str
    hilbert: float
    marginal_l1: float
    sweeps: int
    residuals: tuple[float, ...] = ()

    @property
    def converged(self) -> bool:
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

    def repeat(self, sweep: Callable[[], tuple[float, float]]) -> Convergence:
        """Do sweeps, each of which returns its Hilbert residual and L1 error, until one of them is good."""
        residuals: list[float] = []
        status, residual, error = "max_sweeps", np.inf, np.inf
        while status == "max_sweeps" and len(residuals) < self.sweeps:
            residual, error = sweep()
            residuals.append(residual)
            if self.reached(residual, error):
                status = "converged"
        return Convergence(status, residual, error, len(residuals), tuple(residuals))

    def reached(self, residual: float, error: float) -> bool:
        """Whether a sweep with this Hilbert residual and L1 error is the last one."""
        return residual < self.hilbert or error < self.marginal_l1


@dataclass(frozen=True, eq=False)
class Potentials:
    """An entropic coupling by what its solver found, O(n + m): log P = 2 <x, y> / eps - row - column + f + g
    for centred clouds. row, f: (n,), column, g: (m,)."""

    row: np.ndarray
    column: np.ndarray
    f: np.ndarray
    g: np.ndarray

    def log_rows(self, x: Cloud, y: Cloud, eps: float, part: slice) -> np.ndarray:
        """(b, m) log P of some rows."""
        logs = inner_products(x, y, eps, part)
        logs -= self.row[part, None]
        logs -= self.column
        logs += self.f[part, None]
        logs += self.g
        return logs


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
        """(n, m) as the solver left it, made anew."""
        return self._log_rows(slice(0, len(self.x)))

    @property
    def matrix(self) -> np.ndarray:
        """(n, m) with exactly the marginals of the clouds (`rows` says how), kept where it is small."""
        return self._small_matrix if self._is_small else self.rows(slice(0, len(self.x)))

    def rows(self, part: slice) -> np.ndarray:
        """(b, m) some rows of the matrix.

        What an unfinished solver leaves over is made good by scaling down rows and columns that have too
        much and adding the product of what is missing (Altschuler, Weed, Rigollet, NeurIPS 2017, Alg. 2).
        """
        down, across, missing, where = self._rounding
        mass = np.exp(self._log_rows(part))
        mass *= down[part, None]
        mass *= across
        if missing.any():
            mass += missing[part, None] * where
        return mass

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(rows, those rows of the matrix), in parts of little memory."""
        if self._is_small:
            yield slice(0, len(self.x)), self.matrix
            return
        for part in self._parts():
            yield part, self.rows(part)

    @cached_property
    def pairs(self) -> SparseLaw:
        """The pairs that have mass: for sparse couplings."""
        if isinstance(self.law, SparseLaw):
            return self.law
        i, j = np.nonzero(self.matrix > 0)
        return SparseLaw(i, j, self.matrix[i, j])

    def ranked(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(rows, (m,) the y along their direction of largest variance, (b, m) cumulative sums of the rows so
        sorted), in parts of little memory."""
        if self._is_small:
            yield slice(0, len(self.x)), self._order, self._below
            return
        for part, rows in self.blocks():
            yield part, self._order, np.cumsum(rows[:, self._order], axis=1)

    @cached_property
    def cross(self) -> np.ndarray:
        """(d, d) the covariance of x with y."""
        x, y = self.x.atoms - self.x.mean, self.y.atoms - self.y.mean
        if isinstance(self.law, SparseLaw):
            return (x[self.law.i] * self.law.mass[:, None]).T @ y[self.law.j]
        return np.sum([x[part].T @ (rows @ y) for part, rows in self.blocks()], axis=0)

    @cached_property
    def _small_matrix(self) -> np.ndarray:
        return self.rows(slice(0, len(self.x)))

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.y.first_axis, kind="stable")

    @cached_property
    def _below(self) -> np.ndarray:
        return np.cumsum(self.matrix[:, self._order], axis=1)

    @property
    def _is_small(self) -> bool:
        return len(self.x) * len(self.y) <= SMALL

    def _parts(self) -> Iterator[slice]:
        step = max(1, BLOCK // len(self.y))
        for start in range(0, len(self.x), step):
            yield slice(start, min(start + step, len(self.x)))

    def _log_rows(self, part: slice) -> np.ndarray:
        if isinstance(self.law, Potentials):
            return self.law.log_rows(self.x, self.y, self.eps, part)
        if isinstance(self.law, SparseLaw):
            logs = np.full((part.stop - part.start, len(self.y)), -np.inf)
            mine = (self.law.i >= part.start) & (self.law.i < part.stop)
            logs[self.law.i[mine] - part.start, self.law.j[mine]] = np.log(self.law.mass[mine])
            return logs
        return self.law[part]

    @cached_property
    def _rounding(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(n,) and (m,) what rows and columns are scaled by, (n,) what rows then lack and (m,) where it
        goes."""
        mu, nu = self.x.weights, self.y.weights
        down = np.empty(len(mu))
        columns = np.zeros(len(nu))
        for part in self._parts():
            mass = np.exp(self._log_rows(part))
            sums = mass.sum(axis=1)
            share = np.divide(mu[part], sums, out=np.ones_like(sums), where=sums > mu[part])
            down[part] = share
            columns += share @ mass
        across = np.divide(nu, columns, out=np.ones_like(nu), where=columns > nu)
        rows = np.empty(len(mu))
        for part in self._parts():
            rows[part] = down[part] * (np.exp(self._log_rows(part)) @ across)
        missing = np.maximum(mu - rows, 0)
        short = np.maximum(nu - columns * across, 0)
        if not (missing.sum() > 0 and short.sum() > 0):
            return down, across, np.zeros_like(mu), np.zeros_like(nu)
        return down, across, missing, short / short.sum()

    @cached_property
    def median_cost(self) -> float:
        """Of C, in the units of the costs, so eps / median_cost says how blurred it is."""
        return median_cost(self.x, self.y)

    @property
    def eps_over_median(self) -> float:
        """eps / median cost; NaN where the clouds are single atoms."""
        return self.eps / self.median_cost if self.median_cost > 0 else float("nan")

    @property
    def dependence(self) -> float:
        """Mutual information over the smaller entropy: 0 for the product, 1 for a map."""
        joint = np.maximum(self.log_coupling, -700)
        mass = np.exp(joint)
        mu, nu = self.x.weights, self.y.weights
        information = (mass * (joint - np.log(mu)[:, None] - np.log(nu))).sum()
        entropy = min(-(mu * np.log(mu)).sum(), -(nu * np.log(nu)).sum())
        return float(np.clip(information / entropy, 0, 1)) if entropy > 0 else 0.0

    @property
    def warning(self) -> str | None:
        """What a reader must know before using it, if anything."""
        if self.eps_over_median > INDEPENDENT:
            return (
                f"the coupling is numerically independent: eps is {self.eps_over_median:.3g} times "
                "the median cost"
            )
        if not self.convergence.converged and self.convergence.marginal_l1 > 1e-4:
            c = self.convergence
            return f"not converged ({c.status}): L1 marginal error {c.marginal_l1:.1e}"
        return None


def inner_products(x: Cloud, y: Cloud, eps: float, part: slice | None = None) -> np.ndarray:
    """(n, m) or (b, m) 2 <x, y> / eps of centred clouds: -C/eps of squared distances up to a term for each
    row and each column, which do not change the coupling.

    An atom a million deviations away costs 1e12, of which double precision would keep too little of what
    tells its neighbours apart.
    """
    rows = x.atoms if part is None else x.atoms[part]
    return (2 / eps) * ((rows - x.mean) @ (y.atoms - y.mean).T)


def check_eps(eps: float) -> float:
    """The same eps. Raises UsageError where it is not above 0 and finite."""
    if not (eps > 0 and np.isfinite(eps)):
        raise UsageError(f"eps {eps} is not above 0 and finite")
    return eps
