"""`jostle fit`: learn a model from a dataset and calibrate it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli._people import fit_progress, print_json

if TYPE_CHECKING:
    from jostle.models import Model


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit")(fit)


def fit(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder of runs.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model: a folder to write.")],
    method: Annotated[
        str, typer.Option(help="factorization, or alignment (of counter traces).")
    ] = "factorization",
    form: Annotated[
        str, typer.Option(help="How co-runners slow down: paper, product or saturating.")
    ] = "saturating",
    members: Annotated[int, typer.Option(help="Models to average.", min=1)] = 1,
    steps: Annotated[
        int | None, typer.Option(help="Training steps.  [default: by the number of runs]", min=1)
    ] = None,
    learner: Annotated[
        str,
        typer.Option(help="Of alignment: auto, ridge, lasso, elastic_net, linear_svr or network."),
    ] = "auto",
    corunners: Annotated[
        str, typer.Option(help="Of alignment: whether co-runners run once, or loop.")
    ] = "once",
    seed: Annotated[int, typer.Option(help="Of the held-out runs and the training.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Learn from runs. A part is held out to calibrate bounds on."""
    import jostle
    from jostle.errors import UsageError

    if method not in ("factorization", "alignment"):
        raise UsageError(f"unknown method {method!r}", fix="Known: factorization, alignment.")
    with fit_progress("fitting") as report:
        if method == "alignment":
            model, version = _fit_alignment(dataset, learner, corunners, seed, report)
        else:
            runs = jostle.read_runs(dataset)
            settings = jostle.Factorization(form=form, members=members, steps=steps)
            model = jostle.fit(runs, settings, seed=seed, progress=report)
            version = jostle.Dataset(dataset).version()
    model.save(output)
    pools = {name: pool.n for name, pool in model.calibration.pools.items()}
    if json_:
        print_json(
            {
                "schema": "fit/v1",
                "model": str(output),
                "dataset_version": version,
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


def _fit_alignment(
    dataset: Path, learner: str, corunners: str, seed: int, report: Any
) -> tuple[Model, str | None]:
    """Calibrated over sets of workloads: what was never run together is what will be asked about."""
    import jostle
    from jostle.alignment import profile_runs
    from jostle.models import traced_runs
    from jostle.traces import read_traces

    traces = read_traces(dataset)
    settings = jostle.Alignment(traces, learner=learner, corunners=corunners)
    # What a profile was made of is an input: nothing can be calibrated on it.
    runs = traced_runs(traces, profile_runs(traces))
    model = jostle.fit(runs, settings, seed=seed, calibrate_by="together", progress=report)
    known = jostle.Dataset(dataset)
    return model, known.version() if known.files() else None
