"""What a tour says."""

from __future__ import annotations

from pathlib import Path

from jostle._base.report import Report, Table, duration, percent
from jostle.data import Colocations
from jostle.errors import JostleError
from jostle.operations.tour._tour_plan import TourPlan
from jostle.operations.tour._tour_steps import Tour

SHOWN = 12


def tour_report(result: Tour, plan: TourPlan, output: Path, program: str) -> Report:
    """Report errors, examples, an answer, and what to type next. output: the tour's folder. program: how this
    one is called in a shell."""
    document = {
        "schema": "tour/v1",
        "dataset": str(output / "dataset"),
        "model": str(output / "model"),
        "seed": plan.seed,
        "metrics": result.metrics,
    }
    notes, measured = [], result.measured
    if measured.disturbance:
        notes.append(f"note: {measured.disturbance}. Times are those of an undisturbed machine.")
    parts = [*_quality(result, plan), *_answer(result, plan), _next(result, plan, output, program)]
    return Report(document, parts, notes=notes)


def _quality(result: Tour, plan: TourPlan) -> list[Table | str]:
    """List what was measured, examples, errors and bounds."""
    m, measured, counts = result.metrics, result.measured, result.model.metadata["runs"]
    level = f"{100 * plan.confidence:g}%"
    bounded, held, under = (int(m[f"{k}_runs"]) for k in ("bounded", "held_out", "under_bound"))
    bounds = f"No run has a {level} bound yet: too few runs were measured."
    if bounded:
        rest = f"; {held - bounded} have none, too few runs for one" if bounded < held else ""
        bounds = (
            f"{under} of all {bounded} held-out runs with a {level} bound ({percent(under / bounded)}) "
            f"lie under it{rest}."
        )
    return [
        f"Measured {measured.ok} windows in {measured.elapsed_seconds:.0f} s "
        f"({measured.contaminated} more were too short and measured again"
        f"{f', {measured.given_up} given up' if measured.given_up else ''}), "
        f"learned from {counts['fitted']} runs in {result.seconds_to_fit:.0f} s.",
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
    return Table([*columns, "inside"], rows)


def _question(result: Tour, plan: TourPlan) -> tuple[str, str, list[str]]:
    """Choose (workload, platform, co-runners) that nobody measured."""
    workload, *others = (*plan.workloads[5:7], plan.workloads[0])[:3]
    return workload, result.held.colocations.row(0)[1], others


def _answer(result: Tour, plan: TourPlan) -> list[str]:
    """Answer the question in a sentence; no line if it has no answer."""
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


def _next(result: Tour, plan: TourPlan, output: Path, program: str) -> str:
    """Write what to type next."""
    workload, platform, others = _question(result, plan)
    model, jostle = output / "model", program
    predict = f"{jostle} predict {model} -w {workload} -p '{platform}'"
    predict += "".join(f" -b {name}" for name in others) + f" -c {plan.confidence:g}"
    return (
        f"\nNext:\n  {predict}\n  {jostle} runs {output / 'dataset'}\n"
        f"  {jostle} tour    (goes on measuring: more runs, smaller errors)\n"
        f"  {jostle} measure -o mine -w 'fft-*' -c ./mine --probes --sets 0\n"
        f"  {jostle} fit probes mine -o probes\n"
        f"      (programs that nobody has run together: four short runs each beside stressors, no pairs)"
    )
