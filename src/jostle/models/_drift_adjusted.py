"""How far names have drifted from what a model says, as it stood at one moment, and answers moved by it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.conformal import ADAPTING, Bounds
from jostle.data import Colocations
from jostle.models._residual_baseline import FLEET, KINDS, KindNames, usual_spread


@dataclass(frozen=True, eq=False)
class MovedNames:
    """Shifts of the names of one kind. codes: (n,) ascending, of names that drifted or seem to. shifts: (n,)
    log seconds. extra: (n, c) usual spreads that bounds are moved by beyond that, at each of the confidences.
    """

    codes: np.ndarray
    shifts: np.ndarray
    extra: np.ndarray


@dataclass(frozen=True, eq=False)
class DriftCorrection:
    """Shifts of names since a model was fitted. names: of the fleet and each of KINDS. confidences: (c,)
    ascending, of what bounds are moved by."""

    kinds: KindNames
    names: Mapping[str, MovedNames]
    confidences: np.ndarray

    def followed_by(self, model: Any) -> Any:
        """Return the same model, its answers moved by what has drifted."""
        model = copy(model)
        model.moved = self
        return model

    def log_ratio(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """Return (log factor by which runtimes moved (n,), whether any name drifted or seems to (n,))."""
        log_ratio, moved, _ = self._of_keys(self.kinds.keys(colocations))
        return log_ratio, moved

    def bounded(self, model: Any, asked: Colocations, bounds: Bounds) -> Bounds:
        """Adjust the model's `bounds`: those of names that drifted are moved by what was learned since, so
        far that the stated share is kept in the long run, with the outcome `adapting`; those of names that
        seem to drift get the outcome, and stay where they are."""
        log_ratio, moved, extra = self._of_keys(self.kinds.keys(asked))
        at = np.flatnonzero(moved & bounds.is_valid)
        seconds, outcome = bounds.seconds.copy(), bounds.outcome.astype("<U20")
        # Straight lines between logarithms; a higher confidence is never moved by less.
        miss, asked_miss = np.log1p(-self.confidences), np.log1p(-bounds.confidence)
        more = [np.interp(-asked_miss, -miss, row) for row in np.maximum.accumulate(extra[at], 1)]
        spread = usual_spread(model, asked.take(at))
        seconds[at] *= np.exp(log_ratio[at] + np.array(more) * spread)
        outcome[at] = ADAPTING
        return replace(bounds, seconds=seconds, outcome=outcome)

    def _of_keys(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = keys.shape[1]
        log_ratio, moved = np.zeros(n), np.zeros(n, bool)
        extra = np.zeros((n, len(self.confidences)))
        for kind, key in zip((FLEET, *KINDS), [np.zeros(n, np.int64), *keys], strict=True):
            names = self.names[kind]
            if not len(names.codes):
                continue
            at = np.minimum(np.searchsorted(names.codes, key), len(names.codes) - 1)
            here = names.codes[at] == key
            log_ratio += np.where(here, names.shifts[at], 0.0)
            extra = np.where(here[:, None], np.maximum(extra, names.extra[at]), extra)
            moved |= here
        return log_ratio, moved, extra
