"""All couplings of a path of snapshots: edge by edge, and by the paper's sweeps over the whole path.

Source: Bondar, Gifford, Phan, Halder, Sec. IV-C. `solve_path_jointly` is the paper's iteration over the whole
path, kept as a reference: it gives the same couplings as the edges by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from jostle.bridge import (
    Cloud,
    Convergence,
    Coupling,
    LogKernel,
    Stopping,
    marginal_error,
    solve_edge,
    squared_distances,
)
from jostle.errors import BadData, UsageError


def solve_path(
    clouds: Sequence[Cloud],
    eps: Sequence[float],
    *,
    stopping: Stopping | None = None,
    threads: int = 1,
) -> list[Coupling]:
    """The couplings of consecutive clouds; eps: one per edge. Edges are solved by `threads` threads."""
    _check_path(clouds, eps)

    def solve(edge: int) -> Coupling:
        x, y = clouds[edge], clouds[edge + 1]
        return solve_edge(x, y, eps[edge], stopping=stopping)

    if threads <= 1:
        return [solve(edge) for edge in range(len(eps))]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(solve, range(len(eps))))


def solve_path_jointly(
    clouds: Sequence[Cloud], eps: Sequence[float], *, stopping: Stopping | None = None
) -> tuple[list[np.ndarray], Convergence]:
    """The same couplings by the paper's sweeps over all snapshots (Prop. 4), in logarithms.

    Returns log couplings and how it ended. A sweep is one message back and one forward along the path,
    which updates every potential once: O(s n^2).
    """
    _check_path(clouds, eps)
    kernels = [
        LogKernel(-squared_distances(x.atoms, y.atoms) / e)
        for (x, y), e in zip(pairwise(clouds), eps, strict=True)
    ]
    log_mu = [np.log(cloud.weights) for cloud in clouds]
    f, a, b = ([np.zeros(len(cloud)) for cloud in clouds] for _ in range(3))
    couplings: list[np.ndarray] = []

    def sweep() -> tuple[float, float]:
        for k in range(len(kernels) - 1, -1, -1):
            b[k] = kernels[k].backward(f[k + 1] + b[k + 1])
        residual = 0.0
        for k in range(len(clouds)):
            if k:
                a[k] = kernels[k - 1].forward(a[k - 1] + f[k - 1])
            move = log_mu[k] - a[k] - b[k] - f[k]
            residual = max(residual, float(np.ptp(move)))
            f[k] = f[k] + move
        couplings[:] = [
            (a[k] + f[k])[:, None] + kernel.log_kernel + (f[k + 1] + b[k + 1])
            for k, kernel in enumerate(kernels)
        ]
        return residual, marginal_error(couplings, clouds)

    convergence = (stopping or Stopping()).repeat(sweep)
    return couplings, convergence


def _check_path(clouds: Sequence[Cloud], eps: Sequence[float]) -> None:
    """Raises BadData for fewer than two clouds or different dimensions, UsageError for eps."""
    if len(clouds) < 2:
        raise BadData(f"a bridge needs at least two snapshots, not {len(clouds)}")
    if len({cloud.atoms.shape[1] for cloud in clouds}) > 1:
        raise BadData("the snapshots have different numbers of components")
    if len(eps) != len(clouds) - 1:
        raise UsageError(f"{len(eps)} eps for {len(clouds) - 1} edges")
    if not all(np.isfinite(e) and e > 0 for e in eps):
        raise UsageError("every eps must be above 0 and finite")
