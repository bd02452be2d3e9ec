"""Which method for which interval: each is tried where the answer is known.

Every inner snapshot is left out in turn and forecast from the others by every method; the distance W2 to
what was measured there is the method's score. An interval's choice goes by the scores at its two ends and,
since two are few, by those of all the snapshots as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.bridge import _interpolate as between
from jostle.bridge._clouds import Cloud
from jostle.errors import NotEnoughRuns

if TYPE_CHECKING:
    from jostle.bridge._forecast import Forecast

LOCAL = 0.5  # how much an interval's own ends count beside all the snapshots
ATOMS = 200  # of each side in a comparison


@dataclass(frozen=True, eq=False)
class Selection:
    """methods: one per interval. candidates: (c,) names. scores: (s - 2, c) W2 in scaled units at each inner
    snapshot left out, NaN where a method could not answer. overall: the method that is best on the whole."""

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
    if s < 3 or not np.isfinite(scores).all(axis=1).any():
        return Selection(("bridge",) * (s - 1), candidates, scores, "bridge")
    return Selection(_decide(scores, candidates), candidates, scores, _best(scores, candidates))


def _decide(scores: np.ndarray, candidates: Sequence[str]) -> tuple[str, ...]:
    known = np.isfinite(scores).all(axis=1)
    whole = scores[known].mean(axis=0)
    chosen = []
    for k in range(len(scores) + 1):
        ends = [i for i in (k - 1, k) if 0 <= i < len(scores) and known[i]]
        own = scores[ends].mean(axis=0) if ends else whole
        total = LOCAL * own / max(own.min(), 1e-300) + (1 - LOCAL) * whole / max(
            whole.min(), 1e-300
        )
        chosen.append(candidates[int(total.argmin())])
    return tuple(chosen)


def _best(scores: np.ndarray, candidates: Sequence[str]) -> str:
    known = np.isfinite(scores).all(axis=1)
    return candidates[int(scores[known].mean(axis=0).argmin())]


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
        running = answer.atoms, answer.weights
        if answer.idle_ratio:
            running = answer.atoms[:-1], answer.weights[:-1]
        guess = Cloud.of(*running).scaled(forecast.scale)
        found.append(between.wasserstein(few(guess, ATOMS, left_out), truth))
    return np.array(found)


def few(cloud: Cloud, atoms: int, seed: int) -> Cloud:
    """At most so many atoms, drawn systematically with their weights."""
    if len(cloud) <= atoms:
        return cloud
    random = np.random.default_rng(seed)
    order = random.permutation(len(cloud))
    levels = (np.arange(atoms) + random.random()) / atoms
    picked = np.searchsorted(np.cumsum(cloud.weights[order]), levels * (1 - 1e-12))
    return Cloud.of(cloud.atoms[order[np.minimum(picked, len(cloud) - 1)]])
