"""`jostle forecast`: the distribution of resource use at a time, from repeated traces, of one workload or
of several together."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle._options import Limits, Positional
from jostle._report import Report
from jostle.bridge import Bridge
from jostle.cli.ask._answers import (
    answer_document,
    answers_table,
    total_document,
    totals_table,
)
from jostle.cli.ask._following import FollowedProgram
from jostle.cli.ask._together import SharedMachine, number_or_text
from jostle.cli.ask._traced import TracedRuns, contexts_of, fitted_ones, live_of
from jostle.errors import JostleError, UsageError

if TYPE_CHECKING:
    from jostle.bridge import Distribution, Forecast, LiveForecast
    from jostle.cli.ask._answers import Total


@dataclass(frozen=True, kw_only=True)
class ForecastCommand:
    """What is asked about, and what is kept of it."""

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
    context: Annotated[
        tuple[float, ...], "Of each folder or workload in order: the number of its context."
    ] = ()
    at_context: Annotated[
        float | None, "Forecast between these contexts, where nobody measured."
    ] = None
    atoms: Annotated[
        int | None,
        "Also the distribution as so many atoms (in --json and --save).",
        Limits(1),
    ] = None
    given: Annotated[
        Path | None,
        "A folder with the trace so far of one run that goes on: forecast that run, given what it has shown.",
    ] = None
    within: Annotated[
        float | None,
        "With --given and --limit: also P(over the limit within so many seconds from its last sample).",
    ] = None
    save: Annotated[Path | None, "Keep the forecast in this folder, to be asked again."] = None
    picture: Annotated[Path | None, "A folder for a picture over time (PNG and SVG)."] = None
    snapshots: Annotated[int | None, "So many times to learn from.  [default: all]", Limits(2)] = (
        None
    )
    snapshot_at: Annotated[
        tuple[float, ...], "Learn from this time, in seconds; repeat for more."
    ] = ()

    def check(self, together: bool) -> None:
        """Raises UsageError for options that do not go together. together: whether workloads are on one
        machine."""
        if not self.at:
            raise UsageError("no time is asked about", fix="Say --at SECONDS.")
        if (self.at_context is None) != (not self.context):
            raise UsageError("--context and --at-context go together")
        if together and (self.given or self.at_context is not None):
            raise UsageError(
                "--dependence, --start, --slowdown and --model are of workloads together"
            )
        if self.within is not None and self.given is None:
            raise UsageError(
                "--within is of a live run", fix="Say --given FOLDER with its trace so far."
            )
        if self.within is not None and not self.limit:
            raise UsageError("--within needs a --limit", fix="Say --limit COUNTER=RATE.")


def forecast(
    command: ForecastCommand,
    selection: TracedRuns,
    shared: SharedMachine,
    program: FollowedProgram,
    settings: Annotated[dict[str, Any], Bridge],
) -> Report | Generator[Report]:
    """The distribution of resource use at any time between the first and the last snapshot.

    Rates are per second. Several workloads, by -w or by folders, are added as independent ones unless
    --dependence, --start, --slowdown or --model say more; with --at-context they are one workload in several
    contexts, such as its number of co-runners. Ends with 2 for a time outside the traces: it does not
    extrapolate.
    """
    if command.snapshot_at and command.snapshots is not None:
        raise UsageError("--snapshots and --snapshot-at both say when", fix="Give one of them.")
    times = tuple(sorted(command.snapshot_at)) or command.snapshots
    settings["eps"] = number_or_text(settings["eps"])
    bridge = Bridge(**settings, snapshots=times)
    fitted = fitted_ones(command.dataset, selection, bridge)
    if program.is_asked:
        return program.run(fitted, command.core, command.limit, command.within)
    if len(fitted) > 1 and (command.save is not None or command.picture is not None):
        raise UsageError("--save and --picture are for one workload at a time")
    command.check(shared.is_asked)
    live, answers, totals = None, [], []
    core, seed = command.core, bridge.seed
    if shared.is_asked:
        totals = shared.totals(fitted, command.at, command.capacity, core, seed)
    elif command.given is not None:
        live = live_of(command.given, fitted, core)
        answers = [[live[1].at(time) for time in command.at]]
    elif command.at_context is not None:
        contexts = contexts_of(command.context, fitted)
        answers = [[contexts.at(time, command.at_context, core) for time in command.at]]
        fitted = [(f"context {command.at_context:g}", fitted[0][1])]
    else:
        answers = [[_at(name, one, time, core) for time in command.at] for name, one in fitted]
    if not totals and (command.capacity or len(fitted) > 1):
        by_time = zip(command.at, zip(*answers, strict=True), strict=True)
        totals = [_total(time, parts, command.capacity, seed) for time, parts in by_time]
    drawn: list[Path] = []
    if command.picture is not None:
        from jostle.bridge import draw_forecast

        drawn = draw_forecast(fitted[0][1], command.picture, core=core)
    if command.save is not None:
        fitted[0][1].save(command.save, atoms=command.atoms)
    return _report(command, shared, fitted, answers, totals, live, drawn)


def _report(
    command: ForecastCommand,
    shared: SharedMachine,
    fitted: Sequence[tuple[str, Forecast]],
    answers: Sequence[Sequence[Distribution]],
    totals: Sequence[Total],
    live: tuple[str, LiveForecast] | None,
    drawn: Sequence[Path],
) -> Report:
    rows = answers or [[] for _ in fitted]
    each = [_document(command, *one, laws) for one, laws in zip(fitted, rows, strict=True)]
    document: dict[str, Any] = {
        "schema": "forecast/v1",
        "data": {"datasets": [str(folder) for folder in command.dataset]},
        **(each[0] if len(each) == 1 else {"forecasts": each}),
    }
    parts: list[Any] = []
    for (name, _), laws in zip(fitted, answers, strict=False):
        parts += [f"\n{name}"] if len(fitted) > 1 else []
        parts.append(answers_table(laws, command.limit))
    if totals:
        document["total"] = [total_document(*row, command.capacity) for row in totals]
    if live is not None:
        run_id, law = live
        soon = None
        parts.append(f"given {run_id} until {law.now_seconds:g} s")
        if command.within is not None:
            soon = law.exceedance_ratio(command.limit, command.within)
            parts.append(f"P(over limit within {command.within:g} s): {soon:.4f}")
        document["given"] = {
            "run_id": run_id,
            "until_seconds": law.now_seconds,
            "within_seconds": command.within,
            "exceedance_within_ratio": soon,
        }
    if totals:
        parts.append(f"\nall {len(fitted)} together, {shared.text}")
        parts.append(totals_table(totals, command.capacity))
    laws = [law for row in answers for law in row] + [total[1] for total in totals]
    warnings = dict.fromkeys(text for law in laws for text in law.warnings)
    document["pictures"] = [str(path) for path in drawn]
    return Report(document, parts, drawn, [f"warning: {text}" for text in warnings])


def _total(
    time: float, parts: Sequence[Distribution], capacities: Mapping[str, float], seed: int
) -> Total:
    """(time, sum of the parts, how likely each capacity is exceeded, how likely any is)."""
    from jostle.bridge import exceedance, exceedance_of_any, total_demand

    total = total_demand(parts, seed=seed)
    over = {name: exceedance(parts, name, value) for name, value in capacities.items()}
    both = exceedance_of_any(parts, capacities, seed=seed) if len(capacities) > 1 else None
    return time, total, over, both


def _document(
    command: ForecastCommand, name: str, one: Forecast, laws: Sequence[Distribution]
) -> dict[str, Any]:
    return {
        "workload": name,
        "snapshots": len(one.snapshots),
        "span_seconds": list(one.span_seconds),
        "settings": {
            "method": one.method.method,
            "graph": one.method.graph,
            "core": command.core,
            "seed": one.method.seed,
            "eps": one.eps,
        },
        "answers": [answer_document(law, command.limit, command.atoms) for law in laws],
    }


def _at(name: str, one: Forecast, time: float, core: int) -> Distribution:
    try:
        return one.at(time, core)
    except JostleError as error:
        raise type(error)(error.what, where=error.where or name, fix=error.fix) from None
