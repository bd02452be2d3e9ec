"""Pictures of runs, one line each: `runs.plot.slowdowns()`. Every one returns matplotlib axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle._base.figure_style import COLOURS, axes_or_new, look_of, plain_ticks, seconds_on
from jostle._base.report import PictureMenu
from jostle.data.runs._solo_times import all_names, solo_medians
from jostle.errors import UsageError


class RunsPlots(PictureMenu):
    """Plots of runs, as `runs.plot`. Each method draws on `axes`, or on new ones, and returns them; axes have
    names and units. Raises UsageError where there is nothing to draw, MissingExtra without matplotlib."""

    def __init__(self, runs: Any) -> None:
        self._runs = runs.ok()

    def runtimes(self, *, axes: Any = None) -> Any:
        """Return how many of the runs took at most so long: a curve for each number of co-runners."""
        if not len(self._runs):
            raise UsageError("there is no run with a runtime to draw")
        degree = self._runs.colocations.number_of_corunners
        axes = axes_or_new(axes, size=(5.6, 3.4))
        for number, count in enumerate(np.unique(degree).tolist()):
            seconds = np.sort(self._runs.runtime_seconds[degree == count])
            share = 100 * np.arange(1, len(seconds) + 1) / len(seconds)
            label = f"{'alone' if not count else f'with {count} beside'} ({len(seconds)})"
            style = ("-", "--", "-.", ":")[number % 4]
            colour = look_of(number)[0]
            axes.step(seconds, share, style, where="post", color=colour, label=label)
        axes.set(xscale="log", xlabel="runtime", ylabel="runs that took at most this long (%)")
        seconds_on(axes.xaxis)
        axes.legend(fontsize=8, frameon=False)
        return axes

    def slowdowns(self, *, axes: Any = None) -> Any:
        """Return how many times as long as alone runs beside others took, by the number of co-runners: every
        run, and the median. Runs whose workload was not measured alone there are left out."""
        c = self._runs.colocations
        names = all_names(self._runs)
        log_solo = solo_medians(self._runs, *names)
        workload, platform, _ = c.recode(*names)
        slower = self._runs.runtime_seconds / np.exp(log_solo[platform, workload])
        known = np.isfinite(slower) & (c.number_of_corunners > 0)
        if not known.any():
            raise UsageError(
                "no run beside others whose workload ran alone on the same platform: no slowdown is known",
                fix="Measure each workload alone, too.",
            )
        axes = axes_or_new(axes, size=(4.8, 3.4))
        counts = np.unique(c.number_of_corunners[known]).tolist()
        for at, count in enumerate(counts):
            here = np.sort(slower[known & (c.number_of_corunners == count)])
            # Spread sideways evenly, so that the same runs make the same picture.
            aside = 0.32 * np.modf(np.arange(len(here)) * 0.6180339887)[0] - 0.16
            axes.plot(at + aside, here, ".", color=COLOURS[1], markersize=3, alpha=0.4)
            axes.hlines(np.median(here), at - 0.3, at + 0.3, color=COLOURS[2], linewidth=2)
            axes.annotate(f"{np.median(here):.2f}", (at + 0.32, np.median(here)), fontsize=8)
        axes.axhline(1, color=COLOURS[0], linewidth=0.8, linestyle="--")
        axes.set_xscale("linear")
        axes.set_xticks(range(len(counts)), [str(count) for count in counts])
        axes.set(yscale="log", xlabel="co-runners", ylabel="time / time alone (line: median)")
        axes.set_xlim(-0.6, len(counts) - 0.4)
        plain_ticks(axes.yaxis)
        return axes
