"""Pictures and printed tables of the studies. Numbers figures after Pitot (MLSys 2025).

Error curves over the observed share (figures 4, 6a, 9, 10), margins over the miscoverage rate (5, 6b, 11),
and margins over the target quantile (8). Bars and bands are +-2 standard errors over replicates.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.figure_files import save
from jostle._base.figure_style import legend_above, look_of, plain_ticks, plotting
from jostle.errors import UnreadableFile
from studies.cells import read_table

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS = {
    "solo": "alone",
    "corun": "with co-runners",
    "corun_1": "with 1 co-runner",
    "corun_2": "with 2 co-runners",
    "corun_3": "with 3 co-runners",
}
RULES = {
    "selected": "selected",
    "naive": "naive",
    "nonquantile": "non-quantile",
    "default": "Jostle",
}
ERROR_FIGURES = {
    "objective": ("figure-4a-objective",),
    "features": ("figure-4b-features", "figure-9a-features-uncropped"),
    "interference": ("figure-4c-interference",),
    "form": ("form-error",),
    "activation": ("figure-4d-activation",),
    "baselines": ("figure-6a-baselines", "figure-9b-baselines-uncropped"),
    "q": ("figure-10-q",),
    "r": ("figure-10-r",),
    "s": ("figure-10-s",),
    "beta": ("figure-10-beta",),
}
LEGIBLE = 0.40  # the paper crops too: errors above would flatten all other curves


def draw_studies(folder: str | os.PathLike[str]) -> list[Path]:
    """Draw what the studies in a folder allow; returns the PNG and SVG files made, in folder/figures.

    Raises UnreadableFile where there is no study, MissingExtra without matplotlib.
    """
    tables = _tables(Path(folder))
    drawn = []
    for study, table in tables.items():
        names = ERROR_FIGURES.get(study, ())
        for number, name in enumerate(names):
            drawn += save(_error_curves(table, crop=number == 0), Path(folder), name)
        shares = sorted(set(table.column("observed").to_pylist()))
        middle = min(shares, key=lambda share: abs(share - 0.5))
        if study == "baselines":
            figure = _margin_curves(table, "method", [middle])
            drawn += save(figure, Path(folder), "figure-6b-bounds")
            figure = _margin_curves(table, "method", shares)
            drawn += save(figure, Path(folder), "figure-11-bounds-all")
        if study == "quantiles" and "selected" in _Selection(table).values("rule"):
            figure = _margin_curves(table, "rule", [middle])
            drawn += save(figure, Path(folder), "figure-5-quantiles")
            drawn += save(_head_curves(table, middle), Path(folder), "figure-8-heads")
    return drawn


def summary_rows(table: pa.Table) -> tuple[list[str], list[list[str]]]:
    """(column names, rows of text): means over replicates, errors with two standard errors."""
    data = _Selection(table)
    groups = [group for group in ("solo", "corun") if group in data.values("group")]
    columns = ["method", "observed", "n"]
    columns += [f"MAPE {GROUPS[group]}" for group in groups]
    columns += [f"{what} .95 {GROUPS[g]}" for g in groups for what in ("coverage", "margin")]
    columns.append("train s")
    rows = []
    for method in data.values("method"):
        for share in sorted(data.where(method=method).values("observed")):
            here = data.where(method=method, observed=share)
            row = [method, f"{share:g}", str(len(here.values("replicate")))]
            row += [_spread(here.where(metric="mape_ratio", group=g).value) for g in groups]
            for group in groups:
                for metric in ("coverage_ratio", "margin_ratio"):
                    results = here.where(
                        metric=metric, group=group, rule="default", confidence=0.95
                    )
                    row.append(_spread(results.value, bars=False))
            row.append(f"{_mean(here.where(metric='train_seconds').value):.1f}")
            rows.append(row)
    return columns, rows


class _Selection:
    """Rows of a tidy table, narrowed by equality."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def where(self, **wanted: Any) -> _Selection:
        import pyarrow.compute as pc

        table = self.table
        for name, value in wanted.items():
            table = table.filter(pc.field(name) == value)
        return _Selection(table)

    def values(self, name: str) -> list[Any]:
        """Distinct values in order of appearance, None left out."""
        return [v for v in self.table.column(name).unique().to_pylist() if v is not None]

    @property
    def value(self) -> np.ndarray:
        return np.asarray(self.table.column("value").drop_null().to_numpy(), np.float64)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _two_errors(values: np.ndarray) -> float:
    """Two standard errors of the mean; 0 for fewer than two."""
    return 2 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _spread(values: np.ndarray, bars: bool = True) -> str:
    if not len(values):
        return "–"
    text = f"{100 * _mean(values):.2f}%"
    return f"{text} ± {100 * _two_errors(values):.2f}" if bars and len(values) > 1 else text


def _tables(folder: Path) -> dict[str, Any]:
    tables = {path.stem: read_table(path) for path in sorted(folder.glob("*.parquet"))}
    if not tables:
        raise UnreadableFile(
            "no study here", where=str(folder), fix="Run python -m studies protocol first."
        )
    return tables


def _panels(rows: int, columns: int, share_y: Any = "row") -> tuple[Any, np.ndarray]:
    figure, axes = plotting().subplots(
        rows,
        columns,
        squeeze=False,
        figsize=(3.4 * columns, 2.7 * rows),
        sharey=share_y,
        sharex=True,
    )
    return figure, axes


