"""The coupling of two clouds that a Schrödinger bridge of Brownian motion makes: Sinkhorn's algorithm.

Problem: min <C, P> + eps <P, log P> over P >= 0 with row sums mu and column sums nu. Its solution is
P = exp(f + L + g), L = -C/eps; Sinkhorn alternates f <- f + log(mu / rows), g <- g + log(nu / columns).

Where the clouds are far apart in units of eps that takes thousands of sweeps. So sweeps are extrapolated
from the last few (Anderson, J. ACM 12, 1965), and after a hundred of them the solver goes over to damped
Newton steps on the dual (Brauer, Clason, Lorenz, Wirth, 2017), with g always the best for f: a handful,
of n^3 operations each.
"""

from __future__ import annotations

import numpy as np

from jostle.usage.snapshots._clouds import Cloud, median_cost
from jostle.usage.solvers._coupling import (
    EXACT,
    Convergence,
    Coupling,
    Potentials,
    Stopping,
    check_eps,
    inner_products,
)
from jostle.usage.solvers._logs import AbsorbedKernel
from jostle.usage.solvers._transport import has_transport, transport

MEMORY = 10  # sweeps to extrapolate from
LARGE = 1e3  # weights of an extrapolation that are not believed
LEAP = 20.0  # the most that a potential moves in one step of Newton
NEWTON_AFTER = 100  # sweeps: from here a step of Newton costs less than the sweeps that it saves
NEWTON_ATOMS = 2000  # with more, it does not
HOPELESS = 1e-4  # of the median cost: an eps below it is not tried
WRONG = 1e-4  # L1 marginal error from which exact transport is nearer than what was reached
PATIENCE = 200  # sweeps without a new low, from 1e-3 down, are explained by rounding


def solve_edge(
    x: Cloud,
    y: Cloud,
    eps: float,
    *,
    stopping: Stopping | None = None,
    fallback: bool = True,
) -> Coupling:
    """Return the entropic coupling of two clouds; eps in squared units of the atoms.

    fallback: where eps is too small to converge, exact transport, its limit (with the extra `fit`); otherwise
    what was reached, rounded. A cloud of one atom needs no solver. Raises UsageError for an eps that is not
    above 0 and finite.
    """
    check_eps(eps)
    log_mu, log_nu = np.log(x.weights), np.log(y.weights)
    if len(x) == 1 or len(y) == 1:
        return Coupling(x, y, log_mu[:, None] + log_nu, eps, EXACT)
    fallback = fallback and has_transport()
    # The median of all costs takes longer than a solve at a large eps: only where eps may be hopeless.
    box = np.ptp(np.concatenate([x.atoms, y.atoms]), axis=0)
    if fallback and eps < HOPELESS * (box**2).sum() and eps < HOPELESS * median_cost(x, y):
        return transport(x, y, eps=eps)
    log_kernel = inner_products(x, y, eps)
    row = log_kernel.max(axis=1)
    log_kernel -= row[:, None]
    column = log_kernel.max(axis=0)
    log_kernel -= column
    kernel = AbsorbedKernel(log_kernel)
    f, g, convergence = _sinkhorn(kernel, log_mu, log_nu, stopping or Stopping())
    if fallback and not convergence.converged and convergence.marginal_l1 > WRONG:
        return transport(x, y, eps=eps)
    return Coupling(x, y, Potentials(f - row, g - column), eps, convergence)


def _sinkhorn(
    kernel: AbsorbedKernel,
    log_mu: np.ndarray,
    log_nu: np.ndarray,
    stopping: Stopping,
) -> tuple[np.ndarray, np.ndarray, Convergence]:
    """Potentials (n,) and (m,) with exp(f + L + g) of the marginals mu and nu, and how it ended.

    The column sums are exact at the end; the Hilbert residual and the L1 error are those of the rows.
    """
    mu, nu = np.exp(log_mu), np.exp(log_nu)
    newton = len(mu) <= NEWTON_ATOMS
    extrapolation = _Extrapolation(min(MEMORY, len(mu) - 1))
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


class _Extrapolation:
    """Anderson's: the step (n,) that the last sweeps, if they were linear, say is best."""

    def __init__(self, memory: int) -> None:
        self.memory, self._best = memory, np.inf
        self._points: list[np.ndarray] = []
        self._moves: list[np.ndarray] = []

    def step(self, point: np.ndarray, move: np.ndarray) -> np.ndarray:
        """Return what to add to `point`, where a plain sweep would add `move`."""
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
    kernel: AbsorbedKernel, f: np.ndarray, g: np.ndarray, mu: np.ndarray, nu: np.ndarray
) -> np.ndarray | None:
    """Return a damped Newton step (n,) of the dual in f, with g the best for f; None where none helps.

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
