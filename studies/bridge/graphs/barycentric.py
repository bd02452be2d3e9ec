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
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from jostle.errors import BadData, UsageError
from jostle.usage import (
    AbsorbedKernel,
    Cloud,
    Convergence,
    Stopping,
    check_eps,
    edge_eps,
    squared_distances,
)
from studies.bridge.graphs.logs import LogKernel, log_matmul, repeat

Kernels = list[AbsorbedKernel | LogKernel]


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

    def leg(self, core: int, k: int) -> np.ndarray:
        """(m_k, n) log of the joint law of barycentre and core at time k."""
        return self._legs[core][k]

    def core_coupling(self, core: int, k: int) -> np.ndarray:
        """(n_k, n_k+1) log of the joint law of one core at times k and k + 1."""
        here = self._legs[core][k] - self.log_weights[k][:, None]
        there = self._legs[core][k + 1] - self.log_weights[k + 1][:, None]
        return log_matmul(log_matmul(here.T, self._chain[k]), there)


def solve_barycentric(
    cores: Sequence[Sequence[Cloud]],
    support: Sequence[np.ndarray],
    eps: float = 0.1,
    *,
    eps_unit: str = "spread",
    prescribed: Sequence[np.ndarray] | None = None,
    stopping: Stopping | None = None,
    reference: bool = False,
) -> Barycentric:
    """cores: [core][time] clouds; support: per time the barycentre's atoms (m, d).

    eps: of every edge, in `eps_unit` (see `edge_eps`). prescribed: per time the barycentre's weights (m,),
    or None for the latent mode. reference: exact log-sum-exp. A sweep updates all J s (with `prescribed`
    (J + 1) s) potentials once: 2 s J n m + 2 s m^2 operations.
    """
    J, s = len(cores), len(support)
    if not J or s < 2 or any(len(core) != s for core in cores):
        raise BadData(f"{J} cores with {[len(core) for core in cores]} snapshots, {s} supports")
    bary = [Cloud.of(atoms) for atoms in support]

    def kernel(x: Cloud, y: Cloud) -> AbsorbedKernel | LogKernel:
        of_edge = check_eps(edge_eps(x, y, eps, eps_unit))
        log_kernel = squared_distances(x.atoms, y.atoms) / -of_edge
        return LogKernel(log_kernel) if reference else AbsorbedKernel(log_kernel)

    chain = [kernel(x, y) for x, y in pairwise(bary)]
    legs = [[kernel(y, x) for y, x in zip(bary, core, strict=True)] for core in cores]
    log_nu = None if prescribed is None else [np.log(np.asarray(w, float)) for w in prescribed]
    messages = _Messages(chain, legs, [[np.log(x.weights) for x in core] for core in cores], log_nu)
    ended = repeat(stopping or Stopping(), messages.sweep)
    joint, outer = messages.couplings()
    errors = [
        float(np.abs(np.exp(np.minimum(leg, 700)).sum(axis=0) - cloud.weights).sum())
        for clouds, couplings in zip(cores, outer, strict=True)
        for cloud, leg in zip(clouds, couplings, strict=True)
    ]
    ended = replace(ended, marginal_l1=max(errors))
    return Barycentric(cores, [y.atoms for y in bary], messages.log_weights, ended, outer, joint)


class _Messages:
    """The potentials, in logarithms, and what they send along the graph.

    f[j][k]: of core j at time k. m[j][k]: what its leg sends to the barycentre. p[k]: all that hangs on the
    barycentre at time k, its own potential included. a[k], b[k]: what comes along the chain from before k
    and from after it.
    """

    def __init__(
        self,
        chain: Kernels,
        legs: list[Kernels],
        log_mu: list[list[np.ndarray]],
        log_nu: list[np.ndarray] | None,
    ) -> None:
        self.chain, self.legs, self.log_mu, self.log_nu = chain, legs, log_mu, log_nu
        sizes = [len(kernel.log_kernel) for kernel in legs[0]]
        self.f = [[w.copy() for w in core] for core in log_mu]
        self.m = [
            [kernel.backward(w) for kernel, w in zip(leg, core, strict=True)]
            for leg, core in zip(legs, self.f, strict=True)
        ]
        self.p = [
            np.full(m, -np.log(m)) + sum(core[k] for core in self.m) for k, m in enumerate(sizes)
        ]
        self.a, self.b = ([np.zeros(m) for m in sizes] for _ in range(2))

    def sweep(self) -> tuple[float, float]:
        """Update every potential once; the Hilbert residual and the L1 error before it."""
        self._send_back()
        residual = error = 0.0
        for k in range(len(self.p)):
            self._send_on(k)
            if self.log_nu is not None:
                move = self.log_nu[k] - self.a[k] - self.b[k] - self.p[k]
                residual = max(residual, float(np.ptp(move)))
                self.p[k] = self.p[k] + move
            for j, leg in enumerate(self.legs):
                mu = self.log_mu[j][k]
                move = mu - (self.f[j][k] + leg[k].forward(self._outside(j, k)))
                residual = max(residual, float(np.ptp(move)))
                error = max(
                    error, float((np.exp(mu) * np.abs(np.expm1(np.minimum(-move, 700)))).sum())
                )
                self.f[j][k] = self.f[j][k] + move
                old, self.m[j][k] = self.m[j][k], leg[k].backward(self.f[j][k])
                self.p[k] = self.p[k] + (self.m[j][k] - old)
        return residual, error

    def couplings(self) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
        """Logs of the joint laws: [k] of the barycentre at times k and k + 1, [j][k] of it and core j."""
        self._send_back()
        for k in range(len(self.p)):
            self._send_on(k)
        joint = [
            (self.a[k] + self.p[k])[:, None] + kernel.log_kernel + (self.p[k + 1] + self.b[k + 1])
            for k, kernel in enumerate(self.chain)
        ]
        outer = [
            [
                self._outside(j, k)[:, None] + kernel.log_kernel + self.f[j][k]
                for k, kernel in enumerate(leg)
            ]
            for j, leg in enumerate(self.legs)
        ]
        return joint, outer

    @property
    def log_weights(self) -> list[np.ndarray]:
        """[k] (m_k,) of the barycentre's weights."""
        return [a + p + b for a, p, b in zip(self.a, self.p, self.b, strict=True)]

    def _outside(self, j: int, k: int) -> np.ndarray:
        """All that the barycentre at time k knows but from core j."""
        return self.a[k] + self.b[k] + self.p[k] - self.m[j][k]

    def _send_back(self) -> None:
        for k in range(len(self.chain) - 1, -1, -1):
            self.b[k] = self.chain[k].backward(self.p[k + 1] + self.b[k + 1])

    def _send_on(self, k: int) -> None:
        if k:
            self.a[k] = self.chain[k - 1].forward(self.a[k - 1] + self.p[k - 1])


def barycentre_support(clouds: Sequence[Cloud], atoms: int, seed: int = 0) -> np.ndarray:
    """(m, d) atoms for the barycentre of the cores at one time: means of one random atom of each core.

    A tuple of atoms drawn independently, one of each core, has its mean within the cores' convex hull and
    where a barycentre would be; the raw samples of the cores pooled make the solver far slower.
    Duplicates are dropped, so m <= atoms.
    """
    if atoms < 1:
        raise UsageError(f"a barycentre cannot have {atoms} atoms")
    random = np.random.default_rng(seed)
    drawn = [c.atoms[random.choice(len(c), atoms, p=c.weights)] for c in clouds]
    return np.unique(np.mean(drawn, axis=0), axis=0)
