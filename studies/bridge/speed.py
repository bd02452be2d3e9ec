"""How fast forecasts are: CPU seconds of one thread on made snapshots; and whole paths, solved at once.

`solve_path_jointly` is the iteration over the whole path of Bondar, Gifford, Phan, Halder, Prop. 4, kept as a
reference: it gives the same couplings as the edges by themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from jostle.bridge import (
    Bridge,
    Cloud,
    Convergence,
    Coupling,
    Distribution,
    Forecast,
    Snapshots,
    Stopping,
    edge_eps,
    scale_of,
    solve_edge,
    squared_distances,
)
from jostle.errors import BadData, UsageError
from studies.bridge.data import COUNTERS, UNITS
from studies.bridge.graphs.barycentric import barycentre_support, solve_barycentric
from studies.bridge.graphs.logs import LogKernel, marginal_error, repeat
from studies.bridge.graphs.series_parallel import solve_series_parallel

Clock = Callable[[], float]
STRICT = Stopping(hilbert=1e-10, marginal_l1=0.0)


def speed_metrics(
    *, n: int = 500, s: int = 26, seed: int = 0, clock: Clock = time.process_time, repeats: int = 3
) -> dict[str, float]:
    """On made snapshots that drift; keys are documented in docs/bridge.md."""

    def timed(work: Callable[[], Any], times: int = repeats) -> float:
        taken = []
        for _ in range(times):
            began = clock()
            work()
            taken.append(clock() - began)
        return float(np.median(taken))

    clouds = _made_clouds(n, s, seed)
    eps = _median_eps(clouds)
    metrics = {
        "solve_seconds": timed(lambda: solve_path(clouds, eps, stopping=STRICT)),
        "paper_solve_seconds": timed(
            lambda: solve_path(clouds, [1000 * e for e in eps], stopping=STRICT)
        ),
        "s_exponent": _exponent(seed, timed),
    }
    snapshots = Snapshots.from_arrays(
        np.arange(s, dtype=float), [c.atoms * UNITS for c in clouds], COUNTERS
    )
    forecast = Forecast(snapshots, Bridge("bridge"))
    for k in range(s - 1):
        forecast.at(k + 0.5)
    moments = iter(np.linspace(0.3, s - 1.3, 20))
    metrics["query_seconds"] = timed(lambda: forecast.at(float(next(moments))), 20)
    metrics["covariance_error_ratio"] = max(
        _covariance_error(forecast.at(at)) for at in (0.5, 3.25, s - 1.4)
    )
    usual = Forecast(snapshots, Bridge())
    metrics["average_weights_seconds"] = timed(usual.stack, 1)
    usual.at(0.5)
    again = iter(np.linspace(0.2, 0.8, 20))
    metrics["average_query_seconds"] = timed(lambda: usual.at(float(next(again))), 19)
    return metrics | _multicore_speed(seed, clock)


def _exponent(seed: int, timed: Callable[[Callable[[], Any]], float]) -> float:
    """How the time to solve grows with the number of snapshots, as a power."""
    lengths = (10, 20, 40, 80)
    # One edge's number of sweeps is not another's: the same edges, repeated, make longer paths.
    first = _made_clouds(200, max(lengths), seed)[: lengths[0]]
    eps = _median_eps(first[:2])[0]
    seconds = []
    for length in lengths:
        path = [first[i % lengths[0]] for i in range(length)]
        each = [eps if (i + 1) % lengths[0] else 1.0 for i in range(length - 1)]
        seconds.append(timed(lambda p=path, e=each: solve_path(p, e, stopping=STRICT)))
    return float(np.polyfit(np.log(np.array(lengths, float)), np.log(seconds), 1)[0])


def _median_eps(clouds: list[Cloud]) -> list[float]:
    return [edge_eps(x, y, 0.1, "median") for x, y in pairwise(clouds)]


def _covariance_error(found: Distribution) -> float:
    """How far the trace of the drawn atoms' covariance is from that of all pairs."""
    unit = np.sqrt(np.diag(found.covariance))
    drawn = found.cloud.covariance / np.outer(unit, unit)
    return float(abs(np.trace(drawn) / len(unit) - 1))


def _multicore_speed(seed: int, clock: Clock) -> dict[str, float]:
    """Seconds per sweep: four cores, seven snapshots, 400 atoms, 600 of the barycentre."""
    J, s, n, m, sweeps = 4, 7, 400, 600, 10
    cores = [_made_clouds(n, s, seed + 1 + j) for j in range(J)]
    support = [barycentre_support([core[k] for core in cores], m, seed) for k in range(s)]
    fixed = Stopping(hilbert=0.0, marginal_l1=0.0, sweeps=sweeps)
    inner = [core[1:-1] for core in cores]
    ends = cores[0][0], cores[0][-1]
    found = {}
    for name, work in (
        ("barycentric", lambda: solve_barycentric(cores, support, stopping=fixed)),
        ("series_parallel", lambda: solve_series_parallel(inner, *ends, stopping=fixed)),
        (
            "series_parallel_thinned",
            lambda: solve_series_parallel(inner, *ends, stopping=fixed, terminal_atoms=50),
        ),
    ):
        began = clock()
        work()
        found[f"{name}_sweep_seconds"] = (clock() - began) / sweeps
    return found


def _made_clouds(n: int, s: int, seed: int) -> list[Cloud]:
    """Scaled clouds of a made drift."""
    random = np.random.default_rng(seed)
    effect = np.exp(0.1 * random.standard_normal((n, 3)))
    clouds = []
    for k in range(s):
        wave = 1 + 0.6 * np.sin(2 * np.pi * k / s * np.array([0.7, 1.0, 1.4]) + np.arange(3))
        noise = np.exp(0.15 * random.standard_normal((n, 3)))
        clouds.append(Cloud.of(wave * effect * noise))
    scale = scale_of(clouds)
    return [cloud.scaled(scale) for cloud in clouds]


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

    convergence = repeat(stopping or Stopping(), sweep)
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
