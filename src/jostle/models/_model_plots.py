"""Pictures of a model, one line each: `model.plot.slowdowns(runs)`. Every one returns matplotlib axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle._base.confidence import DEFAULT_CONFIDENCE
from jostle._base.figure_style import COLOURS, GREY, axes_or_new, look_of, plain_ticks, seconds_on
from jostle._base.report import PictureMenu
from jostle.data import Colocations, Runs, solo_seconds
from jostle.errors import UsageError, require_known

MOST_NAMES = 40  # rows and columns of a map that can still be read
_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


class ModelPlots(PictureMenu):
    """Plots of a model, as `model.plot`. Each method draws on `axes`, or on new ones, and returns them; axes
    have names and units. Raises MissingExtra without matplotlib."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def accuracy(
        self, runs: Runs, confidence: float = DEFAULT_CONFIDENCE, *, axes: Any = None
    ) -> Any:
        """Plot measured over predicted times of runs that the model did not learn from; those over their
        bound are ringed. Runs of names that the model does not know are left out."""
        runs, predicted, bound = self._answered(runs, confidence)
        axes = axes_or_new(axes, size=(4.8, 4.4))
        measured, degree = runs.runtime_seconds, runs.colocations.number_of_corunners
        for number, count in enumerate(np.unique(degree).tolist()):
            here, (colour, marker) = degree == count, look_of(number + 1)
            label = "alone" if not count else f"with {count} beside"
            look = {"color": colour, "marker": marker, "s": 14, "alpha": 0.6, "linewidths": 0}
            axes.scatter(predicted[here], measured[here], label=label, **look)
        over = measured > bound
        look = {"facecolors": "none", "edgecolors": COLOURS[0], "linewidths": 0.8, "s": 34}
        label = f"over the {100 * confidence:g}% bound ({100 * over.mean():.1f}% of all)"
        axes.scatter(predicted[over], measured[over], label=label, **look)
        low, high = min(predicted.min(), measured.min()), max(predicted.max(), measured.max())
        axes.plot([low, high], [low, high], color=GREY, linewidth=1, zorder=0)
        axes.set(xscale="log", yscale="log", xlabel="predicted time", ylabel="measured time")
        seconds_on(axes.xaxis, axes.yaxis)
        error = float(np.mean(np.abs(predicted - measured) / measured))
        axes.set_title(f"{len(runs)} runs, mean error {100 * error:.1f}%", fontsize=10)
        axes.legend(fontsize=8, frameon=False)
        return axes

    def slowdowns(
        self,
        runs: Runs,
        confidence: float = DEFAULT_CONFIDENCE,
        *,
        alone: Runs | None = None,
        axes: Any = None,
    ) -> Any:
        """Draw runs beside others in the order of their prediction: measured, predicted, bound, and two
        simple rules, "as long as alone" and "times the number of workloads"; as multiples of the time
        alone.

        alone: runs that tell the times alone, `runs` unless given; where none does, the model's own
        prediction counts.
        """
        runs, predicted, bound = self._answered(runs, confidence, only_together=True)
        solo = _solo_seconds(self._model, runs.colocations, alone or runs)
        order = np.argsort(predicted / solo, kind="stable")
        at = np.arange(1, len(order) + 1)
        measured = (runs.runtime_seconds / solo)[order]
        middle, top = (predicted / solo)[order], (bound / solo)[order]
        workloads = 1 + runs.colocations.number_of_corunners[order]
        axes = axes_or_new(axes, size=(7.2, 3.8))
        finite = np.where(np.isfinite(top), top, np.nan)
        axes.fill_between(
            at, middle, finite, step="mid", color=COLOURS[6], alpha=0.45, linewidth=0,
            label=f"up to the {100 * confidence:g}% bound",
        )  # fmt: skip
        axes.step(at, middle, where="mid", color=COLOURS[1], linewidth=1.8, label="predicted")
        axes.plot(at, measured, ".", color=COLOURS[0], markersize=4, label="measured")
        rules = (
            (np.ones(len(at)), COLOURS[2], "--", "rule: as long as alone"),
            (workloads, COLOURS[5], "-.", "rule: times the number of workloads"),
        )
        for values, colour, line, label in rules:
            error = float(np.mean(np.abs(values - measured) / measured))
            label = f"{label} (mean error {100 * error:.0f}%)"
            axes.step(at, values, line, where="mid", color=colour, linewidth=1.4, label=label)
        axes.set(yscale="log", ylabel="time / time alone", xlim=(0, len(at) + 1))
        axes.set_xlabel("runs beside others, in the order of their prediction")
        plain_ticks(axes.yaxis)
        error = float(np.mean(np.abs(middle - measured) / measured))
        axes.set_title(
            f"{len(at)} runs: mean error {100 * error:.1f}%, "
            f"{100 * float(np.mean(measured <= top)):.1f}% under their {100 * confidence:g}% bound",
            fontsize=10,
            pad=46,
        )
        place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": 2}
        axes.legend(fontsize=8, frameon=False, **place)
        return axes

    def platforms(
        self,
        workload: str,
        corunners: Sequence[str] = (),
        confidence: float = DEFAULT_CONFIDENCE,
        *,
        axes: Any = None,
    ) -> Any:
        """Plot how long a workload takes beside these others on every platform, the quickest first, and at
        most how long. Raises UnknownName."""
        names = np.array(self._model.predictor.platform_names, object)
        query = _asked([workload] * len(names), names.tolist(), [list(corunners)] * len(names))
        predicted, bound = self._seconds(query, confidence)
        order = np.argsort(predicted, kind="stable")
        axes = axes_or_new(axes, size=(6.4, 0.28 * len(names) + 1.4))
        at, middle, top = np.arange(len(names)), predicted[order], bound[order]
        _bars(axes, at, middle, top, confidence)
        axes.set_yticks(at, names[order], fontsize=8)
        axes.set_xlabel("time")
        seconds_on(axes.xaxis)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_title(_title(workload, corunners), fontsize=10)
        return axes

    def confidences(
        self,
        workload: str,
        platform: str | None = None,
        corunners: Sequence[str] = (),
        *,
        axes: Any = None,
    ) -> Any:
        """Plot the bound of one co-location over the confidence asked for, up to the highest that has one.

        Raises UnknownName, and UsageError without a platform where the model knows several.
        """
        query = _asked([workload], [self._platform(platform)], [list(corunners)])
        predicted = float(self._model.predict(query)[0])
        bound = np.array([float(self._model.bound(query, c).seconds[0]) for c in _LEVELS])
        known = np.isfinite(bound)
        axes = axes_or_new(axes, size=(4.8, 3.2))
        axes.axhline(predicted, color=COLOURS[1], linewidth=1.2, label="predicted")
        levels = [100 * level for level, has in zip(_LEVELS, known, strict=True) if has]
        axes.plot(levels, bound[known], "o-", color=COLOURS[2], label="bound")
        if not known.all():
            first = 100 * float(np.array(_LEVELS)[~known][0])
            axes.axvspan(first, 100, color=GREY, alpha=0.25, linewidth=0, label="no valid bound")
        axes.set(xlabel="confidence (%)", ylabel="time", xlim=(48, 100.5))
        seconds_on(axes.yaxis)
        axes.set_ylim(bottom=0)
        axes.set_title(_title(workload, corunners), fontsize=10)
        axes.legend(fontsize=8, frameon=False, loc="lower left")
        return axes

    def pairs(
        self,
        platform: str | None = None,
        workloads: Sequence[str] | None = None,
        *,
        axes: Any = None,
    ) -> Any:
        """Map how much longer each workload (rows) takes beside each other (columns) than alone, as
        predicted. workloads: those shown, the first 40 known unless given. Raises UnknownName, UsageError."""
        known = tuple(self._model.predictor.workload_names)
        names = list(known[:MOST_NAMES] if workloads is None else workloads)
        where, n = self._platform(platform), len(names)
        rows, columns = np.repeat(names, n).tolist(), np.tile(names, n).tolist()
        beside = self._model.predict(_asked(rows, [where] * n * n, [[one] for one in columns]))
        alone = self._model.predict(_asked(names, [where] * n, [[]] * n))
        slower = beside.reshape(n, n) / alone[:, None]
        size = 0.22 * n + 2.4
        axes = axes_or_new(axes, size=(size + 1.2, size))
        shown = axes.imshow(slower, cmap="cividis", vmin=min(1.0, float(np.nanmin(slower))))
        axes.set_xticks(range(n), names, rotation=90, fontsize=7)
        axes.set_yticks(range(n), names, fontsize=7)
        axes.grid(False)
        axes.set(xlabel="beside", ylabel="workload")
        axes.set_title(f"on {where}", fontsize=10)
        axes.figure.colorbar(shown, ax=axes, label="time / time alone", shrink=0.8)
        return axes

    def _answered(
        self, runs: Runs, confidence: float, *, only_together: bool = False
    ) -> tuple[Runs, np.ndarray, np.ndarray]:
        """Return (the runs that the model can answer, their predictions, their bounds)."""
        predictor = self._model.predictor
        runs = runs.ok()
        known = runs.colocations.known_in(predictor.workload_names, predictor.platform_names)
        if only_together:
            known &= runs.colocations.number_of_corunners > 0
        runs = runs.take(known)
        predicted, bound = self._seconds(runs.colocations, confidence)
        can = np.isfinite(predicted)
        if not can.any():
            what = "beside others " if only_together else ""
            raise UsageError(
                f"none of the runs {what}has a prediction: there is nothing to draw",
                fix="Give runs of workloads and platforms that the model knows.",
            )
        return runs.take(can), predicted[can], bound[can]

    def _seconds(self, asked: Colocations, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        return self._model.predict(asked), self._model.bound(asked, confidence).seconds

    def _platform(self, platform: str | None) -> str:
        names = self._model.predictor.platform_names
        if platform is not None:
            require_known("platform", platform, names)
            return platform
        if len(names) > 1:
            raise UsageError(
                f"the model knows {len(names)} platforms",
                fix=f"Say which: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}.",
            )
        return names[0]


def _asked(workload: list[str], platform: list[str], corunners: list[list[str]]) -> Colocations:
    return Colocations.from_columns(workload=workload, platform=platform, corunners=corunners)


def _solo_seconds(model: Any, asked: Colocations, alone: Runs) -> np.ndarray:
    """Return (n,) measured median seconds alone, or predicted ones if none was measured."""
    seconds = solo_seconds(alone, asked)
    missing = np.isnan(seconds)
    if missing.any():
        seconds[missing] = model.predict(asked.alone())[missing]
    return seconds


def _bars(
    axes: Any, at: np.ndarray, middle: np.ndarray, top: np.ndarray, confidence: float
) -> None:
    """Draw a dot for each prediction, and a bar from it to its bound if there is one."""
    has = np.isfinite(top)
    look = {"color": COLOURS[6], "linewidth": 5, "label": f"up to the {100 * confidence:g}% bound"}
    axes.hlines(at[has], middle[has], top[has], **look)
    axes.plot(middle, at, "o", color=COLOURS[1], markersize=5, label="predicted")
    if not has.all():
        look = {"markersize": 8, "markeredgecolor": COLOURS[2], "markerfacecolor": "none"}
        axes.plot(middle[~has], at[~has], "D", label="no valid bound", **look)
    axes.legend(fontsize=8, frameon=False, loc="lower right")


def _title(workload: str, corunners: Sequence[str]) -> str:
    return f"{workload} {'beside ' + ' + '.join(corunners) if len(corunners) else 'alone'}"
