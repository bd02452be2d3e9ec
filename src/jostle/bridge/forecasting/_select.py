"""Which method for which interval: each is tried where the answer is known.

Every inner snapshot is left out in turn and forecast from the others by every method; the distance W2 to
what was measured there is the method's score. An interval's choice goes by the scores at its two ends and,
since two are few, by those of all the snapshots as well.

What that cannot see: leaving a snapshot out doubles the gap, and asks in its middle only. Programs whose
runs step from phase to phase at nearly the same time look no different from smooth ones there, but between
two snapshots such a program is at what one of them saw, and near either end it is most likely at that. So
where snapshots are all like the one before or all like the one after (`blend`), and the scores do not say
that the program moves smoothly, `nearest` serves the whole interval; where that is less clear, the outer
parts of it, and the choice by scores its middle. Where snapshots are partly blends, runs step each at its
own time, and `mixture` is what they are in between. The constants were chosen on made data, published
runs of one controller, and recorded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.forecasting._cross_validation import ATOMS, held_out_error
from jostle.bridge.forecasting._interpolate import METHODS
from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.problem._snapshots import Snapshot, Snapshots
from jostle.bridge.problem._thin import few
from jostle.errors import NotEnoughRuns

IN_TIME = METHODS[:-1]
LOCAL = 0.3  # how much an interval's own ends count beside all the snapshots
EDGE = 0.05  # of the best score: what a method must win by over transport, bridge and phase
NEIGHBOURS = 5  # the distance of a state from a snapshot is that to so many of its atoms
FAR = 3.0  # spreads between two snapshots from which they are simply apart
TOGETHER, BLEND = 0.2, 0.45  # below them runs step together, and nearly so
APART = 0.7  # below it they step each at its own time
CLOSE = 1.36  # of transport's score: `nearest` must not be worse than that for runs to step
SMOOTH = 0.85  # of transport's score: a spline that is better says that the program moves smoothly
OUTER = 0.35  # of an interval at either end
MISSED = 0.1  # of the runs in a phase that no other snapshot caught: then phase is not tried there


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """methods: one per interval; outer: that near the interval's ends. candidates: (c,) names. scores:
    (s - 2, c) W2 in scaled units at each inner snapshot left out, NaN where a method could not be tried.
    overall: what is best on the whole."""

    methods: tuple[str, ...]
    outer: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: np.ndarray
    overall: str

    def at(self, k: int, lam: float) -> str:
        """The method at a share of interval k."""
        return self.outer[k] if min(lam, 1 - lam) < OUTER else self.methods[k]


def choose(
    snapshots: Snapshots,
    scale: np.ndarray,
    core: int,
    forecast_without: Callable[[int], Callable[[str], Distribution]],
) -> MethodChoice:
    """The methods for a core; with fewer than three snapshots always `bridge`.

    forecast_without(left_out)(method): that snapshot as it is forecast from the others.
    """
    candidates = METHODS if snapshots.clock is not None else IN_TIME
    shots = snapshots.of(core)
    s = len(snapshots)
    scores = np.full((max(s - 2, 0), len(candidates)), np.nan)
    for left_out in range(1, s - 1):
        if shots[left_out].idle_ratio < 1:
            answer = forecast_without(left_out)
            scores[left_out - 1] = [
                _score(answer, name, shots[left_out], scale, left_out) for name in candidates
            ]
    by_time = np.asarray(np.isfinite(scores[:, : len(IN_TIME)]).all(axis=1))
    if not by_time.any():
        always = ("bridge",) * (s - 1)
        return MethodChoice(always, always, candidates, scores, "bridge")
    steps = _steps(shots, scale, scores[by_time])
    chosen, outer = [], []
    for k in range(s - 1):
        ends = np.array([i for i in (k - 1, k) if 0 <= i < len(scores) and by_time[i]], int)
        worth = LOCAL * _relative(scores[ends]) + (1 - LOCAL) * _relative(scores[by_time])
        worth = worth + np.where([name in ("ot", "bridge") for name in IN_TIME], 0.0, EDGE)
        method = IN_TIME[int(worth.argmin())]
        near = method
        if steps < TOGETHER:
            method = near = "nearest"
        elif steps < BLEND or method == "nearest":
            method, near = ("ot" if method == "nearest" else method), "nearest"
        if BLEND <= steps < APART:
            method = near = "mixture"
        if "phase" in candidates and _phase_wins(scores, ends, by_time):
            method = near = "phase"
        chosen.append(method)
        outer.append(near)
    overall = max(dict.fromkeys(chosen), key=chosen.count)
    return MethodChoice(tuple(chosen), tuple(outer), candidates, scores, overall)


def _steps(shots: Sequence[Snapshot], scale: np.ndarray, scores: np.ndarray) -> float:
    """The `blend`, 1 where the scores say that runs do not step from phase to phase together."""
    near, ot, spline = (scores[:, IN_TIME.index(m)].mean() for m in ("nearest", "ot", "spline"))
    if spline < SMOOTH * ot or near > CLOSE * ot:
        return 1.0
    return blend(shots, scale)


def blend(shots: Sequence[Snapshot], scale: np.ndarray) -> float:
    """How much snapshots are blends of the one before and the one after: 0, every state is like those of
    one of them and all states like the same one; 1, half of them like either.

    Snapshots whose neighbours are far apart count more, up to FAR spreads.
    """
    running = [shot.cloud for shot in shots if shot.idle_ratio < 1]
    clouds = [few(cloud.scaled(scale), ATOMS, k) for k, cloud in enumerate(running)]
    blends, weights = [], []
    for before, cloud, after in zip(clouds, clouds[1:], clouds[2:], strict=False):
        to_before, to_after = (_distances(cloud, other) for other in (before, after))
        share = float(cloud.weights @ (to_after < to_before))
        apart = float(((before.mean - after.mean) ** 2).sum())
        spread = before.spread + after.spread
        weights.append(min((apart / spread) ** 0.5, FAR) if spread > 0 else FAR)
        blends.append(4 * share * (1 - share))
    return float(np.average(blends, weights=weights)) if sum(weights) > 0 else 1.0


def _distances(cloud: Cloud, other: Cloud) -> np.ndarray:
    """(n,) squared distance of every atom to its NEIGHBOURS-th nearest of another cloud."""
    place = min(NEIGHBOURS, len(other)) - 1
    return np.partition(squared_distances(cloud.atoms, other.atoms), place, axis=1)[:, place]


def _relative(scores: np.ndarray) -> np.ndarray:
    """(c,) mean scores of the methods in time over the best one's; all 1 without any."""
    if not len(scores):
        return np.ones(len(IN_TIME))
    mean = scores[:, : len(IN_TIME)].mean(axis=0)
    return mean / max(mean.min(), 1e-300)


