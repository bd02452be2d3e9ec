"""What any prediction beside others has to beat: the time alone, and the time alone and a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import NotEnoughRuns, UsageError

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs

KINDS = ("solo", "twice", "times", "plus")


@dataclass(frozen=True)
class SoloTime:
    """The median time alone: as it is (`solo`), once for every member of the bag (`twice`: as if all took
    turns, each as long as the target), times the platform's typical slowdown (`times`), or plus its typical
    extra time (`plus`). The constants make the mean relative error of the runs to fit least."""

    kind: str

    name = "solo_time"
    needs_alone = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"unknown kind {self.kind!r}", fix=f"One of {', '.join(KINDS)}.")

    def fit(self, runs: Runs, validation: Runs, *, seed: int = 0, progress: Any = None) -> Any:
        """Raises NotEnoughRuns without runs alone."""
        from jostle.runs import Runs, all_names, solo_medians

        runs = Runs.concatenate([runs.ok(), validation.ok()])
        names = all_names(runs)
        solo = solo_medians(runs, *names)
        if np.isnan(solo).all():
            raise NotEnoughRuns("no run is without co-runners", fix="Measure workloads alone too.")
        workload, platform, _ = runs.colocations.recode(*names)
        own = np.exp(solo[platform, workload])
        seconds = runs.runtime_seconds
        beside = (runs.colocations.number_of_corunners > 0) & np.isfinite(own)
        constant = np.full(len(names[1]), 1.0 if self.kind == "times" else 0.0)
        for place in range(len(names[1])):
            at = beside & (platform == place)
            if not at.any():
                at = beside
            if at.any() and self.kind == "times":
                constant[place] = _weighted_median(seconds[at] / own[at], own[at] / seconds[at])
            if at.any() and self.kind == "plus":
                constant[place] = _weighted_median(seconds[at] - own[at], 1 / seconds[at])
        return _SoloPredictor(self.kind, names, solo, constant)


class _SoloPredictor:
    def __init__(
        self,
        kind: str,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        log_solo: np.ndarray,
        constant: np.ndarray,
    ) -> None:
        self.kind, self.names, self.log_solo, self.constant = kind, names, log_solo, constant

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds; NaN for what never ran alone there."""
        workload, platform, _ = colocations.codes_in(*self.names)
        solo = np.exp(self.log_solo[platform, workload])
        count = colocations.number_of_corunners
        if self.kind == "twice":
            return solo * (1 + count)
        if self.kind == "times":
            return np.where(count > 0, solo * self.constant[platform], solo)
        if self.kind == "plus":
            return np.where(count > 0, solo + self.constant[platform], solo)
        return solo


def _weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """The c with the least sum of weight * |value - c|."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(share, share[-1] / 2)])
