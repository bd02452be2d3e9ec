"""Pictures of a bag evaluation, after Moolchandani et al.: Fig. 1-3 where there are bags of copies, 4, 5-9,
10, 11 and 12."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._drawing import COLOURS, GREY, plotting, save
from jostle._report import percent
from jostle.errors import NotPermitted
from studies.drawing import draw_bars

if TYPE_CHECKING:
    from studies.bag.evaluation import BagsEvaluation

MOST_FEATURES = 14
MOST_ROWS = 26  # of the heat map, as many as the paper shows
WIDEST = 18  # letters in a line of a label around the radar
_BASELINES = {
    "solo": "time alone",
    "twice_solo": "time alone × members",
    "solo_constant": "time alone and a constant",
}
_BARS = (COLOURS[1], COLOURS[5], GREY)


def draw_bags(results: BagsEvaluation, folder: str | os.PathLike[str]) -> list[Path]:
    """PNG and SVG in `folder`/figures; returns their paths. Raises MissingExtra, NotPermitted."""
    plotting()
    place = Path(folder)
    try:
        drawn = draw_copies(results, place)
        drawn += save(_benchmarks(results), place, "bag-figure-4-benchmarks")
        drawn += save(_ablation(results), place, "bag-figure-5-9-ablation")
        if len(results.uses):
            drawn += save(_radar(results), place, "bag-figure-10-11-radar")
            drawn += save(_heat_map(results), place, "bag-figure-12-heat-map")
    except OSError as error:
        raise NotPermitted(f"cannot write: {error.strerror}", where=str(place)) from None
    return drawn


def draw_copies(results: BagsEvaluation, folder: Path) -> list[Path]:
    """Draw Fig. 1 to 3, speed by the number of copies; nothing where there are no bags of copies."""
    drawn: list[Path] = []
    speed = {
        platform: {name: {k: 1 / v for k, v in by.items()} for name, by in here.items()}
        for platform, here in results.copies.items()
    }
    cpu = speed.get(results.cpu or "", {})
    devices = {platform: here for platform, here in speed.items() if platform != results.cpu}
    if cpu:
        drawn += save(_lines(cpu, f"on {results.cpu}"), folder, "bag-figure-1-copies-cpu")
    for number, (platform, here) in enumerate(devices.items()):
        more = f"-{number + 1}" if number else ""
        title = f"on {platform}"
        drawn += save(_lines(here, title), folder, f"bag-figure-2-copies{more}")
        ratio = {
            name: {k: here[name][k] / cpu[name][k] for k in here[name] if k in cpu[name]}
            for name in here
            if name in cpu
        }
        ratio = {name: by for name, by in ratio.items() if len(by) > 1}
        if ratio:
            title = f"{platform} over {results.cpu}"
            drawn += save(_lines(ratio, title), folder, f"bag-figure-3-copies-ratio{more}")
    return drawn


def _lines(speeds: dict[str, dict[int, float]], title: str) -> Any:
    figure, axis = plotting().subplots(figsize=(6.4, 3.8), layout="constrained")
    for number, (name, by) in enumerate(sorted(speeds.items())):
        style = "-" if number < len(COLOURS) else "--"
        colour = COLOURS[number % len(COLOURS)]
        axis.plot(list(by), list(by.values()), style, marker="o", ms=3, color=colour, label=name)
    axis.axhline(1, color=COLOURS[0], linewidth=0.6)
    axis.set_xticks(sorted({k for by in speeds.values() for k in by}))
    axis.set_xlabel("copies beside each other")
    axis.set_ylabel("performance, alone = 1")
    axis.set_title(f"Copies of one program {title}", fontsize=10)
    axis.legend(fontsize=6, ncols=1 + len(speeds) // 14, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _benchmarks(results: BagsEvaluation) -> Any:
    plt = plotting()
    baseline = _best_baseline(results, "application")[0]
    usual = [name for name in (baseline, "tree", "bag") if name in results.errors]
    shown = usual or list(results.errors)[:3]
    names = list(results.errors[shown[0]])
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    bars = []
    for colour, method in zip(_BARS, shown, strict=False):
        heights = [100 * results.errors[method][name] for name in names]
        mean = 100 * results.metrics[f"relative_error_mean_application_{method}_ratio"]
        title = _BASELINES.get(method, method.replace("_", " "))
        bars.append((f"{title} (mean {mean:.1f}%)", heights, colour))
    draw_bars(axes, bars)
    axes.set_xticks(np.arange(len(names)), names, rotation=35, ha="right", fontsize=8)
    axes.set_ylabel("mean relative error (%)")
    axes.set_title("Error with one benchmark left out", fontsize=10, pad=24)
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _ablation(results: BagsEvaluation) -> Any:
    plt = plotting()
    start = ("only_", "without_", "mix_")
    whole = ("boosting", "bag")  # all groups, by the trees alone and beside rules
    names = [name for name in results.methods if name in whole or name.startswith(start)]
    figure, sides = plt.subplots(1, 2, figsize=(9, 0.32 * len(names) + 1.4), layout="constrained")
    for axes, test in zip(sides, ("application", "pair"), strict=True):
        values = [
            100 * results.metrics.get(f"relative_error_mean_{test}_{name}_ratio", np.nan)
            for name in names
        ]
        baseline, constant = _best_baseline(results, test)
        best = _BASELINES.get(baseline, "")
        finite = [value for value in values if np.isfinite(value)]
        edge = 1.05 * max([*finite, constant] if np.isfinite(constant) else finite, default=1.0)
        if np.isfinite(constant):
            edge = min(edge, 4 * constant)
        axes.barh(range(len(names)), np.minimum(values, edge), color=_BARS[0])
        axes.axvline(constant, color=COLOURS[2], linestyle="--", label=f"{best} ({constant:.1f}%)")
        axes.set_yticks(range(len(names)), [n.replace("_", " ") for n in names], fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)  # downwards
        axes.set_xlim(0, edge)
        axes.grid(axis="y", visible=False)
        for at, value in enumerate(values):
            # Beside the plot, where nothing is in the way; a bar that is cut off says so.
            text = percent(value / 100) + (" (cut off)" if value > edge else "")
            axes.annotate(
                text, (1.02, at), xycoords=("axes fraction", "data"), fontsize=7, va="center"
            )
        axes.set_xlabel("mean relative error (%)")
        axes.set_title(f"{test} held out", fontsize=10, pad=20)
        axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _best_baseline(results: BagsEvaluation, test: str) -> tuple[str, float]:
    """(method, its error in per cent): the best answer that needs no learning."""
    errors = {
        name: 100 * results.metrics[f"relative_error_mean_{test}_{name}_ratio"]
        for name in _BASELINES
        if name in results.methods
    }
    return min(errors.items(), key=lambda item: item[1], default=("", float("nan")))


def _radar(results: BagsEvaluation) -> Any:
    plt = plotting()
    top = results.uses_table()[:MOST_FEATURES]
    columns = [results.features.index(name) for name, *_ in top]
    angle = np.linspace(0, 2 * np.pi, len(top), endpoint=False)
    figure, axes = plt.subplots(
        figsize=(6.4, 6.4), subplot_kw={"projection": "polar"}, layout="constrained"
    )
    random = np.random.default_rng(0)
    turn = angle + random.uniform(-0.06, 0.06, (len(results.uses), len(angle)))
    asked = results.uses[:, columns]
    axes.plot(turn.ravel(), asked.ravel(), ".", color=COLOURS[1], alpha=0.15, ms=4, rasterized=True)
    mean = asked.mean(0)
    axes.plot(np.r_[angle, angle[:1]], np.r_[mean, mean[:1]], color=COLOURS[2], lw=1.8)
    axes.set_xticks(angle, [""] * len(top))
    most = int(asked.max(initial=1))
    for turned, (name, share, _) in zip(angle, top, strict=True):
        side = np.cos(turned)
        axes.annotate(
            f"{_wrapped(name)}\n{100 * share:.0f}%",
            (turned, 1.13 * most),
            ha="center" if abs(side) < 0.2 else "left" if side > 0 else "right",
            va="center" if abs(side) >= 0.2 else "bottom" if np.sin(turned) > 0 else "top",
            fontsize=7,
            annotation_clip=False,
        )
    axes.set_ylim(0, most)
    axes.set_yticks(range(1, most + 1))
    axes.set_rlabel_position(float(np.degrees(np.pi / len(top))))  # between two spokes
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title(
        "Times a feature is asked about on the way to an answer\n"
        "(points: answers; line: mean; per cent: answers that ask at all)",
        fontsize=9,
        pad=46,
    )
    return figure


def _heat_map(results: BagsEvaluation) -> Any:
    plt = plotting()
    columns = [results.features.index(name) for name, *_ in results.uses_table()[:MOST_FEATURES]]
    rows = np.unique(np.linspace(0, len(results.uses) - 1, MOST_ROWS).astype(int))
    part = results.uses[rows][:, columns]
    figure, axes = plt.subplots(
        figsize=(0.5 * len(columns) + 3.5, 0.26 * len(rows) + 2.2), layout="constrained"
    )
    axes.imshow(part, cmap="Blues", aspect="auto", vmin=0)
    axes.grid(False)
    for (y, x), value in np.ndenumerate(part):
        # Not black and white: the picture under them stays as it is on dark pages.
        colour = "#f0f0f0" if value > 0.6 * part.max() else "#404040"
        axes.text(x, y, str(value), ha="center", va="center", fontsize=7, color=colour)
    names = [_short(results.features[at]).replace("\n", " ") for at in columns]
    axes.set_xticks(range(len(columns)), names, rotation=45, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), [results.tested[at] for at in rows], fontsize=7)
    axes.set_title("Times each feature is asked about, by test run", fontsize=9)
    return figure


def _wrapped(name: str) -> str:
    """A feature's name in lines short enough to stand beside others."""
    return "\n".join(textwrap.wrap(_short(name).replace("\n", " "), WIDEST))


def _short(name: str) -> str:
    """A feature's name over two lines where it is a co-runner's."""
    for pool in ("sum", "max"):
        if name.startswith(f"corunners_{pool}_"):
            return f"beside ({pool}):\n" + name.removeprefix(f"corunners_{pool}_").replace("_", " ")
    return name.replace("_", " ")
