"""Pictures of measured pairs. Numbers figures after Prophet (ASPLOS 2017).

Figures 2 and 4: how much longer workloads take beside others, where both mostly compute and where both mostly
copy. Figure 11: what share of an application's time on the device are kernels, and what share transfers.
Figures 12, 13 and 14: predicted beside measured, where both compute, both copy, or one does either (low
contention). Figure 15: the 95th percentile of each pair's runs, measured and predicted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._drawing import COLOURS, plotting, save
from studies.drawing import draw_bars

if TYPE_CHECKING:
    from jostle.accelerator import Application

MOST_BARS = 80  # of one picture, those with the largest measured slowdown
COMPUTE, COPY, MIXED = "compute", "copy", "mixed"
_TITLES = {
    COMPUTE: "both mostly compute",
    COPY: "both mostly copy",
    MIXED: "one computes, one copies",
}


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """n targets. names: what each is beside what. kinds: (n,) COMPUTE, COPY or MIXED. measured, predicted:
    (n,) slowdowns, means of a co-location's runs; tail: (n,) the 95th percentile of its runs, measured.
    shares: {application: (kernels, transfers), shares of its time on the device}."""

    names: tuple[str, ...]
    kinds: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    tail: np.ndarray
    shares: Mapping[str, tuple[float, float]]

    @classmethod
    def of(
        cls,
        picked: Sequence[tuple[str, str, Sequence[str]]],
        applications: Mapping[str, Application],
        measured: np.ndarray,
        predicted: np.ndarray,
    ) -> DrawnPairs:
        """picked: (workload, platform, co-runners) of each run; measured, predicted: slowdowns."""
        shares = {name: _shares(one) for name, one in applications.items()}
        rows: dict[str, list[int]] = {}
        kind_of: dict[str, str] = {}
        for row, (target, _, corunners) in enumerate(picked):
            name = f"{target} + {' + '.join(sorted(corunners))}"
            rows.setdefault(name, []).append(row)
            computes = {shares[member][0] >= 0.5 for member in (target, *corunners)}
            kind_of[name] = MIXED if len(computes) > 1 else COMPUTE if True in computes else COPY
        groups = list(rows.values())
        tail = [float(np.quantile(measured[g], 0.95, method="higher")) for g in groups]
        return cls(
            tuple(rows),
            np.array([kind_of[name] for name in rows]),
            np.array([float(measured[g].mean()) for g in groups]),
            np.array([float(predicted[g].mean()) for g in groups]),
            np.array(tail),
            shares,
        )


def _shares(application: Application) -> tuple[float, float]:
    columns = application.columns
    kernels = float(columns.seconds[columns.kind == 0].sum())
    transfers = float(columns.seconds[columns.kind != 0].sum())
    total = kernels + transfers
    return (kernels / total, transfers / total) if total > 0 else (0.0, 0.0)


def draw_pairs(found: DrawnPairs, folder: str | os.PathLike[str]) -> list[Path]:
    """All figures as PNG and SVG in folder/figures; of a kind without pairs none. Raises MissingExtra without
    matplotlib."""
    home = Path(folder)
    drawn = save(_composition(found.shares), home, "figure-11-kernels-and-transfers")
    for kind, plain, beside in ((COMPUTE, 2, 12), (COPY, 4, 13), (MIXED, None, 14)):
        rows = np.flatnonzero(found.kinds == kind)
        if not len(rows):
            continue
        real, ours = found.measured[rows], found.predicted[rows]
        names = [found.names[row] for row in rows]
        if plain is not None:
            bars = [("measured", real, COLOURS[1])]
            figure = _bars(names, bars, f"Slowdown, {_TITLES[kind]}")
            drawn += save(figure, home, f"figure-{plain}-slowdown-{kind}")
        off = float(np.mean(np.abs(ours / real - 1)))
        bars = [("measured", real, COLOURS[1]), ("predicted", ours, COLOURS[5])]
        title = f"Slowdown, {_TITLES[kind]}: time is missed by {100 * off:.1f}%"
        drawn += save(_bars(names, bars, title), home, f"figure-{beside}-predicted-{kind}")
    bars = [("measured, 95% of runs", found.tail, COLOURS[1])]
    bars.append(("predicted, mean", found.predicted, COLOURS[5]))
    figure = _bars(found.names, bars, "Slowdown that 95% of the runs of a pair keep")
    return drawn + save(figure, home, "figure-15-tail")


def _composition(shares: Mapping[str, tuple[float, float]]) -> Any:
    figure, axis = plotting().subplots(figsize=(7.2, 3.2), layout="constrained")
    names = sorted(shares, key=lambda name: -shares[name][0])
    kernels = np.array([100 * shares[name][0] for name in names])
    transfers = np.array([100 * shares[name][1] for name in names])
    axis.bar(range(len(names)), kernels, 0.7, label="kernels", color=COLOURS[1])
    axis.bar(range(len(names)), transfers, 0.7, kernels, label="transfers", color=COLOURS[5])
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=7)
    axis.set_ylabel("time on the device (%)")
    axis.grid(axis="x", visible=False)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _bars(names: Sequence[str], bars: Sequence[tuple[str, np.ndarray, str]], title: str) -> Any:
    """Bars of each co-location side by side, the largest first; past MOST_BARS the title says so."""
    order = np.argsort(-bars[0][1], kind="stable")[:MOST_BARS]
    if len(order) < len(names):
        title += f" ({len(order)} of {len(names)}, the largest)"
    figure, axis = plotting().subplots(
        figsize=(max(5.0, 0.16 * len(order) + 2), 3.6), layout="constrained"
    )
    draw_bars(axis, [(label, heights[order], colour) for label, heights, colour in bars])
    axis.axhline(1, color=COLOURS[0], linewidth=0.8)
    axis.set_xticks(range(len(order)), [names[n] for n in order], rotation=90, fontsize=6)
    axis.set_xlim(-1, len(order))
    axis.grid(axis="x", visible=False)
    axis.set_ylabel("time beside others / alone")
    axis.set_title(title, fontsize=9, pad=22)
    axis.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(bars))
    return figure
