"""The oracle for the bridge's solvers: Sinkhorn on the whole tensor, entry by entry, on tiny problems.

Nothing here is shared with the solvers: the tensor over all nodes is built, scaled along one axis after the
other until its marginals are right, and summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jostle.bridge import (
    Cloud,
    Stopping,
    solve_barycentric,
    solve_path,
    solve_path_jointly,
    solve_series_parallel,
)

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
    worst = 0.0
    for k in range(s - 1):
        truth = pair(tensor, k, k + 1)
        worst = max(worst, _gap(np.exp(by_edges[k].log_coupling), truth))
        worst = max(worst, _gap(np.exp(jointly[k]), truth))
    return worst


def barycentric_error(
    random: np.random.Generator, s: int, eps: float, *, prescribed: bool = False
) -> float:
    """The same for the barycentric bridge of two cores: legs, chain and cores' couplings."""
    J, m = 2, 3
    support = [random.normal(size=(m, 2)) * 0.5 for _ in range(s)]
    cores = [[random_cloud(random, 3) for _ in range(s)] for _ in range(J)]
    weights = [random.dirichlet(np.full(m, 4.0)) for _ in range(s)] if prescribed else None
    node = {(-1, k): k for k in range(s)} | {
        (j, k): s + j * s + k for j in range(J) for k in range(s)
    }
    bary = [Cloud.of(atoms) for atoms in support]
    edges: list[Edge] = [
        (node[-1, k], node[-1, k + 1], -cost(bary[k], bary[k + 1]) / eps) for k in range(s - 1)
    ]
    edges += [
        (node[-1, k], node[j, k], -cost(bary[k], cores[j][k]) / eps)
        for j in range(J)
        for k in range(s)
    ]
    marginals = {node[j, k]: cores[j][k].weights for j in range(J) for k in range(s)}
    if weights is not None:
        marginals |= {node[-1, k]: weights[k] for k in range(s)}
    tensor = tensor_sinkhorn([m] * s + [3] * (J * s), edges, marginals)
    worst = 0.0
    for reference in (False, True):
        solved = solve_barycentric(
            cores, support, eps, eps_unit="absolute", prescribed=weights,
            stopping=TIGHT, reference=reference,
        )  # fmt: skip
        for k in range(s):
            for j in range(J):
                truth = pair(tensor, node[-1, k], node[j, k])
                worst = max(worst, _gap(np.exp(solved.leg(j, k)), truth))
        for k in range(s - 1):
            truth = pair(tensor, k, k + 1)
            worst = max(worst, _gap(np.exp(solved.barycentre_coupling(k)), truth))
            for j in range(J):
                truth = pair(tensor, node[j, k], node[j, k + 1])
                worst = max(worst, _gap(np.exp(solved.core_coupling(j, k)), truth))
    return worst


def series_parallel_error(random: np.random.Generator, J: int, s: int, eps: float) -> float:
    """The same for the series-parallel bridge: all couplings of all chains."""
    source, sink = random_cloud(random, 3), random_cloud(random, 4)
    chains = [[random_cloud(random, 3) for _ in range(s - 2)] for _ in range(J)]
    inner = {(j, k): 2 + j * (s - 2) + k for j in range(J) for k in range(s - 2)}
    numbers = [[0, *(inner[j, k] for k in range(s - 2)), 1] for j in range(J)]
    nodes = [[source, *chain, sink] for chain in chains]
    edges = [
        (number[k], number[k + 1], -cost(node[k], node[k + 1]) / eps)
        for number, node in zip(numbers, nodes, strict=True)
        for k in range(s - 1)
    ]
    flat = [source, sink, *(cloud for chain in chains for cloud in chain)]
    marginals = {i: cloud.weights for i, cloud in enumerate(flat)}
    tensor = tensor_sinkhorn([len(cloud) for cloud in flat], edges, marginals)
    solved = solve_series_parallel(chains, source, sink, eps, eps_unit="absolute", stopping=TIGHT)
    worst = 0.0
    for j in range(J):
        for k in range(s - 1):
            truth = pair(tensor, numbers[j][k], numbers[j][k + 1])
            worst = max(worst, _gap(np.exp(solved.couplings[j][k]), truth))
    return worst


def _gap(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(found - truth).max())


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
