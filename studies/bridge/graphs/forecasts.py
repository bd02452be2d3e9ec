"""Couplings over time of all cores at once, by the graphs in which cores hang together."""

from __future__ import annotations

from jostle.errors import UsageError
from jostle.usage import Bridge, Cloud, Coupling, Forecast, Snapshots
from studies.bridge.graphs.barycentric import barycentre_support, solve_barycentric
from studies.bridge.graphs.series_parallel import solve_series_parallel

Solved = dict[tuple[int, int], Coupling]
BARYCENTRE_ATOMS, TERMINAL_ATOMS = (
    600,
    50,
)  # what the ends of a series-parallel graph are thinned to
GRAPHS = ("barycentric", "series_parallel")


class GraphForecast(Forecast):
    """A bridge whose cores are tied, by one of GRAPHS. barycentre_atoms: support of the barycentre."""

    def __init__(
        self,
        snapshots: Snapshots,
        method: Bridge,
        graph: str,
        barycentre_atoms: int = BARYCENTRE_ATOMS,
    ) -> None:
        super().__init__(snapshots, method)
        self._graph, self._support, self._tied = graph, barycentre_atoms, {}

    def coupling(self, k: int, core: int = 0, kind: str = "bridge") -> Coupling:
        """The coupling of snapshots k and k + 1, in scaled units; the first one asked for solves all."""
        if kind != "bridge":
            return super().coupling(k, core, kind)
        with self._lock:
            if not self._tied:
                numbers = sorted(self.snapshots.cores)
                cores = [[cloud.merged for cloud in self._clouds(core)] for core in numbers]
                self._tied = couple_cores(self.method, self._graph, numbers, cores, self._support)
            return self._tied[core, k]


def couple_cores(
    method: Bridge,
    graph: str,
    numbers: list[int],
    cores: list[list[Cloud]],
    barycentre_atoms: int = BARYCENTRE_ATOMS,
) -> Solved:
    """{(core, interval): coupling} of all cores; cores: their clouds in scaled units.

    Raises UsageError for fewer than two snapshots, or three with `series_parallel`.
    """
    fewest = 2 if graph == "barycentric" else 3
    if len(cores[0]) < fewest:
        raise UsageError(f"the {graph} graph needs {fewest} snapshots or more")
    unit = "spread" if method.eps_unit == "median" else method.eps_unit
    if graph == "barycentric":
        return _barycentric(method, numbers, cores, unit, barycentre_atoms)
    inner = [core[1:-1] for core in cores]
    solved = solve_series_parallel(
        inner,
        cores[0][0],
        cores[0][-1],
        method.eps,
        eps_unit=unit,
        stopping=method.stopping,
        terminal_atoms=TERMINAL_ATOMS,
        seed=method.seed,
    )
    couplings: Solved = {}
    for j, core in enumerate(numbers):
        nodes = [solved.source, *inner[j], solved.sink]
        for k, log_coupling in enumerate(solved.couplings[j]):
            x, y = nodes[k], nodes[k + 1]
            chosen = solved.eps[j][k]
            couplings[core, k] = Coupling(x, y, log_coupling, chosen, solved.convergence)
    return couplings


def _barycentric(
    method: Bridge, numbers: list[int], cores: list[list[Cloud]], unit: str, atoms: int
) -> Solved:
    s = len(cores[0])
    support = [
        barycentre_support([core[k] for core in cores], atoms, method.seed + k) for k in range(s)
    ]
    solved = solve_barycentric(cores, support, method.eps, eps_unit=unit, stopping=method.stopping)
    couplings: Solved = {}
    for j, core in enumerate(numbers):
        for k in range(s - 1):
            x, y = cores[j][k], cores[j][k + 1]
            joint = solved.core_coupling(j, k)
            couplings[core, k] = Coupling(x, y, joint, 0.0, solved.convergence)
    return couplings
