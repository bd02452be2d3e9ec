"""`jostle import profile`: solo profiles of accelerators into a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle.cli.console import duration, print_json


def profile(
    file: Annotated[
        Path, typer.Argument(help="Nsight Systems SQLite, Kineto JSON(.gz), nvprof or rocprof CSV.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The dataset: a folder, made if need be.")
    ],
    workload: Annotated[
        str | None, typer.Option(help="What ran.  [default: the file's name]")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option(help="A name for this run.  [default: the workload]")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="The device, where the file does not say: V100, A100, …")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="nsys, kineto, nvprof or rocprof, instead of a look inside.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Add what one run did on the accelerator, task by task."""
    from jostle.traces import read_profile, write_profiles

    found = read_profile(file, workload=workload, run_id=run_id, gpu=gpu, format=format)
    write_profiles(output, [found])
    kinds = found.tasks.column("kind").to_pylist()
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    busy = float(found.column("duration_seconds").sum())
    devices = {str(d): g.name if g else None for d, g in sorted(found.gpus.items())}
    if json_:
        print_json(
            {
                "schema": "import_profile/v1",
                "workload": found.workload,
                "run_id": found.run_id,
                "format": found.format,
                "tasks": counts,
                "task_seconds": busy,
                "devices": devices,
                "notes": list(found.notes),
            }
        )
        return
    said = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    names = ", ".join(sorted({name or "an unknown device" for name in devices.values()}))
    typer.echo(f"{found.workload}: {said}, {duration(busy)} in all on {names} ({found.format}).")
    for note in found.notes:
        typer.echo(f"Note: {note}.", err=True)
