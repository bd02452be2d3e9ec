"""`jostle tour`: the first answer, on the user's own machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli.collect._measure import progress_bar
from jostle.cli.console import duration, fit_progress, percent, print_json, print_table

if TYPE_CHECKING:
    from jostle.tour import Tour, TourPlan

SHOWN = 12


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("tour")(tour)


def tour(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the dataset and the model.")
    ] = Path("jostle-tour"),
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", help="A shipped workload; repeat.  [default: ten]"),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", "-e", help="An engine; repeat.  [default: three]"),
    ] = None,
    sets: Annotated[
        int | None, typer.Option(help="Random sets side by side.  [default: 210]", min=4)
    ] = None,
    window: Annotated[
        float | None, typer.Option(help="Seconds that count in one window.", min=0.02)
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Seconds to measure at most.", min=1)] = None,
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="Keep windows that others disturbed.")
    ] = False,
    prior: Annotated[
        bool,
        typer.Option(
            "--prior/--no-prior", help="Learn from the sample that comes with Jostle, too."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure this machine, learn from it, and check the answers against what was held out.

    Takes about three minutes. A second tour of the same folder goes on from the first.
    """
    from dataclasses import replace

    from jostle.measure import Tolerance
    from jostle.tour import TourPlan, learn_tour, measure_tour

    given: dict[str, Any] = {
        "workloads": tuple(workload) if workload else None,
        "engines": tuple(engine) if engine else None,
        "sets": sets,
        "window_seconds": window,
        "time_budget_seconds": budget,
        "seed": seed,
        "prior": prior,
    }
    plan = replace(TourPlan(), **{k: v for k, v in given.items() if v is not None})
    typer.echo(
        f"Measuring {len(plan.workloads)} workloads alone and side by side on this machine, for "
        f"about {plan.time_budget_seconds:.0f} s. Leave it alone meanwhile.",
        err=True,
    )
    with progress_bar() as report:
        measured = measure_tour(
            output, plan, tolerance=Tolerance.anything() if accept_all else None, progress=report
        )
    with fit_progress("learning") as report:
        found = learn_tour(output, plan, measured, progress=report, clock=time.perf_counter)
    if json_:
        print_json(
            {
                "schema": "tour/v1",
                "dataset": str(output / "dataset"),
                "model": str(output / "model"),
                "seed": seed,
                "metrics": found.metrics,
            }
        )
        return
    _print(found, plan, output)


def _print(found: Tour, plan: TourPlan, output: Path) -> None:
    m, measured = found.metrics, found.measured
    shared = found.model.said["runs"].get("prior", 0)
    typer.echo(
        f"Measured {measured.ok} windows in {measured.elapsed_seconds:.0f} s "
        f"({measured.contaminated} more were disturbed and measured again"
        f"{f', {measured.given_up} in vain' if measured.given_up else ''}), "
        f"learned from {found.model.said['runs']['fitted']} runs"
        f"{f', {shared} of them the sample that comes with Jostle,' if shared else ''} in "
        f"{found.seconds_to_fit:.0f} s."
    )
    level = f"{100 * plan.confidence:g}%"
    typer.echo(f"\nOf {m['held_out_runs']:.0f} runs in co-locations it never saw, {SHOWN}:\n")
    _print_examples(found, level)
    typer.echo(
        f"\nMean error {percent(m['mape_corun_ratio'])}; guessing the solo time "
        f"{percent(m['mape_naive_solo_ratio'])}, the solo time times the number of workloads "
        f"{percent(m['mape_naive_share_ratio'])}."
    )
    bounded, held, under = (int(m[f"{k}_runs"]) for k in ("bounded", "held_out", "under_bound"))
    if bounded:
        rest = f"; {held - bounded} have none, too few runs for one" if bounded < held else ""
        typer.echo(
            f"{under} of all {bounded} held-out runs with a {level} bound ({percent(under / bounded)}) "
            f"lie under it{rest}."
        )
    else:
        typer.echo(f"No run has a {level} bound yet: too few undisturbed runs were measured.")
    if measured.contaminated > measured.ok:
        typer.echo(
            "note: other programs disturbed most windows. Quieten the machine and run the tour again, "
            "or take what comes with --accept-all.",
            err=True,
        )
    _print_answer(found, plan, output)


def _print_examples(found: Tour, level: str) -> None:
    from jostle.tour import pick_examples

    asked = found.held.colocations
    rows = []
    for i in pick_examples(found, SHOWN):
        workload, platform, beside = asked.row(i)
        actual, bound = float(found.held.runtime_seconds[i]), float(found.bound[i])
        inside = "yes" if actual <= bound else "no"
        rows.append(
            [
                workload,
                platform.split(":")[0],
                " + ".join(beside),
                duration(float(found.solo[i])),
                duration(float(found.predicted[i])),
                duration(bound),
                duration(actual),
                inside if bound != float("inf") else "–",
            ]
        )
    print_table(
        [
            "workload",
            "engine",
            "beside",
            "alone",
            "predicted",
            f"bound {level}",
            "measured",
            "inside",
        ],
        rows,
        right=(3, 4, 5, 6),
    )


def _print_answer(found: Tour, plan: TourPlan, output: Path) -> None:
    """One question that nobody measured, answered in a sentence; and what to type next."""
    from jostle.runs import Colocations

    platform = found.held.colocations.row(0)[1]
    target, *others = (*plan.workloads[5:7], plan.workloads[0])[:3]
    others = others[:2]
    asked = Colocations.from_columns(workload=[target], platform=[platform], corunners=[others])
    try:
        seconds = float(found.model.predict(asked)[0])
    except Exception:
        return
    bound = float(found.model.bound(asked, plan.confidence).seconds[0])
    sure = f", and with {100 * plan.confidence:g}% confidence at most {duration(bound)}"
    typer.echo(
        f"\nHow long does {target} take beside {' and '.join(others)} here? About "
        f"{duration(seconds)}{sure if bound != float('inf') else ''}."
    )
    model, jostle = output / "model", _command()
    ask = f"{jostle} predict {model} -w {target} -p '{platform}'"
    ask += "".join(f" -b {name}" for name in others) + f" -c {plan.confidence:g}"
    typer.echo(
        f"\nNext:\n  {ask}\n  {jostle} runs {output / 'dataset'}\n"
        f"  {jostle} tour    (goes on measuring: more runs, smaller errors)"
    )


def _command() -> str:
    """How to call this program: by its name where the shell finds it, else by its path from here."""
    import os
    import shutil
    import sys

    return "jostle" if shutil.which("jostle") else os.path.relpath(sys.argv[0])
