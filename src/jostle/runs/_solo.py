"""What several rooms ask of runs: every name they mention, and how long each workload takes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from jostle.runs._colocations import Colocations


class _Measured(Protocol):
    """What is asked of runs here. Runs draw pictures of what they tell alone, so they import this module."""

    @property
    def colocations(self) -> Colocations: ...
    @property
    def is_ok(self) -> np.ndarray: ...
    @property
    def runtime_seconds(self) -> np.ndarray: ...
    def features_of(self, key: str) -> tuple[tuple[str, ...], Any]: ...


def all_names(*parts: _Measured) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(workloads, platforms), sorted: every name in the runs or in their feature tables."""
    workloads: set[str] = set()
    platforms: set[str] = set()
    for part in parts:
        workloads |= {*part.colocations.workload_names, *part.features_of("workload")[0]}
        platforms |= {*part.colocations.platform_names, *part.features_of("platform")[0]}
    return tuple(sorted(workloads)), tuple(sorted(platforms))


def solo_medians(
    runs: _Measured, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
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
