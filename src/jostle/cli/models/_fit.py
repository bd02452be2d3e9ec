"""`jostle fit`: learn a model from a dataset and calibrate it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli.console import fit_progress, print_json

if TYPE_CHECKING:
    from jostle.alignment import Alignment
    from jostle.runs import Runs


# From so many runs on, tables of them are not held in memory.
FROM_DISK = 3_000_000


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit")(fit)


def fit(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder of runs.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model: a folder to write.")],
    method: Annotated[
        str,
        typer.Option(
            help="The method: factorization, slowdown, bag, alignment (of counter traces), or "
            "accelerator (of solo profiles)."
        ),
    ] = "factorization",
    target: Annotated[
        str | None,
        typer.Option(help="With slowdown and bag: slowdown (steady work) or extra (finite jobs)."),
    ] = None,
    cpu_platform: Annotated[
        str | None,
        typer.Option(help="With bag: the platform whose runs give CPU time and fairness."),
    ] = None,
    process: Annotated[
        bool,
        typer.Option(help="With slowdown: average the form with a Gaussian process."),
    ] = False,
    calibrate_by: Annotated[
        str | None,
        typer.Option(
            help="Hold out whole windows, or sets of workloads never measured together: window or "
            "together.  [default: together; window with factorization]"
        ),
    ] = None,
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
    own_cores: Annotated[
        bool,
        typer.Option(
            "--own-cores",
            help="Of alignment: every member had a core of its own; leave out what it waited for it.",
        ),
    ] = False,
    gpu: Annotated[
        str | None, typer.Option(help="Of accelerator: the device, instead of the profiles' own.")
    ] = None,
    kernels: Annotated[
        str, typer.Option(help="Of accelerator: concurrent, sequential, time-sliced or a plug-in.")
    ] = "concurrent",
    bus: Annotated[
        str, typer.Option(help="Of accelerator: per_direction or shared.")
    ] = "per_direction",
    from_disk: Annotated[
        bool | None,
        typer.Option(
            "--from-disk/--in-memory",
            help="Of factorization: draw training batches from scratch files (in TMPDIR) instead of "
            "reading all runs into memory.  [default: from 3 million runs on]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the held-out runs and the training.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Learn from runs. A part is held out to calibrate bounds on."""
    import jostle
    from jostle.errors import UsageError

    if calibrate_by not in (None, "window", "together"):
        raise UsageError(f"calibrate by {calibrate_by!r}", fix="Known: window, together.")
    by = calibrate_by or ("window" if method == "factorization" else "together")
    known: dict[str, Callable[[], Any]] = {
        "factorization": lambda: jostle.Factorization(form=form, members=members, steps=steps),
        "slowdown": lambda: jostle.Slowdown(target=target or "slowdown", process=process),
        "bag": lambda: jostle.Bag(target=target or "extra", cpu_platform=cpu_platform),
        "accelerator": lambda: jostle.Accelerator(str(dataset), gpu, kernels, bus),
    }
    if method not in (*known, "alignment"):
        raise UsageError(
            f"unknown method {method!r}", fix=f"Known: {', '.join([*known, 'alignment'])}."
        )
    place = jostle.Dataset(dataset)
    if from_disk is None:
        from_disk = method == "factorization" and place.number_of_runs() >= FROM_DISK
    with ExitStack() as stack:
        if method == "alignment":
            settings, runs = _alignment(dataset, learner, corunners, own_cores)
        elif from_disk:
            settings = known[method]()
            with fit_progress("reading") as report:
                stored = jostle.StoredRuns(
                    dataset, seed=seed, progress=lambda done, total: report(done, total, 0.0)
                )
            runs = stack.enter_context(stored)
        else:
            settings, runs = known[method](), jostle.read_runs(dataset)
        report = stack.enter_context(fit_progress("fitting"))
        model = jostle.fit(runs, settings, seed=seed, calibrate_by=by, progress=report)
    version = place.version() if place.files() else None
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


def _alignment(
    dataset: Path, learner: str, corunners: str, own_cores: bool
) -> tuple[Alignment, Runs]:
    """The method on the traces of the dataset, and the runs that were traced beside others."""
    import jostle
    from jostle.alignment import solo_run_ids
    from jostle.models import traced_runs
    from jostle.traces import all_without_waiting, read_traces

    traces = read_traces(dataset)
    if own_cores:
        traces = all_without_waiting(traces)
    # What a profile was made of is an input: nothing can be calibrated on it.
    runs = traced_runs(traces, solo_run_ids(traces))
    return jostle.Alignment(traces, learner=learner, corunners=corunners), runs
