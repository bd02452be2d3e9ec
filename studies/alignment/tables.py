"""What the alignment protocol found, as tables for people."""

from __future__ import annotations

from collections.abc import Mapping

from jostle._base.report import Table, percent
from studies.alignment.evaluation import AlignmentEvaluation

METHODS = {
    "": "alignment",
    "section_": "ridge, section",
    "continuous_": "ridge, continuous",
    "swapped_": "ridge, swapped weights",
    "printed_": "ridge, as printed",
}
RULES = (
    *("no_interference_", "mean_slowdown_", "median_slowdown_"),
    *("additive_effects_", "probes_", "factorization_"),
)


def run_times(results: AlignmentEvaluation) -> Table:
    """In the layout of Table IV: run times alone, beside another as measured, and as predicted; the first
    window of each pair of test workloads."""
    columns = ("held out", "core", "workload", "beside")
    columns += ("alone ms", "measured ms", "predicted ms", "error")
    rows, seen = [], set()
    for one in results.tested:
        key = (one.fold, *sorted((one.workload, *one.corunners)))
        if key in seen and one.window not in seen:
            continue
        seen |= {key, one.window}
        seconds = (one.solo_seconds, one.measured_seconds, one.predicted_seconds)
        row = [str(len(results.folds[one.fold])), str(one.slot), one.workload]
        row += [" + ".join(one.corunners), *(f"{1e3 * value:.1f}" for value in seconds)]
        rows.append([*row, f"{100 * one.errors['']:+.2f}%"])
    return Table(columns, rows, right=(0, 1, 4, 5, 6, 7))


def shown(results: AlignmentEvaluation) -> list[Table | str]:
    """All that is printed: run times, errors by method, how well run times are known, and Figure 2."""
    m = results.metrics
    rows = []
    for prefix, label in METHODS.items():
        if f"{prefix}run_time_error_mean_ratio" in m:
            rows.append([label, *_cells(m, f"{prefix}run_time_error", prefix)])
            rows[-1][-2] = percent(m[f"{prefix}instructions_mae_ratio"], 2)
    rows += [
        [prefix.replace("_", " ").strip(), *_cells(m, f"{prefix}error", prefix)]
        for prefix in RULES
        if f"{prefix}error_mean_ratio" in m
    ]
    columns = ["", "run time, mean", "95%", "max", "slowed by over 10%", "per sample"]
    columns.append("alignment is closer by [95%]")
    errors = Table(columns, rows, right=range(1, len(columns)))
    parts: list[Table | str] = [run_times(results), "", errors, f"\n{_against_constants(m)}"]
    if "coverage_90_ratio" in m:
        parts.append(
            f"bounds of 90% hold for {percent(m['coverage_90_ratio'], 1)} of {m['coverage_sets']:.0f} sets "
            f"(standard error {percent(m['coverage_90_standard_error_ratio'], 1)})"
        )
    if "noise_floor_mean_ratio" in m:
        parts.append(
            f"\nrun times are known to {percent(m['noise_floor_mean_ratio'], 2)} (alone "
            f"{percent(m['solo_noise_floor_mean_ratio'], 2)}); a single run is "
            f"{percent(m['single_run_difference_mean_ratio'], 1)} off; the mean slowdown is "
            f"{m['slowdown_mean_ratio']:.3f}, the largest {m['slowdown_max_ratio']:.2f}"
        )
    if "interference_spread_ratio" in m:
        spread, repeats = (percent(m[f"{of}_spread_ratio"], 1) for of in ("interference", "repeat"))
        parts.append(
            f"one target's run times differ between co-runners by {spread} (standard deviation) beyond what "
            f"repeats explain, which differ by {repeats}"
        )
    if "seed_spread_mean_ratio" in m:
        seed, other = (
            f"{percent(m[f'{of}_mean_ratio'], 2)} (at most {percent(m[f'{of}_max_ratio'], 2)})"
            for of in ("seed_spread", "names_difference")
        )
        parts.append(
            f"answers differ between seeds by {seed}, standard deviation, and under other names by {other}"
        )
    if results.unsteady:
        names = ("run_time", "no_interference", "mean_slowdown")
        steady = [percent(m[f"steady_{name}_error_mean_ratio"], 2) for name in names]
        parts.append(
            f"without {', '.join(results.unsteady)}, whose usual run alone takes over a quarter longer than "
            f"its quiet one: alignment {steady[0]}, no interference {steady[1]}, mean slowdown {steady[2]}"
        )
    if results.learners:
        slots = sorted({slot for by_slot in results.learners.values() for slot in by_slot})
        columns = ["per sample, the paper's features", *(f"core {slot}" for slot in slots)]
        rows = [
            [name, *(percent(by_slot.get(slot, float("nan")), 2) for slot in slots)]
            for name, by_slot in results.learners.items()
        ]
        parts += ["", Table(columns, rows, right=range(1, len(columns)))]
    return parts


def _cells(m: Mapping[str, float], name: str, prefix: str) -> list[str]:
    """Of one method: mean, interval, largest, of those slowed, per sample, how much closer alignment is."""
    slowed, closer = f"slowed_{name}_mean_ratio", f"closer_than_{prefix}by"
    return [
        percent(m[f"{name}_mean_ratio"], 2),
        _interval(m, f"{name}_mean"),
        percent(m[f"{name}_max_ratio"], 2),
        percent(m[slowed], 2) if slowed in m else "–",
        "–",
        f"{percent(m[f'{closer}_ratio'], 2)} {_interval(m, closer)}"
        if f"{closer}_ratio" in m
        else "–",
    ]


def _interval(m: Mapping[str, float], name: str) -> str:
    low, high = (100 * m[f"{name}_{end}_ratio"] for end in ("low", "high"))
    return f"[{low:.2f}, {high:.2f}]"


def _against_constants(m: Mapping[str, float]) -> str:
    """What is cut of the error of the best of the rules that know nothing of the workloads."""
    text = f"{m['test_runs']:.0f} run times of {m['tested_programs']:.0f} programs"
    if "cut_of_best_constant_ratio" in m:
        text += f"; the error of the best constant is cut by {percent(m['cut_of_best_constant_ratio'], 0)} "
        text += f"{_interval(m, 'cut_of_best_constant')}"
    if "one_measurement_error_mean_ratio" in m:
        text += f"; one measurement errs by {percent(m['one_measurement_error_mean_ratio'], 2)}"
    return text
