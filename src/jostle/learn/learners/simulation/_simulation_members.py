"""What answers about co-runs: simulations, and processes on what these leave over.

A member says what is added to the time alone, in seconds, as a share of it, or as the logarithm of the
slowdown:

    seconds:  co-run - solo = delay + rest            log:  log(co-run / solo) = log(1 + delay / trace) + rest
    shares:   (co-run - solo) / solo = delay / trace + rest

The delay is simulated in one way to share, or 0; the rest is 0, a level, or a process that also looks at
traces. Effects of target and co-runners tell which ways to share leave least over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jostle.learn.learners.simulation._coruns import CoRuns
from jostle.learn.learners.simulation._covariance import CoRunPlaces
from jostle.learn.learners.simulation._delays import Delays, Sharing
from jostle.learn.learners.simulation._residual_process import (
    ADDITIVE,
    SIMPLE,
    SPREADS,
    WIDE_SPREADS,
    CoRunProcess,
    fit_corun_process,
)

SECONDS, LOG, SHARES = SCALES = ("seconds", "log", "shares")
BEYOND = 4.0  # times the longest delay learned from, per co-runner, past which none is believed
LEAST = 0.1  # of the time alone, under which nothing is answered
NOTHING, LEVEL, EFFECTS, PROCESS = "nothing", "level", "effects", "process"
_PARTS = {LEVEL: SIMPLE, EFFECTS: ADDITIVE, PROCESS: None}


@dataclass(frozen=True)
class CoRunRecipe:
    """What a member is made of. rest: NOTHING, LEVEL, EFFECTS or PROCESS. way: None without simulation.
    is_wide: whether the process lets more of its parts count for nearly nothing."""

    rest: str
    scale: str = SECONDS
    way: Sharing | None = None
    is_wide: bool = False


@dataclass(frozen=True, eq=False)
class Simulated:
    """What was simulated of n co-runs. alone, delay: {way: (n,) s} of the target alone, and longer
    than that."""

    number: int
    alone: Mapping[Sharing, np.ndarray]
    delay: Mapping[Sharing, np.ndarray]

    @classmethod
    def of(cls, rows: CoRuns, delays: Delays, ways: set[Sharing]) -> Simulated:
        alone = {way: delays.alone(way)[rows.target] for way in ways}
        simulated = {way: delays.of(way, rows.target, rows.beside) for way in sorted(ways)}
        return cls(len(rows), alone, simulated)

    def base(self, recipe: CoRunRecipe) -> np.ndarray:
        """Return what the recipe takes from the simulation, (n,)."""
        if recipe.way is None:
            return np.zeros(self.number)
        delay = self.delay[recipe.way]
        if recipe.scale == SECONDS:
            return delay
        share = delay / self.alone[recipe.way]
        return share if recipe.scale == SHARES else np.log1p(share)


@dataclass(frozen=True, eq=False)
class CoRunMember:
    """unit: what 1 of the process's delays stands for. most: the most that was simulated, per co-runner, of
    what was learned from. process: None where the rest is 0."""

    recipe: CoRunRecipe
    process: CoRunProcess | None
    unit: float
    most: float

    def log_slowdown(self, rows: CoRuns, simulated: Simulated) -> np.ndarray:
        """Predict (n,) log slowdowns of the rows."""
        degree = np.maximum(rows.degree, 1)
        base = np.minimum(simulated.base(self.recipe), BEYOND * self.most * degree)
        rest = 0.0
        if self.process is not None:
            inside = np.minimum(base, self.most * degree)
            rest = self.process.predict(CoRunPlaces.of(rows, inside / self.unit))
        return as_log(base + rest, self.recipe.scale, rows.solo)

    def without(self, rows: np.ndarray) -> CoRunMember:
        """Refit without these rows, at the same strengths."""
        if self.process is None or not len(rows):
            return self
        return replace(self, process=self.process.without(rows))


def as_log(added: np.ndarray, scale: str, solo: np.ndarray) -> np.ndarray:
    """Convert what is added to the time alone to (n,) log slowdowns."""
    if scale == LOG:
        return np.maximum(added, np.log(LEAST))
    return np.log(np.maximum(1 + (added if scale == SHARES else added / solo), LEAST))


def learned_of(rows: CoRuns, scale: str) -> np.ndarray:
    """Return what was added to the time alone, (n,)."""
    if scale == LOG:
        return np.log(rows.seconds / rows.solo)
    extra = rows.seconds - rows.solo
    return extra / rows.solo if scale == SHARES else extra


def noises_of(rows: CoRuns, scale: str) -> np.ndarray:
    """Compute (2, n) variances of unit strength: of the same error in seconds everywhere, and of the same
    relative error, each of mean 1 in the middle."""
    unit = rows.seconds / rows.solo if scale == SHARES else rows.seconds
    relative = unit / np.exp(np.mean(np.log(unit)))
    if scale == LOG:
        relative = np.clip(1 / relative, 0.1, 10)
    return np.stack([np.ones(len(rows)), relative**2])


def fit_member(
    recipe: CoRunRecipe, rows: CoRuns, simulated: Simulated, features: np.ndarray, seed: int
) -> CoRunMember:
    """features: (w, f) of the traces. Without rows what is simulated is the answer."""
    if not len(rows):
        return CoRunMember(recipe, None, 1.0, float("inf"))
    base = simulated.base(recipe)
    unit = max(float(np.sqrt(np.mean(base**2))), 1e-12)
    most = float((base / np.maximum(rows.degree, 1)).max())
    if recipe.rest == NOTHING:
        return CoRunMember(recipe, None, unit, most)
    process = fit_corun_process(
        CoRunPlaces.of(rows, base / unit),
        learned_of(rows, recipe.scale) - base,
        noises_of(rows, recipe.scale),
        features if recipe.rest == PROCESS else None,
        _PARTS[recipe.rest],
        seed,
        WIDE_SPREADS if recipe.is_wide else SPREADS,
    )
    return CoRunMember(recipe, process, unit, most)
