"""The picture of policies: limits violated against what sharing saves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jostle._drawing import look_of, plotting, save


def draw_policies(
    rows: Sequence[dict[str, Any]], cluster: Sequence[dict[str, Any]], folder: Path
) -> list[Path]:
    """PNG and SVG under folder/figures: sets placed at once, and beside them jobs that come and go, if there
    are any. Raises MissingExtra."""
    plt = plotting()
    sides = [(rows, "platforms saved, % of the clairvoyant's", "sets violated, % of those placed")]
    if cluster:
        sides.append((cluster, "node hours saved, % of the clairvoyant's", "jobs violated, %"))
    figure, every = plt.subplots(
        1, len(sides), figsize=(4.6 * len(sides) + 1.8, 4.2), squeeze=False
    )
    for axes, (side, across, up) in zip(every[0], sides, strict=True):
        for number, row in enumerate(side):
            colour, marker = look_of(number)
            axes.plot(
                100 * row["saved_of_clairvoyant_ratio"],
                100 * row["violated_ratio"],
                marker,
                color=colour,
                label=row["policy"],
                markersize=7,
                linestyle="none",
            )
        axes.axhline(100 * rows[0]["aim_ratio"], color="#999999", linewidth=1, linestyle="--")
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(-0.2, 140)
        axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    every[0][-1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    return save(figure, folder, "placement-policies")
