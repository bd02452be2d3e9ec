"""The figures of merit of forecasts, in one place: correctness, speed, accuracy, and the paper's tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from jostle.bridge import (
    METHODS,
    Bridge,
    Cloud,
    Forecast,
    Snapshots,
    Stopping,
    barycentre_support,
    few,
    scale_of,
    solve_barycentric,
    solve_path,
    solve_series_parallel,
    squared_distances,
    wasserstein,
)
from jostle.evaluate.bridge._data import (
    COUNTERS,
    PAPER_SCALE,
    UNITS,
    drift,
    read_published,
)
from jostle.evaluate.bridge._scores import Scores

Clock = Callable[[], float]
STRICT = Stopping(hilbert=1e-10, marginal_l1=0.0)


def speed_metrics(
    *, n: int = 500, s: int = 26, seed: int = 0, clock: Clock = time.process_time, repeats: int = 3
) -> dict[str, float]:
    """CPU seconds of one thread on made snapshots that drift; keys are documented in docs/bridge.md."""
    clouds = _made_clouds(n, s, seed)
    eps = [0.1 * float(np.median(squared_distances(x.atoms, y.atoms))) for x, y in pairwise(clouds)]
    metrics: dict[str, float] = {}

    def timed(work: Callable[[], Any], times: int = repeats) -> float:
        taken = []
        for _ in range(times):
            began = clock()
            work()
            taken.append(clock() - began)
        return float(np.median(taken))

    metrics["solve_seconds"] = timed(lambda: solve_path(clouds, eps, stopping=STRICT))
    metrics["paper_solve_seconds"] = timed(
        lambda: solve_path(clouds, [1000 * e for e in eps], stopping=STRICT)
    )
    lengths = (10, 20, 40, 80)
    small = _made_clouds(200, max(lengths), seed)
    middle = [
        0.1 * float(np.median(squared_distances(x.atoms, y.atoms))) for x, y in pairwise(small)
    ]
    # One edge's number of sweeps is not another's: the same edges, repeated, make longer paths.
    first = small[: lengths[0]]
    seconds = []
    for length in lengths:
        path = [first[i % lengths[0]] for i in range(length)]
        pairs = [middle[0] if (i + 1) % lengths[0] else 1.0 for i in range(length - 1)]
        seconds.append(timed(lambda p=path, e=pairs: solve_path(p, e, stopping=STRICT)))
    edges = np.log(np.array(lengths, float))
    metrics["s_exponent"] = float(np.polyfit(edges, np.log(seconds), 1)[0])
    snapshots = Snapshots.from_arrays(
        np.arange(s, dtype=float), [c.atoms * UNITS for c in clouds], COUNTERS
    )
    asked = Forecast(snapshots, Bridge())
    asked.solve()
    for k in range(s - 1):
        asked.at(k + 0.5)
    moments = iter(np.linspace(0.3, s - 1.3, 20))
    metrics["query_seconds"] = timed(lambda: asked.at(float(next(moments))), 20)
    metrics["covariance_error_ratio"] = max(
        _covariance_error(asked.at(at)) for at in (0.5, 3.25, s - 1.4)
    )
    return metrics | _multicore_speed(seed, clock)


def _covariance_error(found: Any) -> float:
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


def accuracy_metrics(scores: Sequence[Scores]) -> dict[str, float]:
    """`w2_over_oracle_ratio_METHOD_DATA`, `w2_oracle_DATA`, `leaks_DATA` and
    `select_over_best_ratio_DATA`: the selector against the best single method it could have taken."""
    metrics: dict[str, float] = {}
    for one in scores:
        tag = one.name.replace("-", "_")
        metrics[f"w2_oracle_{tag}"] = one.mean("oracle")
        metrics[f"leaks_{tag}"] = float(one.leaks)
        for method in one.w2:
            if method != "oracle":
                metrics[f"w2_over_oracle_ratio_{method}_{tag}"] = one.ratio(method)
        single = [method for method in METHODS if method in one.w2]
        best = min(one.mean(method) for method in single)
        metrics[f"select_over_best_ratio_{tag}"] = one.mean("select") / best
    return metrics


def score_rows(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """A table for people: methods by mean W2, with paired differences to exact transport."""
    rows = []
    for method in sorted(scores.w2, key=scores.mean):
        gap, error = scores.paired(method)
        rows.append(
            [
                method,
                f"{scores.mean(method):.3f}",
                f"{scores.ratio(method):.2f}",
                f"{scores.skill(method):.2f}",
                "" if method == "ot" else f"{gap:+.3f} ± {error:.3f}",
                f"{scores.mean(method, 'q95'):.3f}",
                f"{scores.mean(method, 'q99'):.3f}",
                f"{1e3 * scores.mean(method, 'brier'):.2f}",
                *(f"{value:.3g}" for value in scores.component_errors(method).values()),
            ]
        )
    columns = ["method", "W2", "over oracle", "skill", "vs ot", "q95 error", "q99 error"]
    return [*columns, "Brier 1e-3", *(f"W1 {name}" for name in scores.components)], rows


def score_document(scores: Scores) -> dict[str, Any]:
    """The same as a document: every method's errors, per component in its own units."""
    return {
        "name": scores.name,
        "questions": scores.asked - scores.leaks,
        "leaks": scores.leaks,
        "methods": {
            method: {
                "w2_scaled": scores.mean(method),
                "w2_over_oracle_ratio": scores.ratio(method),
                "q95_error_scaled": scores.mean(method, "q95"),
                "q99_error_scaled": scores.mean(method, "q99"),
                "brier": scores.mean(method, "brier"),
                "w1_per_second": scores.component_errors(method),
            }
            for method in scores.w2
        },
    }


