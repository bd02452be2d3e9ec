"""`jostle evaluate accelerator`: the simulator against measurements, each with its baselines."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jostle.accelerator import Accelerator, Application, Device, Tenant, simulate
from jostle.errors import BadData, UnreadableFile
from jostle.evaluate._gpu_resources import WITHIN, Row, evaluate_v100
from jostle.evaluate._mixes import scale_out
from jostle.evaluate._processes import Pairs, baselines, fit_processes, simulate_delays
from jostle.traces import gpu_named, read_profile

CAMPAIGNS = ("magus13_r1", "magus13_iter100")
# Names in the table of pairs and of the files differ for two.
_FILES = {"binopt": "binomialOptions", "convfft2d": "convolutionFFT2D"}
LEAST_DEGRADATION = 0.1  # below it Eq. 10 of the paper divides by next to nothing


@dataclass(frozen=True, eq=False)
class AcceleratorEvaluation:
    """metrics: names with units. rows, columns: a table for people."""

    metrics: dict[str, float]
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def _errors(said: np.ndarray, measured: np.ndarray, prefix: str = "") -> dict[str, float]:
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
        **_errors(np.array([predicted(row) for row in tested]), measured),
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


def read_magus(folder: Path) -> tuple[dict[str, Pairs], list[Application], np.ndarray]:
    """({campaign: its pairs, repeats averaged}, applications in the order of the pairs' names, (n,) seconds
    at which each first uses the device). Raises UnreadableFile."""
    path = folder / "pairs.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not table or {"target", "corunner", "solo", "corun"} - set(table[0]):
        raise UnreadableFile("not the table of magus13 pairs", where=str(path))
    names = tuple(sorted({row["target"] for row in table}))
    place = {name: number for number, name in enumerate(names)}
    campaigns = {}
    for campaign in CAMPAIGNS:
        found: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for row in table:
            if row["dataset"] == campaign:
                key = place[row["target"]], place[row["corunner"]]
                times = float(row["solo"]) * 1e-3, float(row["corun"]) * 1e-3
                found.setdefault(key, []).append(times)
        keys = sorted(found)
        means = np.array([np.mean(found[key], axis=0) for key in keys])
        ends = np.array(keys)
        campaigns[campaign] = Pairs(names, ends[:, 0], ends[:, 1], means[:, 0], means[:, 1])
    profiles = [
        read_profile(folder / "traces" / f"{_FILES.get(name, name)}_trace.csv", workload=name)
        for name in names
    ]
    first = np.array([profile.column("start_seconds")[0] for profile in profiles])
    return campaigns, [Application.from_profile(profile) for profile in profiles], first


def evaluate_accelerator_magus(folder: Path) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from the other pairs (both sides of a pair are left out together)."""
    campaigns, applications, first = read_magus(folder)
    device = Device.of(gpu_named("GTX 1080 Ti"), bus="shared")
    delays = simulate_delays(applications, first, device, "time-sliced")
    ends = simulate_delays(applications, first, device, "sequential")
    one, other = (campaigns[name] for name in CAMPAIGNS)
    said: dict[str, np.ndarray] = {}
    for pair in np.unique(one.pair):
        test = one.pair == pair
        train, asked = one.take(~test), one.take(test)
        answers = {
            "": fit_processes(train, delays).predict(asked),
            "residual": fit_processes(train, delays, residual=True).predict(asked),
            "sequential": fit_processes(train, ends).predict(asked),
            **baselines(train, asked),
        }
        for name, seconds in answers.items():
            said.setdefault(name, np.zeros(len(one.corun)))[test] = seconds
    unseen_said, unseen_measured = [], []
    for process in range(len(one.names)):
        test = (one.target == process) | (one.other == process)
        model = fit_processes(one.take(~test), delays)
        unseen_said.append(model.predict(one.take(test)))
        unseen_measured.append(one.corun[test])
    unseen = _errors(np.concatenate(unseen_said), np.concatenate(unseen_measured))
    across = [
        _errors(fit_processes(a, delays, residual=r).predict(b), b.corun)["error_mean_ratio"]
        for r in (False, True)
        for a, b in ((one, other), (other, one))
    ]
    metrics = {
        **_errors(said[""], one.corun),
        **_errors(said["residual"], one.corun, "residual_"),
        **{
            f"{name}_error_mean_ratio": _errors(said[name], one.corun)["error_mean_ratio"]
            for name in ("sequential", "solo", "constant", "additive")
        },
        "unseen_application_error_mean_ratio": unseen["error_mean_ratio"],
        "other_campaign_error_mean_ratio": float(np.mean(across[:2])),
        "residual_other_campaign_error_mean_ratio": float(np.mean(across[2:])),
        "campaigns_differ_mean_ratio": float(np.mean(np.abs(one.corun / other.corun - 1))),
        "targets": float(len(one.corun)),
    }
    labels = {
        "": "simulator and context creation",
        "residual": "the same with a ridge on what is left",
        "sequential": "the same with the sequential kernel model",
        "additive": "additive in target and partner",
        "constant": "solo time and a constant",
        "solo": "solo time",
    }
    rows = []
    for name, label in labels.items():
        e = _errors(said[name], one.corun)
        rows.append((label, *(f"{100 * value:.2f}%" for value in e.values())))
    rows.append(("an application never seen", *(f"{100 * v:.2f}%" for v in unseen.values())))
    rows.append(
        (
            "learned on one campaign, tested on the other",
            f"{100 * np.mean(across[:2]):.2f}%",
            "",
            "",
        )
    )
    return AcceleratorEvaluation(metrics, ("leaving out one pair", "mean", "p95", "max"), rows)


