"""How far names have drifted from what a model says, as it stood at one moment, and answers moved by it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.conformal import ADAPTING, Bounds
from jostle.data import Colocations
from jostle.models._residual_baseline import KindNames, UsualScores, usual_spread


@dataclass(frozen=True, eq=False)
class DriftCorrection:
    """Shifts of names since a model was fitted. levels: (n,) ascending, of names that drifted or seem to, as
    `kinds` codes them. shifts: (n,) log seconds. extra: (n, c) usual spreads that bounds are moved by beyond
    that, at each of the confidences (c,), ascending. usual: scores of the model that it is of."""

    kinds: KindNames
    levels: np.ndarray
    shifts: np.ndarray
    extra: np.ndarray
    confidences: np.ndarray
    usual: UsualScores

    def followed_by(self, model: Any) -> Any:
        """Return the same model, its answers moved by what has drifted."""
        model = copy(model)
        model.moved = self
        return model

    def log_ratio(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """Return (log factor by which runtimes moved (n,), whether any name drifted or seems to (n,))."""
        at, here = self._moved(colocations)
        return np.where(here, self.shifts[at], 0.0).sum(axis=0), np.asarray(here.any(axis=0))

    def bounded(self, model: Any, asked: Colocations, bounds: Bounds) -> Bounds:
        """Adjust the model's `bounds`: those of names that drifted are moved by what was learned since, so
        far that the stated share is kept in the long run, with the outcome `adapting`; those of names that
        seem to drift get the outcome, and stay where they are."""
        log_ratio, moved = self.log_ratio(asked)
        at = np.flatnonzero(moved & bounds.is_valid)
        level, here = self._moved(asked.take(at))
        extra = np.where(here[:, :, None], self.extra[level], 0.0).max(axis=0)
        seconds, outcome = bounds.seconds.copy(), bounds.outcome.astype("<U20")
        # Straight lines between logarithms; a higher confidence is never moved by less.
        miss, asked_miss = np.log1p(-self.confidences), np.log1p(-bounds.confidence)
        more = [np.interp(-asked_miss, -miss, row) for row in np.maximum.accumulate(extra, 1)]
        spread = usual_spread(model, self.usual, asked.take(at))
        seconds[at] *= np.exp(log_ratio[at] + np.array(more) * spread)
        outcome[at] = ADAPTING
        return replace(bounds, seconds=seconds, outcome=outcome)

    def _moved(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """Return (row of each name that moved, whether it did), (4, n)."""
        level = self.kinds.levels(colocations)
        at = np.minimum(np.searchsorted(self.levels, level), len(self.levels) - 1)
        return at, self.levels[at] == level
