"""What predictions and bounds are worth, in the same words for every study."""

from __future__ import annotations

import numpy as np

from jostle.conformal import coverage, margin
from jostle.data import Runs


def corun_groups(test: Runs) -> dict[str, np.ndarray]:
    """Return masks (n,) of the runs alone (`solo`), those with co-runners (`corun`) and, where there are
    several numbers of them, each number (`corun_2`); those that have runs."""
    degree = test.colocations.number_of_corunners
    groups = {"solo": degree == 0, "corun": degree > 0}
    several = np.unique(degree[degree > 0])
    if len(several) > 1:
        groups |= {f"corun_{d}": degree == d for d in several}
    return {name: inside for name, inside in groups.items() if inside.any()}


def error_measures(predicted: np.ndarray, actual: np.ndarray) -> dict[str, float]:
    """Return ratios: `unanswered` and, of what is answered, the mean (`mape`) and median absolute relative
    error."""
    known = np.isfinite(predicted)
    measures = {"unanswered": float(1 - known.mean())}
    if known.any():
        error = np.abs(predicted[known] - actual[known]) / actual[known]
        measures |= {"mape": float(error.mean()), "median_error": float(np.median(error))}
    return measures


def bound_measures(bound: np.ndarray, actual: np.ndarray) -> dict[str, float]:
    """Return ratios: `coverage`, the `margin` of those that are finite, and how many are not (`no_bound`)."""
    valid = np.isfinite(bound)
    return {
        "coverage": coverage(bound, actual),
        "margin": margin(bound[valid], actual[valid]),
        "no_bound": float(1 - valid.mean()),
    }


def metrics_of(
    test: Runs, predicted: np.ndarray, bounds: dict[float, np.ndarray]
) -> dict[str, float]:
    """Return metrics by documented name for every group of `corun_groups` in which anything is answered.

    predicted: (n,) seconds. bounds: (n,) seconds by confidence.
    """
    actual = test.runtime_seconds
    metrics: dict[str, float] = {}
    for group, inside in corun_groups(test).items():
        errors = error_measures(predicted[inside], actual[inside])
        if "mape" not in errors:
            continue
        metrics |= {f"{name}_{group}_ratio": value for name, value in errors.items()}
        for confidence, seconds in bounds.items():
            at = f"{round(100 * confidence)}_{group}_ratio"
            measures = bound_measures(seconds[inside], actual[inside])
            metrics |= {f"{name}_{at}": value for name, value in measures.items()}
    return metrics
