"""`jostle fit`: learn a model from a dataset and calibrate it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jostle.cli._people import fit_progress, print_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit")(fit)


def fit(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder of runs.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model: a folder to write.")],
    method: Annotated[
        str, typer.Option(help="factorization, or accelerator for solo profiles.")
    ] = ("factorization"),
    form: Annotated[
        str, typer.Option(help="How co-runners slow down: paper, product or saturating.")
    ] = "saturating",
    members: Annotated[int, typer.Option(help="Models to average.", min=1)] = 1,
    steps: Annotated[
        int | None, typer.Option(help="Training steps.  [default: by the number of runs]", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the held-out runs and the training.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Learn from runs. A part is held out to calibrate bounds on."""
    import jostle
    from jostle.errors import UsageError

    if method not in ("factorization", "accelerator"):
        raise UsageError(f"unknown method {method!r}", fix="Known: factorization, accelerator.")
    runs = jostle.read_runs(dataset)
    settings: Any = jostle.Factorization(form=form, members=members, steps=steps)
    if method == "accelerator":
        settings = jostle.Accelerator(str(dataset))
    with fit_progress("fitting") as report:
        model = jostle.fit(runs, settings, seed=seed, progress=report)
    model.save(output)
    pools = {name: pool.n for name, pool in model.calibration.pools.items()}
    if json_:
        print_json(
            {
                "schema": "fit/v1",
                "model": str(output),
                "dataset_version": jostle.Dataset(dataset).version(),
                "runs": model.said["runs"],
                "calibration_runs_by_pool": pools,
                "notes": list(model.notes),
            }
        )
        return
    counts = model.said["runs"]
    for note in model.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(
        f"{output}: fitted on {counts['fitted']} runs, calibrated on {counts['calibration']} "
        f"({', '.join(f'{name}: {n}' for name, n in pools.items())})"
    )
