"""What every solver is told and answers: when to stop, how it ended, the joint law of two clouds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.bridge.problem._clouds import Cloud
from jostle.errors import UsageError

INDEPENDENT = 10.0  # eps over the median cost from which a coupling is the product in all digits


@dataclass(frozen=True)
class Convergence:
    """How a solver ended.

    status: `converged`, `max_sweeps`, or `stalled` (the residual fell no more: rounding).
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
        return self.status == "converged"


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
class Coupling:
    """The joint law of two clouds. x: (n,) atoms, y: (m,) atoms. eps: 0 for exact transport.

    median_cost: of C, in the squared units of the atoms, so eps / median_cost says how blurred it is.
    noise_eps: the eps of the noise between the clouds, None for the coupling's own.
    """

    x: Cloud
    y: Cloud
    log_coupling: np.ndarray
    eps: float
    median_cost: float
    convergence: Convergence
    noise_eps: float | None = None

    @cached_property
    def matrix(self) -> np.ndarray:
        """(n, m) with exactly the marginals of the clouds.

        What an unfinished solver leaves over is made good by scaling down rows and columns that have too
        much and adding the product of what is missing (Altschuler, Weed, Rigollet, NeurIPS 2017, Alg. 2).
        """
        found = np.exp(self.log_coupling)
        mu, nu = self.x.weights, self.y.weights
        rows, columns = found.sum(axis=1), np.zeros(len(nu))
        found *= np.divide(mu, rows, out=np.ones_like(mu), where=rows > mu)[:, None]
        columns = found.sum(axis=0)
        found *= np.divide(nu, columns, out=np.ones_like(nu), where=columns > nu)
        rows = np.maximum(mu - found.sum(axis=1), 0)
        columns = np.maximum(nu - found.sum(axis=0), 0)
        if rows.sum() > 0 and columns.sum() > 0:
            found += np.outer(rows, columns / columns.sum())
        return found

    @cached_property
    def ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """(m,) the y along their direction of largest variance, (n, m) cumulative sums of rows so sorted."""
        order = np.argsort(self.y.first_axis, kind="stable")
        return order, np.cumsum(self.matrix[:, order], axis=1)

    @cached_property
    def cross(self) -> np.ndarray:
        """(d, d) the covariance of x with y."""
        return (self.x.atoms - self.x.mean).T @ self.matrix @ (self.y.atoms - self.y.mean)

    @property
    def eps_over_median(self) -> float:
        """eps / median cost; NaN where the clouds are single atoms."""
        return self.eps / self.median_cost if self.median_cost > 0 else float("nan")

    @property
    def dependence(self) -> float:
        """Mutual information over the smaller entropy: 0 for the product, 1 for a map."""
        joint = np.where(self.log_coupling < -700, -700, self.log_coupling)
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


def check_eps(eps: float) -> float:
    """The same eps. Raises UsageError where it is not above 0 and finite."""
    if not (eps > 0 and np.isfinite(eps)):
        raise UsageError(f"eps {eps} is not above 0 and finite")
    return eps
