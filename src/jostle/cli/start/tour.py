"""`jostle tour`: the first answer, on the user's own machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._options import Short
from jostle._report import Report, Table, duration, percent
from jostle.cli.console import fit_progress, note, progress_bar
from jostle.errors import NotEnoughRuns
from jostle.tour import TourPlan

if TYPE_CHECKING:
    from jostle.tour import Tour

SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class TourCommand:
    """Where to, and what is accepted."""

    output: Annotated[Path, "Folder for the dataset and the model.", Short("-o")] = Path(
        "jostle-tour"
    )
    accept_all: Annotated[bool, "Keep windows that others disturbed."] = False


def tour(command: TourCommand, plan: TourPlan) -> Report:
    """Measure this machine, learn from it, and check the answers against what was held out.

    Takes about three minutes. A second tour of the same folder goes on from the first.
    """
    from jostle.measure import Tolerance
    from jostle.tour import check_tour, learn_tour, measure_tour

    check_tour()
    output, tolerance = command.output, Tolerance.anything() if command.accept_all else None
    note(
        f"Measuring {len(plan.workloads)} workloads alone and side by side on this machine, for "
        f"about {plan.time_budget_seconds:.0f} s. Leave it alone meanwhile."
    )
    with progress_bar() as progress:
        measured = measure_tour(output, plan, tolerance=tolerance, progress=progress)
    try:
        with fit_progress("learning") as progress:
            result = learn_tour(output, plan, measured, progress=progress, clock=time.perf_counter)
    except NotEnoughRuns as error:
        if measured.contaminated <= measured.ok:
            raise
        windows = measured.contaminated + measured.ok
        disturbed = f"; {measured.contaminated} of {windows} windows were disturbed"
        fix = "Quieten the machine and run the tour again, or take what comes with --accept-all."
        raise NotEnoughRuns(error.what + disturbed, where=error.where, fix=fix) from None
    document = {
        "schema": "tour/v1",
        "dataset": str(output / "dataset"),
        "model": str(output / "model"),
        "seed": plan.seed,
        "metrics": result.metrics,
    }
    notes = []
    if measured.contaminated > measured.ok:
        notes.append(
            "note: other programs disturbed most windows. Quieten the machine and run the tour again, "
            "or take what comes with --accept-all."
        )
    parts = [*_quality(result, plan), *_answer(result, plan), _next(result, plan, output)]
    return Report(document, parts, notes=notes)


def _quality(result: Tour, plan: TourPlan) -> list[Table | str]:
    """What was measured, examples, errors and bounds."""
    m, measured, counts = result.metrics, result.measured, result.model.metadata["runs"]
    shared, level = counts.get("prior", 0), f"{100 * plan.confidence:g}%"
    bounded, held, under = (int(m[f"{k}_runs"]) for k in ("bounded", "held_out", "under_bound"))
    bounds = f"No run has a {level} bound yet: too few undisturbed runs were measured."
    if bounded:
        rest = f"; {held - bounded} have none, too few runs for one" if bounded < held else ""
        bounds = (
            f"{under} of all {bounded} held-out runs with a {level} bound ({percent(under / bounded)}) "
            f"lie under it{rest}."
        )
    return [
        f"Measured {measured.ok} windows in {measured.elapsed_seconds:.0f} s "
        f"({measured.contaminated} more were disturbed and measured again"
        f"{f', {measured.given_up} given up' if measured.given_up else ''}), "
        f"learned from {counts['fitted']} runs"
        f"{f', {shared} of them the sample that comes with Jostle,' if shared else ''} in "
        f"{result.seconds_to_fit:.0f} s.",
        f"\nOf {m['held_out_runs']:.0f} runs in co-locations it never saw, {SHOWN}:\n",
        _examples(result, level),
        f"\nMean error {percent(m['mape_corun_ratio'])}; guessing the solo time "
        f"{percent(m['mape_naive_solo_ratio'])}, the solo time times the number of workloads "
        f"{percent(m['mape_naive_share_ratio'])}.",
        bounds,
    ]


def _examples(result: Tour, level: str) -> Table:
    rows = []
    for i in result.examples(SHOWN):
        workload, platform, beside = result.held.colocations.row(i)
        actual, bound = float(result.held.runtime_seconds[i]), float(result.bound[i])
        inside = "yes" if actual <= bound else "no"
        times = (float(result.solo[i]), float(result.predicted[i]), bound, actual)
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
    return Table([*columns, "inside"], rows, right=(3, 4, 5, 6))


def _question(result: Tour, plan: TourPlan) -> tuple[str, str, list[str]]:
    """(workload, platform, co-runners) that nobody measured."""
    workload, *others = (*plan.workloads[5:7], plan.workloads[0])[:3]
    return workload, result.held.colocations.row(0)[1], others


def _answer(result: Tour, plan: TourPlan) -> list[str]:
    """The question answered in a sentence; nothing where it has no answer."""
    from jostle.errors import JostleError
    from jostle.runs import Colocations

    workload, platform, others = _question(result, plan)
    query = Colocations.from_columns(workload=[workload], platform=[platform], corunners=[others])
    try:
        seconds = float(result.model.predict(query)[0])
    except JostleError:
        return []
    bound = float(result.model.bound(query, plan.confidence).seconds[0])
    sure = f", and with {100 * plan.confidence:g}% confidence at most {duration(bound)}"
    return [
        f"\nHow long does {workload} take beside {' and '.join(others)} here? About "
        f"{duration(seconds)}{sure if bound != float('inf') else ''}."
    ]


def _next(result: Tour, plan: TourPlan, output: Path) -> str:
    """What to type next."""
    workload, platform, others = _question(result, plan)
    model, jostle = output / "model", _command()
    predict = f"{jostle} predict {model} -w {workload} -p '{platform}'"
    predict += "".join(f" -b {name}" for name in others) + f" -c {plan.confidence:g}"
    return (
        f"\nNext:\n  {predict}\n  {jostle} runs {output / 'dataset'}\n"
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
