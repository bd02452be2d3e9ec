"""Which method for which interval: each is tried where the answer is known.

Every inner snapshot is left out in turn and forecast from the others by every method; the distance W2 to
what was measured there is the method's score. An interval's choice goes by the scores at its two ends and,
since two are few, by those of all the snapshots as well. The constants were chosen on made data and on
published runs of one controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.bridge import _interpolate as between
from jostle.bridge._clouds import Cloud
from jostle.bridge._thin import few
from jostle.errors import NotEnoughRuns

if TYPE_CHECKING:
    from jostle.bridge._forecast import Forecast

IN_TIME = between.METHODS[:-1]
LOCAL = 0.3  # how much an interval's own ends count beside all the snapshots
EDGE = 0.05  # of the best score: what a method must win by over transport, bridge and phase
ATOMS = 200  # of each side in a comparison
MISSED = 0.1  # of the runs in a phase that no other snapshot caught: then phase is not tried there


@dataclass(frozen=True, eq=False)
class Selection:
    """methods: one per interval. candidates: (c,) names. scores: (s - 2, c) W2 in scaled units at each inner
    snapshot left out, NaN where a method could not be tried. overall: what is best on the whole."""

    methods: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: np.ndarray
    overall: str


def choose(forecast: Forecast, core: int) -> Selection:
    """The selection for a core of a forecast; with fewer than three snapshots always `bridge`."""
    snapshots = forecast.snapshots
    candidates = between.METHODS if snapshots.clock is not None else between.METHODS[:-1]
    s = len(snapshots)
    scores = np.full((max(s - 2, 0), len(candidates)), np.nan)
    for left_out in range(1, s - 1):
        scores[left_out - 1] = _scores(forecast, core, left_out, candidates)
    by_time = np.asarray(np.isfinite(scores[:, : len(IN_TIME)]).all(axis=1))
    if not by_time.any():
        return Selection(("bridge",) * (s - 1), candidates, scores, "bridge")
    chosen = []
    for k in range(s - 1):
        ends = np.array([i for i in (k - 1, k) if 0 <= i < len(scores) and by_time[i]], int)
        worth = LOCAL * _relative(scores[ends]) + (1 - LOCAL) * _relative(scores[by_time])
        worth = worth + np.where([name in ("ot", "bridge") for name in IN_TIME], 0.0, EDGE)
        method = IN_TIME[int(worth.argmin())]
        if "phase" in candidates and _phase_wins(scores, ends, by_time):
            method = "phase"
        chosen.append(method)
    overall = max(dict.fromkeys(chosen), key=chosen.count)
    return Selection(tuple(chosen), candidates, scores, overall)


def _relative(scores: np.ndarray) -> np.ndarray:
    """(c,) mean scores of the methods in time over the best one's; all 1 without any."""
    if not len(scores):
        return np.ones(len(IN_TIME))
    mean = scores[:, : len(IN_TIME)].mean(axis=0)
    return mean / max(mean.min(), 1e-300)


def _phase_wins(scores: np.ndarray, ends: np.ndarray, by_time: np.ndarray) -> bool:
    """Whether the phase-aware forecast serves the interval between the snapshots `ends`.

    A left-out snapshot may be the only one that caught a phase: its score would say nothing about how the
    phase-aware forecast does with all of them, and was not taken. Where no snapshot could be tried the clock
    is believed: that a program uses alike in one phase is why one was given.
    """
    tried = by_time & np.isfinite(scores[:, -1])
    if not tried.any():
        return True
    whole = scores[tried].mean(axis=0)
    near = ends[tried[ends]]
    own = scores[near].mean(axis=0) if len(near) else whole
    worth = LOCAL * own / max(own.min(), 1e-300) + (1 - LOCAL) * whole / max(whole.min(), 1e-300)
    return bool(worth[-1] <= worth[:-1].min() + EDGE)


def _scores(forecast: Forecast, core: int, left_out: int, candidates: Sequence[str]) -> np.ndarray:
    from jostle.bridge._forecast import Forecast

    snapshots = forecast.snapshots
    # Only the neighbours that any method looks at: couplings of others are not solved anew.
    rest = Forecast(
        snapshots.without(left_out),
        replace(forecast.method, graph="path", atoms=ATOMS),
        scale=forecast.scale,
    )
    time = float(snapshots.times_seconds[left_out])
    shot = snapshots.of(core)[left_out]
    if shot.idle_ratio == 1:
        return np.full(len(candidates), np.nan)
    truth = few(shot.cloud.scaled(forecast.scale), ATOMS, left_out)
    found = []
    for method in candidates:
        try:
            answer = rest.at(time, core, method=method)
        except NotEnoughRuns:  # no run's progress is known there: not a candidate
            found.append(np.nan)
            continue
        if (answer.details or {}).get("missed_ratio", 0.0) > MISSED:
            found.append(np.nan)
            continue
        running = answer.atoms, answer.weights
        if answer.idle_ratio:
            running = answer.atoms[:-1], answer.weights[:-1]
        guess = Cloud.of(*running).scaled(forecast.scale)
        found.append(between.wasserstein(few(guess, ATOMS, left_out), truth))
    return np.array(found)
