"""`jostle evaluate accelerator`: the simulator against measurements."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from jostle.cli.console import print_json, print_table

# Metrics printed below the table, where there are such.
NUMBERS = (
    "pairs_utilisation_ratio",
    "pairs_oracle_utilisation_ratio",
    "pairs_violations_ratio",
    "pairs_worst_violation_ratio",
    "tasks_per_second",
    "study_seconds",
    "scale_out_seconds",
)


def accelerator(
    on: Annotated[str, typer.Option(help="v100, magus13, pairs or scale-out.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="The measurements: v100_interference, magus13, or for pairs a dataset with runs and "
            "profiles.  [default: in $JOSTLE_DATA]"
        ),
    ] = None,
    kernels: Annotated[str, typer.Option(help="With pairs: how kernels share.")] = "concurrent",
    gpu: Annotated[str | None, typer.Option(help="With pairs: the device.")] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="With scale-out: draw utilisation and violations into this folder."),
    ] = None,
    seed: Annotated[int, typer.Option(help="With scale-out: of applications and drift.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Error of simulated co-runs, or what safe co-locations bring a cluster; baselines beside."""
    from jostle.errors import UsageError
    from jostle.evaluate import (
        draw_scale_out,
        evaluate_accelerator_magus,
        evaluate_accelerator_pairs,
        evaluate_accelerator_scale_out,
        evaluate_accelerator_v100,
    )
    from jostle.evaluate.accelerator._evaluation import EVALUATIONS, outcomes_of

    if on not in EVALUATIONS:
        raise UsageError(f"--on {on!r} is unknown", fix=f"Known: {', '.join(EVALUATIONS)}.")
    if figures is not None and on != "scale-out":
        raise UsageError("--figures goes with --on scale-out")
    if on == "scale-out":
        found, where = evaluate_accelerator_scale_out(seed), "made-up applications"
    else:
        if data is None and EVALUATIONS[on] and "JOSTLE_DATA" in os.environ:
            data = Path(os.environ["JOSTLE_DATA"]) / EVALUATIONS[on]
        if data is None:
            raise UsageError(
                f"--on {on} needs measurements", fix="Say where they are with --data FOLDER."
            )
        where = str(data)
        if on == "v100":
            found = evaluate_accelerator_v100(data)
        elif on == "magus13":
            found = evaluate_accelerator_magus(data)
        else:
            found = evaluate_accelerator_pairs(data, kernels, gpu)
    drawn = [] if figures is None else draw_scale_out(found.drawn, figures)
    if json_:
        print_json(
            {
                "schema": "evaluate/v1",
                "name": "accelerator",
                "data": {"on": on, "folder": where},
                "seed": seed,
                "metrics": outcomes_of(found),
                **({"figures": [str(path) for path in drawn]} if drawn else {}),
            }
        )
        return
    print_table(found.columns, found.rows, right=range(1, 5) if on != "scale-out" else (2, 3, 4))
    for name in NUMBERS:
        if name in found.metrics:
            typer.echo(f"{name}: {found.metrics[name]:.4g}")
    for path in drawn:
        typer.echo(str(path))
