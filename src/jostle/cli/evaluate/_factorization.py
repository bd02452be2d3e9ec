"""`jostle evaluate`: the papers' protocols on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle.cli.console import fit_progress, percent, print_json, print_table
from jostle.cli.evaluate._accelerator import accelerator

if TYPE_CHECKING:
    from jostle.evaluate import Covered


def register(app: typer.Typer) -> None:
    """Add the group to the application."""
    group = typer.Typer(help="Fit on a part of a dataset, test on the rest.", no_args_is_help=True)
    group.command("factorization")(factorization)
    group.command("accelerator")(accelerator)
    group.callback()(lambda: None)
    app.add_typer(group, name="evaluate")


def group_of(app: typer.Typer) -> typer.Typer:
    """The group `evaluate`, for modules that add to it; it must be registered already."""
    for group in app.registered_groups:
        if group.name == "evaluate" and group.typer_instance is not None:
            return group.typer_instance
    raise LookupError("the group 'evaluate' must be registered first")


def factorization(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder of runs.")],
    splits: Annotated[
        Path | None,
        typer.Option(help="An .npz file with row numbers mf_train, mf_val, mf_test, if2_train, …"),
    ] = None,
    observed: Annotated[
        float | None, typer.Option(help="Share of the runs to learn from, drawn with the seed.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(help="With --observed: draw by window, row or together (sets of workloads)."),
    ] = "window",
    seed: Annotated[int, typer.Option(help="Of the split and the training.")] = 0,
    form: Annotated[
        str, typer.Option(help="How co-runners slow down: paper, product or saturating.")
    ] = "saturating",
    members: Annotated[int, typer.Option(help="Models to average.", min=1)] = 1,
    steps: Annotated[
        int | None, typer.Option(help="Training steps.  [default: by the number of runs]", min=1)
    ] = None,
    coverage: Annotated[
        bool,
        typer.Option(
            "--coverage", help="Also print coverage by platform and tenth of the workloads."
        ),
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Error, coverage and margin of factorization on runs it has not seen."""
    import jostle
    from jostle.errors import UsageError
    from jostle.evaluate import evaluate_factorization, file_split, observed_split

    if (splits is None) == (observed is None):
        raise UsageError("say either --splits or --observed")
    runs = jostle.read_runs(dataset)
    split = (
        file_split(runs, splits, seed)
        if splits is not None
        else observed_split(runs, observed or 0.0, seed, by)
    )
    method = jostle.Factorization(form=form, members=members, steps=steps)
    with fit_progress("fitting") as report:
        found = evaluate_factorization(runs, method, split, seed=seed, progress=report)
    if json_:
        print_json(
            {
                "schema": "evaluate/v1",
                "name": "factorization",
                "data": {
                    "dataset": str(dataset),
                    "version": jostle.Dataset(dataset).version(),
                    "splits": str(splits) if splits else None,
                    "observed": observed,
                },
                "seed": seed,
                "settings": {"form": form, "members": members, "steps": steps},
                "metrics": found.metrics,
                "coverage": [covered.to_row() for covered in found.coverage],
            }
        )
        return
    m = found.metrics
    groups = [
        name.removeprefix("mape_").removesuffix("_ratio") for name in m if name.startswith("mape_")
    ]
    rows = []
    for group in groups:
        row = [group, percent(m[f"mape_{group}_ratio"], 2)]
        row.append(percent(m[f"median_error_{group}_ratio"], 2))
        for level in (90, 95, 99):
            row.append(percent(m[f"coverage_{level}_{group}_ratio"], 2))
            row.append(percent(m[f"margin_{level}_{group}_ratio"]))
        rows.append(row)
    bounds = [f"{what} {level}" for level in (90, 95, 99) for what in ("coverage", "margin")]
    print_table(["", "MAPE", "median", *bounds], rows, right=range(1, 9))
    typer.echo(
        f"{m['test_runs']:.0f} test runs, fitted and calibrated in {m['train_seconds']:.1f} s"
    )
    if coverage:
        _print_coverage(found.coverage)


def _print_coverage(covered: list[Covered]) -> None:
    """All pools and tenths of the workloads, the ten platforms that fall short the most, and how many do."""

    def row(name: str, one: Covered) -> list[str]:
        said = [name, str(one.runs)]
        for level in one.coverage:
            said += [percent(one.coverage[level], 1), percent(one.margin[level])]
        return said

    from jostle.evaluate import COVERAGE_KINDS

    levels = [round(100 * level) for level in covered[0].coverage]
    columns = ["", "runs"] + [
        f"{what} {level}" for level in levels for what in ("coverage", "margin")
    ]
    kinds = {kind: [one for one in covered if one.kind == kind] for kind in COVERAGE_KINDS}
    rows = [row(one.name, one) for one in kinds["pool"]]
    rows += [row(f"workloads, tenth {one.name}", one) for one in kinds["workload_decile"]]
    first = min(covered[0].coverage)
    worst = sorted(
        kinds["platform"], key=lambda o: (o.coverage[first] - first) / o.standard_error(first)
    )
    rows += [row(one.name, one) for one in worst[:10]]
    print_table(columns, rows, right=range(1, len(columns)))
    for level in covered[0].coverage:
        short = sum(one.falls_short(level) for one in kinds["platform"])
        typer.echo(
            f"at {level:.0%}, {short} of {len(kinds['platform'])} platforms are more than two standard "
            "errors short"
        )
