"""`jostle tour`: the first answer, on the user's own machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle._options import Short
from jostle.cli.console import (
    command_of,
    duration,
    fit_progress,
    note,
    percent,
    print_json,
    print_table,
    progress_bar,
    say,
)
from jostle.cli.console._fields import Json
from jostle.errors import NotEnoughRuns
from jostle.tour import TourPlan

if TYPE_CHECKING:
    from jostle.tour import Tour

SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class TourCommand:
    """Measure this machine, learn from it, and check the answers against what was held out.

    Takes about three minutes. A second tour of the same folder goes on from the first.
    """

    output: Annotated[Path, "Folder for the dataset and the model.", Short("-o")] = Path(
        "jostle-tour"
    )
    accept_all: Annotated[bool, "Keep windows that others disturbed."] = False
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("tour")(command_of((TourCommand, TourPlan), tour))


def tour(asked: TourCommand, plan: TourPlan) -> None:
    """Measure, learn, check, and print what was found."""
    from jostle.measure import Tolerance
    from jostle.tour import check_tour, learn_tour, measure_tour

    check_tour()
    output, tolerance = asked.output, Tolerance.anything() if asked.accept_all else None
    note(
        f"Measuring {len(plan.workloads)} workloads alone and side by side on this machine, for "
        f"about {plan.time_budget_seconds:.0f} s. Leave it alone meanwhile."
    )
    with progress_bar() as report:
        measured = measure_tour(output, plan, tolerance=tolerance, progress=report)
    try:
        with fit_progress("learning") as report:
            found = learn_tour(output, plan, measured, progress=report, clock=time.perf_counter)
    except NotEnoughRuns as error:
        if measured.contaminated <= measured.ok:
            raise
        windows = measured.contaminated + measured.ok
        disturbed = f"; {measured.contaminated} of {windows} windows were disturbed"
        fix = "Quieten the machine and run the tour again, or take what comes with --accept-all."
        raise NotEnoughRuns(error.what + disturbed, where=error.where, fix=fix) from None
    if not asked.json_:
        _print(found, plan, output)
        return
    print_json(
        {
            "schema": "tour/v1",
            "dataset": str(output / "dataset"),
            "model": str(output / "model"),
            "seed": plan.seed,
            "metrics": found.metrics,
        }
    )


def _print(found: Tour, plan: TourPlan, output: Path) -> None:
    m, measured = found.metrics, found.measured
    shared = found.model.metadata["runs"].get("prior", 0)
    say(
        f"Measured {measured.ok} windows in {measured.elapsed_seconds:.0f} s "
        f"({measured.contaminated} more were disturbed and measured again"
        f"{f', {measured.given_up} given up' if measured.given_up else ''}), "
        f"learned from {found.model.metadata['runs']['fitted']} runs"
        f"{f', {shared} of them the sample that comes with Jostle,' if shared else ''} in "
        f"{found.seconds_to_fit:.0f} s."
    )
    level = f"{100 * plan.confidence:g}%"
    say(f"\nOf {m['held_out_runs']:.0f} runs in co-locations it never saw, {SHOWN}:\n")
    _print_examples(found, level)
    say(
        f"\nMean error {percent(m['mape_corun_ratio'])}; guessing the solo time "
        f"{percent(m['mape_naive_solo_ratio'])}, the solo time times the number of workloads "
        f"{percent(m['mape_naive_share_ratio'])}."
    )
    bounded, held, under = (int(m[f"{k}_runs"]) for k in ("bounded", "held_out", "under_bound"))
    if bounded:
        rest = f"; {held - bounded} have none, too few runs for one" if bounded < held else ""
        say(
            f"{under} of all {bounded} held-out runs with a {level} bound ({percent(under / bounded)}) "
            f"lie under it{rest}."
        )
    else:
        say(f"No run has a {level} bound yet: too few undisturbed runs were measured.")
    if measured.contaminated > measured.ok:
        note(
            "note: other programs disturbed most windows. Quieten the machine and run the tour again, "
            "or take what comes with --accept-all."
        )
    _print_answer(found, plan, output)


def _print_examples(found: Tour, level: str) -> None:
    asked = found.held.colocations
    rows = []
    for i in found.examples(SHOWN):
        workload, platform, beside = asked.row(i)
        actual, bound = float(found.held.runtime_seconds[i]), float(found.bound[i])
        inside = "yes" if actual <= bound else "no"
        times = (float(found.solo[i]), float(found.predicted[i]), bound, actual)
        rows.append(
            [
                workload,
                platform.split(":")[0],
                " + ".join(beside),
                *map(duration, times),
                inside if bound != float("inf") else "–",
            ]
        )
    columns = ["workload", "engine", "beside", "alone", "predicted", f"bound {level}", "measured"]
    print_table([*columns, "inside"], rows, right=(3, 4, 5, 6))


def _print_answer(found: Tour, plan: TourPlan, output: Path) -> None:
    """One question that nobody measured, answered in a sentence; and what to type next."""
    from jostle.runs import Colocations

    platform = found.held.colocations.row(0)[1]
    workload, *others = (*plan.workloads[5:7], plan.workloads[0])[:3]
    asked = Colocations.from_columns(workload=[workload], platform=[platform], corunners=[others])
    try:
        seconds = float(found.model.predict(asked)[0])
    except Exception:
        return
    bound = float(found.model.bound(asked, plan.confidence).seconds[0])
    sure = f", and with {100 * plan.confidence:g}% confidence at most {duration(bound)}"
    say(
        f"\nHow long does {workload} take beside {' and '.join(others)} here? About "
        f"{duration(seconds)}{sure if bound != float('inf') else ''}."
    )
    model, jostle = output / "model", _command()
    ask = f"{jostle} predict {model} -w {workload} -p '{platform}'"
    ask += "".join(f" -b {name}" for name in others) + f" -c {plan.confidence:g}"
    say(
        f"\nNext:\n  {ask}\n  {jostle} runs {output / 'dataset'}\n"
        f"  {jostle} tour    (goes on measuring: more runs, smaller errors)\n"
        f"  {jostle} measure -o mine -w 'fft-*' -c ./mine --probes --sets 0\n"
        f"  {jostle} fit probes mine -o probes\n"
        f"      (programs that nobody has run together: four short runs each beside stressors, no pairs)"
    )


def _command() -> str:
    """How to call this program: by its name where the shell finds it, else by its path from here."""
    import os
    import shutil
    import sys

    return "jostle" if shutil.which("jostle") else os.path.relpath(sys.argv[0])
