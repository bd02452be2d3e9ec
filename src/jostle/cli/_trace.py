"""`jostle trace`: what workloads do over time, alone and beside others, into a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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
    json_: Annotated[
        bool, typer.Option("--json", help="Print what was recorded as one JSON document.")
    ] = False,
) -> None:
    """Record counter samples over time: exact progress in instructions, CPU time, memory, pressure.

    Hardware counters are recorded where this host has them and null where not. Adds the tables
    traces/v1 and traced_runs/v1 to the dataset.
    """
    from jostle.measure import trace as record
    from jostle.traces import write_traces

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
        progress=lambda done, total: typer.echo(f"window {done + 1} of {total}", err=True),
    )
    files = write_traces(output, found)
    print_traces(found, output, [str(file) for file in files], json_)


def print_traces(found: Traces, output: Path, files: list[str], as_json: bool) -> None:
    """What was recorded: a line for each run, or one document."""
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
                "samples": len(one),
                "instructions": next((counted[n] for n in _PROGRESS if n in known), None),
                "available": known,
                "not_available": sorted(set(one.counters) - set(known)),
            }
        )
    if as_json:
        import json

        document = {"schema": "trace/v1", "dataset": str(output), "files": files, "runs": rows}
        typer.echo(json.dumps(document))
        return
    for row in rows:
        beside = f" beside {' + '.join(row['corunners'])}" if row["corunners"] else " alone"
        took = f"{row['runtime_seconds']:.3f} s" if row["runtime_seconds"] else "no end"
        done = f", {row['instructions']:.4g} instructions" if row["instructions"] else ""
        typer.echo(f"{row['workload']}{beside}: {took}, {row['samples']} samples{done}")
    missing = sorted({name for row in rows for name in row["not_available"]})
    if missing:
        typer.echo(f"not available on this host: {', '.join(missing)}", err=True)
