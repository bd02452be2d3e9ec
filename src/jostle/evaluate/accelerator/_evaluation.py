"""`jostle evaluate accelerator`: the simulator against measurements, each with its baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jostle.accelerator import Accelerator, Tenant, simulate
from jostle.errors import BadData
from jostle.evaluate.accelerator._bubble import fit_bubble
from jostle.evaluate.accelerator._gpu_resources import WITHIN, Row, evaluate_v100
from jostle.evaluate.accelerator._mixes import MOST, scale_out
from jostle.methods import Data, learn

_MOST_FITS = 100  # of the bubble model; with more sets than that, several are left out at a time
LEAST_DEGRADATION = 0.1  # below it Eq. 10 of the paper divides by next to nothing


@dataclass(frozen=True, eq=False)
class AcceleratorEvaluation:
    """metrics: names with units. rows, columns: a table for people. drawn: what pictures are made of."""

    metrics: dict[str, float]
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    drawn: Any = None


def errors_of(said: np.ndarray, measured: np.ndarray, prefix: str = "") -> dict[str, float]:
    """Mean, 95th percentile and largest of |said - measured| / measured."""
    off = np.abs(said - measured) / measured
    return {
        f"{prefix}error_mean_ratio": float(off.mean()),
        f"{prefix}error_p95_ratio": float(np.percentile(off, 95)),
        f"{prefix}error_max_ratio": float(off.max()),
    }


def evaluate_accelerator_v100(folder: Path) -> AcceleratorEvaluation:
    """Kernels of known launch shape, two at a time, on a V100."""
    rows = evaluate_v100(folder)
    said = [row for row in rows if row.flag is None]
    tested = [row for row in said if not row.fitted]
    measured = np.array([row.measured_seconds for row in tested])

    def within(chosen: list[Row], seconds: Callable[[Row], float]) -> int:
        return sum(row.error(seconds(row)) <= WITHIN for row in chosen)

    def predicted(row: Row) -> float:
        assert row.predicted_seconds is not None
        return row.predicted_seconds

    metrics = {
        **errors_of(np.array([predicted(row) for row in tested]), measured),
        "sequential_error_mean_ratio": float(
            np.mean([row.error(row.sequential_seconds) for row in tested])
        ),
        "constant_error_mean_ratio": float(
            np.mean([row.error(row.alone_seconds) for row in tested])
        ),
        "rows": float(len(rows)),
        "flagged_rows": float(len(rows) - len(said)),
        "fitted_rows": float(len(said) - len(tested)),
        "within_5_percent_rows": float(within(said, predicted)),
        "within_5_percent_tested_rows": float(within(tested, predicted)),
        "three_resources_within_5_percent_rows": float(
            within(rows, lambda row: row.with_three_seconds)
        ),
    }
    table = [
        (
            f"{row.experiment}: {row.condition}"[:84],
            f"{row.measured_seconds * 1e3:.1f}",
            "–" if row.predicted_seconds is None else f"{row.predicted_seconds * 1e3:.1f}",
            "–" if row.predicted_seconds is None else f"{100 * row.error():.1f}%",
            row.flag or ("a capacity is read from it" if row.fitted else ""),
        )
        for row in rows
    ]
    return AcceleratorEvaluation(
        metrics, ("co-run", "measured ms", "predicted ms", "error", ""), table
    )


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

    runs = read_runs(folder).ok()
    columns = runs.colocations.to_columns()
    alone: dict[tuple[str, str], list[float]] = {}
    rows = list(
        zip(
            columns["workload"],
            columns["platform"],
            columns["corunners"],
            runs.runtime_seconds.tolist(),
            strict=True,
        )
    )
    for workload, platform, beside, seconds in rows:
        if not beside:
            alone.setdefault((workload, platform), []).append(seconds)
    picked = [row for row in rows if row[2] and (row[0], row[1]) in alone]
    if not picked:
        raise BadData("no co-run whose workload was also measured alone", where=str(folder))
    solo = np.array([np.median(alone[w, p]) for w, p, _, _ in picked])
    measured = np.array([seconds for *_, seconds in picked])
    taken = np.array([bool(b) and (w, p) in alone for w, p, b, _ in rows])
    asked = runs.colocations.take(taken)
    data = Data(runs.take([]), path=folder)  # profiles alone
    said = {}
    for name in (sharing, "sequential"):
        predictor = learn(Accelerator(gpu=gpu, sharing=name), data)
        free = np.array([predictor.applications[w].solo_seconds for w, *_ in picked])
        said[name] = solo * predictor.simulated(asked) / free
    constant = float(np.average(measured - solo, weights=1 / measured**2))
    said["bubble"] = solo * _bubble_left_out(picked, measured / solo, runs.units("together")[taken])
    metrics = {
        **errors_of(said[sharing], measured),
        "bubble_error_mean_ratio": errors_of(said["bubble"], measured)["error_mean_ratio"],
        "sequential_error_mean_ratio": errors_of(said["sequential"], measured)["error_mean_ratio"],
        "constant_error_mean_ratio": errors_of(solo + constant, measured)["error_mean_ratio"],
        "solo_error_mean_ratio": errors_of(solo, measured)["error_mean_ratio"],
        "targets": float(len(picked)),
        **_degradation(said[sharing], measured, solo),
    }
    table = [
        (name, *(f"{100 * v:.2f}%" for v in errors_of(seconds, measured).values()))
        for name, seconds in (*said.items(), ("solo and a constant", solo + constant))
    ]
    return AcceleratorEvaluation(metrics, ("model", "mean", "p95", "max"), table)


def _bubble_left_out(picked: list, slowdown: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(m,) slowdowns by the bubble model, each set of workloads from the others; NaN with but one set."""
    names = sorted({name for w, _, beside, _ in picked for name in (w, *beside)})
    place = {name: number for number, name in enumerate(names)}
    target = np.array([place[w] for w, *_ in picked])
    beside = np.zeros((len(picked), len(names)))
    for row, (_, _, others, _) in enumerate(picked):
        for name in others:
            beside[row, place[name]] += 1
    found = np.full(len(picked), np.nan)
    units = np.unique(unit)
    for part in np.array_split(units, min(len(units), _MOST_FITS)) if len(units) > 1 else []:
        test = np.isin(unit, part)
        model = fit_bubble(target[~test], beside[~test], slowdown[~test])
        found[test] = model.slowdown(target[test], beside[test])
    return found


