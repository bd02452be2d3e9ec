"""`jostle forecast`: the distribution of resource use at a time, of one workload or several together."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.option_fields import Limits, Positional
from jostle._base.report import Report
from jostle.cli.ask._follow_program import FollowedProgram
from jostle.cli.console import note
from jostle.errors import JostleError, UsageError, require_known
from jostle.operations import (
    ForecastAnswer,
    SharedMachine,
    TracedRuns,
    live_of,
    require_model,
    step_report,
    totals_of,
)
from jostle.usage import Bridge

if TYPE_CHECKING:
    from jostle.usage import Distribution, Forecast

_DEFAULT_AHEAD = 5  # samples


@dataclass(frozen=True, kw_only=True)
class ForecastCommand:
    """Options of `jostle forecast`: the question, and files to write."""

    dataset: Annotated[
        tuple[Path, ...],
        "Folders with traces of repeated runs, or saved forecasts.",
        Positional(),
    ]
    at: Annotated[tuple[float, ...], "Seconds since the run began; repeat for more."] = ()
    core: Annotated[int, "Which core of the run."] = 0
    limit: Annotated[
        Mapping[str, float], "COUNTER=RATE per second: also print P(rate > limit); repeatable."
    ] = field(default_factory=dict)
    capacity: Annotated[
        Mapping[str, float], "COUNTER=RATE: P(all workloads together > capacity); repeatable."
    ] = field(default_factory=dict)
    windows: Annotated[bool, "Members traced side by side are the cores of one run."] = False
    given: Annotated[
        Path | None,
        "A folder with the trace so far of one run that goes on: forecast that run, given what it has shown.",
    ] = None
    within: Annotated[
        float | None,
        "With --given and --limit: also P(over the limit within so many seconds from its last sample).",
    ] = None
    ahead: Annotated[
        float | None, "Of what is followed: seconds to look ahead.  [default: 5 samples]", Limits(0)
    ] = None
    save: Annotated[Path | None, "Keep the forecast in this folder, to be asked again."] = None
    picture: Annotated[Path | None, "A folder for a picture over time (PNG and SVG)."] = None
    snapshots: Annotated[int | None, "So many times to learn from.  [default: all]", Limits(2)] = (
        None
    )

    def check(self, is_followed: bool) -> None:
        """Check before anything is read. Raises UsageError for options that do not go together."""
        if not self.at and not is_followed:
            raise UsageError("no time to forecast", fix="Say --at SECONDS.")
        if self.given is not None and is_followed:
            raise UsageError("--given and what is followed are both runs that go on")
        if self.within is not None and self.given is None and not is_followed:
            raise UsageError(
                "--within is of a live run", fix="Say --given FOLDER with its trace so far."
            )
        if self.within is not None and not self.limit:
            raise UsageError("--within needs a --limit", fix="Say --limit COUNTER=RATE.")

    def check_of(self, fitted: Sequence[tuple[str, Forecast]], is_shared: bool) -> None:
        """Check before anything is learned of these workloads. Raises UsageError, UnknownName. is_shared:
        whether something is stated of workloads together."""
        if len(fitted) > 1 and (self.save is not None or self.picture is not None):
            raise UsageError("--save and --picture are for one workload at a time")
        if is_shared and self.given:
            raise UsageError(
                "--dependence, --start, --slowdown and --model are of workloads together"
            )
        require_known("component", (*self.limit, *self.capacity), fitted[0][1].components)

    def following(
        self, fitted: Sequence[tuple[str, Forecast]], program: FollowedProgram
    ) -> Generator[Report]:
        """Report on each sample of the followed program, until it ends or outlives the recorded runs."""
        import numpy as np

        if len(fitted) != 1:
            raise UsageError("one workload at a time is followed", fix="Say -w NAME.")
        (_, forecast) = fitted[0]
        interval = float(np.median(np.diff(forecast.snapshots.times_seconds)))
        ahead = self.ahead or _DEFAULT_AHEAD * interval
        last, live = forecast.span_seconds[1], forecast.given(core=self.core)
        live.learn(ahead)
        if self.within is not None:
            live.learn(self.within)

        def step(now: float, sample: Any) -> Report | None:
            live.see(now, sample.counters, interval_seconds=sample.interval_seconds)
            if now + ahead > last:
                note(f"at {now:g} s: the recorded runs reach to {last:g} s, no further")
                return None
            return step_report(live, now, ahead, self.limit, self.within)

        return program.run(interval, max(last - program.ran, interval), step)


def forecast(
    command: ForecastCommand,
    runs: TracedRuns,
    shared: SharedMachine,
    program: FollowedProgram,
    settings: Annotated[dict[str, Any], Bridge],
) -> Report | Generator[Report]:
    """Forecast the distribution of resource use at any time between the first and the last snapshot.

    Rates are per second. Several workloads, by -w or by folders, are added as they were measured side by
    side, else as independent ones, unless --dependence, --start, --slowdown or --model say more. Ends with 2
    for a time outside the traces: it does not extrapolate.
    """
    command.check(program.is_asked)
    program.check()
    require_model(shared.model, shared)
    runs = replace(runs, windows=command.windows)
    settings["snapshots"] = command.snapshots
    bridge = Bridge(**settings)
    fitted = runs.forecasts(command.dataset, bridge)
    command.check_of(fitted, shared.is_stated)
    if program.is_asked:
        return command.following(fitted, program)
    live, answers, totals, how = None, [], [], ""
    core, seed = command.core, bridge.seed
    if command.given is not None:
        live = live_of(command.given, fitted, core)
        answers = [[live[1].at(time) for time in command.at]]
    elif not shared.moves:
        answers = [[_at(name, one, time, core) for time in command.at] for name, one in fitted]
    if shared.moves or len(fitted) > 1:
        totals, how = shared.totals(fitted, command.at, command.capacity, core, seed, runs.platform)
    elif command.capacity:
        totals = totals_of(answers[0], command.at, command.capacity)
    pictures: list[Path] = []
    if command.picture is not None:
        from jostle.usage import draw_forecast

        pictures = draw_forecast(fitted[0][1], command.picture, core=core)
    if command.save is not None:
        fitted[0][1].save(command.save)
    answer = ForecastAnswer(
        fitted, core, answers, totals, command.limit, command.capacity, live, command.within
    )
    return answer.report(command.dataset, how, pictures)


def _at(name: str, one: Forecast, time: float, core: int) -> Distribution:
    try:
        return one.at(time, core)
    except JostleError as error:
        raise type(error)(error.what, where=error.where or name, fix=error.fix) from None
