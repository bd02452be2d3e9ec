"""`jostle forecast`: the distribution of resource use at a time, from repeated traces of one workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli._people import print_json, print_table

if TYPE_CHECKING:
    from jostle.bridge import Distribution
    from jostle.traces import Traces

QUANTILES = (0.05, 0.5, 0.95, 0.99)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("forecast")(forecast)


def forecast(
    dataset: Annotated[Path, typer.Argument(help="A folder with traces of repeated runs.")],
    at: Annotated[
        list[float], typer.Option("--at", help="Seconds since the run began; repeat for more.")
    ],
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", help="What runs.  [default: the only one]")
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
    core: Annotated[int, typer.Option(help="Which core of the run.")] = 0,
    method: Annotated[
        str, typer.Option(help="bridge, ot, spline, mixture, nearest, phase or select.")
    ] = "bridge",
    graph: Annotated[
        str, typer.Option(help="How cores hang together: path, barycentric or series_parallel.")
    ] = "path",
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
    limit: Annotated[
        list[str] | None,
        typer.Option(help="COUNTER=RATE per second: also print P(rate > limit); repeatable."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="A folder for a picture over time (PNG and SVG).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """The distribution of resource use at any time between the first and the last snapshot.

    Rates are per second. Ends with 2 for a time outside the traces: it does not extrapolate.
    """
    from typing import cast

    import jostle
    from jostle.bridge import Snapshots
    from jostle.traces import read_traces

    limits = _limits(limit or [])
    traces = _chosen(read_traces(dataset), workload, platform, beside)
    settings = jostle.Bridge(
        method=method,
        graph=graph,
        components=tuple(component) if component else None,
        snapshots=snapshots,
        clock=clock,
        clock_kind=cast(Any, clock_kind),
        seed=seed,
    )
    fitted = jostle.forecast(traces, settings)
    answers = [fitted.at(time, core) for time in at]
    over = [found.exceedance_ratio(limits) if limits else None for found in answers]
    drawn: list[Path] = []
    if picture is not None:
        from jostle.evaluate import draw_forecast

        drawn = draw_forecast(fitted, picture, core=core)
    if json_:
        print_json(
            {
                "schema": "forecast/v1",
                "data": {"dataset": str(dataset), "runs": len(traces)},
                "settings": {"method": method, "graph": graph, "core": core, "seed": seed},
                "snapshots": len(cast(Snapshots, fitted.snapshots)),
                "span_seconds": list(fitted.span_seconds),
                "answers": [
                    _document(found, limits, p) for found, p in zip(answers, over, strict=True)
                ],
                "pictures": [str(path) for path in drawn],
            }
        )
        return
    rows = []
    for found, probability in zip(answers, over, strict=True):
        table = found.quantile(QUANTILES)
        for column, name in enumerate(found.components):
            rows.append(
                [
                    f"{found.time_seconds:g} s" if column == 0 else "",
                    name,
                    f"{found.mean[column]:.4g}",
                    f"{found.covariance[column, column] ** 0.5:.3g}",
                    *(f"{value:.4g}" for value in table[:, column]),
                ]
            )
        if found.idle_ratio:
            rows.append(["", "ended by then", f"{found.idle_ratio:.1%}", *[""] * 5])
        if probability is not None:
            rows.append(["", "P(over limit)", f"{probability:.4f}", *[""] * 5])
    levels = [f"{level:.0%}" for level in QUANTILES]
    print_table(["time", "per second", "mean", "std", *levels], rows, right=range(2, 8))
    for text in dict.fromkeys(text for found in answers for text in found.warnings):
        typer.echo(f"warning: {text}", err=True)
    for path in drawn:
        typer.echo(path)


def _document(
    found: Distribution, limits: dict[str, float], probability: float | None
) -> dict[str, Any]:
    table = found.quantile(QUANTILES)
    return {
        "time_seconds": found.time_seconds,
        "method": found.method,
        "atoms": len(found),
        "effective_atoms": found.effective_atoms,
        "idle_ratio": found.idle_ratio,
        "components": {
            name: {
                "mean_per_second": float(found.mean[column]),
                "quantiles_per_second": {
                    f"{level:g}": float(value)
                    for level, value in zip(QUANTILES, table[:, column], strict=True)
                },
            }
            for column, name in enumerate(found.components)
        },
        "covariance": found.covariance.tolist(),
        "limits_per_second": limits or None,
        "exceedance_ratio": probability,
        "details": dict(found.details or {}),
        "warnings": list(found.warnings),
    }


def _limits(given: list[str]) -> dict[str, float]:
    from jostle.errors import UsageError

    found = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"--limit {text!r}", fix="Say COUNTER=RATE, like instructions=2e9.")
    return found


def _chosen(
    traces: Traces, workload: str | None, platform: str | None, beside: list[str] | None
) -> Traces:
    """Only the runs asked for. Raises UnknownName, BadData where none is left."""
    from jostle.errors import BadData, UnknownName

    rows = traces.traced.to_pylist()
    for name, wanted in (("workload", workload), ("platform", platform)):
        if wanted is not None:
            known = sorted({row[name] for row in rows})
            if wanted not in known:
                raise UnknownName(name, wanted, known)
            rows = [row for row in rows if row[name] == wanted]
    if beside is not None:
        rows = [row for row in rows if sorted(row["corunners"] or []) == sorted(beside)]
    if not rows:
        raise BadData("no traced run is of that workload, platform and company")
    if len(rows) == len(traces):
        return traces
    return traces.select([row["run_id"] for row in rows])
