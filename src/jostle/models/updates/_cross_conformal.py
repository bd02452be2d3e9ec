"""Models that learn from all runs of a small campaign: bounds rest on fits that had left each run's set out.

Where a share held out would leave too little to learn from or to calibrate on, a method that leaves runs out
anyway, to weigh what it knows, tells how far off its answers are of what it has not seen: cross-conformal
bounds (Vovk 2015, Cross-conformal predictive distributions; Barber et al. 2021). There is no exact theorem
for the model of all runs, so they have an outcome of their own, `cross_validated`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress
from jostle.conformal import THERE, Calibration, CalibrationRuns, Groups, Selection, grades_of
from jostle.learn import FitWithout, LeavesOut, Prepared
from jostle.models._residual_baseline import Usual
from jostle.models.updates._replay_buffer import Kept

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models.timelines._timeline_calibration import Acts


@dataclass(frozen=True)
class Crossed:
    """calibration_runs: in the order of the scores. without: (what was learned without some runs, their
    numbers), of sets left out. of_sessions: the calibration of answers about a session that was named, None
    where sessions tell nothing."""

    fitted: Any
    calibration: Calibration
    calibration_runs: Runs
    kept: Kept
    without: tuple[tuple[Any, np.ndarray], ...] = ()
    of_sessions: Calibration | None = None

    def model(self, of: Any, metadata: dict[str, Any], acts: Acts | None = None) -> Any:
        """What a user holds, `of` the class Model. acts: as there."""
        parts = None, self.kept, None, acts, self.of_sessions
        model = of(self.fitted, self.calibration, metadata, *parts)
        model.usual = Usual.of(model, self.calibration_runs)
        return model


def fit_crossed(
    method: LeavesOut,
    prepared: Prepared,
    *,
    by: str,
    seed: int,
    groups: Groups | None = None,
    may_calibrate: np.ndarray | None = None,
    taken_by: Callable[[Any, Runs], Runs] | None = None,
    progress: Progress | None = None,
) -> Crossed | None:
    """may_calibrate: (n,) of the runs, by default all but those that were chosen. taken_by: what runs that
    were left out are by what was learned without them. None where no run could be left out."""
    runs = prepared.runs
    free = ~(runs.is_chosen | prepared.inputs)
    free = free if may_calibrate is None else free & may_calibrate
    fitted, left_out = method.fit_left_out(prepared, seed=seed, progress=progress)
    left_out = [
        replace(one, runs=one.runs[free[one.runs]], unit=one.unit[free[one.runs]])
        for one in left_out
    ]
    left_out = [one for one in left_out if len(one.runs)]

    asked = [runs.take(one.runs) for one in left_out]
    if taken_by is not None:
        asked = [taken_by(one.fitted, some) for one, some in zip(left_out, asked, strict=True)]
    grades = [_grades(fitted, one, some) for one, some in zip(left_out, asked, strict=True)]
    how, of_sessions = (left_out, grades, groups, prepared.is_close), None
    calibration, without = _calibrated(asked, *how)
    if calibration is None:
        return None
    if getattr(fitted, "session_cost", 0.0):
        usual = [
            one.fitted.in_usual_session(some) for one, some in zip(left_out, asked, strict=True)
        ]
        of_sessions, _ = _calibrated(usual, *how)
        pairs = enumerate(zip(left_out, usual, strict=True))
        later = [one.fitted.in_unknown_session(some, [seed, 61, at]) for at, (one, some) in pairs]
        unknown, _ = _calibrated(later, *how)
        assert unknown is not None  # who has an answer does not depend on how long it took
        calibration = calibration.in_unknown_session(unknown)
    index = np.concatenate([asked for _, asked in without])
    rest = np.setdiff1d(np.arange(len(runs)), index)
    kept = Kept.all_of(runs.take(rest), runs.take(index), by)
    return Crossed(fitted, calibration, runs.take(index), kept, tuple(without), of_sessions)


def _grades(fitted: Any, one: FitWithout, runs: Runs) -> np.ndarray:
    """fitted: to all."""
    by_fold = grades_of(one.fitted, runs.colocations)
    if one.is_of_names or one.is_larger:
        return by_fold
    # By what a fold learned from, names with few runs would be of a class that nobody asks about; but of a
    # workload on a platform no more is known than what the fold learned.
    grades = grades_of(fitted, runs.colocations, one.unit)
    grades[:, THERE] = np.minimum(grades[:, THERE], by_fold[:, THERE])
    return grades


def _calibrated(
    asked: Sequence[Runs],
    left_out: Sequence[FitWithout],
    grades: Sequence[np.ndarray],
    groups: Groups | None,
    is_close: bool,
) -> tuple[Calibration | None, list[tuple[Any, np.ndarray]]]:
    """(by errors of what was left out, None where there is too little; what was learned without sets, and the
    numbers of the runs that it answered about). asked: the runs of each."""
    own, names, larger = [], [], []
    without: list[tuple[Any, np.ndarray]] = []
    for one, some, graded in zip(left_out, asked, grades, strict=True):
        scores, part, known = CalibrationRuns.of_answered(
            one.fitted, some, one.unit, grades=graded, groups=groups, held_out=one.is_of_names
        )
        of_kind = names if one.is_of_names else larger if one.is_larger else own
        of_kind.append((scores, part))
        if of_kind is own:
            without.append((one.fitted, one.runs[known]))
    if not any(len(scores) for scores, _ in own):
        return None, without
    calibration = Calibration.crossed(*_joined(own), groups, is_close=is_close)
    if any(len(scores) for scores, _ in names) and groups is None:
        calibration = calibration.with_held_out(*_joined(names))
    if any(len(scores) for scores, _ in larger):
        calibration = calibration.with_larger(*_joined(larger))
    return calibration, without


def _joined(
    parts: list[tuple[CalibrationRuns, Selection]],
) -> tuple[CalibrationRuns, Selection]:
    """The runs scored as if they had been known exactly, as far as they confirm their errors."""
    scores, selections = zip(*parts, strict=True)
    part = Selection.concatenate(selections).undisturbed()
    return replace(CalibrationRuns.concatenate(scores), scores=part.scores), part
