"""The coupling of two clouds that a Schrödinger bridge of Brownian motion makes: Sinkhorn's algorithm.

Problem: min <C, P> + eps <P, log P> over P >= 0 with row sums mu and column sums nu. Its solution is
P = exp(f + L + g), L = -C/eps; Sinkhorn alternates f <- f + log(mu / rows), g <- g + log(nu / columns).

Where the clouds are far apart in units of eps that takes thousands of sweeps. So sweeps are extrapolated
from the last few (Anderson, J. ACM 12, 1965), and after a hundred of them the solver goes over to damped
Newton steps on the dual (Brauer, Clason, Lorenz, Wirth, 2017), with g always the best for f: a handful,
of n^3 operations each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.solvers._logs import AbsorbedKernel, Kernel, LogKernel
from jostle.errors import UsageError

MEMORY = 10  # sweeps to extrapolate from
LARGE = 1e3  # weights of an extrapolation that are not believed
LEAP = 20.0  # the most that a potential moves in one step of Newton
NEWTON_AFTER = 100  # sweeps: from here a step of Newton costs less than the sweeps that it saves
NEWTON_ATOMS = 2000  # with more, it does not
PATIENCE = 200  # sweeps without a new low, from 1e-3 down, are explained by rounding
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


def solve_edge(
    x: Cloud,
    y: Cloud,
    eps: float,
    *,
    stopping: Stopping | None = None,
    accelerate: bool = True,
    reference: bool = False,
    euclid: bool = False,
) -> Coupling:
    """The entropic coupling of two clouds; eps in squared units of the atoms.

    reference: exact log-sum-exp in every step and plain sweeps only. euclid: the distance itself as cost,
    as the published multi-core code has it; otherwise its square. A cloud of one atom needs no solver.
    Raises UsageError for an eps that is not above 0 and finite.
    """
    check_eps(eps)
    cost = squared_distances(x.atoms, y.atoms)
    if euclid:
        np.sqrt(cost, out=cost)
    median = float(np.median(cost))
    log_mu, log_nu = np.log(x.weights), np.log(y.weights)
    if len(x) == 1 or len(y) == 1:
        product = log_mu[:, None] + log_nu
        return Coupling(x, y, product, eps, median, EXACT)
    log_kernel = _log_kernel(x, y, cost, eps, squared=not euclid)
    kernel = LogKernel(log_kernel) if reference else AbsorbedKernel(log_kernel)
    f, g, convergence = sinkhorn(
        kernel, log_mu, log_nu, stopping or Stopping(), accelerate=accelerate and not reference
    )
    log_kernel += f[:, None]
    log_kernel += g
    return Coupling(x, y, log_kernel, eps, median, convergence)


def _log_kernel(x: Cloud, y: Cloud, cost: np.ndarray, eps: float, *, squared: bool) -> np.ndarray:
    """-C/eps up to a term for each row and each column, which do not change the coupling.

    For squared distances only 2 <x, y> / eps remains: an atom a million deviations away costs 1e12, of
    which double precision would keep too little of what tells its neighbours apart.
    """
    if squared:
        middle = y.mean
        log_kernel = (2 / eps) * ((x.atoms - x.mean) @ (y.atoms - middle).T)
    else:
        log_kernel = np.divide(cost, -eps, out=cost)
    log_kernel -= log_kernel.max(axis=1)[:, None]
    log_kernel -= log_kernel.max(axis=0)
    return log_kernel


def sinkhorn(
    kernel: Kernel,
    log_mu: np.ndarray,
    log_nu: np.ndarray,
    stopping: Stopping,
    *,
    accelerate: bool = True,
) -> tuple[np.ndarray, np.ndarray, Convergence]:
    """Potentials (n,) and (m,) with exp(f + L + g) of the marginals mu and nu, and how it ended.

    The column sums are exact at the end; the Hilbert residual and the L1 error are those of the rows.
    """
    mu, nu = np.exp(log_mu), np.exp(log_nu)
    newton = accelerate and len(mu) <= NEWTON_ATOMS
    extrapolation = Extrapolation(min(MEMORY, len(mu) - 1) if accelerate else 0)
    f = g = log_mu
    best, best_at, status = np.inf, 0, "max_sweeps"
    residual = error = np.inf
    residuals = []
    sweep = 0
    for sweep in range(1, stopping.sweeps + 1):
        g = log_nu - kernel.forward(f)
        move = log_mu - kernel.backward(g) - f
        residual = float(np.ptp(move))
        residuals.append(residual)
        error = float(np.abs(mu * np.expm1(np.minimum(-move, 700))).sum())
        if stopping.reached(residual, error):
            status = "converged"
            break
        if residual < 0.9 * best:
            best, best_at = residual, sweep
        elif sweep - best_at > PATIENCE and best < 1e-3:
            status = "stalled"
            break
        if sweep == stopping.sweeps:
            break
        step = _newton_step(kernel, f, g, mu, nu) if newton and sweep > NEWTON_AFTER else None
        f = f + (extrapolation.step(f, move) if step is None else step)
    return f, g, Convergence(status, residual, error, sweep, tuple(residuals))


class Extrapolation:
    """Anderson's: the step (n,) that the last sweeps, if they were linear, say is best."""

    def __init__(self, memory: int) -> None:
        self.memory, self._best = memory, np.inf
        self._points: list[np.ndarray] = []
        self._moves: list[np.ndarray] = []

    def step(self, point: np.ndarray, move: np.ndarray) -> np.ndarray:
        """What to add to `point`, where a plain sweep would add `move`."""
        if not self.memory:
            return move
        residual = float(np.ptp(move))
        if not residual < 2 * self._best:  # it led astray: forget
            self._points, self._moves = [], []
        self._best = min(self._best, residual)
        self._points = [*self._points[-self.memory :], point]
        self._moves = [*self._moves[-self.memory :], move - move.mean()]
        if len(self._points) < 4:
            return move
        points, moves = np.diff(self._points, axis=0), np.diff(self._moves, axis=0)
        gram = moves @ moves.T
        gram[np.diag_indices_from(gram)] *= 1 + 1e-10
        try:
            weights = np.linalg.solve(gram, moves @ self._moves[-1])
        except np.linalg.LinAlgError:
            return move
        # Large weights come from moves that hardly differ: they would blow up rounding.
        if not np.abs(weights).sum() < LARGE:
            return move
        return self._moves[-1] - weights @ (points + moves)


