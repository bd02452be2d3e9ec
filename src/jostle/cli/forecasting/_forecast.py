"""`jostle forecast`: the distribution of resource use at a time, from repeated traces, of one workload or
of several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from jostle._options import Limits, Positional
from jostle.cli.console import command_of, note, print_json, say
from jostle.cli.console._fields import Json
from jostle.cli.forecasting._answers import (
    answer_document,
    print_answers,
    print_totals,
    total_document,
)
from jostle.cli.forecasting._following import FollowedProgram
from jostle.cli.forecasting._questions import Chosen, Live, contexts_of, fitted_ones, live_of
from jostle.cli.forecasting._shared import SharedMachine, totals_of

if TYPE_CHECKING:
    from jostle.bridge import Bridge, Distribution, Forecast
    from jostle.cli.forecasting._answers import Total


@dataclass(frozen=True, kw_only=True)
class ForecastCommand:
    """The distribution of resource use at any time between the first and the last snapshot.

    Rates are per second. Several workloads, by -w or by folders, are added as independent ones unless
    --dependence, --start, --slowdown or --model say more; with --at-context they are one workload in several
    contexts, such as its number of co-runners. Ends with 2 for a time outside the traces: it does not
    extrapolate.
    """

    dataset: Annotated[
        tuple[Path, ...],
        "Folders with traces of repeated runs, or saved forecasts.",
        Positional(),
    ]
    at: Annotated[tuple[float, ...], "Seconds since the run began; repeat for more."] = ()
    core: Annotated[int, "Which core of the run."] = 0
    limit: Annotated[
        tuple[str, ...], "COUNTER=RATE per second: also print P(rate > limit); repeatable."
    ] = ()
    capacity: Annotated[
        tuple[str, ...], "COUNTER=RATE: P(all workloads together > capacity); repeatable."
    ] = ()
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
    json_: Json = False


@dataclass(frozen=True, kw_only=True)
class ForecastOptions:
    """How to forecast: the settings of a Bridge that the command has."""

    method: Annotated[
        str | None,
        "average, bridge, ot, spline, mixture, nearest, phase or select.  [default: average, or bridge where "
        "--graph, --eps, --eps-unit or --noise is given]",
    ] = None
    graph: Annotated[str, "How cores hang together: path, barycentric or series_parallel."] = "path"
    eps: Annotated[str, "Blur of the bridge, of the spread: a number, inf, or cv."] = "0.1"
    eps_unit: Annotated[str, "What eps is a multiple of: spread, median or absolute."] = "spread"
    noise: Annotated[bool, "Add the bridge's own noise: for data near Gaussians only."] = False
    scale: Annotated[
        tuple[str, ...], "COUNTER=FACTOR in distances; repeatable.  [default: 1 / the noise]"
    ] = ()
    log1p: Annotated[
        tuple[str, ...], "A counter that is interpolated as log(1 + rate); repeatable."
    ] = ()
    component: Annotated[
        tuple[str, ...] | None, "A counter of the state; repeat for more.  [default: all]"
    ] = None
    snapshots: Annotated[int | None, "So many times to learn from.  [default: all]", Limits(2)] = (
        None
    )
    snapshot_at: Annotated[
        tuple[float, ...], "Learn from this time, in seconds; repeat for more."
    ] = ()
    placement: Annotated[
        str, "Of --snapshots: even, or clock, where they catch the most phases."
    ] = "even"
    clock: Annotated[str | None, "The counter of progress, for phase and select."] = None
    clock_kind: Annotated[str, "work or beats."] = "work"
    mark: Annotated[
        tuple[float, ...],
        "What the clock has reached where a phase begins; repeat for more.",
    ] = ()
    period: Annotated[int | None, "Of beats: phases after which the program begins anew."] = None
    seed: Annotated[int, "Of the draws."] = 0

    def settings(self) -> Bridge:
        import jostle
        from jostle.errors import UsageError

        try:
            eps: float | str = float(self.eps)
        except ValueError:
            eps = self.eps
        if self.snapshot_at and self.snapshots is not None:
            raise UsageError("--snapshots and --snapshot-at both say when", fix="Give one of them.")
        return jostle.Bridge(
            method=self.method,
            graph=self.graph,
            components=self.component,
            placement=self.placement,
            snapshots=tuple(sorted(self.snapshot_at)) or self.snapshots,
            eps_unit=self.eps_unit,
            noise=self.noise,
            scale=_limits("--scale", self.scale) or None,
            log1p=self.log1p,
            clock=self.clock,
            clock_kind=cast(Any, self.clock_kind),
            clock_marks=self.mark,
            clock_period=self.period,
            eps=cast(Any, eps),
            seed=self.seed,
        )


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("forecast")(
        command_of(
            (ForecastCommand, Chosen, SharedMachine, FollowedProgram, ForecastOptions), forecast
        )
    )


def forecast(
    asked: ForecastCommand,
    chosen: Chosen,
    shared: SharedMachine,
    following: FollowedProgram,
    options: ForecastOptions,
) -> None:
    """Fit what is asked about, answer for every time, and add up where there are several."""
    from jostle.errors import UsageError

    limits, capacities = _limits("--limit", asked.limit), _limits("--capacity", asked.capacity)
    fitted = fitted_ones(asked.dataset, chosen, options.settings())
    if following.is_asked:
        following.run(fitted, asked.core, limits, asked.within, asked.json_)
        return
    if not asked.at:
        raise UsageError("no time is asked about", fix="Say --at SECONDS.")
    if len(fitted) > 1 and (asked.save is not None or asked.picture is not None):
        raise UsageError("--save and --picture are for one workload at a time")
    if (asked.at_context is None) != (not asked.context):
        raise UsageError("--context and --at-context go together")
    core = asked.core
    live: Live | None = None
    together = shared.together(fitted, core, options.seed) if shared.is_asked else None
    if together is not None and (asked.given or asked.at_context is not None):
        raise UsageError("--dependence, --start, --slowdown and --model are of workloads together")
    if asked.given is not None:
        live = live_of(asked.given, fitted, core)
        answers = [[live.forecast.at(time) for time in asked.at]]
    elif asked.within is not None:
        raise UsageError(
            "--within is of a live run", fix="Say --given FOLDER with its trace so far."
        )
    elif together is not None:
        answers = [[] for _ in fitted]
    elif asked.at_context is None:
        answers = [[_at(name, one, time, core) for time in asked.at] for name, one in fitted]
    else:
        contexts = contexts_of(asked.context, fitted)
        answers = [[contexts.at(time, asked.at_context, core) for time in asked.at]]
        fitted = [(f"context {asked.at_context:g}", fitted[0][1])]
    totals = []
    if together is not None:
        totals = totals_of(together, asked.at, capacities)
    elif capacities or len(fitted) > 1:
        by_time = zip(asked.at, zip(*answers, strict=True), strict=True)
        totals = [_total(time, parts, capacities, options.seed) for time, parts in by_time]
    soon = None if live is None else live.soon(limits, asked.within)
    drawn: list[Path] = []
    if asked.picture is not None:
        from jostle.evaluate import draw_forecast

        drawn = draw_forecast(fitted[0][1], asked.picture, core=core)
    if asked.save is not None:
        fitted[0][1].save(asked.save, atoms=asked.atoms)
    if asked.json_:
        document = _document(asked, fitted, answers, limits)
        if totals:
            document["total"] = [total_document(*row, capacities) for row in totals]
        if live is not None:
            document["given"] = live.document(asked.within, soon)
        print_json(document | {"pictures": [str(path) for path in drawn]})
        return
    for (name, _), found in zip(fitted, answers, strict=True) if together is None else ():
        if len(fitted) > 1:
            say(f"\n{name}")
        print_answers(found, limits)
    if live is not None:
        say(f"given {live.run_id} until {live.forecast.now_seconds:g} s")
    if soon is not None:
        say(f"P(over limit within {asked.within:g} s): {soon:.4f}")
    if totals:
        say(f"\nall {len(fitted)} together, {_how(shared)}")
        print_totals(totals, capacities)
    laws = [law for found in answers for law in found] + [total[1] for total in totals]
    for text in dict.fromkeys(text for law in laws for text in law.warnings):
        note(f"warning: {text}")
    for path in drawn:
        say(path)


def _how(shared: SharedMachine) -> str:
    if shared.dependence == "independent":
        return "as independent ones"
    if shared.dependence == "measured":
        return "as they were measured side by side"
    return f"correlated by {shared.dependence}"


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
    asked: ForecastCommand,
    fitted: Sequence[tuple[str, Forecast]],
    answers: Sequence[Sequence[Distribution]],
    limits: Mapping[str, float],
) -> dict[str, Any]:
    each = [
        {
            "workload": name,
            "snapshots": len(one.snapshots),
            "span_seconds": list(one.span_seconds),
            "settings": {
                "method": one.method.method,
                "graph": one.method.graph,
                "core": asked.core,
                "seed": one.method.seed,
                "eps": one.eps,
            },
            "answers": [answer_document(law, limits, asked.atoms) for law in found],
        }
        for (name, one), found in zip(fitted, answers, strict=True)
    ]
    document: dict[str, Any] = {
        "schema": "forecast/v1",
        "data": {"datasets": [str(folder) for folder in asked.dataset]},
    }
    return document | (each[0] if len(each) == 1 else {"forecasts": each})


def _at(name: str, one: Forecast, time: float, core: int) -> Any:
    from jostle.errors import JostleError

    try:
        return one.at(time, core)
    except JostleError as error:
        raise type(error)(error.what, where=error.where or name, fix=error.fix) from None


def _limits(option: str, given: Sequence[str]) -> dict[str, float]:
    from jostle.errors import UsageError

    found = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"{option} {text!r}", fix="Say COUNTER=RATE, like instructions=2e9.")
    return found
