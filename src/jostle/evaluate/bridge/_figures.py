"""Pictures of forecasts: the distribution over time, and the paper's Figures 6, 7, 10 and 11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from jostle._drawing import COLOURS, GREY, legend_above, plotting, save
from jostle.bridge import (
    Bridge,
    Cloud,
    Forecast,
    Snapshots,
    Stopping,
    barycentre_support,
    edge_eps,
    solve_barycentric,
    solve_edge,
    solve_series_parallel,
)
from jostle.evaluate.bridge._data import COUNTERS, PAPER_SCALE, drift, read_published

GRID_SECONDS = np.linspace(0.01, 2.99, 7)  # snapshots of made traces


def draw_forecast(
    forecast: Forecast, folder: Path, *, core: int = 0, times: int = 120, name: str = "forecast"
) -> list[Path]:
    """Quantile bands over time of every component that ever changes, with the snapshots' own medians and
    ranges as bars."""
    first, last = forecast.span_seconds
    medians = np.array(
        [forecast.at(float(at), core).quantile([0.5])[0] for at in np.linspace(first, last, 12)]
    )
    names = np.array(forecast.components, object)
    changing = names[np.ptp(medians, axis=0) > 0].tolist() or [forecast.components[0]]
    wide = 1 if len(changing) <= 6 else 2
    rows = -(-len(changing) // wide)
    figure, axes = plotting().subplots(
        rows, wide, squeeze=False, sharex=True, figsize=(7.0 * wide, 1.9 * rows + 0.6)
    )
    plots = list(axes.T.flat)
    for plot in plots[len(changing) :]:
        plot.set_visible(False)
    pictures = forecast.plot
    for plot, component in zip(plots, changing, strict=False):
        pictures.over_time(component, core=core, times=times, axes=plot)
        plot.get_legend().remove()
        if plot not in axes[-1]:
            plot.set_xlabel("")
    legend_above(figure)
    return save(figure, folder, name)


def draw_convergence(folder: Path, *, published: Any = None, seed: int = 0) -> list[Path]:
    """Figure 6 (the path, on the published snapshots or made ones) and 10 (both multi-core graphs)."""
    stop = Stopping(hilbert=1e-12, marginal_l1=0.0, sweeps=400)
    if published is not None:
        _, arrays, _ = read_published(published, 4)
        scale = np.array([PAPER_SCALE[name] for name in COUNTERS])
        clouds = [Cloud.of(array).scaled(scale) for array in arrays]
        alike = "eps 0.1, the paper's units"
    else:
        alike = "eps 0.1 on every edge"
        clouds = _cores(1, 12, 200, seed)[0]
    by_edge = {
        label: [
            solve_edge(x, y, edge_eps(x, y, 0.1, unit), stopping=stop).convergence.residuals
            for x, y in pairwise(clouds)
        ]
        for label, unit in ((alike, "absolute"), ("eps 0.1 spread", "spread"))
    }
    figure = _residuals(by_edge, "Hilbert residual (no unit), worst edge")
    drawn = save(figure, folder, "figure-6-convergence-path")
    cores = _cores(4, 7, 150, seed)
    support = [barycentre_support([core[k] for core in cores], 200, seed) for k in range(7)]
    inner = [core[1:-1] for core in cores]
    barycentric = solve_barycentric(cores, support, stopping=stop).convergence
    series = solve_series_parallel(inner, cores[0][0], cores[0][-1], stopping=stop).convergence
    graphs = {"barycentric": [barycentric.residuals], "series-parallel": [series.residuals]}
    figure = _residuals(graphs, "Hilbert residual (no unit)")
    return drawn + save(figure, folder, "figure-10-convergence-multicore")


def draw_predicted(folder: Path, *, published: Any = None, seed: int = 0) -> list[Path]:
    """Figure 7 (third cycle of the published data, where given, or made traces) and 11 (made four-core
    traces)."""
    if published is not None:
        times, truth, prints = read_published(published, 5)
        train_times, arrays, known = read_published(published, 1)
        forecast = Forecast(Snapshots.from_arrays(train_times, arrays, COUNTERS), Bridge())
        # A time whose measurement is itself a training snapshot shows nothing.
        inside = [k for k in range(len(times)) if 2 < times[k] < 3 and prints[k] not in known]
        rows = [
            (f"cycle {times[k]:.2f}", forecast.at(float(times[k])).cloud, Cloud.of(truth[k]))
            for k in inside
        ]
    else:
        made = drift(400, seed=seed)
        train, test = (made.select(part) for part in (made.run_ids[:200], made.run_ids[200:]))
        moments = np.array([0.75, 1.25, 1.75, 2.25])
        forecast = Forecast(Snapshots.from_traces(train, COUNTERS, GRID_SECONDS), Bridge())
        measured = Snapshots.from_traces(test, COUNTERS, moments).of(0)
        rows = [
            (f"{at:.2f} s", forecast.at(float(at)).cloud, shot.cloud)
            for at, shot in zip(moments, measured, strict=True)
        ]
    drawn = save(_histograms(rows, COUNTERS), folder, "figure-7-predicted-path")
    traces = drift(200, seed=seed, cores=4)
    at = float((GRID_SECONDS[2] + GRID_SECONDS[3]) / 2)
    shots = Snapshots.from_traces(traces, COUNTERS, np.union1d(GRID_SECONDS, [at]))
    k = int(np.searchsorted(shots.times_seconds, at))
    for graph in ("barycentric", "series_parallel"):
        forecast = Forecast(shots.without(k), Bridge(graph=graph))
        rows = [
            (f"core {core}, {at:.2f} s", forecast.at(at, core).cloud, shots.of(core)[k].cloud)
            for core in range(4)
        ]
        drawn += save(_histograms(rows, COUNTERS), folder, f"figure-11-predicted-{graph}")
    return drawn


def _histograms(rows: Sequence[tuple[str, Cloud, Cloud]], components: Sequence[str]) -> Any:
    """A row per time or core, a column per component: predicted over measured."""
    plt = plotting()
    from matplotlib.ticker import EngFormatter, MaxNLocator

    n, d = len(rows), len(components)
    figure, axes = plt.subplots(n, d, squeeze=False, figsize=(2.6 * d, 1.5 * n + 0.5))
    for line, (label, guess, truth) in zip(axes, rows, strict=True):
        for column, axis in enumerate(line):
            both = np.concatenate([guess.atoms[:, column], truth.atoms[:, column]])
            bins = np.linspace(both.min(), both.max() + 1e-9, 31)
            for cloud, look in (
                (truth, {"color": GREY, "label": "measured"}),
                (guess, {"color": COLOURS[1], "label": "predicted", "histtype": "step"}),
            ):
                values = cloud.atoms[:, column]
                axis.hist(values, bins, weights=cloud.weights, density=True, **look)
            axis.set_yticks([])
            axis.xaxis.set_major_locator(MaxNLocator(4))
            axis.xaxis.set_major_formatter(EngFormatter(sep=" "))
        line[0].set_ylabel(label)
    for axis, component in zip(axes[-1], components, strict=True):
        axis.set_xlabel(f"{component} (1/s)")
    legend_above(figure)
    return figure


def _residuals(histories: Mapping[str, Sequence[Sequence[float]]], label: str) -> Any:
    """A curve for each entry: the worst residual of any of its histories, sweep by sweep."""
    figure, axis = plotting().subplots(figsize=(4.2, 3.0))
    for number, (name, each) in enumerate(histories.items()):
        worst = [max(residuals) for residuals in zip_longest(*each, fillvalue=0.0)]
        sweeps = range(1, len(worst) + 1)
        axis.semilogy(sweeps, np.maximum(worst, 1e-16), label=name, color=COLOURS[number + 1])
    axis.set_ylabel(label)
    axis.set_xlabel("sweeps of the solver")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _cores(cores: int, s: int, n: int, seed: int) -> list[list[Cloud]]:
    """Scaled clouds of made traces, [core][time]."""
    traces = drift(n, seed=seed, cores=cores)
    shots = Snapshots.from_traces(traces, COUNTERS, np.linspace(0.01, 2.99, s))
    scale = Forecast(shots, Bridge()).scale
    return [[shot.cloud.scaled(scale) for shot in shots.of(core)] for core in range(cores)]
