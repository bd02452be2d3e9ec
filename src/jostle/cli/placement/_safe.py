"""`jostle safe`: how many batch instances fit beside a service on one accelerator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("safe")(safe)


def safe(
    dataset: Annotated[
        Path, typer.Argument(help="A folder with solo profiles (see jostle import profile).")
    ],
    target: Annotated[
        str | None,
        typer.Option(help="The service whose latency must hold.  [default: each in turn]"),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(help="The batch workload to put beside it.  [default: every other, a table]"),
    ] = None,
    qos: Annotated[
        str, typer.Option(help="Slowdown allowed, such as 2.0x; 'none' for none.")
    ] = "2.0x",
    latency: Annotated[
        str | None, typer.Option(help="Latency allowed, with its unit: 100ms, 0.5s.")
    ] = None,
    statistic: Annotated[str, typer.Option(help="What must hold: mean, p95, p99 or max.")] = "mean",
    instances: Annotated[
        int | None, typer.Option(help="Ask whether so many are safe, instead of how many.", min=0)
    ] = None,
    most: Annotated[int, typer.Option(help="Look no further than this.", min=0, max=1000)] = 15,
    gpu: Annotated[
        str | None, typer.Option(help="The device, instead of the profiles' own.")
    ] = None,
    kernels: Annotated[
        str,
        typer.Option(help="How kernels share: concurrent, sequential, time-sliced or a plug-in."),
    ] = "concurrent",
    transfers: Annotated[
        str, typer.Option(help="How transfers share the bus: pcie or a plug-in.")
    ] = "pcie",
    bus: Annotated[str, typer.Option(help="per_direction or shared.")] = "per_direction",
    placement: Annotated[str, typer.Option(help="Blocks on PEs: pack or spread.")] = "pack",
    partition: Annotated[
        str | None,
        typer.Option(
            help="Slices of the device (MIG), the service's first: 3g,4g, or PEs or a share of them, "
            "each with a share of memory after a colon: 60:0.5,60:0.5; one alone leaves the rest."
        ),
    ] = None,
    sm_share: Annotated[
        float | None,
        typer.Option(help="Of the PEs, what each batch instance may use at most (MPS), 0 to 1."),
    ] = None,
    pinned: Annotated[
        bool, typer.Option("--pinned", help="Transfers that do not say were from pinned memory.")
    ] = False,
    memory_need: Annotated[
        float | None, typer.Option(help="Bytes/s per PE of kernels whose profile has none.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Queries per second, at random times; else back to back.")
    ] = None,
    arrivals: Annotated[
        Path | None,
        typer.Option(help="A file of times in seconds, one on a line, at which queries arrive."),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(help="Queries to simulate.  [default: 50, fewer where they are long]", min=1),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A fitted model, for bounds from measured co-runs.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="With --model: the platform's name.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the bound.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the arrivals.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """How many instances of a batch workload may share the device; without --batch, of each in the folder.
    Exit code 0: safe, 1: not even one (or not as many as asked), 3: a model was given and no bound is
    valid."""
    from dataclasses import replace

    import jostle
    from jostle.accelerator import (
        Objective,
        SimulationOptions,
        applications_of,
        poisson_arrivals,
        read_arrivals,
        split_device,
        what_fits,
    )
    from jostle.cli.placement._answers import Bounded, Question, one_answer, table_answer
    from jostle.errors import UnknownName, UsageError

    objective = Objective(_slowdown(qos), _seconds(latency), statistic)
    applications, device = applications_of(
        jostle.read(dataset).profiles, gpu, pinned=pinned, memory_need=memory_need
    )
    for name in (target, batch):
        if name is not None and name not in applications:
            raise UnknownName("workload", name, sorted(applications), where=str(dataset))
    device = replace(device, bus=bus, placement=placement)
    if partition is not None:
        device = split_device(device, partition)
    if sm_share is not None and not 0 < sm_share <= 1:
        raise UsageError(f"--sm-share {sm_share} is not above 0 and at most 1")
    if rate is not None and arrivals is not None:
        raise UsageError("give --rate or --arrivals, not both")
    times = None if rate is None else poisson_arrivals(rate, queries or 50, seed)
    asked = Question(
        applications,
        device,
        SimulationOptions(kernels, transfers),
        objective,
        queries=queries,
        arrivals=times if arrivals is None else read_arrivals(arrivals),
        batch_pes=None if sm_share is None else max(1, round(sm_share * device.pes)),
        instances=instances,
        most=most,
    )
    bounds = None if model is None else Bounded(model, platform, confidence)
    if target is not None and batch is not None:
        raise typer.Exit(one_answer(asked, target, batch, bounds, json_))
    from jostle.cli.console import fit_progress

    names = sorted(applications)
    with fit_progress("simulating") as report:
        fits = what_fits(
            [asked.service(name) for name in names if target in (None, name)],
            [applications[name] for name in names if batch in (None, name)],
            device,
            asked.options,
            batch_pes=asked.batch_pes,
            most=asked.look_to,
            progress=report,
        )
    raise typer.Exit(table_answer(asked, fits, bounds, json_))


def _slowdown(text: str) -> float | None:
    from jostle.errors import UsageError

    if text.lower() == "none":
        return None
    try:
        return float(text.lower().removesuffix("x"))
    except ValueError:
        raise UsageError(f"--qos {text!r} is no slowdown", fix="Such as 2.0x.") from None


def _seconds(text: str | None) -> float | None:
    from jostle.errors import UsageError

    if text is None:
        return None
    match = re.fullmatch(r"([0-9.]+(?:e-?\d+)?)\s*(s|ms|us|µs)", text.strip())
    try:
        return float(match[1]) * {"s": 1, "ms": 1e-3}.get(match[2], 1e-6)  # pyright: ignore
    except (TypeError, ValueError):
        raise UsageError(f"--latency {text!r} is no time", fix="Such as 100ms or 0.5s.") from None
