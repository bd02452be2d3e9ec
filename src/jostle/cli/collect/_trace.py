"""`jostle trace`: what workloads do over time, alone and beside others, into a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from jostle.measure import Judgement
    from jostle.traces import Traces


# Exact ones before those that hardware counted.
_PROGRESS = ("instructions", "perf_instructions")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("trace")(trace)


def trace(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The dataset: a folder, made if need be.")
    ],
    workload: Annotated[
        list[str],
        typer.Option(
            "--workload",
            "-w",
            help="A workload, or a program such as 'name=fft-m*300+stream-l*40'; repeat for more "
            "members side by side.",
        ),
    ],
    engine: Annotated[str, typer.Option("--engine", "-e", help="What they run on.")] = "speed",
    runs: Annotated[int, typer.Option(help="Times to record everything.", min=1)] = 1,
    alone: Annotated[
        bool, typer.Option("--alone", help="Record each member by itself as well.")
    ] = False,
    loop: Annotated[
        bool, typer.Option("--loop", help="Who has ended begins again until all have ended once.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(help="How long to follow members that have no end.", min=0.001)
    ] = 1.0,
    interval: Annotated[
        float, typer.Option(help="Seconds between samples.", min=0.001, max=60)
    ] = 0.01,
    core: Annotated[
        list[int] | None,
        typer.Option(help="A core to use; may be repeated.  [default: all allowed]"),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="What the platform is called after the engine.  [default: from the CPU]"),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds one window may take.", min=0.1)] = 120.0,
    attempts: Annotated[
        int,
        typer.Option(help="Times a window is recorded at most, if it is disturbed.", min=1),
    ] = 3,
    slowdown: Annotated[
        float,
        typer.Option(help="Disturbed: a core is so many times slower than usual.", min=1),
    ] = 1.25,
    foreign_load: Annotated[
        float,
        typer.Option(
            help="Disturbed: members waited for their cores this share of the time.", min=0
        ),
    ] = 0.15,
    json_: Annotated[
        bool, typer.Option("--json", help="Print what was recorded as one JSON document.")
    ] = False,
) -> None:
    """Record counter samples over time: exact progress in instructions, CPU time, memory, pressure.

    Hardware counters are recorded where this host has them and null where not. A window that others
    than its members disturbed is recorded again. Adds the tables traces/v1 and traced_runs/v1 to the dataset.
    """
    from jostle.measure import Tolerance
    from jostle.measure import trace as record
    from jostle.traces import write_traces

    judged: list[Judgement] = []
    found = record(
        workload,
        engine=engine,
        runs=runs,
        alone=alone,
        loop=loop,
        seconds=seconds,
        interval_seconds=interval,
        cores=core,
        device=device,
        timeout_seconds=timeout,
        attempts=attempts,
        tolerance=Tolerance(foreign_load_ratio=foreign_load, slowdown_ratio=slowdown),
        progress=lambda done, total: typer.echo(f"window {done + 1} of {total}", err=True),
        judged=judged.append,
    )
    files = write_traces(output, found)
    print_traces(found, output, [str(file) for file in files], json_, judged)


def print_traces(
    found: Traces,
    output: Path,
    files: list[str],
    as_json: bool,
    judged: Sequence[Judgement] = (),
) -> None:
    """What was recorded: a line for each run, or one document. judged: every attempt, in order."""
    import numpy as np

    rows = []
    for one in found:
        counted = {name: float(np.nansum(values)) for name, values in one.counters.items()}
        known = sorted(name for name, v in one.counters.items() if np.isfinite(v).any())
        seconds = one.runtime_seconds
        rows.append(
            {
                "run_id": one.run_id,
                "core": one.core,
                "workload": one.workload,
                "platform": one.platform,
                "corunners": list(one.corunners),
                "window_id": one.window_id,
                "runtime_seconds": None if np.isnan(seconds) else seconds,
                "core_slowdown_ratio": None
                if np.isnan(one.core_slowdown_ratio)
                else one.core_slowdown_ratio,
                "samples": len(one),
                "instructions": next((counted[n] for n in _PROGRESS if n in known), None),
                "available": known,
                "not_available": sorted(set(one.counters) - set(known)),
            }
        )
    if as_json:
        import json

        document = {"schema": "trace/v1", "dataset": str(output), "files": files, "runs": rows}
        document["attempts"] = [vars(one) for one in judged]
        typer.echo(json.dumps(document))
        return
    for row in rows:
        beside = f" beside {' + '.join(row['corunners'])}" if row["corunners"] else " alone"
        took = f"{row['runtime_seconds']:.3f} s" if row["runtime_seconds"] else "no end"
        done = f", {row['instructions']:.4g} instructions" if row["instructions"] else ""
        typer.echo(f"{row['workload']}{beside}: {took}, {row['samples']} samples{done}")
    rejected = [one for one in judged if one.reason is not None]
    if rejected:
        # Attempts of a window follow one another: the last is disturbed only where all were.
        left = sum(
            one.reason is not None and (n + 1 == len(judged) or judged[n + 1].attempt == 0)
            for n, one in enumerate(judged)
        )
        typer.echo(
            f"{len(rejected)} of {len(judged)} attempts were disturbed ({rejected[-1].reason}); "
            f"{left} windows were at every attempt, of these the least disturbed is kept",
            err=True,
        )
    missing = sorted({name for row in rows for name in row["not_available"]})
    if missing:
        typer.echo(f"not available on this host: {', '.join(missing)}", err=True)
