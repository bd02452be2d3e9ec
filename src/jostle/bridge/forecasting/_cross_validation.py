"""Leaving snapshots out: how far a forecast of each inner one from the others is off; and eps by that."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.problem._snapshots import Snapshot, Snapshots
from jostle.bridge.problem._thin import few
from jostle.bridge.solvers._transport import wasserstein

EPSILONS = (0.02, 0.1, 1.0, float("inf"))  # of the spread; inf: the independent coupling
DEFAULT = 0.1
ATOMS = 200  # of each side in a comparison


def held_out_error(answer: Distribution, shot: Snapshot, scale: np.ndarray, left_out: int) -> float:
    """W2 in scaled units between what was forecast of the runs that still run and what was measured."""
    clouds = (few(cloud.scaled(scale), ATOMS, left_out) for cloud in (answer.running, shot.cloud))
    return wasserstein(*clouds)


def best_eps(
    snapshots: Snapshots, scale: np.ndarray, guess: Callable[[int, int, float], Distribution]
) -> float:
    """Of EPSILONS the one with the least mean W2 over all inner snapshots of all cores; 0.1 with fewer than
    three snapshots. On most data the differences are within a few percent.

    guess(left_out, core, eps): the bridge's forecast of a snapshot from those beside it.
    """
    scores = []
    for left_out in range(1, len(snapshots) - 1):
        for core in sorted(snapshots.cores):
            shot = snapshots.of(core)[left_out]
            if shot.idle_ratio < 1:
                answers = (guess(left_out, core, eps) for eps in EPSILONS)
                scores.append([held_out_error(one, shot, scale, left_out) for one in answers])
    if not scores:
        return DEFAULT
    return EPSILONS[int(np.mean(scores, axis=0).argmin())]
