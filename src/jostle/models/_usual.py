"""What a model's errors were like on the runs its bounds were calibrated on: what drifts are told from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._tensors import Serializable
from jostle.bounds import Selection, UsualLevels, candidates_of, pool_of, usual_levels

if TYPE_CHECKING:
    from jostle.methods import KeptRuns
    from jostle.runs import Colocations, Runs

FLEET = "fleet"
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
        scores = np.full(len(own), np.nan)
        for degree, usual in standard_scores(model).items():
            place, median, mad = usual_of(model, degree)
            at = np.flatnonzero((own.degree == degree) & np.isfinite(own.scores[place]))
            mine = ((own.scores[place, at] - median) / mad).tolist()
            scores[at] = [normal_score(usual, one) for one in mine]
        every = [np.zeros(len(own), np.int64), *keys]
        levels = usual_levels(scores, every, [1, *(len(kinds.names[kind]) for kind in KINDS)])
        return cls(dict(zip((FLEET, *KINDS), levels, strict=True)))


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


def standard_scores(model: Any) -> dict[int, list[float]]:
    """The calibration scores of every number of co-runners in usual spreads from the usual median, ascending;
    what has no answer is left out."""
    runs = model.calibration.runs
    scores = {}
    for degree in np.unique(runs.degree[~runs.held_out]).tolist():
        place, median, mad = usual_of(model, degree)
        mine = runs.scores[place, ~runs.held_out & (runs.degree == degree)]
        scores[degree] = np.sort((mine[np.isfinite(mine)] - median) / mad).tolist()
    return scores


def normal_score(usual: Sequence[float], standard: float) -> float:
    """Of one by its rank among the usual ones, which are ascending; 0 where there are none."""
    middle = 0.5 * (bisect_left(usual, standard) + bisect_right(usual, standard) + 1)
    return NormalDist().inv_cdf(middle / (len(usual) + 1))


def usual_spread(model: Any, colocations: Colocations) -> np.ndarray:
    """(n,) log seconds that errors are usually off, of the way that bounds each number of co-runners."""
    scale, degree = (
        candidates_of(model.predictor, colocations).scale,
        colocations.number_of_corunners,
    )
    spread = np.ones(len(degree))
    for d in np.unique(degree).tolist():
        place, _, mad = usual_of(model, d)
        spread[degree == d] = scale[place, degree == d] * mad
    return spread
