"""The metrics of the alignment protocol, by their documented names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np

from studies.alignment.answers import Tested
from studies.alignment.truth import Member

Key = TypeVar("Key")
CONSTANTS = ("no_interference_", "mean_slowdown_", "median_slowdown_")
SLOWED = 1.1
DRAWS = 2000


def means_of(each: Sequence[dict[Key, float]]) -> dict[Key, float]:
    """By key, over those that have it."""
    keys = dict.fromkeys(key for one in each for key in one)
    return {key: float(np.mean([one[key] for one in each if key in one])) for key in keys}


def error_metrics(tested: Sequence[Tested], samples: dict[str, float]) -> dict[str, float]:
    """Mean and largest error of the run time by every method and rule. samples: {method: error per
    sample}."""
    metrics: dict[str, float] = {}
    for name in tested[0].errors:
        errors = np.array([abs(one.errors[name]) for one in tested])
        metrics[f"{_prefix(name, samples)}error_mean_ratio"] = float(errors.mean())
        metrics[f"{_prefix(name, samples)}error_max_ratio"] = float(errors.max())
        if name in samples:
            metrics[f"{name}instructions_mae_ratio"] = samples[name]
    return metrics


def interval_metrics(tested: Sequence[Tested], samples: dict[str, float]) -> dict[str, float]:
    """Intervals of 95% over the programs that are targets, drawn again and again (Efron's bootstrap): of
    every mean error, of how much closer alignment is on the same runs than each rival, and of what share it
    cuts of the error of the best constant; and errors of the targets slowed by over a tenth."""
    names = list(tested[0].errors)
    error = np.abs([[one.errors[name] for name in names] for one in tested])
    _, program = np.unique([one.workload for one in tested], return_inverse=True)
    number = int(program.max()) + 1
    times = np.random.default_rng(0).multinomial(number, np.full(number, 1 / number), DRAWS)
    weight = times[:, program]
    drawn = weight @ error / weight.sum(axis=1, keepdims=True)
    mean = error.mean(axis=0)
    slowed = np.array([one.measured_seconds > SLOWED * one.solo_seconds for one in tested])
    results = {"tested_programs": float(number), "slowed_runs": float(slowed.sum())}

    def told(name: str, value: float, draws: np.ndarray) -> None:
        low, high = np.quantile(draws, [0.025, 0.975])
        results[f"{name}_ratio"] = float(value)
        results[f"{name}_low_ratio"], results[f"{name}_high_ratio"] = float(low), float(high)

    for k, name in enumerate(names):
        prefix = f"{_prefix(name, samples)}"
        told(f"{prefix}error_mean", mean[k], drawn[:, k])
        if slowed.any():
            results[f"slowed_{prefix}error_mean_ratio"] = float(error[slowed, k].mean())
        if k:
            told(f"closer_than_{name}by", mean[k] - mean[0], drawn[:, k] - drawn[:, 0])
    rules = [k for k, name in enumerate(names) if name in CONSTANTS]
    best = min(rules, key=lambda k: mean[k])
    if mean[best] > 0:
        cut = 1 - drawn[:, 0] / np.maximum(drawn[:, best], 1e-12)
        told("cut_of_best_constant", 1 - mean[0] / mean[best], cut)
    single = [one.single_error for one in tested if np.isfinite(one.single_error)]
    if single:
        results["one_measurement_error_mean_ratio"] = float(np.mean(single))
    return results


def steady_metrics(
    tested: Sequence[Tested], unsteady: Collection[str], samples: dict[str, float]
) -> dict[str, float]:
    """Mean errors without the workloads whose run time alone is not known."""
    steady = [one for one in tested if one.workload not in unsteady]
    return {
        f"steady_{_prefix(name, samples)}error_mean_ratio": float(
            np.mean([abs(one.errors[name]) for one in steady])
        )
        for name in tested[0].errors
        if steady
    }


def slowdown_metrics(tested: Sequence[Tested], members: Sequence[Member]) -> dict[str, float]:
    """How much there is to predict, and how far single runs are from what is predicted."""
    slows = np.array([one.measured_seconds / one.solo_seconds for one in tested])
    metrics = {
        "slowdown_mean_ratio": float(slows.mean()),
        "slowdown_max_ratio": float(slows.max()),
    }
    if any(one.repeats > 1 for one in tested):
        ended = [m for m in members if not np.isnan(m.seconds)]
        each = [
            np.abs(one.predicted_seconds / m.singles_seconds - 1)
            for one, m in zip(tested, ended, strict=True)
        ]
        metrics["single_run_error_mean_ratio"] = float(np.concatenate(each).mean())
    return metrics | {"test_runs": float(len(tested))}


def _prefix(name: str, samples: dict[str, float]) -> str:
    """Methods of this room predict run times sample by sample; rules only the run time as a whole."""
    return f"{name}run_time_" if name in samples else name
