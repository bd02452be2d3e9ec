"""Couplings over time of all cores at once, by the graphs in which cores hang together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._snapshots import Snapshots
from jostle.bridge.solvers._barycentric import barycentre_support, solve_barycentric
from jostle.bridge.solvers._coupling import Coupling
from jostle.bridge.solvers._path import edge_eps
from jostle.bridge.solvers._series_parallel import solve_series_parallel
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.bridge.forecasting._settings import Bridge

Solved = dict[tuple[int, int], Coupling]


def couple_cores(
    method: Bridge, eps: float, snapshots: Snapshots, clouds: Callable[[int], list[Cloud]]
) -> Solved:
    """{(core, interval): coupling} of all cores; clouds(core): its clouds in scaled units.

    Raises UsageError for fewer than two snapshots, or three with `series_parallel`.
    """
    numbers = sorted(snapshots.cores)
    cores = [[cloud.merged for cloud in clouds(core)] for core in numbers]
    if not np.isfinite(eps):
        raise UsageError(f"the {method.graph} graph needs a finite eps, not {eps}")
    fewest = 2 if method.graph == "barycentric" else 3
    if len(snapshots) < fewest:
        raise UsageError(f"the {method.graph} graph needs {fewest} snapshots or more")
    unit = "spread" if method.eps_unit == "median" else method.eps_unit
    if method.graph == "barycentric":
        return _barycentric(method, eps, numbers, cores, unit)
    inner = [core[1:-1] for core in cores]
    solved = solve_series_parallel(
        inner,
        cores[0][0],
        cores[0][-1],
        eps,
        eps_unit=unit,
        stopping=method.stopping,
        terminal_atoms=method.terminal_atoms,
        seed=method.seed,
    )
    couplings: Solved = {}
    for j, core in enumerate(numbers):
        nodes = [solved.source, *inner[j], solved.sink]
        for k, log_coupling in enumerate(solved.couplings[j]):
            x, y = nodes[k], nodes[k + 1]
            chosen = solved.eps[j][k]
            # What an edge has beyond the wanted eps is for the solver to converge, not the program's noise.
            own = eps if unit == "absolute" else min(edge_eps(x, y, eps, unit), chosen)
            couplings[core, k] = Coupling(
                x, y, log_coupling, chosen, solved.convergence, noise_eps=own
            )
    return couplings


def _barycentric(
    method: Bridge, eps: float, numbers: list[int], cores: list[list[Cloud]], unit: str
) -> Solved:
    s = len(cores[0])
    support = [
        barycentre_support([core[k] for core in cores], method.barycentre_atoms, method.seed + k)
        for k in range(s)
    ]
    solved = solve_barycentric(cores, support, eps, eps_unit=unit, stopping=method.stopping)
    couplings: Solved = {}
    for j, core in enumerate(numbers):
        for k in range(s - 1):
            x, y = cores[j][k], cores[j][k + 1]
            joint = solved.core_coupling(j, k)
            # eps 0: the law between two snapshots of a core is no Brownian bridge, so it has no noise.
            couplings[core, k] = Coupling(x, y, joint, 0.0, solved.convergence)
    return couplings
