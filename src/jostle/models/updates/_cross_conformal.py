"""Bounds without runs held out: a method that leaves runs out anyway says how far off it is of those.

A campaign of a few hundred runs cannot spare a fifth of them for calibration. A method that leaves runs out
to weigh what it knows tells how far off its answers are of what it has not seen (cross-conformal: Vovk 2015,
*Cross-conformal predictive distributions*; Barber et al. 2021). There is no exact theorem for the model of
all runs, so such bounds have an outcome of their own, `cross_validated`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress
from jostle.conformal import Calibration, Groups, LeftOutRuns
from jostle.learn import LEFT_OUT, FoldFit, Prepared
from jostle.models._residual_baseline import ResidualBaseline
from jostle.models.updates._replay_buffer import ReplayBuffer

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models.timelines._timeline_calibration import TimelineCalibration

MIN_CAMPAIGNS = 5  # that tell what one is like that was never met


@dataclass(frozen=True)
class CrossConformalFit:
    """A fit with its cross-conformal calibration runs. calibration_runs: in the order of the scores. without:
    (what was learned without some runs, their numbers), of sets left out. campaign_calibration: the
    calibration of answers about a campaign that was named, None where campaigns tell nothing."""

    fitted: Any
    calibration: Calibration
    calibration_runs: Runs
    kept: ReplayBuffer
    without: tuple[tuple[Any, np.ndarray], ...] = ()
    campaign_calibration: Calibration | None = None

    @property
    def calibrated_on(self) -> int:
        """Number of calibration runs; one may be asked about twice, of its set and of its platform."""
        return len(np.unique(np.concatenate([rows for _, rows in self.without])))

    def model(
        self, of: Any, metadata: dict[str, Any], acts: TimelineCalibration | None = None
    ) -> Any:
        """Make what a user holds, `of` the class Model. acts: as there."""
        parts = None, self.kept, acts, self.campaign_calibration
        model = of(self.fitted, self.calibration, metadata, *parts)
        model.usual = ResidualBaseline.of(model, self.calibration_runs)
        return model


def fit_crossed(
    method: Any,
    prepared: Prepared,
    *,
    unit: str,
    seed: int,
    groups: Groups | None = None,
    may_calibrate: np.ndarray | None = None,
    taken_by: Callable[[Any, Runs], Runs] | None = None,
    progress: Progress | None = None,
) -> CrossConformalFit | None:
    """Fit a method to all runs, and calibrate on what it answered of those that it left out in turn.

    Parameters
    ----------
    may_calibrate : (n,) ndarray of bool, optional
        Of the runs; by default all but those that were chosen.
    taken_by : callable, optional
        What runs that were left out are by what was learned without them.

    Returns
    -------
    Crossed or None
        None where no run could be left out.
    """
    runs = prepared.runs
    free = ~(runs.is_chosen | prepared.inputs)
    free = free if may_calibrate is None else free & may_calibrate
    fitted, parts = method.fit_left_out(prepared, seed=seed, progress=progress)
    parts = [
        replace(one, runs=one.runs[free[one.runs]], unit=one.unit[free[one.runs]]) for one in parts
    ]
    parts = [one for one in parts if len(one.runs)]
    # What calibrates first are sets left out: models keep these to learn more.
    parts.sort(key=lambda one: LEFT_OUT.index(one.left_out))
    asked = [runs.take(one.runs) for one in parts]
    if taken_by is not None:
        asked = [taken_by(one.fitted, some) for one, some in zip(parts, asked, strict=True)]
    most = int(np.max(runs.colocations.number_of_corunners, initial=0))
    calibration, without = _calibrated(asked, parts, groups, most)
    if calibration is None:
        return None
    campaign_calibration, every = None, getattr(fitted, "campaign_names", ())
    if getattr(fitted, "campaigns_differ", False):
        usual = [one.fitted.in_usual_campaign(some) for one, some in zip(parts, asked, strict=True)]
        named = [replace(one, fitted=one.fitted.for_usual_campaign()) for one in parts]
        campaign_calibration, _ = _calibrated(usual, named, groups, most)
        if len(every) >= MIN_CAMPAIGNS:
            pairs = enumerate(zip(parts, usual, strict=True))
            later = [one.fitted.in_unknown_campaign(s, [seed, 61, k]) for k, (one, s) in pairs]
            unknown, _ = _calibrated(later, parts, groups, most)
            assert unknown is not None  # who has an answer does not depend on how long it took
            calibration = replace(unknown, is_of_unknown_campaign=True)
    index = np.concatenate([rows for _, rows in without])
    rest = np.setdiff1d(np.arange(len(runs)), index)
    kept = ReplayBuffer.all_of(runs.take(rest), runs.take(index), unit)
    return CrossConformalFit(
        fitted, calibration, runs.take(index), kept, tuple(without), campaign_calibration
    )


def _calibrated(
    asked: Sequence[Runs],
    parts: Sequence[FoldFit],
    groups: Groups | None,
    most: int,
) -> tuple[Calibration | None, list[tuple[Any, np.ndarray]]]:
    """Return (calibration by errors of left-out runs, None if too few; fits without sets, with the numbers of
    the runs that each answered). asked: the runs of each part."""
    found, without = [], []
    for one, some in zip(parts, asked, strict=True):
        is_apart = one.left_out != "set"
        told = LeftOutRuns.of(
            *(one.fitted, some, one.unit),
            name_groups=groups,
            held_out=is_apart,
            most=most - 1 if one.left_out == "larger" else most,
            is_crossed=True,
        )
        found.append(told)
        if not is_apart:
            without.append((one.fitted, one.runs[told.index]))
    if not any(len(told) for told, one in zip(found, parts, strict=True) if one.left_out != "name"):
        return None, without
    left_out = LeftOutRuns.concatenate(found)
    return Calibration.crossed(left_out, most, groups=groups), without