def _newton_step(
    kernel: Kernel, f: np.ndarray, g: np.ndarray, mu: np.ndarray, nu: np.ndarray
) -> np.ndarray | None:
    """A damped Newton step (n,) of the dual in f, with g the best for f; None where none helps.

    The dual <mu, f> + <nu, g(f)> is concave; its gradient is mu - rows, minus its Hessian
    diag(rows) - P diag(1/nu) P^T, singular along the constants.
    """
    coupling = np.exp(kernel.log_kernel + f[:, None] + g)
    rows = coupling.sum(axis=1)
    coupling /= np.sqrt(nu)
    hessian = -(coupling @ coupling.T)
    hessian[np.diag_indices_from(hessian)] += rows * (1 + 1e-12)
    hessian += rows.mean() / len(mu)
    gradient = mu - rows
    try:
        step = np.linalg.solve(hessian, gradient)
    except np.linalg.LinAlgError:
        return None
    step -= step.mean()
    if not np.isfinite(step).all():
        return None
    step *= min(1.0, LEAP / max(np.ptp(step), 1e-300))
    now = mu @ f + nu @ g
    size = 1.0
    for _ in range(10):
        g_there = np.log(nu) - kernel.forward(f + size * step)
        gain = mu @ (size * step) + nu @ (g_there - g)
        if gain >= 1e-4 * size * (gradient @ step) - 1e-14 * abs(now):
            return size * step
        size /= 2
    return None
