"""The oracle for the bridge's solvers: Sinkhorn on the whole tensor, entry by entry, on tiny problems.

Nothing here is shared with the solvers: the tensor over all nodes is built, scaled along one axis after the
other until its marginals are right, and summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from jostle.bridge import (
    Cloud,
    Stopping,
)
from studies.bridge.graphs.barycentric import solve_barycentric
from studies.bridge.graphs.series_parallel import solve_series_parallel
from studies.bridge.speed import solve_path, solve_path_jointly

Edge = tuple[int, int, np.ndarray]


def tensor_sinkhorn(
    sizes: Sequence[int],
    edges: Sequence[Edge],
    marginals: Mapping[int, np.ndarray],
    *,
    tolerance: float = 1e-13,
    sweeps: int = 200_000,
) -> np.ndarray:
    """The tensor exp(sum of edges' L) scaled to the marginals; edges: (node, node, L), logs.

    Raises ArithmeticError where it does not reach the tolerance (L1, every marginal).
    """
    axes = range(len(sizes))
    log_tensor = np.zeros(sizes)
    for i, j, log_kernel in edges:
        shape = [sizes[axis] if axis in (i, j) else 1 for axis in axes]
        log_tensor += (log_kernel if i < j else log_kernel.T).reshape(shape)
    tensor = np.exp(log_tensor - log_tensor.max())
    worst = np.inf
    for _ in range(sweeps):
        worst = 0.0
        for node, mu in marginals.items():
            found = tensor.sum(axis=tuple(axis for axis in axes if axis != node))
            worst = max(worst, float(np.abs(found / found.sum() - mu).sum()))
            tensor *= (mu / found).reshape([-1 if axis == node else 1 for axis in axes])
        if worst < tolerance:
            return tensor
    raise ArithmeticError(f"the brute force stopped at an L1 error of {worst:.1e}")


def pair(tensor: np.ndarray, i: int, j: int) -> np.ndarray:
    """The joint law of two nodes, (size_i, size_j)."""
    found = tensor.sum(axis=tuple(axis for axis in range(tensor.ndim) if axis not in (i, j)))
    return found if i < j else found.T


def cost(x: Cloud, y: Cloud) -> np.ndarray:
    return ((x.atoms[:, None] - y.atoms[None]) ** 2).sum(axis=2)


def random_cloud(random: np.random.Generator, n: int) -> Cloud:
    return Cloud.of(random.normal(size=(n, 2)) * 0.5, random.uniform(0.5, 1.5, n))


TIGHT = Stopping(hilbert=1e-13, marginal_l1=0.0, sweeps=100_000)


def path_error(random: np.random.Generator, s: int, eps: float) -> float:
    """Largest difference of any bimarginal from the brute force; both solvers."""
    clouds = [random_cloud(random, int(random.integers(3, 5))) for _ in range(s)]
    edges = [(k, k + 1, -cost(x, y) / eps) for k, (x, y) in enumerate(pairwise(clouds))]
    marginals = {k: cloud.weights for k, cloud in enumerate(clouds)}
    tensor = tensor_sinkhorn([len(c) for c in clouds], edges, marginals)
    by_edges = solve_path(clouds, [eps] * (s - 1), stopping=TIGHT)
    jointly, _ = solve_path_jointly(clouds, [eps] * (s - 1), stopping=TIGHT)
    laws = [(k, k + 1, edge.log_coupling) for k, edge in enumerate(by_edges)]
    return _largest_gap(tensor, laws + [(k, k + 1, log) for k, log in enumerate(jointly)])


def barycentric_error(
    random: np.random.Generator, s: int, eps: float, *, prescribed: bool = False
) -> float:
    """The same for the barycentric bridge of two cores: legs, chain and cores' couplings."""
    J, m = 2, 3
    support = [random.normal(size=(m, 2)) * 0.5 for _ in range(s)]
    cores = [[random_cloud(random, 3) for _ in range(s)] for _ in range(J)]
    weights = [random.dirichlet(np.full(m, 4.0)) for _ in range(s)] if prescribed else None
    bary = [Cloud.of(atoms) for atoms in support]

    def node(j: int, k: int) -> int:  # after those of the barycentre, 0 to s - 1
        return s + j * s + k

    places = list(product(range(J), range(s)))
    edges = [(k, k + 1, -cost(x, y) / eps) for k, (x, y) in enumerate(pairwise(bary))]
    edges += [(k, node(j, k), -cost(bary[k], cores[j][k]) / eps) for j, k in places]
    marginals = {node(j, k): cores[j][k].weights for j, k in places}
    marginals |= dict(enumerate(weights or ()))
    tensor = tensor_sinkhorn([m] * s + [3] * (J * s), edges, marginals)
    laws: list[Edge] = []
    for reference in (False, True):
        solved = solve_barycentric(
            cores, support, eps, eps_unit="absolute", prescribed=weights,
            stopping=TIGHT, reference=reference,
        )  # fmt: skip
        laws += [(k, node(j, k), solved.leg(j, k)) for j, k in places]
        laws += [(k, k + 1, solved.barycentre_coupling(k)) for k in range(s - 1)]
        laws += [
            (node(j, k), node(j, k + 1), solved.core_coupling(j, k)) for j, k in places if k < s - 1
        ]
    return _largest_gap(tensor, laws)


def series_parallel_error(random: np.random.Generator, J: int, s: int, eps: float) -> float:
    """The same for the series-parallel bridge: all couplings of all chains."""
    source, sink = random_cloud(random, 3), random_cloud(random, 4)
    chains = [[random_cloud(random, 3) for _ in range(s - 2)] for _ in range(J)]
    flat = [source, sink, *(cloud for chain in chains for cloud in chain)]
    # The numbers of each chain's nodes in `flat`, from source to sink.
    numbers = [[0, *range(2 + j * (s - 2), 2 + (j + 1) * (s - 2)), 1] for j in range(J)]
    edges = [
        (a, b, -cost(flat[a], flat[b]) / eps) for number in numbers for a, b in pairwise(number)
    ]
    marginals = {i: cloud.weights for i, cloud in enumerate(flat)}
    tensor = tensor_sinkhorn([len(cloud) for cloud in flat], edges, marginals)
    solved = solve_series_parallel(chains, source, sink, eps, eps_unit="absolute", stopping=TIGHT)
    laws = [
        (a, b, log)
        for number, couplings in zip(numbers, solved.couplings, strict=True)
        for (a, b), log in zip(pairwise(number), couplings, strict=True)
    ]
    return _largest_gap(tensor, laws)


def _largest_gap(tensor: np.ndarray, laws: Sequence[Edge]) -> float:
    """Of joint laws (node, node, log) from those of the tensor."""
    return max(float(np.abs(np.exp(log) - pair(tensor, i, j)).max()) for i, j, log in laws)


def brute_force_errors(
    seed: int = 0, epsilons: Sequence[float] = (1.0, 0.1, 0.02)
) -> dict[str, Any]:
    """{problem: largest absolute difference of a joint law from the brute force}, 24 random problems."""
    found: dict[str, Any] = {}
    for eps in epsilons:
        random = np.random.default_rng([seed, round(1000 * eps)])
        for s in (3, 4, 5):
            found[f"path s={s} eps={eps:g}"] = path_error(random, s, eps)
        for s in (2, 3):
            found[f"barycentric s={s} eps={eps:g}"] = barycentric_error(random, s, eps)
        name = f"barycentric prescribed s=2 eps={eps:g}"
        found[name] = barycentric_error(random, 2, eps, prescribed=True)
        for J, s in ((2, 3), (2, 4), (3, 3)):
            name = f"series-parallel J={J} s={s} eps={eps:g}"
            found[name] = series_parallel_error(random, J, s, eps)
    return found
