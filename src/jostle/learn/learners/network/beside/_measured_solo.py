"""What was measured alone beyond what a network says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.rules._slowdown_rows import looked_up


@dataclass(frozen=True)
class MeasuredAlone:
    """cell: (c,) ascending, workload * platforms + platform; beyond: (c,) log seconds to add there."""

    cell: np.ndarray
    beyond: np.ndarray

    @classmethod
    def none(cls) -> MeasuredAlone:
        return cls(np.zeros(0, np.int64), np.zeros(0))

    @classmethod
    def medians(cls, cell: np.ndarray, beyond: np.ndarray) -> MeasuredAlone:
        """Of each cell the median of what was measured there (n,); NaN counts for nothing."""
        known = np.isfinite(beyond)
        cell, beyond = cell[known], beyond[known]
        order = np.lexsort((beyond, cell))
        cell, beyond = cell[order], beyond[order]
        cells, start, count = np.unique(cell, return_index=True, return_counts=True)
        return cls(cells, (beyond[start + (count - 1) // 2] + beyond[start + count // 2]) / 2)

    def of(self, cell: np.ndarray) -> np.ndarray:
        """(n,) 0 where nothing was measured."""
        return looked_up(self.cell, self.beyond, cell)

    def times(self, share: float) -> MeasuredAlone:
        return MeasuredAlone(self.cell, share * self.beyond)

    def plus(self, cell: np.ndarray, more: np.ndarray) -> MeasuredAlone:
        """With more (k,) in distinct cells (k,), ascending."""
        every = np.union1d(self.cell, cell)
        total = self.of(every)
        total[np.searchsorted(every, cell)] += more
        return MeasuredAlone(every, total)
