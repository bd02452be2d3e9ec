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
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from jostle.errors import BadData, UsageError
from jostle.usage import (
    Cloud,
    Convergence,
    Stopping,
    check_eps,
    median_cost,
    solve_edge,
    squared_distances,
    thinned,
)
from studies.bridge.graphs.logs import log_matmul, log_sum_exp, marginal_error, repeat


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
    if not chains or len({len(chain) for chain in chains}) != 1 or not len(chains[0]):
        raise BadData("every core needs the same number of inner snapshots, at least one")
    stopping = stopping or Stopping()
    if terminal_atoms is not None:
        source, sink = thinned(source, terminal_atoms, seed), thinned(sink, terminal_atoms, seed)
    nodes = [[source, *chain, sink] for chain in chains]
    each = [[_eps(x, y, eps, eps_unit) for x, y in pairwise(chain)] for chain in nodes]
    if len(source.merged) == 1 or len(sink.merged) == 1:
        couplings, ended = _as_paths(nodes, each, stopping)
    else:
        state = _Chains(nodes, each)
        ended = repeat(stopping, state.sweep)
        couplings = state.couplings()
    errors = [marginal_error(*both) for both in zip(couplings, nodes, strict=True)]
    return SeriesParallel(couplings, source, sink, replace(ended, marginal_l1=max(errors)), each)


class _Chains:
    """The potentials, in logarithms, of the source (u), the sink (w) and the inner nodes (f[j][k]).

    ways[j][k]: (n_k, n_sink) log of all ways from node k of chain j to the sink, without node k.
    """

    def __init__(self, nodes: list[list[Cloud]], eps: list[list[float]]) -> None:
        self.nodes, self.inner = nodes, range(1, len(eps[0]))
        self.L = [
            [
                squared_distances(x.atoms, y.atoms) / -e
                for x, y, e in zip(n, n[1:], each, strict=False)
            ]
            for n, each in zip(nodes, eps, strict=True)
        ]
        self.log_mu = [[np.log(cloud.weights) for cloud in chain] for chain in nodes]
        self.u, self.w = self.log_mu[0][0], self.log_mu[0][-1]
        self.f = [[mu.copy() for mu in chain] for chain in self.log_mu]  # ends unused
        self.ways = [self._to_sink(j) for j in range(len(nodes))]

    def sweep(self) -> tuple[float, float]:
        """Update every potential once; the Hilbert residual and the L1 error before it."""
        source, sink = self.nodes[0][0].weights, self.nodes[0][-1].weights
        through = self._through()
        moves = [(source, np.log(source) - self.u - log_sum_exp(through + self.w, axis=1))]
        self.u = self.u + moves[-1][1]
        moves.append((sink, np.log(sink) - self.w - log_sum_exp(through + self.u[:, None], axis=0)))
        self.w = self.w + moves[-1][1]
        for j, (mu, f, L) in enumerate(zip(self.log_mu, self.f, self.L, strict=True)):
            from_sink = log_matmul(self._outside(j).T, L[0])
            for k in self.inner:
                move = mu[k] - f[k] - log_sum_exp(from_sink.T + self.ways[j][k], axis=1)
                moves.append((np.exp(mu[k]), move))
                f[k] = f[k] + move
                if k < self.inner[-1]:
                    from_sink = log_matmul(from_sink + f[k], L[k])
            self.ways[j] = self._to_sink(j)
        error = max(float((mu * np.abs(np.expm1(-move))).sum()) for mu, move in moves)
        return max(float(np.ptp(move)) for _, move in moves), error

    def couplings(self) -> list[list[np.ndarray]]:
        """[j][k]: log of the joint law of nodes k and k + 1 of chain j."""
        every = []
        for j, (f, L) in enumerate(zip(self.f, self.L, strict=True)):
            outside, ways = self._outside(j), self.ways[j]
            edges = [L[0] + log_matmul(outside, (f[1][:, None] + ways[1]).T)]
            from_sink = log_matmul(outside.T, L[0])
            for k in self.inner:
                here = f[k][:, None] + L[k]
                if k == self.inner[-1]:
                    edges.append(from_sink.T + here)
                else:
                    edges.append(here + f[k + 1] + log_matmul(from_sink.T, ways[k + 1].T))
                    from_sink = log_matmul(from_sink + f[k], L[k])
            every.append(edges)
        return every

    def _to_sink(self, j: int) -> list[np.ndarray]:
        ways = [self.L[j][-1]]
        for k in reversed(self.inner):
            ways.append(log_matmul(self.L[j][k - 1] + self.f[j][k], ways[-1]))
        return ways[::-1]

    def _through(self) -> np.ndarray:
        """(n_source, n_sink) log of the product over the chains of all ways through each."""
        return sum((ways[0] for ways in self.ways[1:]), self.ways[0][0])

    def _outside(self, j: int) -> np.ndarray:
        """(n_source, n_sink) log of all ways between the terminals but those through chain j."""
        return self.u[:, None] + (self._through() - self.ways[j][0]) + self.w


def _as_paths(
    nodes: list[list[Cloud]], eps: list[list[float]], stopping: Stopping
) -> tuple[list[list[np.ndarray]], Convergence]:
    solved = [
        [
            solve_edge(x, y, e, stopping=stopping)
            for (x, y), e in zip(pairwise(chain), each, strict=True)
        ]
        for chain, each in zip(nodes, eps, strict=True)
    ]
    ends = [edge.convergence for chain in solved for edge in chain]
    worst = max(ends, key=lambda c: (not c.converged, c.hilbert))
    sweeps = max(c.sweeps for c in ends)
    ended = Convergence(worst.status, worst.hilbert, worst.marginal_l1, sweeps)
    return [[edge.log_coupling for edge in chain] for chain in solved], ended


def _eps(x: Cloud, y: Cloud, eps: float, unit: str) -> float:
    if unit == "absolute":
        return check_eps(eps)
    if unit != "spread":
        raise UsageError(f"eps_unit {unit!r} is not known", fix="One of spread, absolute.")
    return check_eps(max(eps * (x.spread + y.spread) / 2, 0.2 * median_cost(x, y)) or 1.0)
