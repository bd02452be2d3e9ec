"""`jostle limit`: what to request for each workload of a log, and what a run or several never exceed."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from jostle._base.operation_names import load_verb
from jostle._base.option_fields import Positional
from jostle._base.report import Report
from jostle.cli.ask._follow_program import FollowedProgram
from jostle.cli.console import note
from jostle.errors import UnknownName, UsageError, require_known
from jostle.models import CampaignQuestion
from jostle.operations import (
    LimitAnswer,
    LimitQuestion,
    ModelledSlowdowns,
    RequestQuestion,
    TracedRuns,
    only_trace,
    require_model,
)

if TYPE_CHECKING:
    from jostle.data import Traces
    from jostle.usage import Peaks, Residents


@dataclass(frozen=True, kw_only=True)
class LimitCommand(CampaignQuestion):
    """Options of `jostle limit`: the runs, and the question about them."""

    dataset: Annotated[
        Path, "A dataset: a log with peaks of memory, or traces of whole runs.", Positional()
    ]
    format: Annotated[
        Literal["table", "nextflow", "snakemake", "slurm", "kubernetes", "json"],
        "Of a log: write the requests for this tool.",
    ] = "table"
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

    model: Annotated[
        Path | None, "Of several workloads: a model that says how much they slow each other down."
    ] = None
    fits: Annotated[
        str | None, "Also how many more of this workload fit beside the others, below --over."
    ] = None

    def peaks(self, runs: TracedRuns, traces: Traces, workload: str | None) -> Peaks:
        """Collect the peaks of the chosen runs of a workload. Raises what `Peaks.of` raises, UnknownName."""
        from jostle.data import Traces
        from jostle.usage import Peaks

        every = traces.traced.column("workload").to_pylist()
        require_known("workload", workload, set(every))
        chosen = runs.select(traces, workload)
        assert isinstance(chosen, Traces)
        mine = [one for one in self.at_limit if workload is None or one in chosen.run_ids]
        if odd := sorted(set(self.at_limit) - set(traces.run_ids)):
            raise UnknownName("run", odd[0], traces.run_ids)
        return Peaks.of(chosen, self.component, self.core, at_limit=mine, had=self.had)

    def node(
        self, residents: Sequence[Peaks], known: Mapping[Any, Peaks], runs: TracedRuns
    ) -> Residents:
        """Put these residents on a node, slowed as the model says."""
        from jostle.usage import Residents

        if not residents:
            raise UsageError("--fits is beside others", fix="Say who is there already by -w.")
        ratios, error = (), 0.0
        if self.model is not None:
            ratios, error = ModelledSlowdowns(self.model, runs.platform, self).of(runs.workload)
        more = None if self.fits is None else known[self.fits]
        return Residents(residents, slowdowns=ratios, error=error, more=more)


def limit(
    command: LimitCommand,
    requests: RequestQuestion,
    runs: TracedRuns,
    program: FollowedProgram,
    question: LimitQuestion,
) -> LimitAnswer | Report | Generator[Report]:
    """Recommend what to request of memory and time for each workload of a log, so that it costs least under a
    retry policy, or so that a run stays below it with a confidence.

    From traces: what the peak of a run, of memory or of any counter, stays at or below with the confidence,
    over its whole life or in what is left of one that goes on; of several workloads, their sum at any time.
    Ends with 3 if runs are too few.
    """
    from jostle.data import has_traces, read_traces

    program.check()
    require_model(command.model, command)
    if not has_traces(command.dataset) or requests.values is not None:
        return _requested(command, requests)
    traces = read_traces(command.dataset)
    names: list[str] = list(
        dict.fromkeys([*runs.workload, *([command.fits] if command.fits else [])])
    )
    every: list[str | None] = [None]
    if names:
        every = [*names]
    known = {name: command.peaks(runs, traces, name) for name in every}
    for text in dict.fromkeys(text for peaks in known.values() for text in peaks.notes):
        note(text)
    verb, (peaks, *_) = load_verb("forecasts", "limit"), known.values()
    if len(runs.workload) > 1 or command.fits is not None:
        if program.is_asked or command.given is not None:
            raise UsageError("a run that goes on is of one workload", fix="Say -w NAME, once.")
        return verb.of(command.node([known[name] for name in runs.workload], known, runs), question)
    if command.model is not None:
        raise UsageError("--model is of several workloads together")
    if program.is_asked:
        if command.given is not None:
            raise UsageError("--given and what is followed are both runs that go on")
        return _followed(peaks, program, question)
    if command.given is not None:
        peaks = peaks.given(only_trace(command.given, command.core))
    return verb.of(peaks, question)


def _requested(command: LimitCommand, question: RequestQuestion) -> Report:
    from jostle.operations import requests_of, written

    found = requests_of(command.dataset, question)
    report = found.report()
    if command.format == "table":
        return report
    return replace(report, tables=[written(found, command.format).rstrip("\n")])


def _followed(peaks: Peaks, program: FollowedProgram, question: LimitQuestion) -> Generator[Report]:
    from jostle.data import is_level

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
