"""A figure as files: for light pages and for dark ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jostle._base.figure_style import plotting

ENDINGS = (".png", ".svg", "-dark.svg")
INK, PAPER = "#e8e8e8", "#1e2129"  # on dark pages, for black and white
_NEAR_BLACK, _NEAR_WHITE = 0.2, 0.97  # of full brightness, up to and from which a grey is turned


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write PNG and SVG under folder/figures, and the SVG for dark pages as NAME-dark.svg; closes the figure.

    Each has a background of its own, so that it can be read wherever it is put.
    """
    home = folder / "figures"
    home.mkdir(parents=True, exist_ok=True)
    paths = [home / f"{name}{ending}" for ending in ENDINGS]
    for path in paths:
        if path.stem.endswith("-dark"):
            darkened(figure)
        is_svg = path.suffix == ".svg"
        figure.savefig(
            path, dpi=150, bbox_inches="tight", metadata={"Date": None} if is_svg else None
        )
    plotting().close(figure)
    return paths


def darkened(figure: Any) -> Any:
    """Turn black and white in a figure for a dark page; colours stay. Returns the same figure."""
    figure.set_facecolor(PAPER)
    artists = figure.findobj()
    boxes = [getattr(artist, "get_bbox_patch", lambda: None)() for artist in artists]
    for artist in (*artists, *(box for box in boxes if box is not None)):
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            get, put = (getattr(artist, f"{verb}_{name}", None) for verb in ("get", "set"))
            if get is None or put is None:
                continue
            turned = _turned(get())
            if turned is not None:
                put(turned)
    for axes in figure.axes:
        axes.tick_params(which="both", colors=INK)
    return figure


def _turned(value: Any) -> Any:
    """Turn a colour, or an array of colours, for a dark page; None if nothing changes."""
    import numpy as np
    from matplotlib.colors import to_rgba, to_rgba_array

    if value is None or (isinstance(value, str) and value in ("none", "auto")):
        return None
    try:
        many = to_rgba_array(value)
    except (TypeError, ValueError):
        return None
    is_grey = np.ptp(many[:, :3], axis=1) < 0.02 if len(many) else np.zeros(0, bool)
    bright = many[:, :3].mean(1) if len(many) else np.zeros(0)
    black, white = is_grey & (bright <= _NEAR_BLACK), is_grey & (bright >= _NEAR_WHITE)
    if not (black | white).any():
        return None
    many[black, :3], many[white, :3] = to_rgba(INK)[:3], to_rgba(PAPER)[:3]
    return tuple(many[0]) if len(many) == 1 else many
