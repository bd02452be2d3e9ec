"""`jostle evaluate bridge`: solvers against brute force, their speed, and forecasts against unseen runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from jostle.cli.console import fit_progress, print_json, print_table
from jostle.cli.forecasting._questions import Marks, Period

if TYPE_CHECKING:
    from jostle.bridge import Bridge

QUICK = ("phases-1-7", "phases-5-7", "phases-15-7", "drift-7")


def register(app: typer.Typer) -> None:
    """Add the command to the group `evaluate`, which must be there already."""
    for group in app.registered_groups:
        if group.name == "evaluate" and group.typer_instance is not None:
            group.typer_instance.command("bridge")(bridge)
            return
    raise LookupError("the group 'evaluate' must be registered first")


def bridge(
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="phases-JITTER-SNAPSHOTS (jitter in percent), drift-SNAPSHOTS, nmpc-BETWEEN, or a "
            "folder with recorded traces; repeat for more.  [default: four made ones]",
        ),
    ] = None,
    published: Annotated[
        Path | None, typer.Option(help="The folder of the published snapshots, for nmpc-….")
    ] = None,
    snapshots: Annotated[
        int, typer.Option(help="Of recorded traces: times to learn from.", min=2)
    ] = 7,
    component: Annotated[
        list[str] | None, typer.Option(help="Of recorded traces: a counter of the state.")
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(
            help="Of recorded traces: the counter of progress.  none: made data without its marks."
        ),
    ] = None,
    clock_kind: Annotated[str, typer.Option(help="work or beats.")] = "work",
    mark: Marks = None,
    period: Period = None,
    windows: Annotated[
        bool,
        typer.Option(
            help="Of recorded traces: members side by side are the cores of one run; scores the "
            "multi-core graphs too."
        ),
    ] = False,
    ended: Annotated[
        float,
        typer.Option(
            help="The share of runs that may have ended by the last snapshot.", min=0, max=0.99
        ),
    ] = 0.0,
    runs: Annotated[int, typer.Option(help="Of made data: runs.", min=16)] = 400,
    splits: Annotated[int, typer.Option(help="Of the runs, at random.", min=1)] = 3,
    speed: Annotated[bool, typer.Option(help="Also time the solvers.")] = True,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for the paper's Figures 6, 7, 10 and 11.")
    ] = None,
    tables: Annotated[bool, typer.Option(help="Also the paper's Tables II and III.")] = False,
    seed: Annotated[int, typer.Option(help="Of made data and splits.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Forecasts of resource use on runs they have not seen, and the solvers behind them.

    Half of the runs make snapshots and forecasts, the other half says what was right; the oracle is what
    the first half measured at that time. Times that are also training snapshots are left out as leaks.
    """
    import jostle
    from jostle.evaluate import (
        accuracy_metrics,
        brute_force_errors,
        leaks_of_design,
        score,
        score_document,
        score_rows,
        speed_metrics,
        table_three,
        table_two,
    )

    names = list(data or QUICK)
    metrics: dict[str, Any] = {}
    scores = []
    method = jostle.Bridge(
        components=tuple(component) if component else None,
        clock=None if clock == "none" else clock,
        clock_kind=cast(Any, clock_kind),
        clock_marks=tuple(mark or ()),
        clock_period=period,
    )
    settings = _Recorded(method, snapshots, windows, ended, clock != "none")
    with fit_progress("forecasting") as report:
        for name in names:
            label, made = _splits(name, published, settings, runs, splits, seed)
            scores.append(score(label, made, report))
            if name.startswith("nmpc-"):
                leaks = leaks_of_design(published, int(name[5:]))
                metrics[f"leaks_of_design_nmpc_{name[5:]}"] = float(len(leaks))
    metrics |= accuracy_metrics(scores)
    metrics["brute_force_max_abs_error"] = max(brute_force_errors(seed).values())
    if speed:
        metrics |= speed_metrics(seed=seed)
    extra: dict[str, Any] = {}
    if tables:
        extra["table_3"] = table_three(seed=seed)
        if published is not None:
            found = table_two(published)
            extra["table_2"] = {"times_cycles": found.times, "between": found.between}
            extra["table_2"] |= {"paper": found.paper, "default": found.default}
    drawn: list[Path] = []
    if figures is not None:
        from jostle.evaluate import draw_convergence, draw_predicted

        drawn = draw_convergence(figures, published=published, seed=seed)
        drawn += draw_predicted(figures, published=published, seed=seed)
    if json_:
        document = {"schema": "evaluate/v1", "name": "bridge", "data": names, "seed": seed}
        document |= {"metrics": metrics, "scores": [score_document(one) for one in scores]}
        document |= {**extra, "figures": [str(path) for path in drawn]}
        print_json(document)
        return
    for one in scores:
        columns, rows = score_rows(one)
        typer.echo(f"\n{one.name}: {one.asked - one.leaks} questions, {one.leaks} leaks left out")
        print_table(columns, rows, right=range(1, len(columns)))
    typer.echo("")
    plain = {key: value for key, value in metrics.items() if not key.startswith("w2_")}
    print_table(["metric", "value"], [[k, f"{v:.3g}"] for k, v in plain.items()], right=(1,))
    if "table_2" in extra:
        _print_table_two(extra["table_2"])
    if "table_3" in extra:
        _print_table_three(extra["table_3"])
    for path in drawn:
        typer.echo(path)