def _groups(data: _Selection) -> list[str]:
    results = data.values("group")
    several = [name for name in results if name.startswith("corun_")]
    return [name for name in ("solo", *(several or ["corun"])) if name in results]


def _curve(
    axis: Any, number: int, label: str, x: Sequence[float], cells: Sequence[np.ndarray]
) -> float:
    """Means with bars of two standard errors, in percent; returns the largest mean."""
    means = 100 * np.array([_mean(cell) for cell in cells])
    colour, marker = look_of(number)
    bars = 100 * np.array([_two_errors(cell) for cell in cells])
    axis.errorbar(
        x,
        means,
        yerr=bars if bars.any() else None,
        label=label,
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=2.0 if number == 0 else 1.2,
        capsize=2,
        zorder=5 if number == 0 else 3,
    )
    return float(np.nanmax(means, initial=0.0))


def _error_curves(table: Any, *, crop: bool) -> Any:
    """MAPE over the observed share, one panel per group. crop: no further up than is legible."""
    data = _Selection(table).where(metric="mape_ratio")
    groups = _groups(data)
    methods = data.values("method")
    reference = (table.schema.metadata or {}).get(b"reference", b"").decode()
    first = reference if reference in methods else methods[0]
    # In the study's order, but the reference has the first colour and the boldest line.
    rest = [method for method in methods if method != first]
    numbers = {0 if method == first else 1 + rest.index(method): method for method in methods}
    figure, axes = _panels(1, len(groups), share_y=crop)
    top = 0.0
    for axis, group in zip(axes[0], groups, strict=True):
        for number, method in numbers.items():
            here = data.where(method=method, group=group)
            shares = sorted(here.values("observed"))
            cells = [here.where(observed=share).value for share in shares]
            top = max(top, _curve(axis, number, method, [100 * s for s in shares], cells))
        axis.set_title(GROUPS.get(group, group))
        axis.set_xlabel("runs observed (%)")
        if not crop:
            axis.set_yscale("log")
            plain_ticks(axis.yaxis)
    axes[0][0].set_ylabel("mean absolute error (%)")
    if crop:
        axes[0][0].set_ylim(0, min(1.08 * top, 100 * LEGIBLE))
        for axis in axes[0]:
            _leave_out(axis)
    legend_above(figure)
    return figure


def _margin_curves(table: Any, by: str, shares: Sequence[float]) -> Any:
    """Margin over the miscoverage rate: a row of panels per group, a column per observed share.

    by: a curve per `method` (its default rule) or per `rule`.
    """
    data = _Selection(table).where(metric="margin_ratio")
    groups = _groups(data)
    figure, axes = _panels(len(groups), len(shares))
    for line, group in zip(axes, groups, strict=True):
        top = []
        for axis, share in zip(line, shares, strict=True):
            here = data.where(group=group, observed=share)
            if by == "rule":
                curves = [(RULES[rule], here.where(rule=rule)) for rule in RULES]
            else:
                here = here.where(rule="default")
                curves = [(name, here.where(method=name)) for name in here.values("method")]
            for number, (label, one) in enumerate(curves):
                confidences = sorted(one.values("confidence"))
                cells = [one.where(confidence=c).value for c in confidences]
                top.append(_curve(axis, number, label, [100 * (1 - c) for c in confidences], cells))
            axis.set_title(f"{GROUPS.get(group, group)}, {100 * share:g}% observed")
        legible = [value for value in top if value <= 100] or top
        line[0].set_ylim(0, 1.08 * max(legible, default=1.0))
        for axis in line:
            _leave_out(axis)
        line[0].set_ylabel("margin over the runtime (%)")
    for axis in axes[-1]:
        axis.set_xlabel("miscoverage allowed (%)")
    legend_above(figure)
    return figure


def _head_curves(table: Any, share: float) -> Any:
    """Calibrated margin at confidence .95 over the quantile that the head was trained for."""
    data = _Selection(table).where(metric="margin_ratio", confidence=0.95, observed=share)
    heads = sorted(
        (rule for rule in data.values("rule") if rule.startswith("head ")),
        key=lambda rule: float(rule.split()[1]),
    )
    x = [100 * float(rule.split()[1]) for rule in heads]
    groups = _groups(data)
    figure, axes = _panels(1, len(groups), share_y=False)
    for axis, group in zip(axes[0], groups, strict=True):
        for replicate in sorted(data.values("replicate")):
            here = data.where(group=group, replicate=replicate)
            y = [here.where(rule=rule).value for rule in heads]
            _curve(axis, replicate, f"replicate {replicate}", x, y)
        axis.set_title(f"{GROUPS.get(group, group)}, {100 * share:g}% observed")
        axis.set_xlabel("target quantile (%)")
    axes[0][0].set_ylabel("margin at 5% miscoverage (%)")
    legend_above(figure)
    return figure


def _leave_out(axis: Any) -> None:
    """What lies above the top of a plot all the way is named in it, and in no legend."""
    top = axis.get_ylim()[1]
    above = []
    for curve in list(axis.containers):
        if np.all(np.asarray(curve.lines[0].get_ydata(), np.float64) > top):
            above.append(curve.get_label())
            curve.remove()
    if above:
        axis.text(
            0.98,
            0.98,
            "\n".join([f"above {top:.0f}% throughout:", *above]),
            transform=axis.transAxes,
            ha="right",
            va="top",
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        )
