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
    with np.errstate(divide="ignore", invalid="ignore"):
        return _medians(runs, np.log(runs.runtime_seconds), workload_names, platform_names)


def solo_core_shares(
    runs: Any, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
) -> np.ndarray:
    """(platforms, workloads) how many cores a workload is on while it runs alone, in the median: CPU seconds
    over the seconds in which they were counted, above 1 for one of several threads; NaN where no run tells
    both (columns `cpu_seconds` and `window_seconds`)."""
    columns = ("cpu_seconds", "window_seconds")
    if not set(columns) <= set(runs.table.column_names):
        return np.full((len(platform_names), len(workload_names)), np.nan)
    cpu, seconds = (_numbers(runs.table, name) for name in columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((cpu >= 0) & (seconds > 0), cpu / seconds, np.nan)
    return _medians(runs, share, workload_names, platform_names)


def _numbers(table: Any, column: str) -> np.ndarray:
    """(n,) float64, NaN where it is null or no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = table.column(column)
    if not (pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type)):
        return np.full(len(cells), np.nan)
    return pc.fill_null(cells.cast(pa.float64()), np.nan).to_numpy()


def _medians(
    runs: Any, value: np.ndarray, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
) -> np.ndarray:
    """(platforms, workloads) of what is finite, (n,), among runs alone."""
    c = runs.colocations
    workload, platform, _ = c.recode(workload_names, platform_names)
    alone = (c.number_of_corunners == 0) & runs.is_ok & (workload >= 0) & (platform >= 0)
    alone &= np.isfinite(value)
    width = len(workload_names)
    out = np.full((len(platform_names), width), np.nan)
    cell = platform[alone].astype(np.int64) * width + workload[alone]
    order = np.argsort(cell, kind="stable")
    cells, starts = np.unique(cell[order], return_index=True)
    for at, part in zip(cells.tolist(), np.split(value[alone][order], starts[1:]), strict=False):
        out[at // width, at % width] = np.median(part)
    return out
