"""The barycentric bridge: J cores that share one hidden path, the barycentre's.

Source: Bondar, Gifford, Phan, Halder, Sec. IV-D, Prop. 5. The graph is a tree: barycentres Y_1 - ... - Y_s,
and at each time the cores X_1,k ... X_J,k hang on Y_k. Two modes. *Latent*: the barycentre's weights are
not constrained; its reference weights are uniform and never updated. *Prescribed*: its weights are given,
which makes the problem fall apart into edges.

A core's coupling over time is composed through the barycentre, divided by its weights there:
P(x, x') = sum P(x, y) P(y, y') P(y', x') / (nu(y) nu'(y')). The published code leaves the division out,
and its couplings do not have mass 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.solvers._logs import AbsorbedKernel, LogKernel, log_matmul
from jostle.bridge.solvers._path import edge_eps
from jostle.bridge.solvers._sinkhorn import Convergence, Stopping
from jostle.errors import BadData, UsageError

Kernels = list[AbsorbedKernel] | list[LogKernel]


@dataclass(frozen=True, eq=False)
class Barycentric:
    """A solved barycentric bridge over s times and J cores.

    support[k]: (m_k, d) atoms of the barycentre; log_weights[k]: (m_k,) of its weights.
    """

    cores: Sequence[Sequence[Cloud]]  # [j][k]
    support: Sequence[np.ndarray]
    log_weights: list[np.ndarray]
    convergence: Convergence
    _legs: list[list[np.ndarray]] = field(repr=False)  # [j][k] log P(y, x)
    _chain: list[np.ndarray] = field(repr=False)  # [k] log P(y_k, y_k+1)

    def barycentre_coupling(self, k: int) -> np.ndarray:
        """(m_k, m_k+1) log of the joint law of the barycentre at times k and k + 1."""
        return self._chain[k]

    def leg(self, core: int, k: int) -> np.ndarray:
        """(m_k, n) log of the joint law of barycentre and core at time k."""
        return self._legs[core][k]

    def core_coupling(self, core: int, k: int) -> np.ndarray:
        """(n_k, n_k+1) log of the joint law of one core at times k and k + 1."""
        here = self._legs[core][k] - self.log_weights[k][:, None]
        there = self._legs[core][k + 1] - self.log_weights[k + 1][:, None]
        return log_matmul(log_matmul(here.T, self._chain[k]), there)

    @property
    def effective_atoms(self) -> list[float]:
        """1 / sum of squared weights of the barycentre, at each time."""
        return [float(1 / (np.exp(w) ** 2).sum()) for w in self.log_weights]


def solve_barycentric(
    cores: Sequence[Sequence[Cloud]],
    support: Sequence[np.ndarray],
    eps: float | Sequence[float] = 0.1,
    *,
    eps_unit: str = "spread",
    prescribed: Sequence[np.ndarray] | None = None,
    stopping: Stopping | None = None,
    reference: bool = False,
) -> Barycentric:
    """cores: [core][time] clouds; support: per time the barycentre's atoms (m, d).

    eps: one number in `eps_unit` for every edge, or with `absolute` also one per time step, the legs at
    time k having that of step min(k, s - 2). prescribed: per time the barycentre's weights (m,), or None
    for the latent mode. reference: exact log-sum-exp. A sweep updates all J s (with `prescribed`
    (J + 1) s) potentials once: 2 s J n m + 2 s m^2 operations.
    """
    J, s = len(cores), len(support)
    if not J or s < 2 or any(len(core) != s for core in cores):
        raise BadData(f"{J} cores with {[len(core) for core in cores]} snapshots, {s} supports")
    stopping = stopping or Stopping()
    bary = [Cloud.of(atoms) for atoms in support]
    kind = LogKernel if reference else AbsorbedKernel
    chain = [
        kind(_log_kernel(bary[k], bary[k + 1], _eps(bary[k], bary[k + 1], eps, eps_unit, k)))
        for k in range(s - 1)
    ]
    legs = [
        [kind(_log_kernel(bary[k], x, _eps(bary[k], x, eps, eps_unit, k))) for k, x in enumerate(c)]
        for c in cores
    ]
    log_mu = [[np.log(x.weights) for x in core] for core in cores]
    log_nu = None if prescribed is None else [np.log(np.asarray(w, float)) for w in prescribed]
    f = [[w.copy() for w in core] for core in log_mu]
    g = [np.full(len(y), -np.log(len(y))) for y in bary]
    m = [[legs[j][k].backward(f[j][k]) for k in range(s)] for j in range(J)]
    p = [g[k] + sum(m[j][k] for j in range(J)) for k in range(s)]
    a = [np.zeros(len(y)) for y in bary]
    b = [np.zeros(len(y)) for y in bary]
    status, residual, error = "max_sweeps", np.inf, np.inf
    residuals: list[float] = []
    for _ in range(stopping.sweeps):
        for k in range(s - 2, -1, -1):
            b[k] = chain[k].backward(p[k + 1] + b[k + 1])
        residual = error = 0.0
        for k in range(s):
            if k:
                a[k] = chain[k - 1].forward(a[k - 1] + p[k - 1])
            if log_nu is not None:
                move = log_nu[k] - a[k] - b[k] - p[k]
                residual = max(residual, float(np.ptp(move)))
                g[k], p[k] = g[k] + move, p[k] + move
            for j in range(J):
                outside = a[k] + b[k] + p[k] - m[j][k]
                found = f[j][k] + legs[j][k].forward(outside)
                move = log_mu[j][k] - found
                residual = max(residual, float(np.ptp(move)))
                off = np.exp(log_mu[j][k]) * np.abs(np.expm1(np.minimum(-move, 700)))
                error = max(error, float(off.sum()))
                f[j][k] = f[j][k] + move
                old = m[j][k]
                m[j][k] = legs[j][k].backward(f[j][k])
                p[k] = p[k] + (m[j][k] - old)
        residuals.append(residual)
        if residual < stopping.hilbert or error < stopping.marginal_l1:
            status = "converged"
            break
    for k in range(s - 2, -1, -1):
        b[k] = chain[k].backward(p[k + 1] + b[k + 1])
    for k in range(1, s):
        a[k] = chain[k - 1].forward(a[k - 1] + p[k - 1])
    joint = [
        (a[k] + p[k])[:, None] + chain[k].log_kernel + (p[k + 1] + b[k + 1]) for k in range(s - 1)
    ]
    outer: list[list[np.ndarray]] = [
        [
            (a[k] + b[k] + p[k] - m[j][k])[:, None] + legs[j][k].log_kernel + f[j][k]
            for k in range(s)
        ]
        for j in range(J)
    ]
    errors = [
        float(np.abs(np.exp(np.minimum(outer[j][k], 700)).sum(axis=0) - cores[j][k].weights).sum())
        for j in range(J)
        for k in range(s)
    ]
    weights = [a[k] + p[k] + b[k] for k in range(s)]
    convergence = Convergence(status, residual, max(errors), len(residuals), tuple(residuals))
    return Barycentric(cores, [y.atoms for y in bary], weights, convergence, outer, joint)


def barycentre_support(clouds: Sequence[Cloud], atoms: int, seed: int = 0) -> np.ndarray:
    """(m, d) atoms for the barycentre of the cores at one time: means of one random atom of each core.

    A tuple of atoms drawn independently, one of each core, has its mean within the cores' convex hull and
    where a barycentre would be; the raw samples of the cores pooled make the solver far slower.
    Duplicates are dropped, so m <= atoms.
    """
    if atoms < 1:
        raise UsageError(f"{atoms} atoms for a barycentre")
    random = np.random.default_rng(seed)
    drawn = [c.atoms[random.choice(len(c), atoms, p=c.weights)] for c in clouds]
    return np.unique(np.mean(drawn, axis=0), axis=0)


def _eps(x: Cloud, y: Cloud, eps: float | Sequence[float], unit: str, step: int) -> float:
    if isinstance(eps, (int, float)):
        return edge_eps(x, y, float(eps), unit)
    if unit != "absolute":
        raise UsageError("one eps per step needs eps_unit 'absolute'")
    return float(eps[min(step, len(eps) - 1)])


def _log_kernel(x: Cloud, y: Cloud, eps: float) -> np.ndarray:
    if not (eps > 0 and np.isfinite(eps)):
        raise UsageError(f"eps {eps} is not above 0 and finite")
    return squared_distances(x.atoms, y.atoms) / -eps
