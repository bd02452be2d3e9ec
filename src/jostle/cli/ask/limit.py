"""`jostle limit`: what a run never exceeds, from traces of others; of one that goes on, told anew."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from jostle._options import Positional
from jostle._report import Report
from jostle._verbs import load_verb
from jostle.answers import LimitAnswer, LimitQuestion, TracedRuns, only_trace
from jostle.cli.ask._following import FollowedProgram
from jostle.cli.console import note
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.bridge import Peaks


@dataclass(frozen=True, kw_only=True)
class LimitCommand:
    """What is asked of which runs."""

    dataset: Annotated[Path, "A folder with traces of whole runs.", Positional()]
    component: Annotated[
        str | None, "Of which counter.  [default: resident_bytes, or the only one]"
    ] = None
    core: Annotated[int, "Which core of the run."] = 0
    at_limit: Annotated[
        tuple[str, ...], "A run that was ended by its limit, by its run_id; repeat for more."
    ] = ()
    had: Annotated[
        float | None, "The limit that the runs had: those that used as much were ended by it."
    ] = None
    given: Annotated[
        Path | None, "A folder with the trace so far of a run that goes on: for what is left of it."
    ] = None


def limit(
    command: LimitCommand, runs: TracedRuns, program: FollowedProgram, question: LimitQuestion
) -> LimitAnswer | Generator[Report]:
    from jostle.bridge import Peaks
    from jostle.traces import Windows, read_traces

    (workload,) = runs.workload if len(runs.workload) == 1 else (None,)
    if len(runs.workload) > 1 or runs.windows:
        raise UsageError("a limit is of one workload at a time", fix="Say -w NAME, once.")
    chosen = runs.select(read_traces(command.dataset), workload)
    assert not isinstance(chosen, Windows)
    peaks = Peaks.of(
        chosen, command.component, command.core, at_limit=command.at_limit, had=command.had
    )
    for text in peaks.notes:
        note(text)
    if program.is_asked:
        if command.given is not None:
            raise UsageError("--given and what is followed are both runs that go on")
        return _followed(peaks, program, question)
    if command.given is not None:
        peaks = peaks.given(only_trace(command.given, command.core))
    return load_verb("forecasts", "limit").of(peaks, question)


limit.__doc__ = LimitQuestion.__doc__


def _followed(peaks: Peaks, program: FollowedProgram, question: LimitQuestion) -> Generator[Report]:
    from jostle.traces import is_level

    times: list[float] = []
    values: list[float] = []
    last = max(one.length_seconds for one in peaks.runs)

    def step(now: float, sample: Any) -> Report | None:
        if now >= last:
            note(f"at {now:g} s: the recorded runs reach to {last:g} s, no further")
            return None
        value = sample.counters.get(peaks.component, float("nan"))
        length = 1.0 if is_level(peaks.component) else sample.interval_seconds
        times.append(now)
        values.append(value / length)
        live = peaks.seen(np.array(times), np.array(values))
        return load_verb("forecasts", "limit").of(live, question).report()

    interval = peaks.interval_seconds
    return program.run(interval, max(last - program.ran, interval) + interval, step)
