"""Pictures of forecasts: the distribution over time, and the paper's Figures 6, 7, 10 and 11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from jostle._drawing import COLOURS, GREY, legend_above, plotting, save
from jostle.bridge import Bridge, Cloud, Forecast, Snapshots, Stopping, edge_eps, solve_edge
from studies.bridge.data import COUNTERS, INTERVAL_SECONDS
from studies.bridge.experiments import (
    ASKED,
    GRAPHS,
    PAPER_UNITS,
    AcrossContexts,
    MultiCore,
    SingleCore,
)
from studies.bridge.programs import CACHES_MB

MOST_LINES = 60  # profiles that are drawn


def draw_convergence(folder: Path, single: SingleCore, multi: MultiCore) -> list[Path]:
    """Figure 6 (the path, one cycle at a time apart) and 10 (both multi-core graphs)."""
    stop = Stopping(hilbert=1e-12, marginal_l1=0.0, sweeps=400)
    _, arrays, _ = single.read(4, False)
    clouds = [Cloud.of(array).scaled(PAPER_UNITS) for array in arrays]
    by_edge = {
        label: [
            solve_edge(x, y, edge_eps(x, y, 0.1, unit), stopping=stop).convergence.residuals
            for x, y in pairwise(clouds)
        ]
        for label, unit in (
            ("eps 0.1, the paper's units", "absolute"),
            ("eps 0.1 spread", "spread"),
        )
    }
    figure = _residuals(by_edge, "Hilbert residual (no unit), worst edge")
    drawn = save_with(figure, folder, "figure-6-convergence-path", single.source)
    graphs = {
        graph.replace("_", "-"): [multi.forecast(graph).coupling(0, 0).convergence.residuals]
        for graph in GRAPHS
    }
    figure = _residuals(graphs, "Hilbert residual (no unit)")
    return drawn + save_with(figure, folder, "figure-10-convergence-multicore", multi.source)


def draw_predicted(folder: Path, single: SingleCore, multi: MultiCore) -> list[Path]:
    """Figure 7 (the third cycle) and 11 (four cores, both graphs), predicted and measured."""
    times, truth, prints = single.read(5, True)
    train_times, arrays, known = single.read(1, False)
    forecast = Forecast(Snapshots.from_arrays(train_times, arrays, COUNTERS), Bridge())
    # A time whose measurement is itself a training snapshot shows nothing.
    inside = [k for k in range(len(times)) if 2 < times[k] < 3 and prints[k] not in known]
    rows = [
        (f"cycle {times[k]:.2f}", forecast.at(float(times[k])).cloud, Cloud.of(truth[k]))
        for k in inside
    ]
    figure = _histograms(rows, COUNTERS, "per 10 ms")
    drawn = save_with(figure, folder, "figure-7-predicted-path", single.source)
    at = multi.held_out_seconds[1]
    for graph in GRAPHS:
        forecast = multi.forecast(graph)
        rows = [
            (f"core {core}, {at:g} s", forecast.at(at, core).cloud, multi.measured(core, at))
            for core in sorted(multi.train.cores)
        ]
        name = f"figure-11-predicted-{graph.replace('_', '-')}"
        drawn += save_with(_histograms(rows, COUNTERS, "1/s"), folder, name, multi.source)
    return drawn


def save_with(figure: Any, folder: Path, name: str, source: str) -> list[Path]:
    """`save`, with a line below that says whose data it shows."""
    figure.text(0.0, -0.02, source, fontsize=7, color=GREY, va="top")
    return save(figure, folder, name)


def _histograms(
    rows: Sequence[tuple[str, Cloud, Cloud]], components: Sequence[str], unit: str
) -> Any:
    """A row per time or core, a column per component: predicted over measured."""
    plt = plotting()
    from matplotlib.ticker import EngFormatter, MaxNLocator

    n, d = len(rows), len(components)
    figure, axes = plt.subplots(n, d, squeeze=False, figsize=(2.6 * d, 1.5 * n + 0.5))
    for line, (label, guess, truth) in zip(axes, rows, strict=True):
        for column, axis in enumerate(line):
            both = np.concatenate([guess.atoms[:, column], truth.atoms[:, column]])
            # Where all is one value, bins around it.
            wide = np.ptp(both) or 0.1 * abs(both[0]) or 1.0
            bins = np.linspace(both.min() - 1e-3 * wide, both.min() + 1.001 * wide, 31)
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
        axis.set_xlabel(f"{component} ({unit})")
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


def draw_profiles(folder: Path, single: SingleCore, multi: MultiCore) -> list[Path]:
    """Figures 5 and 9: runs as lines, a row per component; and when control cycles end."""
    times, values, unit = single.profiles
    figure, axes = plotting().subplots(len(COUNTERS), 1, sharex=True, figsize=(6.4, 4.8))
    for column, (axis, name) in enumerate(zip(axes, COUNTERS, strict=True)):
        _lines(axis, times, values[:MOST_LINES, :, column])
        axis.set_ylabel(f"{name}\nper 10 ms")
    marks = single.ends.mean(axis=0) if unit == "s" else np.arange(1, times[-1])
    for axis in axes:
        for mark in marks:
            axis.axvline(mark, color=COLOURS[2], linewidth=0.8, linestyle="--")
    axes[-1].set_xlabel(f"since the run began ({unit}); dashed: control cycles end, on average")
    drawn = save_with(figure, folder, "figure-5-profiles-single", single.source)
    cores = sorted(multi.train.cores)
    size = (2.6 * len(cores), 4.8)
    figure, axes = plotting().subplots(
        len(COUNTERS), len(cores), sharex=True, sharey="row", figsize=size
    )
    every = list(multi.traces.select(multi.traces.run_ids[:MOST_LINES]))
    times = every[0].time_seconds[::5]  # all runs are as long
    for number, core in enumerate(cores):
        for row, name in enumerate(COUNTERS):
            axis = axes[row, number]
            counts = [trace.counters[name][::5] for trace in every if trace.core == core]
            _lines(axis, times, np.array(counts))
            axis.set_title(f"core {core}" if not row else "", fontsize=9)
        axes[-1, number].set_xlabel("since the run began (s)")
    for row, name in enumerate(COUNTERS):
        axes[row, 0].set_ylabel(f"{name}\nper 10 ms")
    drawn += save_with(figure, folder, "figure-9-profiles-multicore", multi.source)
    figure, axis = plotting().subplots(figsize=(6.4, 2.6))
    for number, ends in enumerate(single.ends.T):
        colour = COLOURS[1 + number % (len(COLOURS) - 2)]
        axis.hist(ends, 30, color=colour, histtype="step", label=f"cycle {number + 1}")
    axis.set(xlabel="a control cycle ended (s)", ylabel="runs")
    legend_above(figure)
    return drawn + save_with(figure, folder, "figure-cycle-ends", single.ends_source)


def draw_misses(folder: Path, cache: AcrossContexts) -> list[Path]:
    """Figure 8: the mean number of misses by the cache's size, measured and between."""
    figure, axis = plotting().subplots(figsize=(5.2, 3.2))
    column, unit = COUNTERS.index("llc-misses"), INTERVAL_SECONDS
    known = {value: law.mean[column] * unit for value, law in cache.known.items()}
    axis.plot(list(known), list(known.values()), "o-", color=COLOURS[0], label="learned from")
    for name, look in (("truth", "s"), ("bridge", "^")):
        asked = {value: laws[name].mean[column] * unit for value, laws in cache.answers.items()}
        label = "measured between" if name == "truth" else "forecast between"
        colour = COLOURS[7 if name == "truth" else 1]
        axis.plot(list(asked), list(asked.values()), look, color=colour, label=label)
    for value in CACHES_MB:
        axis.axvline(value, color=COLOURS[2], linewidth=0.8, linestyle="--")
    axis.set(xlabel="share of the cache (MB)", ylabel="llc-misses per 10 ms, mean", ylim=(0, None))
    legend_above(figure)
    return save_with(figure, folder, "figure-8-misses-by-cache", cache.source)


def draw_contexts(folder: Path, one: AcrossContexts) -> list[Path]:
    """Forecast and measured distributions at allocations that nobody measured."""
    unit = ASKED[one.kind].split(" ", 1)[0]
    rows = [
        (f"{asked:g} {unit}", laws["bridge"].cloud, laws["truth"].cloud)
        for asked, laws in one.answers.items()
    ]
    figure = _histograms(rows, COUNTERS, "1/s")
    return save_with(figure, folder, f"figure-contexts-{one.kind}", one.source)


def _lines(axis: Any, times: np.ndarray, values: np.ndarray) -> None:
    """A thin line for each of the rows of values (runs, T)."""
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import EngFormatter

    lines = [np.stack([times, row], axis=1) for row in values]
    look = {"colors": COLOURS[1], "linewidths": 0.4, "alpha": 0.3}
    axis.add_collection(LineCollection(lines, rasterized=True, **look))
    axis.autoscale_view()
    axis.yaxis.set_major_formatter(EngFormatter(sep=" "))
