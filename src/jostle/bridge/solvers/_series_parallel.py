"""The series-parallel bridge: J cores between one common source and one common sink.

Source: Bondar, Gifford, Phan, Halder, Sec. IV-E, Prop. 6, corrected. The graph has cycles (treewidth 2), so
its projections need products of matrices, not of matrices with vectors; the sum over the source and the
sink of an inner node's projection goes over both ends (the published code takes a diagonal instead).

Nodes: source (first snapshot of core 0), J chains of the snapshots between, sink (last one of core 0). In a
sweep: the source, the sink, then each core's chain from left to right. If either terminal is a single atom
the graph is a tree whose nodes are all constrained, and the problem is a batch of edges (`_path`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.problem._thin import thinned
from jostle.bridge.solvers._logs import log_matmul, log_sum_exp
from jostle.bridge.solvers._sinkhorn import Convergence, Stopping, solve_edge
from jostle.errors import BadData, UsageError


@dataclass(frozen=True, eq=False)
class SeriesParallel:
    """A solved series-parallel bridge. couplings[j][k]: log joint law of nodes k and k + 1 of chain j;
    node 0 is the source, the last one the sink. source, sink: as thinned. eps[j][k]: of each edge."""

    couplings: list[list[np.ndarray]]
    source: Cloud
    sink: Cloud
    convergence: Convergence
    eps: list[list[float]]


def solve_series_parallel(
    chains: Sequence[Sequence[Cloud]],
    source: Cloud,
    sink: Cloud,
    eps: float = 0.1,
    *,
    eps_unit: str = "spread",
    stopping: Stopping | None = None,
    terminal_atoms: int | None = None,
    seed: int = 0,
) -> SeriesParallel:
    """chains: [core][inner time] clouds, s - 2 of them each, at least one.

    eps_unit `spread`: per edge max(eps times the spread, 0.2 median cost), since the edges at the terminals
    join different cores and can cost a hundred times those within; `absolute`: one eps for all.
    terminal_atoms: thin source and sink to so many atoms (k-means), which makes a sweep O(J s r n^2)
    instead of O(J s n^3).
    """
    J = len(chains)
    if not J or len({len(chain) for chain in chains}) != 1 or not len(chains[0]):
        raise BadData("every core needs the same number of inner snapshots, at least one")
    stopping = stopping or Stopping()
    if terminal_atoms is not None:
        source, sink = thinned(source, terminal_atoms, seed), thinned(sink, terminal_atoms, seed)
    nodes = [[source, *chain, sink] for chain in chains]
    steps = len(nodes[0]) - 1
    all_eps = [[_eps(n[k], n[k + 1], eps, eps_unit) for k in range(steps)] for n in nodes]
    if len(source.merged) == 1 or len(sink.merged) == 1:
        return _as_paths(nodes, all_eps, source, sink, stopping)
    log_kernels = [
        [squared_distances(n[k].atoms, n[k + 1].atoms) / -e[k] for k in range(steps)]
        for n, e in zip(nodes, all_eps, strict=True)
    ]
    return _sweep(nodes, log_kernels, all_eps, source, sink, stopping)


def _sweep(
    nodes: list[list[Cloud]],
    L: list[list[np.ndarray]],
    eps: list[list[float]],
    source: Cloud,
    sink: Cloud,
    stopping: Stopping,
) -> SeriesParallel:
    J, steps = len(nodes), len(L[0])
    log_mu = [[np.log(cloud.weights) for cloud in chain] for chain in nodes]
    u, w = np.log(source.weights), np.log(sink.weights)
    f = [[log_mu[j][k].copy() for k in range(steps + 1)] for j in range(J)]  # ends unused
    status, residual, error, sweep = "max_sweeps", np.inf, np.inf, 0
    residuals: list[float] = []

    def to_sink(j: int) -> list[np.ndarray]:
        """Y[k]: (n_k, n_sink) log of all ways from node k to the sink, without node k."""
        ways = [L[j][steps - 1]]
        for k in range(steps - 2, -1, -1):
            ways.append(log_matmul(L[j][k] + f[j][k + 1], ways[-1]))
        return ways[::-1]

    ways = [to_sink(j) for j in range(J)]
    A = [ways[j][0] for j in range(J)]  # (n_source, n_sink) through chain j
    for sweep in range(1, stopping.sweeps + 1):
        residual = error = 0.0
        through = sum(A[1:], A[0])
        for side in (0, 1):
            if side == 0:
                move = np.log(source.weights) - u - log_sum_exp(through + w, axis=1)
                u = u + move
                weights = source.weights
            else:
                move = np.log(sink.weights) - w - log_sum_exp(through + u[:, None], axis=0)
                w = w + move
                weights = sink.weights
            residual = max(residual, float(np.ptp(move)))
            error = max(error, float((weights * np.abs(np.expm1(-move))).sum()))
        for j in range(J):
            W = u[:, None] + (sum(A[1:], A[0]) - A[j]) + w
            Y = ways[j] if sweep == 1 else to_sink(j)
            Z = log_matmul(W.T, L[j][0])
            for k in range(1, steps):
                move = log_mu[j][k] - f[j][k] - log_sum_exp(Z.T + Y[k], axis=1)
                residual = max(residual, float(np.ptp(move)))
                error = max(error, float((np.exp(log_mu[j][k]) * np.abs(np.expm1(-move))).sum()))
                f[j][k] = f[j][k] + move
                if k < steps - 1:
                    Z = log_matmul(Z + f[j][k], L[j][k])
            ways[j] = to_sink(j)
            A[j] = ways[j][0]
        residuals.append(residual)
        if residual < stopping.hilbert or error < stopping.marginal_l1:
            status = "converged"
            break
    couplings = []
    for j in range(J):
        W = u[:, None] + (sum(A[1:], A[0]) - A[j]) + w
        Y = ways[j]
        found = [L[j][0] + log_matmul(W, (f[j][1][:, None] + Y[1]).T)]
        Z = log_matmul(W.T, L[j][0])
        for k in range(1, steps):
            here = f[j][k][:, None] + L[j][k]
            if k == steps - 1:
                found.append(Z.T + here)
            else:
                found.append(here + f[j][k + 1] + log_matmul(Z.T, Y[k + 1].T))
                Z = log_matmul(Z + f[j][k], L[j][k])
        couplings.append(found)
    error = _error(couplings, nodes)
    end = Convergence(status, residual, error, sweep, tuple(residuals))
    return SeriesParallel(couplings, source, sink, end, eps)


def _as_paths(
    nodes: list[list[Cloud]],
    eps: list[list[float]],
    source: Cloud,
    sink: Cloud,
    stopping: Stopping,
) -> SeriesParallel:
    solved = [
        [solve_edge(chain[k], chain[k + 1], e[k], stopping=stopping) for k in range(len(chain) - 1)]
        for chain, e in zip(nodes, eps, strict=True)
    ]
    ends = [edge.convergence for chain in solved for edge in chain]
    worst = max(ends, key=lambda c: (not c.converged, c.hilbert))
    couplings = [[edge.log_coupling for edge in chain] for chain in solved]
    error = _error(couplings, nodes)
    sweeps = max(c.sweeps for c in ends)
    end = Convergence(worst.status, worst.hilbert, error, sweeps)
    return SeriesParallel(couplings, source, sink, end, eps)


def _eps(x: Cloud, y: Cloud, eps: float, unit: str) -> float:
    if unit == "absolute":
        found = eps
    elif unit == "spread":
        median = float(np.median(squared_distances(x.atoms, y.atoms)))
        found = max(eps * (x.spread + y.spread) / 2, 0.2 * median) or 1.0
    else:
        raise UsageError(f"eps_unit {unit!r}", fix="One of spread, absolute.")
    if not (found > 0 and np.isfinite(found)):
        raise UsageError(f"eps {found} is not above 0 and finite")
    return found


def _error(couplings: list[list[np.ndarray]], nodes: list[list[Cloud]]) -> float:
    worst = 0.0
    for chain, clouds in zip(couplings, nodes, strict=True):
        for k, coupling in enumerate(chain):
            mass = np.exp(np.minimum(coupling, 700))
            worst = max(worst, float(np.abs(mass.sum(axis=1) - clouds[k].weights).sum()))
            worst = max(worst, float(np.abs(mass.sum(axis=0) - clouds[k + 1].weights).sum()))
    return worst
