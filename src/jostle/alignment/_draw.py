"""Pictures of the selection of counters: the tree with its cut, and the error over the prefix."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from jostle.alignment.learning._select import CounterSelection
from jostle.errors import MissingExtra


def draw_selection(selection: CounterSelection, folder: str | os.PathLike[str]) -> list[Path]:
    """`counters-tree` and `counters-prefix` as PNG and SVG in the folder. Raises MissingExtra."""
    try:
        import matplotlib
        from scipy.cluster.hierarchy import dendrogram
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "evaluate") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "jostle", "font.size": 9})
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    drawn = []
    if len(selection.linkage):
        figure, axis = plt.subplots(figsize=(6.4, 0.26 * len(selection.clustered) + 1.2))
        dendrogram(
            selection.linkage,
            labels=list(selection.clustered),
            orientation="right",
            color_threshold=selection.cut,
            above_threshold_color="#999999",
            ax=axis,
        )
        axis.axvline(selection.cut, color="#D55E00", linestyle="--")
        axis.set_xlabel(
            f"1 - |Spearman's correlation|; one counter is kept left of {selection.cut:g}"
        )
        for label in axis.get_yticklabels():
            if label.get_text() in selection.kept:
                label.set_fontweight("bold")
        drawn += _save(figure, home, "counters-tree", plt)
    figure, axis = plt.subplots(figsize=(6.4, 3.2))
    sizes = np.arange(1, len(selection.ranked) + 1)
    axis.plot(sizes, 100 * selection.errors, marker="o", color="#0072B2")
    axis.axvline(len(selection.chosen), color="#D55E00", linestyle="--")
    axis.set_xticks(sizes, selection.ranked, rotation=35, ha="right")
    axis.set_ylabel("error per sample, held-out sets (%)")
    axis.set_xlabel("counters, the most important first; chosen up to the line")
    axis.grid(alpha=0.3)
    drawn += _save(figure, home, "counters-prefix", plt)
    return drawn


def _save(figure: Any, home: Path, name: str, plt: Any) -> list[Path]:
    paths = [home / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)
    plt.close(figure)
    return paths
