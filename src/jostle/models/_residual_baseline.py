"""What a model's errors were like on the runs its bounds were calibrated on: what drifts are told from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
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
LEVELS = (FLEET, *KINDS)
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
        kinds, usual = KindNames.of(model.predictor), UsualScores(model)
        ranked, pairs = usual.by_degree(), zip(usual.degree, usual.standard, strict=True)
        scores = np.array(
            [normal_score(ranked[d], s) if np.isfinite(s) else np.nan for d, s in pairs]
        )
        keys = kinds.keys(calibration.ok().colocations)
        levels = usual_levels(scores, list(keys), np.diff(kinds.first).tolist())
        return cls(dict(zip(LEVELS, levels, strict=True)))


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

    @property
    def first(self) -> np.ndarray:
        """First level of each of LEVELS, (5,), with their number as the last."""
        return np.cumsum([0, 1, *(len(self.names[kind]) for kind in KINDS)])

    def keys(self, colocations: Colocations) -> np.ndarray:
        """Code fleet, device, platform and workload, (4, n), each from 0; all must be known."""
        workload, platform, _ = colocations.recode(self.names["workload"], self.names["platform"])
        return np.stack([0 * platform, self.device_of_platform[platform], platform, workload])

    def levels(self, colocations: Colocations) -> np.ndarray:
        """Code them as levels, (4, n), the wider first."""
        return self.keys(colocations) + self.first[:-1, None]

    def of_level(self, level: int) -> tuple[str, str]:
        """Return (kind, name) of a level."""
        place = int(np.searchsorted(self.first, level, side="right")) - 1
        kind = LEVELS[place]
        return kind, "" if kind == FLEET else self.names[kind][level - self.first[place]]

    def know(self, colocations: Colocations) -> np.ndarray:
        """Tell whether every name of the row is known, those of co-runners too. Returns (n,) bool."""
        return colocations.known_in(self.names["workload"], self.names["platform"])


def device_of(platform: str) -> str:
    """Return what stands behind the colon of a platform's name, such as hc-42 of iwasm-a:hc-42; else the
    name."""
    return platform.partition(":")[2] or platform


class UsualScores:
    """Scores of a model's calibration runs, names left out aside. degree: (n,) numbers of co-runners.
    standard: (n,) in usual spreads from the usual median, each of its number of co-runners."""

    def __init__(self, model: Any) -> None:
        runs = model.calibration.runs
        runs = runs.take(np.flatnonzero(~runs.held_out))
        self._degrees, place = np.unique(runs.degree, return_inverse=True)
        parts = [runs.score[place == k] for k in range(len(self._degrees))]
        self._median = np.array([np.median(one) for one in parts])
        off = [np.median(np.abs(one - np.median(one))) for one in parts]
        self._spread = np.maximum(off, LEAST_SPREAD)
        self.degree = runs.degree
        self.standard = (runs.score - self._median[place]) / self._spread[place]

    def by_degree(self) -> dict[int, list[float]]:
        """Return the standard scores of each number of co-runners, ascending."""
        known = self._degrees.tolist()
        return {d: np.sort(self.standard[self.degree == d]).tolist() for d in known}

    def at(self, degree: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (usual median, usual spread) (n,) of scores with so many co-runners, or with the nearest
        number that was calibrated on."""
        if not len(self._degrees):
            return np.zeros(len(degree)), np.ones(len(degree))
        nearest = np.abs(self._degrees[:, None] - degree).argmin(axis=0)
        return self._median[nearest], self._spread[nearest]


def normal_score(usual: Sequence[float], standard: float) -> float:
    """Convert a score to a normal score by its rank among the usual ones, ascending; 0 if there are none."""
    middle = 0.5 * (bisect_left(usual, standard) + bisect_right(usual, standard) + 1)
    return NormalDist().inv_cdf(middle / (len(usual) + 1))


def usual_spread(model: Any, usual: UsualScores, colocations: Colocations) -> np.ndarray:
    """Return the usual spread of errors, (n,) log seconds. usual: the model's."""
    spread = usual.at(colocations.number_of_corunners)[1]
    return model.calibration.scaled(model.predictor, colocations)[1] * spread
