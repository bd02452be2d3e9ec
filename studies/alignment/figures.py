"""Pictures of the alignment method. Numbers figures after Saeed et al., MLCAD 2021.

Figure 2: error per sample of the linear learners, per core. Figure 3: measured and predicted instructions per
period, and alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jostle._base.figure_files import save
from jostle._base.figure_style import COLOURS, legend_above, plotting
from studies.alignment.answers import Curve
from studies.alignment.evaluation import AlignmentEvaluation
from studies.alignment.paper.selection import CounterSelection


def draw_alignment(results: AlignmentEvaluation, folder: str | os.PathLike[str]) -> list[Path]:
    """All figures as PNG and SVG in folder/figures. Raises MissingExtra without matplotlib."""
    return draw_found(results.learners, results.curves, results.selection, folder)


def draw_found(
    learners: Mapping[str, Mapping[int, float]],
    curves: Sequence[Curve],
    selection: CounterSelection | None,
    folder: str | os.PathLike[str],
) -> list[Path]:
    """See `draw_alignment`; what there is none of is not drawn."""
    home = Path(folder)
    drawn = []
    if learners:
        drawn += save(_learners(learners), home, "figure-2-learners")
    if curves:
        drawn += save(_curves(curves), home, "figure-3-samples")
    if selection is not None:
        drawn += draw_selection(selection, home)
    return drawn


def draw_selection(selection: CounterSelection, folder: str | os.PathLike[str]) -> list[Path]:
    """How counters were selected, as PNG and SVG in folder/figures: `counters-tree`, the tree with its
    cut, and `counters-prefix`, the error over the prefix. Raises MissingExtra."""
    plt = plotting()
    from scipy.cluster.hierarchy import dendrogram

    drawn = []
    if len(selection.linkage):
        figure, axis = plt.subplots(figsize=(6.4, 0.26 * len(selection.clustered) + 1.2))
        dendrogram(
            selection.linkage,
            labels=list(selection.clustered),
            orientation="right",
            color_threshold=selection.cut,
            above_threshold_color=COLOURS[-1],
            ax=axis,
        )
        axis.axvline(selection.cut, color=COLOURS[2], linestyle="--")
        axis.set_xlabel(
            f"1 - |Spearman's correlation|; one counter is kept left of {selection.cut:g}"
        )
        for label in axis.get_yticklabels():
            if label.get_text() in selection.kept:
                label.set_fontweight("bold")
        drawn += save(figure, Path(folder), "counters-tree")
    figure, axis = plt.subplots(figsize=(6.4, 3.2))
    sizes = np.arange(1, len(selection.ranked) + 1)
    axis.plot(sizes, 100 * selection.errors, marker="o", color=COLOURS[1])
    axis.axvline(len(selection.chosen), color=COLOURS[2], linestyle="--")
    axis.set_xticks(sizes, selection.ranked, rotation=35, ha="right")
    axis.set_ylabel("error per sample, held-out sets (%)")
    axis.set_xlabel("counters, the most important first; chosen up to the line")
    return [*drawn, *save(figure, Path(folder), "counters-prefix")]


def _learners(learners: Mapping[str, Mapping[int, float]]) -> Any:
    figure, axis = plotting().subplots(figsize=(5.6, 3.0))
    slots = sorted({slot for by_slot in learners.values() for slot in by_slot})
    width = 0.8 / len(slots)
    for n, slot in enumerate(slots):
        heights = [100 * by_slot.get(slot, np.nan) for by_slot in learners.values()]
        at = np.arange(len(heights)) + n * width
        axis.bar(at, heights, width, label=f"core {slot}", color=COLOURS[1 + n])
    middle = np.arange(len(learners)) + width * (len(slots) - 1) / 2
    axis.set_xticks(middle, [name.replace("_", " ") for name in learners])
    axis.set_ylabel("error per sample (%)")
    axis.legend()
    return figure


def _curves(curves: Sequence[Curve]) -> Any:
    figure, axes = plotting().subplots(
        len(curves), 1, figsize=(7.2, 2.4 * len(curves)), squeeze=False
    )
    for axis, curve in zip(axes[:, 0], curves, strict=True):
        time = np.arange(1, len(curve.measured) + 1) * curve.period_seconds * 1e3
        for label, values, colour in (
            ("alone", curve.solo, COLOURS[-1]),
            ("beside, measured", curve.measured, COLOURS[0]),
            ("beside, predicted", curve.predicted, COLOURS[2]),
        ):
            axis.step(time, values, where="post", label=label, color=colour, linewidth=0.9)
        axis.set_title(f"{curve.workload} beside {' + '.join(curve.corunners)}, core {curve.slot}")
        axis.set_ylabel("instructions per period")
    axes[-1, 0].set_xlabel("time since the start (ms)")
    legend_above(figure)
    return figure
