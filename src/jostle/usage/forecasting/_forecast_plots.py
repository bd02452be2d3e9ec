"""Pictures of a forecast, one line each: `forecast.plot.over_time()`. Every one returns matplotlib axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jostle._base.figure_files import save
from jostle._base.figure_style import COLOURS, axes_or_new, legend_above, plotting
from jostle._base.report import PictureMenu
from jostle.data import is_level
from jostle.errors import require_known

BANDS = ((0.05, 0.95, 0.25), (0.25, 0.75, 0.5))  # from which quantile to which, how dark
MOST_MARKS = 40  # snapshots whose own spread is drawn


class ForecastPlots(PictureMenu):
    """What `forecast.plot` gives. Each method draws on `axes`, or on new ones, and returns them; axes have
    names and units. Raises MissingExtra without matplotlib."""

    def __init__(self, forecast: Any) -> None:
        self._forecast = forecast
        self._known: dict[tuple[bytes, tuple[float, ...], int], np.ndarray] = {}

    def over_time(
        self, component: str | None = None, *, core: int = 0, times: int = 120, axes: Any = None
    ) -> Any:
        """Quantile bands of one component between the first snapshot and the last, with the snapshots' own
        medians and ranges (5% to 95%) as bars. component: the first unless given. times: at how many times
        it is asked. Raises UnknownName."""
        from matplotlib.ticker import EngFormatter

        column, name = self._column(component), component or self._forecast.components[0]
        first, last = self._forecast.span_seconds
        at = np.linspace(first, last, times)
        levels = sorted({level for low, high, _ in BANDS for level in (low, high)} | {0.5})
        table = self._quantiles(at, levels, core)[:, :, column]
        shots = self._forecast.snapshots.times_seconds
        shown = shots[:: max(1, len(shots) // MOST_MARKS)]
        low, middle, high = self._quantiles(shown, [0.05, 0.5, 0.95], core)[:, :, column].T
        axes = axes_or_new(axes, size=(7.0, 3.0))
        for lowest, highest, alpha in BANDS:
            band = (table[:, levels.index(lowest)], table[:, levels.index(highest)])
            label = f"{lowest:.0%} to {highest:.0%}"
            axes.fill_between(at, *band, alpha=alpha, color=COLOURS[6], linewidth=0, label=label)
        axes.plot(at, table[:, levels.index(0.5)], color=COLOURS[1], label="median")
        look = {"fmt": ".", "color": COLOURS[0], "linewidth": 0.8, "markersize": 4}
        axes.errorbar(shown, middle, [middle - low, high - middle], label="measured", **look)
        axes.set(xlabel="time since the run began (s)", ylabel=_with_unit(name))
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
        return axes

    def at(
        self, time_seconds: float, component: str | None = None, *, core: int = 0, axes: Any = None
    ) -> Any:
        """Return the distribution of one component at a time: the probability that more than so much is used.

        Raises UnknownName, and UsageError outside the data.
        """
        from matplotlib.ticker import EngFormatter

        column, name = self._column(component), component or self._forecast.components[0]
        cloud = self._forecast.at(time_seconds, core).cloud
        order = np.argsort(cloud.atoms[:, column], kind="stable")
        values = cloud.atoms[order, column]
        more = 100 * (1 - np.cumsum(cloud.weights[order]) / cloud.weights.sum())
        axes = axes_or_new(axes, size=(4.8, 3.2))
        axes.step(values, np.clip(more, 0, 100), where="post", color=COLOURS[1])
        axes.set(xlabel=_with_unit(name), ylabel="probability of more (%)", ylim=(0, 102))
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_title(f"{time_seconds:g} s after the start, core {core}", fontsize=10)
        return axes

    def _quantiles(self, times: np.ndarray, levels: list[float], core: int) -> np.ndarray:
        """Return (times, levels, components), asked for once however many components are drawn."""
        key = (times.tobytes(), tuple(levels), core)
        if key not in self._known:
            quantiles = [self._forecast.at(float(t), core).quantile(levels) for t in times]
            self._known[key] = np.array(quantiles)
        return self._known[key]

    def _column(self, component: str | None) -> int:
        names = self._forecast.components
        if component is None:
            return 0
        require_known("component", component, names)
        return names.index(component)


def _with_unit(component: str) -> str:
    return component if is_level(component) else f"{component} (1/s)"


def draw_forecast(
    forecast: Any, folder: Path, *, core: int = 0, times: int = 120, name: str = "forecast"
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
