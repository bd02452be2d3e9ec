"""Which ways to share leave least to what is learned besides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.learn.learners.simulation._coruns import CoRuns
from jostle.learn.learners.simulation._delays import Sharing
from jostle.learn.learners.simulation._simulation_members import (
    EFFECTS,
    LOG,
    PROCESS,
    SECONDS,
    SHARES,
    CoRunRecipe,
    Simulated,
    fit_member,
    learned_of,
)

KEPT_WAYS = {SECONDS: 2, LOG: 1, SHARES: 1}  # to share, that processes are fitted on
KEPT_OF_FEW = 5  # in seconds, with fewer sets than can tell
CAN_TELL = 48  # sets, from which on it is known which way to share is right
# Root mean square differences of delays over themselves, under which two ways are one, or nearly so.
EQUAL, ALIKE = 1e-5, 0.15


def best_ways(
    rows: CoRuns, simulated: Simulated, ways: Sequence[Sharing], scale: str, seed: int
) -> list[Sharing]:
    """Choose the ways to share whose delays leave least to sets left out, by effects of fixed strengths; at
    least one."""
    none = np.zeros((0, 0))
    effects = fit_member(CoRunRecipe(EFFECTS, scale), rows, simulated, none, seed).process
    sets = [np.flatnonzero(rows.together == code) for code in np.unique(rows.together)]
    assert effects is not None
    assert effects.inverse is not None
    bases = np.stack([simulated.base(CoRunRecipe(PROCESS, scale, way)) for way in ways])
    off = np.zeros(len(ways))
    left = (learned_of(rows, scale) - bases).T
    weights = effects.inverse @ left
    # By which what is missed becomes a relative error.
    unit = {SECONDS: rows.seconds, LOG: np.ones(len(rows)), SHARES: rows.seconds / rows.solo}[scale]
    for part in sets:
        missed = np.linalg.solve(effects.inverse[np.ix_(part, part)], weights[part])
        off += (np.abs(missed) / unit[part, None]).sum(axis=0)
    order = np.argsort(off, kind="stable")
    # Few sets cannot tell which way is right, so several are kept that are not nearly one.
    can_tell = len(sets) >= CAN_TELL or scale != SECONDS
    most, alike = (KEPT_WAYS[scale], EQUAL) if can_tell else (KEPT_OF_FEW, ALIKE)
    best: list[int] = []
    for way in order:
        size = np.sqrt(np.mean(bases[way] ** 2))
        apart = [np.sqrt(np.mean((bases[way] - bases[k]) ** 2)) for k in best]
        if size > 0 and all(each > alike * size for each in apart):
            best.append(int(way))
    return [ways[k] for k in best[:most]] or [ways[0]]
