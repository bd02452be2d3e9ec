"""What a bound is made of: seconds, and for each an outcome that says what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle._base.report import Glance, duration
from jostle._base.tabular import Tabular
from jostle.conformal._conformal_rank import conformal_rank, rank_by_weight, window_weights

STATUSES = ("guaranteed", "calibrated", "extrapolated", "adapting", "none")
# {code: (status, sentence)}. {share}: such as 90 of 100. {n}: calibration runs.
_ABOUT = "holds in about {share} such answers"
OUTCOMES = {
    "guaranteed": ("guaranteed", "holds in at least {share} such answers ({n} held-out runs)"),
    "guaranteed_pooled": ("calibrated", _ABOUT + " ({n} runs, few of them of this kind)"),
    "cross_validated": ("calibrated", _ABOUT + " ({n} runs)"),
    "changed_company": ("calibrated", _ABOUT + " ({n} runs, some of which changed co-runners)"),
    "unknown_campaign": (
        "calibrated",
        _ABOUT + " ({n} runs), whichever campaign it is; naming it is narrower",
    ),
    "timeline": ("calibrated", _ABOUT + ", over this timeline"),
    "on_the_act": ("calibrated", _ABOUT + " ({n} jobs of the log at such a moment)"),
    "behind": (
        "calibrated",
        "it lasts longer than predicted: " + _ABOUT + " ({n} that lasted as long)",
    ),
    "held_out_names": (
        "extrapolated",
        _ABOUT + " ({n} runs) if what is new is like what was left out",
    ),
    "larger_sets": ("extrapolated", _ABOUT + " ({n} runs) if more co-runners cost as fewer did"),
    "model_based": (
        "extrapolated",
        _ABOUT + " if rare errors follow the law of the largest of {n}",
    ),
    "adapting": (
        "adapting",
        "something drifts: about {share} such answers hold in the long run, none by a theorem",
    ),
    "too_few_runs": (
        "none",
        "too few calibration runs for this confidence: ask for a lower one, or measure more",
    ),
    "unseen_group": ("none", "no run had this number of co-runners: measure some that have"),
    "new_name": (
        "none",
        "no run of the workload or the platform was learned from: measure some twenty, or fit for new names",
    ),
    "new_on_platform": (
        "none",
        "the workload, or any co-runner, was never measured on this platform: measure it there",
    ),
    "new_beside_others": (
        "none",
        "the workload, or a co-runner, was never measured beside others: measure it so",
    ),
    "outside_mix": ("none", "the mix that bounds were asked for has no share of this name"),
    "disconnected": (
        "none",
        "no chain of runs connects this workload with this platform, or its inputs were not measured",
    ),
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
BEHIND = "behind"
GUARANTEED = "guaranteed"
# Outcomes of bounds that rest on runs like the one asked about that were not learned from.
CALIBRATED = tuple(
    code for code, (status, _) in OUTCOMES.items() if status in ("guaranteed", "calibrated")
)


def status_of(outcome: str) -> str:
    """Return the status, one of STATUSES, of a bound that has this outcome; none of any other text."""
    return OUTCOMES.get(outcome, ("none",))[0]


@dataclass(frozen=True, repr=False)
class Bounds(Tabular, Glance):
    """Upper bounds for n co-locations.

    seconds: (n,) float64, +inf where none is valid. outcome: (n,) text, the code of the reason, a key of
    OUTCOMES. pool: (n,) text, the calibration pool used. n, rank: (n,) int64, the pool's calibration runs and
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
        """Return the bounds of m rows, in the order of the indices."""
        index = None if self.index is None else self.index[indices]
        return replace(self, index=index, **{n: getattr(self, n)[indices] for n in _BY_ROW})

    def put(self, rows: np.ndarray, other: Bounds) -> Bounds:
        """Replace m rows by the m bounds of another."""
        at = np.arange(len(self))
        at[rows] = len(self) + np.arange(len(other))
        both = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _BY_ROW
        }
        return replace(self, **{name: column[at] for name, column in both.items()})

    def _facts(self) -> list[tuple[str, str]]:
        """Count the bounds by status, and give the median of the valid ones in seconds."""
        facts = [("bounds", f"{len(self)}"), ("confidence", f"{self.confidence:g}")]
        status = self.status.tolist()
        facts += [(one, f"{status.count(one)}") for one in STATUSES if one in status]
        valid = self.seconds[self.is_valid]
        if len(valid):
            facts.append(("median", duration(float(np.median(valid)))))
        return facts

    def to_table(self) -> Any:
        """Make an Arrow table with a row for each co-location."""
        import pyarrow as pa

        columns = {
            "bound_seconds": self.seconds,
            "status": self.status.tolist(),
            "reason": self.reason,
            "outcome": self.outcome.tolist(),
            "pool": self.pool.tolist(),
            "calibration_runs": self.n,
            "rank": self.rank,
            "evidence": self.evidence.tolist(),
        }
        return pa.table(columns)

    @property
    def status(self) -> np.ndarray:
        """Return (n,) text, each one of STATUSES."""
        return np.array([status_of(outcome) for outcome in self.outcome.tolist()], "<U12")

    @property
    def reason(self) -> list[str]:
        """Say in n sentences what stands behind each bound, or why there is none."""
        share = share_in_words(self.confidence)
        pairs = list(zip(self.outcome.tolist(), self.n.tolist(), strict=True))
        texts = {
            (code, n): OUTCOMES.get(code, ("", code))[1].format(share=share, n=n)
            for code, n in set(pairs)
        }
        return [texts[pair] for pair in pairs]

    @property
    def is_valid(self) -> np.ndarray:
        """Tell whether the bound is finite, (n,) bool."""
        return np.isfinite(self.seconds)

    @property
    def is_guaranteed(self) -> np.ndarray:
        """Tell whether the bound is finite and a theorem stands behind it, (n,) bool."""
        return self.is_valid & (self.outcome == GUARANTEED)

    @property
    def is_calibrated(self) -> np.ndarray:
        """Tell whether the bound is finite and rests on runs like the one asked about that were not learned
        from, (n,) bool: its status is guaranteed or calibrated."""
        return self.is_valid & np.isin(self.outcome, CALIBRATED)


