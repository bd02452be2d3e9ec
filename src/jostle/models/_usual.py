"""What a model's errors were like on the runs its bounds were calibrated on: what drifts are told from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._tensors import Serializable
from jostle.bounds import Selection, UsualLevels, pool_of, usual_levels

if TYPE_CHECKING:
    from jostle.methods import KeptRuns
    from jostle.runs import Colocations, Runs

KINDS = ("device", "platform", "workload")  # the wider first
# Errors are told in units of what is usual, and no clock is better than a thousandth.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True)
class Usual(Serializable):
    """What errors were like on runs that the model did not learn from, for each kind of names, in the order
    of KindNames."""

    levels: dict[str, UsualLevels]

    @classmethod
    def of(cls, model: Any, calibration: Runs | KeptRuns) -> Usual:
        """calibration: the runs that the model's bounds were calibrated on, names left out aside."""
        kinds = KindNames.of(model.predictor)
        kept_runs = model.calibration.runs
        own = kept_runs.take(np.flatnonzero(~kept_runs.held_out))
        keys = kinds.keys(calibration.ok().colocations)
        errors = np.zeros(len(own))
        for degree in np.unique(own.degree).tolist():
            place, median, mad = usual_of(model, degree)
            at = own.degree == degree
            errors[at] = (own.scores[place, at] - median) / mad
        levels = usual_levels(errors, list(keys), [len(kinds.names[kind]) for kind in KINDS])
        return cls(dict(zip(KINDS, levels, strict=True)))

    def at(self, kind: str, code: int) -> tuple[float, float, float]:
        """(level, its standard error, noise) of a name, in usual spreads."""
        known = self.levels.get(kind)
        if known is None:
            return 0.0, 0.0, 1.0
        return float(known.level[code]), float(known.unsure[code]), float(known.noise[code])


@dataclass(frozen=True)
class UsualErrors:
    """Of n runs: score under the way that bounds their pool; standard: it in usual spreads from the usual
    median; scale: log seconds that a score of one is; spread: usual spread of errors, in log seconds."""

    score: np.ndarray
    standard: np.ndarray
    scale: np.ndarray
    spread: np.ndarray
    degree: np.ndarray

    @classmethod
    def of(
        cls, predictor: Any, runs: Runs, usual: Callable[[int], tuple[int, float, float]]
    ) -> UsualErrors:
        """usual: as usual_of, of a number of co-runners."""
        part = Selection.of(predictor, runs)
        degree = part.degree
        score, scale = np.full(len(degree), np.nan), np.ones(len(degree))
        median, mad = np.zeros(len(degree)), np.ones(len(degree))
        for d in np.unique(degree):
            at, (place, middle, spread) = degree == d, usual(int(d))
            score[at], scale[at] = part.scores[place, at], part.candidates.scale[place, at]
            median[at], mad[at] = middle, spread
        score = np.where(np.isfinite(score), score, np.nan)
        return cls(score, (score - median) / mad, scale, mad * scale, degree)


@dataclass(frozen=True)
class KindNames:
    """names: of each of KINDS, where devices are what stands behind the colon of platforms' names.
    device_of_platform: (platforms,) codes."""

    names: dict[str, tuple[str, ...]]
    device_of_platform: np.ndarray

    @classmethod
    def of(cls, predictor: Any) -> KindNames:
        platforms = tuple(predictor.platform_names)
        devices, codes = np.unique([device_of(name) for name in platforms], return_inverse=True)
        names = (tuple(devices.tolist()), platforms, tuple(predictor.workload_names))
        return cls(dict(zip(KINDS, names, strict=True)), codes.reshape(-1).astype(np.int64))

    def keys(self, colocations: Colocations) -> np.ndarray:
        """(3, n) codes of device, platform and workload, all of them known."""
        workload, platform, _ = colocations.recode(self.names["workload"], self.names["platform"])
        return np.stack([self.device_of_platform[platform], platform, workload])

    def know(self, colocations: Colocations) -> np.ndarray:
        """(n,) bool: every name of the row, those of co-runners, too."""
        return colocations.known_in(self.names["workload"], self.names["platform"])


def device_of(platform: str) -> str:
    """hc-42 of iwasm-a:hc-42, and the platform itself where nothing is behind a colon."""
    return platform.partition(":")[2] or platform


def usual_of(model: Any, degree: int) -> tuple[int, float, float]:
    """(the candidate that bounds a number of co-runners, median and usual spread of its scores): of the
    nearest number of co-runners that was calibrated on where there is none."""
    calibration = model.calibration
    runs = calibration.runs
    inside = ~runs.held_out & (runs.degree == degree)
    if not inside.any():
        known = runs.degree[~runs.held_out]
        if not len(known):
            return 0, 0.0, 1.0
        degree = int(known[np.argmin(np.abs(known - degree))])
        inside = ~runs.held_out & (runs.degree == degree)
    way = calibration.ways.get(pool_of(degree))
    place = way.stages[0] if way is not None else 0
    scores = runs.scores[place, inside]
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return place, 0.0, 1.0
    median = float(np.median(scores))
    return place, median, max(float(np.median(np.abs(scores - median))), LEAST_SPREAD)


def sorted_scores(model: Any) -> dict[int, np.ndarray]:
    """The calibration scores of every number of co-runners, ascending."""
    runs = model.calibration.runs
    scores = {}
    for degree in np.unique(runs.degree[~runs.held_out]).tolist():
        place, _, _ = usual_of(model, degree)
        scores[degree] = np.sort(runs.scores[place, ~runs.held_out & (runs.degree == degree)])
    return scores
