"""Pictures of the study of pairs and of the cluster. Numbers figures after Prophet (ASPLOS 2017).

Figure 16: utilisation by pairs, predicted and with perfect knowledge. Figure 17: latency that services then
really have, over its limit. Figure 18: utilisation of the cluster by policy. Figure 19: shares of its GPUs
that miss the policy, by how much, packing everything (left) and by the simulator (right).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jostle._drawing import COLOURS, plotting, save
from studies.accelerator.cluster import MISSED_BY, POLICIES, Outcome, ScaleOut
from studies.accelerator.latencies import MOST
from studies.drawing import Series, draw_bars

_SCHEDULERS = ("no sharing", "sequential model", "simulator", "simulator with 3% to spare")


def draw_scale_out(found: ScaleOut, folder: str | os.PathLike[str]) -> list[Path]:
    """All figures as PNG and SVG in folder/figures. Raises MissingExtra without matplotlib."""
    home = Path(folder)
    study = found.study
    names = [f"{service} + {batch}" for service in study.services for batch in study.batches]
    bars = [
        ("simulator", 100 * study.fits.reshape(-1) / MOST, COLOURS[1]),
        ("perfect knowledge", 100 * study.oracle.reshape(-1) / MOST, COLOURS[5]),
    ]
    figure = _pairs(names, bars, len(study.batches), "utilisation (%)")
    drawn = save(figure, home, "figure-16-utilisation-pairs")
    reached = [(None, 100 * study.reached.reshape(-1), COLOURS[1])]
    figure = _pairs(names, reached, len(study.batches), "latency (% of its limit)")
    figure.axes[0].axhline(100, color=COLOURS[0], linewidth=0.8)
    drawn += save(figure, home, "figure-17-qos-pairs")

    by_name: dict[str, list[Outcome]] = {}
    for outcome in found.outcomes:
        by_name.setdefault(outcome.scheduler, []).append(outcome)
    ticks = [f"{100 * policy:.0f}%" for policy in POLICIES]
    plt = plotting()
    figure, axis = plt.subplots(figsize=(6.4, 3.0))
    gained = {
        name: [100 * outcome.utilisation_ratio for outcome in by_name[name]] for name in _SCHEDULERS
    }
    draw_bars(
        axis, [(*one, COLOURS[n]) for one, n in zip(gained.items(), (7, 6, 1, 3), strict=True)]
    )
    axis.set_xticks(range(len(ticks)), ticks)
    axis.set_xlabel("QoS policy")
    axis.set_ylabel("utilisation of the cluster (%)")
    axis.legend()
    drawn += save(figure, home, "figure-18-utilisation")
    drawn += save(_violations(plt, by_name, ticks), home, "figure-19-violations")
    return drawn


def _pairs(names: list[str], bars: Sequence[Series], group: int, label: str) -> Any:
    """A bar, or one of each kind, for every pair; a little room between services."""
    figure, axis = plotting().subplots(figsize=(13.0, 3.4))
    place = np.arange(len(names)) + np.arange(len(names)) // group
    draw_bars(axis, bars, place)
    axis.set_xticks(place, names, rotation=90, fontsize=6)
    axis.set_xlim(-1, place[-1] + 1)
    axis.grid(axis="x", visible=False)
    axis.set_ylabel(label)
    if len(bars) > 1:
        axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return figure


def _violations(plt: Any, by_name: dict[str, list[Outcome]], ticks: list[str]) -> Any:
    figure, axis = plt.subplots(figsize=(6.4, 3.0))
    labels = [f"by {100 * low:.0f} to {100 * high:.0f}%" for low, high in pairwise(MISSED_BY)]
    labels.append(f"by more than {100 * MISSED_BY[-1]:.0f}%")
    colours = [COLOURS[n] for n in (6, 5, 2, 0)]
    for side, name in ((-0.2, "pack all"), (0.2, "simulator")):
        floor = np.zeros(len(ticks))
        shares = 100 * np.array([outcome.missed for outcome in by_name[name]])
        parts = shares - np.column_stack([shares[:, 1:], np.zeros(len(shares))])
        for number, part in enumerate(parts.T):
            axis.bar(
                np.arange(len(ticks)) + side,
                part,
                0.36,
                bottom=floor,
                color=colours[number],
                label=labels[number] if side < 0 else None,
            )
            floor += part
    axis.set_xticks(range(len(ticks)), ticks)
    axis.set_xlabel("QoS policy (left: everything packed, right: by the simulator)")
    axis.set_ylabel("GPUs that miss it (%)")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
