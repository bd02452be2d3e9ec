"""What all pictures of studies share: matplotlib as set up for files, colours, and where they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jostle.errors import MissingExtra

# Okabe and Ito: told apart by colour-blind readers too; the reference comes first, in black.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def plotting() -> Any:
    """matplotlib's pyplot, drawing to files only. Raises MissingExtra."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "evaluate") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "svg.hashsalt": "jostle",  # the same numbers draw the same file
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "legend.frameon": False,
            "font.size": 9,
        }
    )
    return plt


def legend_above(figure: Any) -> None:
    """One legend for all plots, in a row above them."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.tight_layout()
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    figure.legend(handles, labels, ncols=len(labels), **place)


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """PNG and SVG under folder/figures."""
    home = folder / "figures"
    home.mkdir(parents=True, exist_ok=True)
    paths = [home / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)
    plotting().close(figure)
    return paths
