"""The picture of policies: limits violated against platforms saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jostle.evaluate.study._drawing import COLOURS, MARKERS, plotting, save


def draw_policies(rows: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """PNG and SVG under folder/figures. Raises MissingExtra."""
    plt = plotting()
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    for number, row in enumerate(rows):
        axes.plot(
            100 * row["saved_of_clairvoyant_ratio"],
            100 * row["violated_ratio"],
            MARKERS[number % len(MARKERS)],
            color=COLOURS[number % len(COLOURS)],
            label=row["policy"],
            markersize=7,
            linestyle="none",
        )
    axes.axhline(100 * rows[0]["aim_ratio"], color="#999999", linewidth=1, linestyle="--")
    axes.set_xlabel("platforms saved, % of the clairvoyant's")
    axes.set_ylabel("sets violated, % of those placed")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(bottom=-0.2)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    return save(figure, folder, "placement-policies")
