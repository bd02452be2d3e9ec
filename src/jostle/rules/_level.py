"""The plainest members: no slowdown, and what is typical of a platform and a number of co-runners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.rules._rows import Ground, SlowdownRows
from jostle.rules._weights import weighted_median

FEWEST = 3  # rows of a platform and degree under which the platform's or everyone's median stands


@dataclass(frozen=True)
class Level:
    """place: (platforms, degrees + 1)."""

    place: np.ndarray

    def value(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        degree = np.minimum(rows.degree, self.place.shape[1] - 1)
        return self.place[rows.target // ground.workloads, degree]


def no_level(ground: Ground) -> Level:
    return Level(np.zeros((ground.platforms, 1)))


def fit_level(rows: SlowdownRows, ground: Ground) -> Level:
    """Medians, weighted so that the mean relative error of the runtime is least."""
    degree, place = rows.degree, rows.target // ground.workloads
    out = np.zeros((ground.platforms, int(degree.max(initial=1)) + 1))
    weight = np.sqrt(rows.weight) if rows.timed else np.exp(-rows.log_slowdown)
    for p, d in np.ndindex(out.shape):
        here = place == p
        choices = (here & (degree == d), here, degree == d)
        at = next((rows for rows in choices if rows.sum() >= FEWEST), np.ones(len(rows), bool))
        out[p, d] = weighted_median(rows.value[at], weight[at])
    return Level(out)
