"""Pictures of a bag evaluation, after Moolchandani et al.: Fig. 4 and 5-9."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.figure_files import save
from jostle._base.figure_style import COLOURS, GREY, plotting
from jostle._base.report import percent
from studies.drawing import draw_bars

if TYPE_CHECKING:
    from studies.bag.evaluation import BagsEvaluation

_BASELINES = {
    "solo": "time alone",
    "twice_solo": "time alone × members",
    "solo_constant": "time alone and a constant",
}


def draw_bags(results: BagsEvaluation, folder: str | os.PathLike[str]) -> list[Path]:
    """PNG and SVG in `folder`/figures; returns their paths. Raises MissingExtra."""
    drawn = save(_benchmarks(results), Path(folder), "bag-figure-4-benchmarks")
    return drawn + save(_ablation(results), Path(folder), "bag-figure-5-9-ablation")


def _benchmarks(results: BagsEvaluation) -> Any:
    """Errors with each benchmark left out, of the best baseline, the tree and bags."""
    figure, axes = plotting().subplots(figsize=(8, 3.4), layout="constrained")
    bars = []
    shown = (_best_baseline(results, "application"), "tree", "bag")
    for colour, method in zip((COLOURS[1], COLOURS[5], GREY), shown, strict=True):
        mean = _error(results, "application", method)
        title = _BASELINES.get(method, method)
        heights = [100 * error for error in results.errors[method].values()]
        bars.append((f"{title} (mean {mean:.1f}%)", heights, colour))
    draw_bars(axes, bars)
    names = list(results.errors["bag"])
    axes.set_xticks(np.arange(len(names)), names, rotation=35, ha="right", fontsize=8)
    axes.set_ylabel("mean relative error (%)")
    axes.set_title("Error with one benchmark left out", fontsize=10, pad=24)
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _ablation(results: BagsEvaluation) -> Any:
    """Errors by group of features, in both tests, beside the best baseline."""
    start = ("only_", "without_", "mix_")
    whole = ("boosting", "bag")  # all groups, by the trees alone and beside rules
    names = [name for name in results.methods if name in whole or name.startswith(start)]
    size = (9, 0.32 * len(names) + 1.4)
    figure, sides = plotting().subplots(1, 2, figsize=size, layout="constrained")
    for axes, test in zip(sides, ("application", "pair"), strict=True):
        values = [_error(results, test, name) for name in names]
        baseline = _best_baseline(results, test)
        constant = _error(results, test, baseline)
        edge = min(1.05 * max(*values, constant), 4 * constant)
        label = f"{_BASELINES[baseline]} ({constant:.1f}%)"
        axes.barh(range(len(names)), np.minimum(values, edge), color=COLOURS[1])
        axes.axvline(constant, color=COLOURS[2], linestyle="--", label=label)
        axes.set_yticks(range(len(names)), [n.replace("_", " ") for n in names], fontsize=8)
        axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, edge))  # downwards
        axes.grid(axis="y", visible=False)
        for at, value in enumerate(values):
            # Beside the plot, where nothing is in the way; a bar that is cut off says so.
            text = percent(value / 100) + (" (cut off)" if value > edge else "")
            where = {"xycoords": ("axes fraction", "data"), "va": "center"}
            axes.annotate(text, (1.02, at), fontsize=7, **where)
        axes.set_xlabel("mean relative error (%)")
        axes.set_title(f"{test} held out", fontsize=10, pad=20)
        axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _error(results: BagsEvaluation, test: str, name: str) -> float:
    """Of every run, in per cent."""
    return 100 * results.metrics[f"relative_error_mean_{test}_{name}_ratio"]


def _best_baseline(results: BagsEvaluation, test: str) -> str:
    """The best answer that needs no learning."""
    return min(_BASELINES, key=lambda name: _error(results, test, name))
