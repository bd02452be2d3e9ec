"""Errors and coverage on runs that the model did not learn from, with intervals that respect windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.bounds import candidates_of
from jostle.models import Model
from jostle.placement import calibration_runs
from jostle.runs import Runs

FOLDS = 5
_Z = 1.959963984540054  # 95%


@dataclass(frozen=True)
class HeldOutRuns:
    """n runs that were not learned from. error: (n,) log of runtime over prediction. covered: (n,) bool,
    where there was a bound. bounded: (n,) bool. unit: (n,) codes of what was drawn as one, as a window."""

    runs: Runs
    error: np.ndarray
    covered: np.ndarray
    bounded: np.ndarray
    bound_seconds: np.ndarray
    unit: np.ndarray
    confidence: float


@dataclass(frozen=True)
class GroupRow:
    """One group. mean_error: of |runtime / prediction - 1|. coverage: with the ends of a 95% interval, which
    counts windows, not runs; NaN without bounds."""

    name: str
    runs: int
    windows: int
    mean_error: float
    coverage: float
    low: float
    high: float


def held_out(model: Model, every_run: Runs, confidence: float, seed: int) -> HeldOutRuns:
    """every_run: of the data that the model was fitted to, of which those that it was calibrated on count.
    Every fifth of their windows is bounded by what the others alone calibrate, so that no run speaks for its
    own bound. A model that was calibrated on runs that fits had left out kept them, and what was answered.

    Raises what `calibration_runs` raises."""
    own = model.calibration
    every = own.runs.take(np.flatnonzero(~own.runs.held_out))
    answered = None
    if own.is_crossed and model.kept is not None:
        runs = model.kept.calibration.as_runs()
        c, unit = runs.colocations, every.unit
        scale = candidates_of(model.predictor, c).scale
        centre = np.log(runs.runtime_seconds) - every.scores * scale
        error, answered = np.log(runs.runtime_seconds) - centre[0], (centre, scale)
    else:
        runs = calibration_runs(model, every_run).ok()
        c = runs.colocations
        unit = np.asarray(
            runs.units(str(model.metadata.get("calibrated_by") or "window")), np.int64
        )
        predicted = np.asarray(model.without_calibration_runs().predict(c), np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.log(runs.runtime_seconds) - np.log(predicted)
    codes, unit = np.unique(unit, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(codes)) % FOLDS
    bound = np.full(len(c), np.inf)
    known = len(every) == len(c)  # one calibration run for each of these
    for k in range(FOLDS):
        mine = np.flatnonzero(fold[unit] == k)
        if not len(mine) or not known:
            continue
        rest = every.take(np.flatnonzero(fold[unit] != k))
        calibrated = replace(own, runs=rest, mix=None, session_scores=None)
        left = None
        if answered is not None:
            usual = candidates_of(model.predictor, c.take(mine))
            left = usual._replace(
                centre=answered[0][:, mine], scale=answered[1][:, mine], seconds=None
            )
        bound[mine] = calibrated.bound(
            model.predictor, c.take(mine), confidence, candidates=left
        ).seconds
    bounded = np.isfinite(bound)
    covered = runs.runtime_seconds <= bound
    return HeldOutRuns(runs, error, covered, bounded, bound, unit, confidence)


def group_row(name: str, test: HeldOutRuns, at: np.ndarray) -> GroupRow:
    """at: which of the runs are in the group."""
    error = np.abs(np.expm1(test.error[at]))
    inside = at[test.bounded[at]]
    windows = len(np.unique(test.unit[inside]))
    coverage = float(test.covered[inside].mean()) if len(inside) else float("nan")
    low, high = wilson(coverage, windows)
    mean = float(np.nanmean(error)) if np.isfinite(error).any() else float("nan")
    return GroupRow(name, len(at), len(np.unique(test.unit[at])), mean, coverage, low, high)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The ends of the 95% interval of a share of n (Wilson 1927); NaN without any."""
    if not n or share != share:
        return float("nan"), float("nan")
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n * n)) / (1 + _Z**2 / n)
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))
