"""`python -m studies accelerator --on pairs`: measured co-runs of any dataset, without any learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jostle.accelerator import applications_of, simulated_seconds
from jostle.errors import BadData
from studies.accelerator.rules import fit_bubble
from studies.accelerator.tables import AcceleratorEvaluation, error_table, errors_of

_MOST_FITS = 100  # of the bubble model; with more sets than that, several are left out at a time
LEAST_DEGRADATION = 0.1  # below it Eq. 10 of the paper divides by next to nothing


def evaluate_accelerator_pairs(
    folder: Path, sharing: str = "concurrent", gpu: str | None = None
) -> AcceleratorEvaluation:
    """Measured co-runs in a dataset folder that also has solo profiles of their workloads: the simulator
    without any learning, against solo time scaled alike, the sequential model, and the bubble model learned
    from the other sets of workloads.

    The time of a co-run is solo time * simulated slowdown, solo times being medians of the runs alone.
    Raises BadData where there is no co-run with measured solo time.
    """
    from jostle.runs import read_runs
    from jostle.traces import read_profiles

    runs = read_runs(folder).ok()
    columns = runs.colocations.to_columns()
    names = list(zip(columns["workload"], columns["platform"], columns["corunners"], strict=True))
    alone: dict[tuple[str, str], list[float]] = {}
    for (workload, platform, corunners), seconds in zip(
        names, runs.runtime_seconds.tolist(), strict=True
    ):
        if not corunners:
            alone.setdefault((workload, platform), []).append(seconds)
    tested = np.array([bool(corunners) and (w, p) in alone for w, p, corunners in names])
    if not tested.any():
        raise BadData("no co-run whose workload was also measured alone", where=str(folder))
    picked = [name for name, taken in zip(names, tested, strict=True) if taken]
    solo = np.array([np.median(alone[w, p]) for w, p, _ in picked])
    measured = runs.runtime_seconds[tested]
    query = runs.colocations.take(tested)
    applications, device = applications_of(read_profiles(folder), gpu)
    free = np.array([applications[w].solo_seconds for w, *_ in picked])
    predicted = {
        name: solo * simulated_seconds(applications, device, name, query) / free
        for name in (sharing, "sequential")
    }
    units = runs.units("together")[tested]
    predicted["bubble"] = solo * _bubble_left_out(picked, measured / solo, units)
    constant = float(np.average(measured - solo, weights=1 / measured**2))
    errors = {name: errors_of(seconds, measured) for name, seconds in predicted.items()}
    errors["solo and a constant"] = errors_of(solo + constant, measured)
    metrics = {
        **errors[sharing],
        "bubble_error_mean_ratio": errors["bubble"]["error_mean_ratio"],
        "sequential_error_mean_ratio": errors["sequential"]["error_mean_ratio"],
        "constant_error_mean_ratio": errors["solo and a constant"]["error_mean_ratio"],
        "solo_error_mean_ratio": errors_of(solo, measured)["error_mean_ratio"],
        "targets": float(len(picked)),
        **_degradation(predicted[sharing], measured, solo),
    }
    return AcceleratorEvaluation(metrics, error_table(errors.items(), "model"))


def _bubble_left_out(
    picked: list[tuple[str, str, list[str]]], slowdown: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """(m,) slowdowns by the bubble model, each set of workloads from the others; NaN with but one set."""
    names = sorted({name for w, _, corunners in picked for name in (w, *corunners)})
    place = {name: number for number, name in enumerate(names)}
    target = np.array([place[w] for w, *_ in picked])
    beside = np.zeros((len(picked), len(names)))
    for row, (_, _, corunners) in enumerate(picked):
        for name in corunners:
            beside[row, place[name]] += 1
    found = np.full(len(picked), np.nan)
    units = np.unique(unit)
    for part in np.array_split(units, min(len(units), _MOST_FITS)) if len(units) > 1 else []:
        test = np.isin(unit, part)
        model = fit_bubble(target[~test], beside[~test], slowdown[~test])
        found[test] = model.slowdown(target[test], beside[test])
    return found


def _degradation(predicted: np.ndarray, measured: np.ndarray, solo: np.ndarray) -> dict[str, float]:
    """Eq. 10 of Prophet where the measured degradation is at least LEAST_DEGRADATION; signed mean beside."""
    real, ours = measured / solo - 1, predicted / solo - 1
    large = np.abs(real) >= LEAST_DEGRADATION
    off = (ours[large] - real[large]) / np.abs(real[large])
    return {
        "degradation_targets": float(large.sum()),
        "degradation_error_mean_ratio": float(np.abs(off).mean()) if large.any() else float("nan"),
        "degradation_signed_error_mean_ratio": float(off.mean()) if large.any() else float("nan"),
    }