def _degradation(said: np.ndarray, measured: np.ndarray, solo: np.ndarray) -> dict[str, float]:
    """Eq. 10 of Prophet where the measured degradation is at least LEAST_DEGRADATION; signed mean beside."""
    real, ours = measured / solo - 1, said / solo - 1
    large = np.abs(real) >= LEAST_DEGRADATION
    off = (ours[large] - real[large]) / np.abs(real[large])
    return {
        "degradation_targets": float(large.sum()),
        "degradation_error_mean_ratio": float(np.abs(off).mean()) if large.any() else float("nan"),
        "degradation_signed_error_mean_ratio": float(off.mean()) if large.any() else float("nan"),
    }


def evaluate_accelerator_scale_out(seed: int = 0) -> AcceleratorEvaluation:
    """700 GPUs, 7 services, 11 000 batch instances of 11 kinds; made-up applications."""
    found = scale_out(seed)
    ours = [o for o in found.outcomes if o.scheduler == "simulator"]
    last, study = ours[-1], found.study
    metrics: dict[str, float] = {
        "utilisation_ratio": last.utilisation_ratio,
        "violations_ratio": last.violations_ratio,
        "worst_violation_ratio": last.worst_ratio,
        "pairs_utilisation_ratio": float(study.fits.mean() / MOST),
        "pairs_oracle_utilisation_ratio": float(study.oracle.mean() / MOST),
        "pairs_violations_ratio": float((study.reached > 1 + 1e-9).mean()),
        "pairs_worst_violation_ratio": float(max(0.0, study.reached.max() - 1)),
        **{name: float(value) for name, value in found.spent.items()},
        "tasks_per_second": tasks_per_second(),
    }
    for outcome in found.outcomes:
        name = outcome.scheduler.replace(" ", "_").replace("%", "_percent")
        at = f"{name}_at_{100 * outcome.policy:.0f}"
        metrics[f"utilisation_{at}_ratio"] = outcome.utilisation_ratio
        metrics[f"violations_{at}_ratio"] = outcome.violations_ratio
    rows = [
        (
            f"{100 * o.policy:.0f}%",
            o.scheduler,
            f"{100 * o.utilisation_ratio:.1f}%",
            f"{100 * o.violations_ratio:.1f}%",
            f"{100 * o.worst_ratio:.1f}%",
        )
        for o in found.outcomes
    ]
    heads = ("policy", "scheduler", "utilisation", "violations", "worst by")
    return AcceleratorEvaluation(metrics, heads, rows, found)


def tasks_per_second(tenants: int = 2) -> float:
    """Tasks that the simulator does in a second of CPU time, exactly, for so many made-up applications."""
    import time

    from jostle.evaluate.accelerator._mixes import k40, made_up

    apps = [made_up(name) for name in ("asr", "bp", "imc", "hs")][:tenants]
    asked = [Tenant(app, 400 if n == 0 else None) for n, app in enumerate(apps)]
    simulate([replace(asked[0], runs=1), *asked[1:]], k40())
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        done = simulate(asked, k40()).tasks
        best = max(best, done / (time.process_time() - began))
    return best


EVALUATIONS: Mapping[str, str] = {
    "v100": "v100_interference",
    "magus13": "magus13",
    "pairs": "",
    "scale-out": "",
}


def outcomes_of(evaluation: AcceleratorEvaluation) -> dict[str, float]:
    """The metrics as plain numbers."""
    return {name: float(value) for name, value in evaluation.metrics.items()}
