"""What measured co-runs say beyond a simulation: a saved model, or one learned from the folder's own runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle._base.report import duration

if TYPE_CHECKING:
    from jostle.data import Profile, Runs
    from jostle.gpu import Device, LearnedRest
    from jostle.learn import Data
    from jostle.models import Model

# What a bound speaks about, by what was drawn to calibrate on.
_OVER = {
    "together": "sets of workloads never measured together",
    "window": "runs of windows not learned from",
    "row": "runs not learned from",
}
NO_MODEL = "none"
NOTHING_MEASURED = "the raw simulation, nothing learned"


@dataclass(frozen=True)
class MeasuredRest:
    """What was learned from measured co-runs, and what its bounds are over. notes: how it came about, empty
    where a model was given."""

    rest: LearnedRest
    over: str
    notes: tuple[str, ...] = ()

    @property
    def confidence(self) -> float:
        return self.rest.confidence


def measured_of(
    model: str | None,
    data: Data,
    profiles: Mapping[str, Profile],
    device: Device,
    platform: str | None,
    confidence: float,
    gpu: str | None,
) -> tuple[MeasuredRest | None, list[str]]:
    """(what a saved model says, or one learned from the folder's own runs of what was profiled; None with the
    reasons, where there are no such runs or `model` is none). Raises UsageError for an unknown platform, and
    what loading raises."""
    from jostle.errors import JostleError, NotEnoughRuns
    from jostle.gpu import LearnedRest
    from jostle.models import load

    if model == NO_MODEL:
        return None, [f"{NOTHING_MEASURED}, as was asked"]
    if model is not None:
        fitted = load(model)
        rest = LearnedRest.of(fitted, device, confidence, platform)
        return MeasuredRest(rest, _over(fitted)), []
    try:
        runs = _runs_of(data, {one.workload for one in profiles.values()}, platform)
        if runs is None:
            raise NotEnoughRuns("no runs of these workloads side by side in the folder")
        fitted = _learned(runs, dict(profiles), gpu)
        rest = LearnedRest.of(fitted, device, confidence, platform)
    except JostleError as error:
        if platform is not None:
            raise
        return None, [f"{NOTHING_MEASURED}: {error.what}"]
    note = (
        f"learned from {len(runs)} runs of the folder; `jostle fit --method accelerator` saves such a "
        "model, and "
        f"{NO_MODEL} as `model` simulates alone"
    )
    return MeasuredRest(rest, _over(fitted), (note,)), []


def _over(fitted: Model) -> str:
    over = _OVER.get(str(fitted.metadata.get("calibrated_by")), _OVER["row"])
    return f"{over} (as fits without them say)" if fitted.calibration.is_crossed else over


def _learned(runs: Runs, profiles: dict[str, Profile], gpu: str | None) -> Model:
    from jostle.learn import Data
    from jostle.learn.learners.simulation import Accelerator
    from jostle.models import fit

    return fit(Data(runs, profiles=profiles), Accelerator(gpu=gpu))


def _runs_of(data: Data, names: set[str], platform: str | None) -> Runs | None:
    """The folder's runs of profiled workloads, on the platform where one is named; None where none is beside
    others."""
    import numpy as np

    from jostle.errors import require_known

    if not data.has_runs:
        return None
    runs = data.runs
    places = runs.colocations.platform_names
    require_known("platform", platform, places)
    columns = runs.colocations.to_columns()
    every = zip(columns["workload"], columns["platform"], columns["corunners"], strict=True)
    rows = [
        n
        for n, (one, place, others) in enumerate(every)
        if names.issuperset((one, *others)) and platform in (None, place)
    ]
    mine = runs.take(np.array(rows, np.int64))
    return mine if (mine.colocations.number_of_corunners > 0).any() else None


def time_text(seconds: float) -> str:
    """Write a time for people; an infinite one is that of somebody who never gets a turn."""
    return "starved" if seconds == float("inf") else duration(seconds)
