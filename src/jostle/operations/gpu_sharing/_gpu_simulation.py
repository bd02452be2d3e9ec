"""What measured co-runs say beyond a simulation: a saved model, or one learned from the folder's own runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostle._base.report import duration
from jostle.conformal import OUTCOMES

if TYPE_CHECKING:
    from jostle.data import Profile
    from jostle.gpu import Device, LearnedRest, MemberTime
    from jostle.learn import Data
    from jostle.models import Model

# What a bound speaks about, by what was drawn to calibrate on.
_OVER = {
    "together": "sets of workloads never measured together",
    "window": "runs of windows not learned from",
    "row": "runs not learned from",
}
NO_MODEL = "none"
# By `python -m studies accelerator`: the median of what each recorded GPU was off by.
NOTHING_MEASURED = (
    "the raw simulation, nothing learned, which was off by 7 to 31% in the median on recorded GPUs"
)


def no_bounds(times: Iterable[MemberTime]) -> list[str]:
    """List the reasons why some of these times have no bound from measured co-runs, each reason once."""
    codes = {one.outcome for one in times if one.outcome and one.bound_seconds == float("inf")}
    simulated = "no co-run like it was measured: only the simulation speaks of it"
    whys = {OUTCOMES[code][1] if code in OUTCOMES else simulated for code in sorted(codes)}
    return [f"No bound: {why}." for why in sorted(whys)]


@dataclass(frozen=True)
class MeasuredRest:
    """Corrections that were learned from measured co-runs, and their bounds. notes: how it came about, empty
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
    about: Callable[[Model], Model],
) -> tuple[MeasuredRest | None, list[str]]:
    """Load a saved model, or learn one from the folder's own runs of what was profiled. Returns (the model's
    part, notes); None with the reasons if there are no such runs or `model` is none. about: takes a model to
    that of the campaign that is asked about. Raises UsageError for an unknown platform, and what loading and
    `about` raise."""
    from jostle.errors import MissingExtra, NotEnoughRuns
    from jostle.gpu import LearnedRest
    from jostle.learn.learners.simulation import way_to_share
    from jostle.models import fit, load

    if model == NO_MODEL:
        return None, [f"{NOTHING_MEASURED}, as was asked"]
    notes: tuple[str, ...] = ()
    if model is not None:
        fitted = load(model)
    else:
        platform = _platform_of(data, {one.workload for one in profiles.values()}, platform)
        if platform is None:
            return None, [
                f"{NOTHING_MEASURED}: no runs of these workloads side by side in the folder"
            ]
        try:
            fitted = fit(_on_device(data, profiles, gpu))
        except (NotEnoughRuns, MissingExtra) as error:
            return None, [f"{NOTHING_MEASURED}: {error.what}"]
        learned = f"learned from {len(data.runs)} runs of the folder"
        saves = f"`jostle fit` saves such a model, and {NO_MODEL} as `model` simulates alone"
        notes = (f"{learned}; {saves}",)
    fitted = about(fitted)
    rest = LearnedRest.of(fitted, device, confidence, platform, way_to_share=way_to_share)
    return MeasuredRest(rest, _over(fitted), notes), []


def _over(fitted: Model) -> str:
    over = _OVER.get(str(fitted.metadata.get("calibrated_by")), _OVER["row"])
    return f"{over} (as fits without them say)" if fitted.calibration.is_cross_conformal else over


def _on_device(data: Data, profiles: Mapping[str, Profile], gpu: str | None) -> Data:
    """Take these profiles, as of a device with this name where one is given, and all runs of the folder."""
    from jostle.data import gpu_named
    from jostle.learn import Data

    own = dict(profiles)
    if gpu is not None:
        own = {
            run_id: replace(one, gpus=dict.fromkeys(one.gpus, gpu_named(gpu)))
            for run_id, one in own.items()
        }
    return Data(data.runs, profiles=own, path=data.path)


def _platform_of(data: Data, names: set[str], platform: str | None) -> str | None:
    """Find the platform on which workloads of these names ran side by side; None for none. Raises UnknownName
    for a platform without runs, UsageError where none is named and there are several."""
    from jostle.errors import NotEnoughRuns, UsageError, require_known

    if not data.has_runs:
        return None
    c = data.runs.colocations
    require_known("platform", platform, c.platform_names)
    columns = c.to_columns()
    every = zip(columns["workload"], columns["platform"], columns["corunners"], strict=True)
    found = sorted(
        {there for one, there, others in every if len(others) and names >= {one, *others}}
    )
    if platform is not None and platform not in found:
        raise NotEnoughRuns(f"no runs of these workloads side by side on {platform}")
    if platform is None and len(found) > 1:
        raise UsageError(
            f"these workloads ran side by side on {len(found)} platforms: {', '.join(found)}",
            fix="Say `platform`: that of the runs on this device.",
        )
    return platform or next(iter(found), None)


def time_text(seconds: float) -> str:
    """Write a time for people; an infinite one is that of somebody who never gets a turn."""
    return "starved" if seconds == float("inf") else duration(seconds)
