"""Runs held out of the tour to check its answers on, and the simple rules beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs


def hold_out_sets(runs: Runs, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(held, rest) indices: a share of the distinct sets with co-runners, all runs of a set together."""
    c = runs.colocations
    names = c.to_columns()
    key = [
        (platform, tuple(sorted([workload, *beside]))) if beside else None
        for workload, platform, beside in zip(*names.values(), strict=True)
    ]
    sets = sorted({k for k in key if k is not None})
    places = np.random.default_rng(seed).permutation(len(sets))[: round(share * len(sets))]
    held_sets = {sets[i] for i in places}
    held = np.array([k in held_sets for k in key], bool)
    return np.flatnonzero(held), np.flatnonzero(~held)


def solo_medians(runs: Runs, query: Colocations) -> np.ndarray:
    """(n,) median seconds of each workload of the query alone on its platform; NaN where not measured."""
    c = runs.colocations
    alone = np.flatnonzero(c.number_of_corunners == 0)
    seconds: dict[tuple[str, str], list[float]] = {}
    for index in alone:
        key = (c.workload_names[c.workload[index]], c.platform_names[c.platform[index]])
        seconds.setdefault(key, []).append(float(runs.runtime_seconds[index]))
    median = {key: float(np.median(values)) for key, values in seconds.items()}
    return np.array(
        [
            median.get((query.workload_names[w], query.platform_names[p]), np.nan)
            for w, p in zip(query.workload, query.platform, strict=True)
        ]
    )


def mape(predicted: np.ndarray, actual: np.ndarray) -> float:
    """mean |predicted - actual| / actual over the answered; NaN without any."""
    known = np.isfinite(predicted)
    if not known.any():
        return float("nan")
    return float(np.mean(np.abs(predicted[known] - actual[known]) / actual[known]))
