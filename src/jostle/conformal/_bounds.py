"""What a bound is made of: seconds, and for each an outcome that says what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._base.report import Glance, duration
from jostle._base.tabular import Tabular
from jostle.conformal._conformal_rank import conformal_rank, rank_by_weight, window_weights

OUTCOMES = {
    "guaranteed": "holds with the stated confidence, over runs like those it was calibrated on: as many "
    "co-runners, and drawn from the same mix, or from the one asked for",
    "guaranteed_pooled": "too few runs like this were calibrated on, so the shape of errors is that of "
    "others put to the size of these: no exact theorem",
    "cross_validated": "calibrated on what was answered of runs by fits that had left out their whole set of "
    "workloads, as all runs are needed to learn from: no exact theorem",
    "changed_company": "calibrated on runs of which some changed company, each reckoned for its longest "
    "stretch by the law of rates: no exact theorem",
    "unknown_campaign": "campaigns of the runs differ, and the question names none: calibrated on runs as "
    "long as they may take in one left out, by Student's law of how far others are apart: no exact theorem",
    "timeline": "of a known timeline of company, at the bound of each: no exact theorem",
    "on_the_act": "calibrated on what was told of earlier jobs of the log at such a moment, their company "
    "known or to come as here: no exact theorem",
    "held_out_names": "calibrated on names, or on workloads on a platform, that were left out of further "
    "fits: valid over new ones as far as those resemble them and the fits this one; no exact theorem",
    "larger_sets": "calibrated on the largest sets that ran, as answered by a fit that had left out all of "
    "that size, and wider the more there are: for more co-runners than any run had, as far as costs go on "
    "alike; no exact theorem",
    "model_based": "beyond what its calibration runs can promise: from a generalised Pareto tail of their "
    "scores; as good as that law, and no theorem",
    "adapting": "a name has drifted, or seems to: the bound follows the runs since that was told, and "
    "the stated share of them holds in the long run; no theorem stands behind a single one",
    "too_few_runs": "too few calibration runs for this confidence: no finite bound is valid. Ask for a "
    "lower confidence, or measure more",
    "unseen_group": "no calibration run had this number of co-runners: measure some that have",
    "new_name": "no run of the workload or of the platform was learned from, and none such was calibrated "
    "on: measure it some twenty times, or fit for new names",
    "new_on_platform": "the workload was never measured on the platform, or nothing beside others there, and "
    "none such was calibrated on: measure it there",
    "new_beside_others": "the workload, or a co-runner, was never measured beside others, and none such was "
    "calibrated on: measure it beside others",
    "outside_mix": "bounds were asked for over a mix of names that this one has no share of",
    "disconnected": "the method has no answer: no chain of runs connects this workload with this platform, "
    "or what it needs was not measured; calibration runs without an answer count for no other bound",
}
LARGER_SETS = "larger_sets"
HELD_OUT_NAMES = "held_out_names"
POOLED = "guaranteed_pooled"
ADAPTING = "adapting"
OUTSIDE_MIX = "outside_mix"
CROSS_VALIDATED = "cross_validated"
CHANGED_COMPANY = "changed_company"
UNKNOWN_CAMPAIGN = "unknown_campaign"
TIMELINE = "timeline"
ON_THE_ACT = "on_the_act"
GUARANTEED = ("guaranteed",)  # outcomes that a theorem stands behind
# Those of runs like the one asked about that were not learned from.
CALIBRATED = (*GUARANTEED, POOLED, CROSS_VALIDATED, CHANGED_COMPANY, UNKNOWN_CAMPAIGN)


@dataclass(frozen=True, repr=False)
class Bounds(Tabular, Glance):
    """Upper bounds for n co-locations.

    seconds: (n,) float64, +inf where none is valid. outcome: (n,) text, a key of OUTCOMES.
    pool: (n,) text, the calibration pool used. n, rank: (n,) int64, the pool's calibration runs and
    the rank of the score used among them (above n: none). evidence: (n,) text, how much was measured of
    the names. index: of the DataFrame that was asked about, which `to_pandas` keeps.
    """

    seconds: np.ndarray
    outcome: np.ndarray
    pool: np.ndarray
    n: np.ndarray
    rank: np.ndarray
    confidence: float
    evidence: np.ndarray
    index: Any = None

    def __len__(self) -> int:
        return len(self.seconds)

    def take(self, indices: Any) -> Bounds:
        """Those of m rows."""
        index = None if self.index is None else self.index[indices]
        return replace(self, index=index, **{n: getattr(self, n)[indices] for n in _BY_ROW})

    def put(self, rows: np.ndarray, other: Bounds) -> Bounds:
        """With m rows from another, which has as many."""
        at = np.arange(len(self))
        at[rows] = len(self) + np.arange(len(other))
        both = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _BY_ROW
        }
        return replace(self, **{name: column[at] for name, column in both.items()})

    def _facts(self) -> list[tuple[str, str]]:
        """How many there are, how they came out, and how long they are."""
        facts = [("bounds", f"{len(self)}"), ("confidence", f"{self.confidence:g}")]
        outcomes, times = np.unique(self.outcome, return_counts=True)
        order = np.argsort(-times, kind="stable")
        facts += [(str(outcomes[i]), f"{times[i]}") for i in order]
        valid = self.seconds[self.is_valid]
        if len(valid):
            facts.append(("median", duration(float(np.median(valid)))))
        return facts

    def to_table(self) -> Any:
        """An Arrow table with a row for each co-location."""
        import pyarrow as pa

        columns = {
            "bound_seconds": self.seconds,
            "outcome": self.outcome.tolist(),
            "pool": self.pool.tolist(),
            "calibration_runs": self.n,
            "rank": self.rank,
            "evidence": self.evidence.tolist(),
        }
        return pa.table(columns)

    @property
    def is_valid(self) -> np.ndarray:
        """(n,) bool: whether the bound is finite."""
        return np.isfinite(self.seconds)

    @property
    def is_guaranteed(self) -> np.ndarray:
        """(n,) bool: whether the bound is finite and a theorem stands behind it."""
        return self.is_valid & np.isin(self.outcome, GUARANTEED)

    @property
    def is_calibrated(self) -> np.ndarray:
        """(n,) bool: whether the bound is finite and rests on runs like the one asked about that were not
        learned from: it is guaranteed, cross-validated, reckoned for one company or for a campaign that is
        not known, or told on the act."""
        return self.is_valid & np.isin(self.outcome, (*CALIBRATED, ON_THE_ACT))


_BY_ROW = ("seconds", "outcome", "pool", "n", "rank", "evidence")


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


def margin_of_errors(
    error: np.ndarray, scale: np.ndarray, confidence: float, unit: np.ndarray | None = None
) -> float:
    """The margin of bounds whose log lies in proportion to the scale above the prediction, calibrated on
    these very errors, or at the largest where they are too few. error: (n,) log runtime minus predicted;
    scale: (n,) above 0; unit: (n,) codes of what was drawn as one, where not every run was drawn by itself.
    n at least 1."""
    score = error / scale
    order = np.argsort(score, kind="stable")
    if unit is None:
        rank = conformal_rank(len(error), confidence)
    else:
        weight, total = window_weights(unit)
        rank = rank_by_weight(np.cumsum(weight[order]), total, confidence)
    offset = score[order[min(rank, len(error)) - 1]]
    over = np.expm1(np.minimum(scale * offset - error, 20.0))
    return float(np.maximum(over, 0.0).mean())
