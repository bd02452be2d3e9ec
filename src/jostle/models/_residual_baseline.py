"""What a model's errors were like on the runs its bounds were calibrated on: what drifts are told from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import Serializable
from jostle.conformal import UsualLevels, usual_levels

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs
    from jostle.learn import KeptRuns

FLEET = "fleet"
KINDS = ("device", "platform", "workload")  # the wider first
# Errors are told in units of what is usual, and no clock is better than a thousandth.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True)
class ResidualBaseline(Serializable):
    """Usual errors of runs that the model did not learn from, for each kind of names, in the order of
    KindNames."""

    levels: dict[str, UsualLevels]

    @classmethod
    def of(cls, model: Any, calibration: Runs | KeptRuns) -> ResidualBaseline:
        """Measure the usual errors of calibration runs. calibration: the runs that the model's bounds were
        calibrated on, names left out aside."""
        kinds, usual = KindNames.of(model.predictor), standard_scores(model)
        keys = kinds.keys(calibration.ok().colocations)
        pairs = zip(*(one.tolist() for one in _standard(model)), strict=True)
        scores = np.array(
            [normal_score(usual[d], s) if np.isfinite(s) else np.nan for d, s in pairs]
        )
        every = [np.zeros(len(scores), np.int64), *keys]
        levels = usual_levels(scores, every, [1, *(len(kinds.names[kind]) for kind in KINDS)])
        return cls(dict(zip((FLEET, *KINDS), levels, strict=True)))


UsualOf = Callable[[int], tuple[float, float]]  # usual_of a model, of a number of co-runners


def usual_errors(
    model: Any, runs: Runs, usual: UsualOf
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ((n,) errors in usual spreads from the usual median, infinite without an answer; (n,) usual
    spreads in log seconds; (n,) numbers of co-runners)."""
    c = runs.colocations
    log, scale = model.calibration.scaled(model.predictor, c)
    degree = np.asarray(c.number_of_corunners)
    median, mad = _of_rows(usual, degree)
    score = (np.log(runs.runtime_seconds) - log) / scale
    standard = np.where(np.isfinite(score), (score - median) / mad, np.inf)
    return standard, mad * scale, degree


@dataclass(frozen=True)
class KindNames:
    """Names of each kind, as drift knows them. names: of each of KINDS, where devices are what stands behind
    the colon of platforms' names. device_of_platform: (platforms,) codes."""

    names: dict[str, tuple[str, ...]]
    device_of_platform: np.ndarray

    @classmethod
    def of(cls, predictor: Any) -> KindNames:
        platforms = tuple(predictor.platform_names)
        devices, codes = np.unique([device_of(name) for name in platforms], return_inverse=True)
        names = (tuple(devices.tolist()), platforms, tuple(predictor.workload_names))
        return cls(dict(zip(KINDS, names, strict=True)), codes.reshape(-1).astype(np.int64))

    def keys(self, colocations: Colocations) -> np.ndarray:
        """Code device, platform and workload, (3, n); all must be known."""
        workload, platform, _ = colocations.recode(self.names["workload"], self.names["platform"])
        return np.stack([self.device_of_platform[platform], platform, workload])

    def know(self, colocations: Colocations) -> np.ndarray:
        """Tell whether every name of the row is known, those of co-runners too. Returns (n,) bool."""
        return colocations.known_in(self.names["workload"], self.names["platform"])


def device_of(platform: str) -> str:
    """Return what stands behind the colon of a platform's name, such as hc-42 of iwasm-a:hc-42; else the
    name."""
    return platform.partition(":")[2] or platform


def usual_of(model: Any, degree: int) -> tuple[float, float]:
    """Return (median, usual spread) of the scores with this number of co-runners, or with the nearest number
    that was calibrated on."""
    runs = model.calibration.runs
    known = runs.degree[~runs.held_out]
    if not len(known):
        return 0.0, 1.0
    degree = int(known[np.argmin(np.abs(known - degree))])
    scores = runs.score[~runs.held_out & (runs.degree == degree)]
    median = float(np.median(scores))
    return median, max(float(np.median(np.abs(scores - median))), LEAST_SPREAD)


def standard_scores(model: Any) -> dict[int, list[float]]:
    """Standardise calibration scores, by number of co-runners: usual spreads from the usual median,
    ascending."""
    degree, standard = _standard(model)
    return {d: np.sort(standard[degree == d]).tolist() for d in np.unique(degree).tolist()}


def _standard(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (numbers of co-runners (n,), scores (n,) in usual spreads from the usual median) of its
    calibration runs, names left out aside."""
    own = model.calibration.runs
    own = own.take(np.flatnonzero(~own.held_out))
    median, mad = _of_rows(partial(usual_of, model), own.degree)
    return own.degree, (own.score - median) / mad


def _of_rows(usual: UsualOf, degree: np.ndarray) -> np.ndarray:
    """Look up (2, n) the usual median and spread for each row's number of co-runners."""
    every = np.unique(degree)
    each = np.array([usual(d) for d in every.tolist()]).reshape(-1, 2).T
    return each[:, np.searchsorted(every, degree)]


def normal_score(usual: Sequence[float], standard: float) -> float:
    """Convert a score to a normal score by its rank among the usual ones, ascending; 0 if there are none."""
    middle = 0.5 * (bisect_left(usual, standard) + bisect_right(usual, standard) + 1)
    return NormalDist().inv_cdf(middle / (len(usual) + 1))


def usual_spread(model: Any, colocations: Colocations) -> np.ndarray:
    """Return the usual spread of errors, (n,) log seconds."""
    mad = _of_rows(partial(usual_of, model), np.asarray(colocations.number_of_corunners))[1]
    return model.calibration.scaled(model.predictor, colocations)[1] * mad
