"""Colours, markers and axes that all pictures have in common."""

from __future__ import annotations

from typing import Any

from jostle.errors import needing_extras

# Okabe and Ito: told apart by colour-blind readers too; the reference comes first, in black.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = COLOURS[-1]
_SETTINGS = {
    "svg.hashsalt": "jostle",  # the same numbers draw the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "font.size": 9,
}


def plotting() -> Any:
    """Return matplotlib's pyplot, drawing to files only. Raises MissingExtra."""
    plt = _pyplot(files_only=True)
    plt.rcParams.update(_SETTINGS)
    return plt


def axes_or_new(axes: Any = None, *, size: tuple[float, float] = (6.4, 3.6)) -> Any:
    """Return the axes to draw on: those given, or new ones of this size in inches, whose figure is shown as
    matplotlib is set up to. Changes no setting of matplotlib. Raises MissingExtra."""
    if axes is not None:
        return axes
    plt = _pyplot()
    with plt.rc_context(_SETTINGS):
        return plt.subplots(figsize=size, layout="constrained")[1]


def look_of(number: int) -> tuple[str, str]:
    """Return (colour, marker) of the curve or class with this number; no two of the first 64 look alike."""
    return COLOURS[number % len(COLOURS)], MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]


def plain_ticks(axis: Any) -> None:
    """Put ticks on a logarithmic axis at 1, 2, 3, 5, 10 …, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def seconds_on(*axis: Any) -> None:
    """Label the ticks with their unit, such as 20 ms."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    for one in axis:
        one.set_major_formatter(EngFormatter("s"))
        one.set_minor_formatter(NullFormatter())


def legend_above(figure: Any, *, columns: int = 4) -> None:
    """Draw one legend for all plots of a figure, in rows above them."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.tight_layout()
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    figure.legend(entries.values(), entries.keys(), ncols=min(len(entries), columns), **place)


def _pyplot(files_only: bool = False) -> Any:
    with needing_extras():
        import matplotlib
    if files_only:
        matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt
