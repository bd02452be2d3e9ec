"""The median slowdown of a platform and number of co-runners: a constant, which needs the fewest runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.training._relative_error import weighted_median
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

FEWEST = 3  # rows of a platform and degree under which the platform's or everyone's median stands


@dataclass(frozen=True)
class GroupMedian:
    """place: (platforms, degrees + 1)."""

    place: np.ndarray

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        degree = np.minimum(rows.degree, self.place.shape[1] - 1)
        return self.place[rows.target // cell_table.workloads, degree]


def fit_group_median(rows: SlowdownRows, cell_table: CellTable) -> GroupMedian:
    """Medians, weighted so that the mean relative error of the runtime is least."""
    degree, place = rows.degree, rows.target // cell_table.workloads
    out = np.zeros((cell_table.platforms, int(degree.max(initial=1)) + 1))
    own = np.sqrt(rows.trust) * np.exp(-rows.log_slowdown)
    weight = np.sqrt(rows.weight) if rows.timed else own
    for p, d in np.ndindex(out.shape):
        here = place == p
        choices = (here & (degree == d), here, degree == d)
        at = next((rows for rows in choices if rows.sum() >= FEWEST), np.ones(len(rows), bool))
        out[p, d] = weighted_median(rows.value[at], weight[at])
    return GroupMedian(out)
