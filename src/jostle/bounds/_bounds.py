"""What a bound is made of: seconds, and for each an outcome that says what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.bounds._rank import conformal_rank

OUTCOMES = {
    "guaranteed": "holds with the stated confidence, over runs like those it was calibrated on",
    "guaranteed_pooled": "holds on average over all runs with co-runners; too few of this number",
    "too_few_runs": "too few calibration runs for this confidence: no finite bound is valid",
    "unseen_group": "no calibration run had this number of co-runners",
    "disconnected": "no chain of runs connects this workload with this platform",
}


@dataclass(frozen=True)
class Bounds:
    """Upper bounds for n co-locations.

    seconds: (n,) float64, +inf where none is valid. outcome: (n,) text, a key of OUTCOMES.
    pool: (n,) text, the calibration pool used. n, rank: (n,) int64, the pool's calibration runs and
    the rank of the score used among them (above n: none).
    """

    seconds: np.ndarray
    outcome: np.ndarray
    pool: np.ndarray
    n: np.ndarray
    rank: np.ndarray
    confidence: float

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def is_valid(self) -> np.ndarray:
        """(n,) bool: whether the bound is finite."""
        return np.isfinite(self.seconds)


def margin(bound_seconds: np.ndarray, runtime_seconds: np.ndarray) -> float:
    """mean(max(bound - runtime, 0) / runtime), Pitot (MLSys 2025), Eq. 11; NaN without runs."""
    if not len(runtime_seconds):
        return float("nan")
    return float(np.mean(np.maximum(bound_seconds - runtime_seconds, 0.0) / runtime_seconds))


def coverage(bound_seconds: np.ndarray, runtime_seconds: np.ndarray) -> float:
    """Share of runs at or under their bound; NaN without runs."""
    return (
        float(np.mean(runtime_seconds <= bound_seconds)) if len(runtime_seconds) else float("nan")
    )


def margin_of_errors(error: np.ndarray, scale: np.ndarray, confidence: float) -> float:
    """The margin of bounds whose log lies in proportion to the scale above the prediction, calibrated on
    these very errors. error: (n,) log runtime minus predicted; scale: (n,) above 0. n at least 1."""
    rank = min(conformal_rank(len(error), confidence), len(error))
    offset = np.sort(error / scale)[rank - 1]
    over = np.expm1(np.minimum(scale * offset - error, 20.0))
    return float(np.maximum(over, 0.0).mean())
