"""`jostle measure`: run workloads side by side on this machine, into a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli.console import progress_bar

if TYPE_CHECKING:
    from jostle.measure import Summary, Workload


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("measure")(measure)


def measure(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND…", help="A command line to measure as a workload."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The dataset: a folder, made if need be.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            help="A workload, a pattern such as 'chase-*', or a .wasm file with its arguments; may be "
            "repeated.  [default: all shipped, or none beside a command]",
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", help="One more command line, quoted; may be repeated."),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            "-e",
            help="An engine, with a variant or without (speed@nice=10); may be repeated; --engines "
            "lists them.  [default: all that work here]",
        ),
    ] = None,
    solo: Annotated[
        int, typer.Option(help="Windows of each workload alone on each engine.", min=0)
    ] = 2,
    sets: Annotated[
        int, typer.Option(help="Random sets of workloads side by side, in all.", min=0)
    ] = 60,
    smallest: Annotated[int, typer.Option(help="Fewest members of a set.", min=2)] = 2,
    largest: Annotated[int, typer.Option(help="Most members of a set.", min=2)] = 4,
    window: Annotated[
        float, typer.Option(help="Seconds that count in one window.", min=0.02, max=60)
    ] = 0.25,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which no window is begun.", min=0)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sets drawn and the order.")] = 0,
    device: Annotated[
        str | None,
        typer.Option(help="What platforms are called after the engine.  [default: from the CPU]"),
    ] = None,
    core: Annotated[
        list[int] | None,
        typer.Option(help="A core to use; may be repeated.  [default: all allowed]"),
    ] = None,
    attempts: Annotated[
        int, typer.Option(help="Times a contaminated window is measured at most.", min=1)
    ] = 3,
    timeout: Annotated[
        float,
        typer.Option(help="Seconds a set-up or a repetition may take.", min=0.1),
    ] = 10.0,
    foreign_load: Annotated[
        float,
        typer.Option(
            help="Share of the cores that strangers may take in a window on cores of its own.",
            min=0,
        ),
    ] = 0.15,
    shared_load: Annotated[
        float,
        typer.Option(help="The same where members share cores; below it wall time counts.", min=0),
    ] = 0.05,
    slowdown: Annotated[
        float,
        typer.Option(help="How much slower than usual a core may be beside a window.", min=1),
    ] = 1.25,
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="Reject no window for being disturbed.")
    ] = False,
    native_mix: Annotated[
        bool,
        typer.Option(
            "--native-mix", help="Count the instructions of command lines too (valgrind, slow)."
        ),
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON document.")
    ] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="Print the plan and measure nothing.")
    ] = False,
    engines: Annotated[
        bool, typer.Option("--engines", help="List the engines, which work here and why not.")
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Measure on all workers of this Dask scheduler (tcp://HOST:PORT) instead of here."
        ),
    ] = None,
    keep_apart: Annotated[
        bool,
        typer.Option(
            "--keep-apart", help="With --scheduler: machines that are alike are platforms each."
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say whether this machine is quiet enough to measure.")
    ] = False,
) -> None:
    """Measure runtimes on this machine: workloads alone, and side by side in random sets.

    Every window is on disk before the next begins. Interrupted at any moment, the same command goes
    on where it stopped; with more --solo or --sets it adds what is new. What disturbs it first is
    told by --check, with exit code 1.
    """
    from jostle.errors import UsageError
    from jostle.measure import Campaign, Interrupted, Tolerance
    from jostle.measure import measure as run

    if engines or check:
        from jostle.cli.collect._machine import print_check, print_engines

        (print_engines if engines else print_check)(json_)
        return
    if output is None:
        raise UsageError("where to?", fix="Name a dataset with --output FOLDER.")
    settings = {
        "workloads": _workloads(workload, words, command),
        "engines": engine,
        "solo_repeats": solo,
        "sets": sets,
        "set_sizes": (smallest, largest),
        "window_seconds": window,
        "seed": seed,
        "device": device,
        "cores": core,
    }
    tolerance = (
        Tolerance.anything()
        if accept_all
        else Tolerance(
            wall_load_ratio=shared_load, foreign_load_ratio=foreign_load, slowdown_ratio=slowdown
        )
    )
    options = {
        "time_budget_seconds": budget,
        "attempts": attempts,
        "timeout_seconds": timeout,
        "tolerance": tolerance,
    }
    if scheduler is not None:
        if listing:
            raise UsageError("--list shows this machine's plan; workers make their own")
        options |= {"keep_apart": keep_apart, "native_mix": native_mix}
        _measure_fleet(scheduler, output, settings, options, json_)
        return
    campaign = Campaign(**settings)
    if listing:
        _print_plan(campaign, json_)
        return
    try:
        with progress_bar() as report:
            summary = run(campaign, output, **options, native_mix=native_mix, progress=report)
    except Interrupted as interrupted:
        _print_summary(interrupted.summary, json_)
        raise typer.Exit(130) from None
    _print_summary(summary, json_)


def _measure_fleet(
    scheduler: str,
    output: Path,
    settings: dict[str, Any],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Measure on the workers of a scheduler; exit code 1 when windows remain."""
    from jostle.measure import FleetInterrupted, measure_fleet

    interrupted = False
    try:
        with progress_bar() as report:
            summary = measure_fleet(scheduler, output, settings, **options, progress=report)
    except FleetInterrupted as stopped:
        summary, interrupted = stopped.summary, True
    for said in summary.refused:
        typer.echo(f"warning: {said}", err=True)
    if as_json:
        import json

        typer.echo(json.dumps(summary.to_json()))
    else:
        for one in summary.campaigns:
            typer.echo(", ".join(one.platforms))
            _print_summary(one, False)
        who = ", ".join(summary.workers) or "nobody"
        typer.echo(f"measured by {who}; {summary.lost} windows were given to another worker")
    if interrupted or not summary.finished:
        raise typer.Exit(130 if interrupted else 1)


