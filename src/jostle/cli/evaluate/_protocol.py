"""`jostle evaluate protocol` and `jostle evaluate figures`: the paper's studies and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle.cli.console import fit_progress, print_json, print_table
from jostle.cli.evaluate._studies import group_of


def register(app: typer.Typer) -> None:
    """Add the commands to the group `evaluate`, which must be there already."""
    group = group_of(app)
    group.command("protocol")(protocol)
    group.command("figures")(figures)


def protocol(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder of runs.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")],
    study: Annotated[
        str,
        typer.Option(
            help="baselines, objective, features, interference, form, activation, quantiles, q, r, s "
            "or beta."
        ),
    ] = "baselines",
    observed: Annotated[
        str, typer.Option(help="Shares of the runs to learn from, separated by commas.")
    ] = ".1,.2,.3,.4,.5,.6,.7,.8,.9",
    replicates: Annotated[int, typer.Option(help="Splits and seeds per share.", min=1)] = 5,
    by: Annotated[
        str, typer.Option(help="Draw single rows as the paper does, or whole windows.")
    ] = "row",
    methods: Annotated[
        str | None, typer.Option(help="Only these of the study's methods, separated by commas.")
    ] = None,
    baseline_steps: Annotated[
        int | None,
        typer.Option(help="Training steps of the neural baselines.  [default: 20000]", min=1),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Training steps of the factorization.  [default: by the number of runs]", min=1
        ),
    ] = None,
    members: Annotated[
        int, typer.Option(help="Models that the factorization averages.", min=1)
    ] = 1,
    workers: Annotated[
        int | None, typer.Option(help="Fits at once.  [default: one per core]", min=1)
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Fit on the workers of this Dask scheduler (tcp://HOST:PORT) instead."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the first replicate; the next add 1.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run a study of the paper on a dataset, from where it was left.

    Every finished fit is kept in its own file, so a study may be stopped at any time, widened, and run
    again. Prints a table; all numbers are in OUTPUT/STUDY.parquet.
    """
    from dataclasses import replace

    from jostle.errors import UsageError
    from jostle.evaluate import comparison_named, run_protocol, summary_rows
    from jostle.factorization import Factorization

    chosen = comparison_named(
        study, Factorization(steps=steps, members=members), baseline_steps=baseline_steps
    )
    if methods is not None:
        wanted = [name.strip() for name in methods.split(",")]
        known = [variant.name for variant in chosen.variants]
        odd = [name for name in wanted if name not in known]
        if odd:
            raise UsageError(f"unknown method {odd[0]!r}", fix=f"One of {', '.join(known)}.")
        kept = tuple(variant for variant in chosen.variants if variant.name in wanted)
        chosen = replace(chosen, variants=kept)
    with fit_progress("fitting") as report:
        table = run_protocol(
            dataset,
            output,
            chosen,
            observed=_shares(observed),
            replicates=replicates,
            seed=seed,
            by=by,
            workers=workers,
            scheduler=scheduler,
            progress=lambda done, total, _: report(done, total, 0.0),
        )
    columns, rows = summary_rows(table)
    if json_:
        print_json(
            {
                "schema": "evaluate/v1",
                "name": f"protocol {study}",
                "data": {"dataset": str(dataset), "split_by": by},
                "seed": seed,
                "rows": table.to_pylist(),
            }
        )
        return
    print_table(columns, rows, right=range(1, len(columns)))


def figures(
    results: Annotated[
        Path, typer.Argument(help="The folder that jostle evaluate protocol filled.")
    ],
    model: Annotated[
        Path | None, typer.Option(help="A model, to picture what it has learned.")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="With --model: the runs, for features and slowdowns.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the t-SNE.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Draw the paper's figures from whatever studies are in a folder, as PNG and SVG.

    Prints the paths. With --model and --dataset also the embeddings (t-SNE) and the interference norm.
    """
    from jostle.errors import UsageError
    from jostle.evaluate import draw_embeddings, draw_studies
    from jostle.models import load
    from jostle.runs import read_runs

    if (model is None) != (dataset is None):
        raise UsageError("--model and --dataset go together")
    drawn = draw_studies(results)
    if model is not None and dataset is not None:
        drawn += draw_embeddings(load(model), read_runs(dataset), results, seed=seed)
    if json_:
        print_json({"schema": "figures/v1", "figures": [str(path) for path in drawn]})
        return
    for path in drawn:
        typer.echo(path)


def _shares(text: str) -> tuple[float, ...]:
    from jostle.errors import UsageError

    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--observed {text!r}", fix="Say shares like .1,.3,.5.") from None
