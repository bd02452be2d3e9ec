"""The metrics of the alignment protocol, by their documented names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np

from jostle.evaluate.alignment._answers import Tested
from jostle.evaluate.alignment._truth import Member

Key = TypeVar("Key")


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
