"""Pictures of copies of a program beside each other, and of combinations of feature groups.

After Moolchandani et al.: performance by the number of copies on the CPU (Fig. 1), on the device (Fig. 2) and
the ratio of the two (Fig. 3); the error with and without one group of features, beside every combination of
the others (Fig. 6 to 9).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._drawing import COLOURS, plotting, save
from studies.bag.methods import COMBINED

if TYPE_CHECKING:
    from studies.bag.evaluation import BagsEvaluation

_NUMBERS = {"cpu": 6, "solo": 7, "mix": 8, "fairness": 9}
_TITLES = {"cpu": "CPU time", "solo": "time alone", "mix": "instruction mix"}


def draw_copies(results: BagsEvaluation, folder: Path) -> list[Path]:
    """Figures 1 to 3; nothing where there are no bags of copies."""
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


def draw_combinations(results: BagsEvaluation, folder: Path) -> list[Path]:
    """Figures 6 to 9 of the groups that there are; nothing where combinations were not tried."""
    errors = {
        frozenset(name.removeprefix(COMBINED).split("+")): 100
        * results.metrics[f"relative_error_mean_application_{name}_ratio"]
        for name in results.methods
        if name.startswith(COMBINED)
    }
    drawn: list[Path] = []
    for group, number in _NUMBERS.items():
        beside = sorted((c for c in errors if group not in c), key=lambda c: (len(c), sorted(c)))
        beside = [c for c in beside if c | {group} in errors]
        if beside:
            title = _TITLES.get(group, group)
            figure = _with_and_without(errors, group, beside, title)
            drawn += save(figure, folder, f"bag-figure-{number}-{group}")
    return drawn


def _with_and_without(
    errors: dict[frozenset[str], float], group: str, beside: list[frozenset[str]], title: str
) -> Any:
    figure, axis = plotting().subplots(
        figsize=(max(5.0, 0.5 * len(beside) + 2), 3.4), layout="constrained"
    )
    at = np.arange(len(beside))
    for side, label, heights, colour in (
        (-0.2, f"without {title}", [errors[c] for c in beside], COLOURS[5]),
        (0.2, f"with {title}", [errors[c | {group}] for c in beside], COLOURS[1]),
    ):
        axis.bar(at + side, heights, 0.38, label=label, color=colour)
    axis.set_xticks(
        at, [" + ".join(sorted(c)) for c in beside], rotation=35, ha="right", fontsize=7
    )
    axis.set_ylabel("mean relative error (%)")
    axis.set_yscale("log")
    axis.set_title(f"Effect of {title}, one benchmark left out", fontsize=10, pad=22)
    axis.grid(axis="x", visible=False)
    axis.legend(fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