def _phase_wins(scores: np.ndarray, ends: np.ndarray, by_time: np.ndarray) -> bool:
    """Whether the phase-aware forecast serves the interval between the snapshots `ends`.

    A left-out snapshot may be the only one that caught a phase: its score would say nothing about how the
    phase-aware forecast does with all of them, and was not taken. Where most snapshots could not be tried the
    clock is believed: that a program uses alike in one phase is why one was given.
    """
    tried = by_time & np.isfinite(scores[:, -1])
    if tried.sum() < 0.5 * by_time.sum():
        return True
    whole = scores[tried].mean(axis=0)
    near = ends[tried[ends]]
    own = scores[near].mean(axis=0) if len(near) else whole
    worth = LOCAL * own / max(own.min(), 1e-300) + (1 - LOCAL) * whole / max(whole.min(), 1e-300)
    return bool(worth[-1] <= worth[:-1].min() + EDGE)


def _score(
    answer: Callable[[str], Distribution],
    method: str,
    shot: Snapshot,
    scale: np.ndarray,
    left_out: int,
) -> float:
    """The held-out error of a method at a snapshot; NaN where it could not be tried."""
    try:
        distribution = answer(method)
    except NotEnoughRuns:  # no run's progress is known there: not a candidate
        return np.nan
    if distribution.details.get("missed_ratio", 0.0) > MISSED:
        return np.nan
    return held_out_error(distribution, shot, scale, left_out)
