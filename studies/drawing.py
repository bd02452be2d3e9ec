"""What pictures of several studies have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Series = tuple[str | None, Any, str]  # label, heights (n,), colour


def draw_bars(axes: Any, series: Sequence[Series], places: np.ndarray | None = None) -> None:
    """Bars side by side, one of each series at every place; places: 0, 1, 2 … unless given."""
    width = 0.8 / len(series)
    for number, (label, heights, colour) in enumerate(series):
        at = np.arange(len(heights)) if places is None else places
        middle = at + (number - (len(series) - 1) / 2) * width
        axes.bar(middle, heights, width, label=label, color=colour)