@dataclass(frozen=True)
class TableTwo:
    """Table II in layout: rows by snapshots inside a cycle, columns by time in the third cycle.

    w2[i][j]: in the paper's units, None where the held-out snapshot is itself a training snapshot.
    """

    between: tuple[int, ...]
    times: tuple[float, ...]
    paper: list[list[float | None]]
    default: list[list[float | None]]


def table_two(folder: Any, between: Sequence[int] = (0, 1, 2, 3, 4)) -> TableTwo:
    """All 500 runs on both sides, as the paper has it: a low score can be a shared run's. Leaks are None."""
    scale = np.array([PAPER_SCALE[name] for name in COUNTERS])
    times, truth, prints = read_published(folder, 5)
    inside = [k for k in range(len(times)) if 2 < times[k] < 3]
    tables: dict[str, list[list[float | None]]] = {"paper": [], "default": []}
    for count in between:
        train_times, clouds, known = read_published(folder, count)
        snapshots = Snapshots.from_arrays(train_times, clouds, COUNTERS)
        for name, method in (("paper", Bridge.paper(PAPER_SCALE)), ("default", Bridge())):
            forecast = Forecast(snapshots, method)
            row: list[float | None] = []
            for k in inside:
                if prints[k] in known:
                    row.append(None)
                    continue
                guess = few(forecast.at(float(times[k])).cloud, 500, 0)
                row.append(wasserstein(guess.scaled(scale), Cloud.of(truth[k]).scaled(scale)))
            tables[name].append(row)
    asked = tuple(float(times[k]) for k in inside)
    return TableTwo(tuple(between), asked, tables["paper"], tables["default"])


def table_three(
    *, runs: int = 150, seed: int = 0, times: int = 5, cores: int = 4, snapshots: int = 7
) -> dict[str, list[list[float]]]:
    """Table III in layout, on made four-core traces that drift: {graph: [core][time] W2}, and the oracle."""
    traces = drift(2 * runs, seed=seed, cores=cores)
    ids = traces.run_ids
    grid = np.linspace(0.01, 2.99, snapshots)
    asked = (grid[1 : times + 1] + grid[2 : times + 2])[: min(times, snapshots - 3)] / 2
    everything = np.union1d(grid, asked)
    a, b = (
        Snapshots.from_traces(traces.select(part), COUNTERS, everything)
        for part in (ids[:runs], ids[runs:])
    )
    train = a.select(np.searchsorted(everything, grid))
    found: dict[str, list[list[float]]] = {}
    for graph in ("barycentric", "series_parallel", "path", "ot", "oracle"):
        method = Bridge(graph=graph if graph not in ("ot", "oracle") else "path")
        forecast = Forecast(train, method)
        found[graph] = []
        for core in range(cores):
            row = []
            for at in asked:
                k = int(np.searchsorted(everything, at))
                truth = b.of(core)[k].cloud.scaled(forecast.scale)
                if graph == "oracle":
                    guess = a.of(core)[k].cloud
                else:
                    way = "ot" if graph == "ot" else "bridge"
                    guess = few(forecast.at(float(at), core, method=way).cloud, 500, 0)
                row.append(wasserstein(guess.scaled(forecast.scale), truth))
            found[graph].append(row)
    return found
