"""What several rooms ask of runs: every name they mention, and how long each workload takes alone."""

from __future__ import annotations

from typing import Any

import numpy as np

# Runs draw pictures of what they tell alone, so they import this module and it cannot import them: where it
# says Any, Runs are meant.


def all_names(*parts: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(workloads, platforms), sorted: every name in the runs or in their feature tables."""
    workloads: set[str] = set()
    platforms: set[str] = set()
    for part in parts:
        workloads |= {*part.colocations.workload_names, *part.features_of("workload")[0]}
        platforms |= {*part.colocations.platform_names, *part.features_of("platform")[0]}
    return tuple(sorted(workloads)), tuple(sorted(platforms))


def solo_medians(
    runs: Any, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
) -> np.ndarray:
    """(platforms, workloads) median log seconds of the runs alone, NaN where there is none."""
    c = runs.colocations
    workload, platform, _ = c.recode(workload_names, platform_names)
    alone = (c.number_of_corunners == 0) & runs.is_ok & (workload >= 0) & (platform >= 0)
    width = len(workload_names)
    out = np.full((len(platform_names), width), np.nan)
    cell = platform[alone].astype(np.int64) * width + workload[alone]
    order = np.argsort(cell, kind="stable")
    cells, starts = np.unique(cell[order], return_index=True)
    log_seconds = np.log(runs.runtime_seconds[alone][order])
    for at, part in zip(cells.tolist(), np.split(log_seconds, starts[1:]), strict=False):
        out[at // width, at % width] = np.median(part)
    return out