@dataclass(frozen=True)
class _Recorded:
    """How recorded traces are evaluated."""

    method: Bridge
    snapshots: int
    windows: bool
    ended: float
    marks: bool  # of made data


def _splits(
    name: str, published: Path | None, settings: _Recorded, runs: int, splits: int, seed: int
) -> tuple[str, Any]:
    from jostle.errors import UsageError
    from jostle.evaluate import made_splits, published_splits, trace_splits

    if name.startswith("nmpc-"):
        if published is None:
            raise UsageError("nmpc data needs --published", fix="Say where its folder is.")
        if name[5:] not in ("0", "1", "2", "3", "4"):
            raise UsageError(f"unknown data {name!r}", fix="One of nmpc-0 to nmpc-4.")
        return name, published_splits(published, int(name[5:]), splits=splits, seed=seed)
    folder = Path(name)
    if not folder.is_dir():
        made = made_splits(
            name, runs=runs, splits=splits, ended=settings.ended, clock=settings.marks, seed=seed
        )
        return name, made
    from jostle.traces import Windows, read_traces

    traces = read_traces(folder)
    made = trace_splits(
        Windows.of(traces) if settings.windows else traces,
        settings.snapshots,
        method=settings.method,
        splits=splits,
        ended=settings.ended,
        graphs=("barycentric", "series_parallel") if settings.windows else (),
        seed=seed,
    )
    return folder.resolve().name, made


def _print_table_two(table: dict[str, Any]) -> None:
    times = [f"{time:.2f}" for time in table["times_cycles"]]
    for kind in ("paper", "default"):
        typer.echo(f"\nTable II, {kind} settings: W2 in the paper's units; = a training snapshot")
        rows = [
            [str(count), *("=" if value is None else f"{value:.4f}" for value in row)]
            for count, row in zip(table["between"], table[kind], strict=True)
        ]
        print_table(["inside a cycle", *times], rows, right=range(1, 1 + len(times)))


def _print_table_three(table: dict[str, Any]) -> None:
    typer.echo("\nTable III, made four-core traces: W2 in scaled units")
    rows = [
        [graph, f"core {core}", *(f"{value:.3f}" for value in row)]
        for graph, cores in table.items()
        for core, row in enumerate(cores)
    ]
    width = len(rows[0])
    names = ["graph", "", *(f"time {i + 1}" for i in range(width - 2))]
    print_table(names, rows, right=range(2, width))