def _workloads(
    named: list[str] | None, words: list[str] | None, commands: list[str] | None
) -> list[str | Workload] | None:
    """What was asked for; None for everything that is shipped."""
    import shlex

    from jostle.errors import UsageError
    from jostle.measure import command_workload

    lines = [words] if words else []
    for text in commands or []:
        try:
            lines.append(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"cannot be split into words: {error}", where=text) from None
    found: list[str | Workload] = [*(named or []), *map(command_workload, lines)]
    return found or None


def _print_plan(campaign: Any, as_json: bool) -> None:
    """The windows of a campaign, in the order they would be measured."""
    plan = campaign.plan()
    if as_json:
        import json

        windows = [
            {
                "platform": campaign.platform(planned.engine),
                "members": [member.name for member in planned.members],
            }
            for planned in plan
        ]
        document = {"schema": "measure-plan/v1", "campaign": campaign.identity, "windows": windows}
        typer.echo(json.dumps(document))
        return
    for planned in plan:
        members = " + ".join(member.name for member in planned.members)
        typer.echo(f"{campaign.platform(planned.engine)}  {members}")


def _print_summary(summary: Summary, as_json: bool) -> None:
    """The result on standard output, warnings for people on standard error."""
    median, high = _repeatability(summary)
    for warning in summary.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if as_json:
        import json

        document = {
            **summary.to_json(),
            "repeatability_median_ratio": median,
            "repeatability_p90_ratio": high,
        }
        typer.echo(json.dumps(document))
        return
    done = summary.already + summary.ok + summary.failed + summary.timeout
    typer.echo(
        f"{summary.dataset}: {done} of {summary.planned} windows, campaign {summary.campaign}"
    )
    typer.echo(
        f"this time {summary.ok} ok, {summary.failed} failed, {summary.timeout} timed out, "
        f"{summary.contaminated} contaminated in {summary.elapsed_seconds:.0f} s"
    )
    if median is not None and high is not None:
        typer.echo(f"repeats agree within {median:.2%} (median), {high:.2%} (nine of ten)")
    if summary.given_up:
        typer.echo(
            f"{summary.given_up} were disturbed every time; more --attempts tries them again"
        )
    if summary.remaining:
        typer.echo(f"{summary.remaining} remain; the same command goes on with them")


def _repeatability(summary: Summary) -> tuple[float | None, float | None]:
    """Median and p90 of |log ratio| between repeats of this campaign; None without repeats."""
    from jostle.runs import Dataset, summarise

    dataset = Dataset(summary.dataset)
    if not dataset.exists:
        return None, None
    import pyarrow.dataset

    runs = dataset.read()
    ours = runs.table.filter(pyarrow.dataset.field("campaign") == summary.campaign)
    found = summarise(type(runs)(ours, runs.workload_features, runs.platform_features))
    return found.repeatability_median_ratio, found.repeatability_p90_ratio
