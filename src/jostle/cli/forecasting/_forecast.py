"""`jostle forecast`: the distribution of resource use at a time, from repeated traces, of one workload or
of several together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli.console import print_json
from jostle.cli.forecasting._answers import print_answers, print_totals, said, said_total
from jostle.cli.forecasting._questions import Marks, Period, contexts_of, fitted_ones

if TYPE_CHECKING:
    from jostle.bridge import Forecast
    from jostle.cli.forecasting._answers import Total


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("forecast")(forecast)


def forecast(
    dataset: Annotated[
        list[Path],
        typer.Argument(help="Folders with traces of repeated runs, or saved forecasts."),
    ],
    at: Annotated[
        list[float], typer.Option("--at", help="Seconds since the run began; repeat for more.")
    ],
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload", "-w", help="What runs; repeat for several.  [default: the only one]"
        ),
    ] = None,
    platform: Annotated[
        str | None, typer.Option("--platform", "-p", help="Where.  [default: the only one]")
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside", "-b", help="A co-runner; repeat for more.  [default: any one set]"
        ),
    ] = None,
    windows: Annotated[
        bool, typer.Option(help="Members traced side by side are the cores of one run.")
    ] = False,
    core: Annotated[int, typer.Option(help="Which core of the run.")] = 0,
    method: Annotated[
        str, typer.Option(help="bridge, ot, spline, mixture, nearest, phase or select.")
    ] = "bridge",
    graph: Annotated[
        str, typer.Option(help="How cores hang together: path, barycentric or series_parallel.")
    ] = "path",
    eps: Annotated[
        str, typer.Option(help="Blur of the bridge, of the spread: a number, inf, or cv.")
    ] = "0.1",
    component: Annotated[
        list[str] | None,
        typer.Option(help="A counter of the state; repeat for more.  [default: all]"),
    ] = None,
    snapshots: Annotated[
        int | None, typer.Option(help="So many times to learn from.  [default: all]", min=2)
    ] = None,
    clock: Annotated[
        str | None, typer.Option(help="The counter of progress, for phase and select.")
    ] = None,
    clock_kind: Annotated[str, typer.Option(help="work or beats.")] = "work",
    mark: Marks = None,
    period: Period = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="COUNTER=RATE per second: also print P(rate > limit); repeatable."),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(help="COUNTER=RATE: P(all workloads together > capacity); repeatable."),
    ] = None,
    context: Annotated[
        list[float] | None,
        typer.Option(help="Of each folder or workload in order: the number of its context."),
    ] = None,
    at_context: Annotated[
        float | None,
        typer.Option(help="Forecast between these contexts, where nobody measured."),
    ] = None,
    atoms: Annotated[
        int | None,
        typer.Option(help="Also the distribution as so many atoms (in --json and --save).", min=1),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the forecast in this folder, to be asked again.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="A folder for a picture over time (PNG and SVG).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """The distribution of resource use at any time between the first and the last snapshot.

    Rates are per second. Several workloads, by -w or by folders, are added as independent ones; with
    --at-context they are one workload in several contexts, such as its number of co-runners. Ends with 2 for
    a time outside the traces: it does not extrapolate.
    """
    from typing import cast

    import jostle
    from jostle.bridge import exceedance, exceedance_of_any, total_demand
    from jostle.errors import UsageError

    limits, capacities = _limits("--limit", limit), _limits("--capacity", capacity)
    settings = jostle.Bridge(
        method=method,
        graph=graph,
        components=tuple(component) if component else None,
        snapshots=snapshots,
        clock=clock,
        clock_kind=cast(Any, clock_kind),
        clock_marks=tuple(mark or ()),
        clock_period=period,
        eps=cast(Any, _eps(eps)),
        seed=seed,
    )
    fitted = fitted_ones(dataset, workload, platform, beside, windows, settings)
    if len(fitted) > 1 and (save is not None or picture is not None):
        raise UsageError("--save and --picture are for one workload at a time")
    if (at_context is None) != (not context):
        raise UsageError("--context and --at-context go together")
    if at_context is None:
        answers = [[_at(name, one, time, core) for time in at] for name, one in fitted]
    else:
        contexts = contexts_of(context or [], fitted)
        answers = [[contexts.at(time, at_context, core) for time in at]]
        fitted = [(f"context {at_context:g}", fitted[0][1])]
    totals: list[Total] = []
    if capacities or len(fitted) > 1:
        for number, time in enumerate(at):
            parts = [found[number] for found in answers]
            total = total_demand(parts, seed=seed)
            over = {name: exceedance(parts, name, value) for name, value in capacities.items()}
            both = exceedance_of_any(parts, capacities, seed=seed) if len(capacities) > 1 else None
            totals.append((time, total, over, both))
    drawn: list[Path] = []
    if picture is not None:
        from jostle.evaluate import draw_forecast

        drawn = draw_forecast(fitted[0][1], picture, core=core)
    if save is not None:
        fitted[0][1].save(save, atoms=atoms)
    if json_:
        each = [
            {
                "workload": name,
                "snapshots": len(one.snapshots),
                "span_seconds": list(one.span_seconds),
                "settings": {"method": one.method.method, "graph": one.method.graph, "core": core}
                | {"seed": one.method.seed, "eps": one.eps},
                "answers": [said(law, limits, atoms) for law in found],
            }
            for (name, one), found in zip(fitted, answers, strict=True)
        ]
        document: dict[str, Any] = {
            "schema": "forecast/v1",
            "data": {"datasets": [str(folder) for folder in dataset]},
        }
        document |= each[0] if len(each) == 1 else {"forecasts": each}
        if totals:
            document["total"] = [said_total(*row, capacities) for row in totals]
        print_json(document | {"pictures": [str(path) for path in drawn]})
        return
    for (name, _), found in zip(fitted, answers, strict=True):
        if len(fitted) > 1:
            typer.echo(f"\n{name}")
        print_answers(found, limits)
    if totals:
        typer.echo(f"\nall {len(fitted)} together, as independent ones")
        print_totals(totals, capacities)
    everything = [text for found in answers for law in found for text in law.warnings]
    for text in dict.fromkeys(everything):
        typer.echo(f"warning: {text}", err=True)
    for path in drawn:
        typer.echo(path)


def _at(name: str, one: Forecast, time: float, core: int) -> Any:
    from jostle.errors import JostleError

    try:
        return one.at(time, core)
    except JostleError as error:
        raise type(error)(error.what, where=error.where or name, fix=error.fix) from None


def _limits(option: str, given: list[str] | None) -> dict[str, float]:
    from jostle.errors import UsageError

    found = {}
    for text in given or []:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"{option} {text!r}", fix="Say COUNTER=RATE, like instructions=2e9.")
    return found


def _eps(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
