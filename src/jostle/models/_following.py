"""How far names have drifted from what a model says, as it stood at one moment, and answers moved by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.bounds import ADAPTING, AdaptedLevels, Bounds
from jostle.models._usual import KINDS, KindNames

if TYPE_CHECKING:
    from jostle.runs import Colocations


@dataclass(frozen=True, eq=False)
class Moved:
    """How far names have moved since a model was fitted, in log seconds.

    fleet: all of them, None where they have not. names: of each of KINDS the (codes ascending, shifts) of
    those that drifted. levels: by number of co-runners, at which level bounds are kept true.
    """

    kinds: KindNames
    fleet: float | None
    names: Mapping[str, tuple[np.ndarray, np.ndarray]]
    levels: Mapping[int, AdaptedLevels]

    def log_ratio(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """(what log runtimes have moved by (n,), whether any of the names drifted (n,))."""
        return self._of_keys(self.kinds.keys(colocations))

    def everywhere(self, workload: str) -> np.ndarray:
        """(platforms,) what log runtimes of a workload have moved by. Raises ValueError if unknown."""
        platforms = np.arange(len(self.kinds.names["platform"]))
        code = self.kinds.names["workload"].index(workload)
        devices = self.kinds.device_of_platform
        return self._of_keys(np.stack([devices, platforms, np.full(len(platforms), code)]))[0]

    def bounded(
        self, asked: Colocations, bounds: Bounds, bound: Callable[[Colocations, float], Bounds]
    ) -> Bounds:
        """Bounds as of `bounds`, but those of names that drifted are moved by what was learned of them since,
        at a level that adaptive conformal inference keeps true, with the outcome `adapting`: no theorem holds
        for one of them, only for their share in the long run. bound: gives bounds at another level.
        """
        log_ratio, moved = self.log_ratio(asked)
        if not moved.any():
            return bounds
        seconds, outcome = bounds.seconds.copy(), bounds.outcome.astype("<U20")
        degree = np.asarray(asked.number_of_corunners)
        for d in np.unique(degree[moved]).tolist():
            at = np.flatnonzero(moved & (degree == d))
            level = bounds.confidence
            if d in self.levels:
                level = min(self.levels[d].level(level), 1 - 1e-9)
            there = bound(asked.take(at), level)
            # At a level that calibration runs cannot give, what they can give at most.
            finite = np.where(there.is_valid, there.seconds, seconds[at])
            seconds[at] = finite * np.exp(log_ratio[at])
            outcome[at] = np.where(np.isfinite(finite), ADAPTING, bounds.outcome[at])
        return replace(bounds, seconds=seconds, outcome=outcome)

    def _of_keys(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_ratio = np.full(keys.shape[1], self.fleet or 0.0)
        moved = np.full(len(log_ratio), self.fleet is not None)
        for kind, key in zip(KINDS, keys, strict=True):
            codes, shifts = self.names[kind]
            if not len(codes):
                continue
            at = np.minimum(np.searchsorted(codes, key), len(codes) - 1)
            here = codes[at] == key
            log_ratio += np.where(here, shifts[at], 0.0)
            moved |= here
        return log_ratio, moved