def evaluate_accelerator_pairs(
    folder: Path, kernels: str = "concurrent", gpu: str | None = None
) -> AcceleratorEvaluation:
    """Measured co-runs in a dataset folder that also has solo profiles of their workloads: the simulator
    without any learning, against solo time scaled alike, and the sequential model.

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
    asked = runs.colocations.take(np.array([bool(b) and (w, p) in alone for w, p, b, _ in rows]))
    said = {}
    for name in (kernels, "sequential"):
        method = Accelerator(str(folder), gpu=gpu, kernels=name)
        predictor = method.fit(runs.take(np.zeros(0, np.int64)), None)
        free = np.array([predictor.applications[w].solo_seconds for w, *_ in picked])
        said[name] = solo * predictor.simulated(asked) / free
    constant = float(np.average(measured - solo, weights=1 / measured**2))
    metrics = {
        **_errors(said[kernels], measured),
        "sequential_error_mean_ratio": _errors(said["sequential"], measured)["error_mean_ratio"],
        "constant_error_mean_ratio": _errors(solo + constant, measured)["error_mean_ratio"],
        "solo_error_mean_ratio": _errors(solo, measured)["error_mean_ratio"],
        "targets": float(len(picked)),
        **_degradation(said[kernels], measured, solo),
    }
    table = [
        (name, *(f"{100 * v:.2f}%" for v in _errors(seconds, measured).values()))
        for name, seconds in (*said.items(), ("solo and a constant", solo + constant))
    ]
    return AcceleratorEvaluation(metrics, ("model", "mean", "p95", "max"), table)


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
    outcomes, spent = scale_out(seed)
    ours = [o for o in outcomes if o.scheduler == "simulator"]
    last = ours[-1]
    metrics: dict[str, float] = {
        "utilisation_ratio": last.utilisation_ratio,
        "violations_ratio": last.violations_ratio,
        "worst_violation_ratio": last.worst_ratio,
        **{name: float(value) for name, value in spent.items()},
        "tasks_per_second": tasks_per_second(),
    }
    for outcome in outcomes:
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
        for o in outcomes
    ]
    heads = ("policy", "scheduler", "utilisation", "violations", "worst by")
    return AcceleratorEvaluation(metrics, heads, rows)


def tasks_per_second(tenants: int = 2) -> float:
    """Tasks that the simulator does in a second of CPU time, exactly, for so many made-up applications."""
    import time

    from jostle.evaluate._mixes import k40, made_up

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