_BY_ROW = ("seconds", "outcome", "pool", "n", "rank", "evidence")


def share_in_words(confidence: float) -> str:
    """Write a confidence as a count: 90 of 100, or 999 of 1000."""
    share = exact_confidence(confidence)
    whole = 100
    while (share * whole).denominator > 1 and whole < 10**9:
        whole *= 10
    return f"{float(share * whole):.9g} of {whole}"


def margin(bound_seconds: np.ndarray, runtime_seconds: np.ndarray) -> float:
    """Compute mean(max(bound - runtime, 0) / runtime), Pitot (MLSys 2025), Eq. 11; NaN without runs."""
    if not len(runtime_seconds):
        return float("nan")
    return float(np.mean(np.maximum(bound_seconds - runtime_seconds, 0.0) / runtime_seconds))


def coverage(bound_seconds: np.ndarray, runtime_seconds: np.ndarray) -> float:
    """Return the share of runs at or under their bound; NaN without runs."""
    return (
        float(np.mean(runtime_seconds <= bound_seconds)) if len(runtime_seconds) else float("nan")
    )


def margin_of_errors(
    error: np.ndarray, scale: np.ndarray, confidence: float, unit: np.ndarray | None = None
) -> float:
    """Return the mean excess over the runtime (see `margin`) of bounds calibrated on these n >= 1 errors. A
    bound's log lies an offset times the scale above the prediction; too few errors: the offset of the
    largest. error: (n,) log runtime minus predicted. scale: (n,) above 0. unit: (n,) codes, equal for runs
    drawn together; None: each by itself."""
    score = error / scale
    order, rank = np.argsort(score, kind="stable"), conformal_rank(len(error), confidence)
    if unit is not None:
        weight, total = window_weights(unit)
        rank = rank_by_weight(np.cumsum(weight[order]), total, confidence)
    offset = score[order[min(rank, len(error)) - 1]]
    over = np.expm1(np.minimum(scale * offset - error, 20.0))
    return float(np.maximum(over, 0.0).mean())
