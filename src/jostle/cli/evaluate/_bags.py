"""`jostle evaluate pairs` and `jostle evaluate bag`: sets of workloads never measured together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jostle.cli.console import fit_progress, percent, print_json, print_table
from jostle.cli.evaluate._studies import group_of

Seeds = Annotated[int, typer.Option(help="Draws, each with a seed one higher.", min=1)]
Seed = Annotated[int, typer.Option(help="Of the first draw.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the group `evaluate`, which must be there already."""
    group = group_of(app)
    group.command("pairs")(pairs)
    group.command("bag")(bag)


def pairs(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder of runs.")],
    observed: Annotated[float, typer.Option(help="Share of the sets of workloads to learn from.")],
    platform: Annotated[
        str | None,
        typer.Option(help="Only sets on this platform are drawn; the others are all observed."),
    ] = None,
    target: Annotated[
        str, typer.Option(help="slowdown for steady work, extra for finite jobs.")
    ] = "slowdown",
    methods: Annotated[
        str | None, typer.Option(help="Only these, separated by commas.  [default: all]")
    ] = None,
    bounds: Annotated[bool, typer.Option(help="Fit once more to measure coverage.")] = True,
    seeds: Seeds = 5,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Error of the slowdown of sets never measured together, for every method that fits.

    Both sides of a pair and all its repeats are held out together; all runs alone are known.
    """
    import jostle
    from jostle.evaluate import evaluate_pairs, pair_methods
    from jostle.evaluate.pairs._pairs import METHODS

    chosen = pair_methods(target, methods.split(",") if methods else METHODS)
    runs = jostle.read_runs(dataset)
    with fit_progress("fitting") as report:
        found = evaluate_pairs(
            runs,
            observed,
            chosen,
            seeds=range(seed, seed + seeds),
            platform=platform,
            bounds=bounds,
            progress=report,
        )
    for note in found.notes:
        typer.echo(f"left out: {note}", err=True)
    document = {
        "schema": "evaluate/v1",
        "name": "pairs",
        "data": {
            "dataset": str(dataset),
            "version": jostle.Dataset(dataset).version(),
            "observed": observed,
            "platform": platform,
            "origins": [vars(origin) for origin in runs.origins],
        },
        "seed": seed,
        "settings": {"target": target, "seeds": seeds},
        "metrics": found.metrics,
        "notes": found.notes,
    }
    if json_:
        print_json(document)
        return
    m = found.metrics
    columns = [("slowdown_mape_{}_ratio", "MAPE"), ("slowdown_mape_sd_{}_ratio", "± draws")]
    places = runs.colocations.platform_names if platform is None else ()
    if len(places) > 1:
        columns += [("slowdown_mape_{}_" + place + "_ratio", place) for place in places]
    if bounds:
        columns += [
            ("coverage_90_{}_ratio", "coverage 90"),
            ("coverage_90_standard_error_{}_ratio", "± s.e."),
            ("margin_90_{}_ratio", "margin 90"),
        ]
    rows = [
        [name, *(percent(m.get(key.format(name), float("nan"))) for key, _ in columns)]
        for name in chosen
        if f"slowdown_mape_{name}_ratio" in m
    ]
    print_table(["", *(title for _, title in columns)], rows, right=range(1, len(columns) + 1))


def bag(
    data: Annotated[
        Path | None,
        typer.Option(
            help="The dataset: a folder of runs, as jostle import magus makes it.  "
            "[default: the vision bags that come with Jostle]"
        ),
    ] = None,
    cpu_platform: Annotated[
        str | None, typer.Option(help="The platform whose runs give CPU time and fairness.")
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="Workload feature that says which workloads are one benchmark; left out together.  "
            "[default: program, benchmark, kernel or family where there is one]"
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="extra for finite jobs, slowdown for steady work.  [default: extra; slowdown "
            "without --data]"
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Only these, separated by commas.  [default: all]")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that the pairs are cut into.", min=2)] = 6,
    bounds: Annotated[bool, typer.Option(help="Fit more to measure coverage.")] = True,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the pictures: error, ablation, radar, heat map.")
    ] = None,
    seeds: Seeds = 5,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Leave one benchmark out, and pairs out: errors by method and feature group, and what is asked."""
    import jostle
    from jostle.datasets import VISION_CPU, vision_bags
    from jostle.evaluate import draw_bags, evaluate_bags

    if data is None:
        runs = vision_bags()
        cpu_platform = cpu_platform or VISION_CPU
    else:
        runs = jostle.read_runs(data)
    target = target or ("slowdown" if data is None else "extra")
    with fit_progress("fitting") as report:
        found = evaluate_bags(
            runs,
            cpu_platform=cpu_platform,
            benchmark=benchmark,
            target=target,
            folds=folds,
            seeds=range(seed, seed + seeds),
            bounds=bounds,
            methods=methods.split(",") if methods else None,
            progress=report,
        )
    drawn = [] if figures is None else draw_bags(found, figures)
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    if json_:
        document = {
            "schema": "evaluate/v1",
            "name": "bag",
            "data": {
                "dataset": "vision" if data is None else str(data),
                "version": None if data is None else jostle.Dataset(data).version(),
                "cpu_platform": cpu_platform,
                "origins": [vars(origin) for origin in runs.origins],
            },
            "seed": seed,
            "settings": {"target": target, "folds": folds, "seeds": seeds},
            "metrics": found.metrics,
            "explanation": found.uses_document(),
            "notes": found.notes,
            "figures": [str(path) for path in drawn],
        }
        print_json(document)
        return
    _print(found)
    for path in drawn:
        typer.echo(str(path))


def _print(found: Any) -> None:
    m = found.metrics
    for test in ("application", "pair"):
        level = 80 if any(key.startswith(f"coverage_80_{test}") for key in m) else 90
        keys = [
            ("relative_error_mean_{}_ratio", "each"),
            ("relative_error_mean_bag_{}_ratio", "bag"),
            ("extra_time_r2_{}", "R² of extra"),
            ("log_slowdown_r2_{}", "R² of log slowdown"),
            (f"coverage_{level}_{{}}_ratio", f"coverage {level}"),
            (f"coverage_{level}_standard_error_{{}}_ratio", "± s.e."),
        ]
        rows = []
        for name in found.methods:
            title = f"{test}_{name}"
            if f"relative_error_mean_{title}_ratio" not in m:
                continue
            values = [m.get(key.format(title), float("nan")) for key, _ in keys]
            cells = [percent(value) for value in values]
            for at in (2, 3):
                cells[at] = "–" if values[at] != values[at] else f"{values[at]:.2f}"
            rows.append([name, *cells])
        print_table([f"{test} held out", *(t for _, t in keys)], rows, right=range(1, 7))
        typer.echo("")
    rows = [[name, percent(s), f"{u:.2f}"] for name, s, u in found.uses_table()[:15]]
    if rows:
        print_table(["the tree asks about", "of answers", "times"], rows, right=(1, 2))
