"""Times alone by platform and workload, names of several datasets together, and rows of one window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.data.runs._name_columns import numbers_of
from jostle.errors import UsageError

# Runs draw pictures of what they tell alone, so they import this module and it cannot import them: where it
# says Any, Runs are meant.


def all_names(*parts: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (workloads, platforms), sorted: every name in the runs or in their feature tables."""
    workloads: set[str] = set()
    platforms: set[str] = set()
    for part in parts:
        workloads |= {*part.colocations.workload_names, *part.features_of("workload")[0]}
        platforms |= {*part.colocations.platform_names, *part.features_of("platform")[0]}
    return tuple(sorted(workloads)), tuple(sorted(platforms))


def solo_medians(
    runs: Any, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
) -> np.ndarray:
    """Return (platforms, workloads) median log seconds of the runs alone, NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _medians(runs, np.log(runs.runtime_seconds), workload_names, platform_names)


def solo_seconds(runs: Any, asked: Any) -> np.ndarray:
    """Return (n,) median seconds alone of each workload asked about, on its platform; NaN where not measured.
    asked: Colocations."""
    medians = solo_medians(runs, asked.workload_names, asked.platform_names)
    return np.exp(medians[asked.platform, asked.workload])


def solo_core_shares(
    runs: Any, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
) -> np.ndarray:
    """Return (platforms, workloads) how many cores a workload is on while it runs alone, in the median: CPU
    seconds over the seconds in which they were counted, above 1 for one of several threads; NaN where no run
    tells both (columns `cpu_seconds` and `window_seconds`)."""
    columns = ("cpu_seconds", "window_seconds")
    if not set(columns) <= set(runs.table.column_names):
        return np.full((len(platform_names), len(workload_names)), np.nan)
    cpu, seconds = (numbers_of(runs.table, name) for name in columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((cpu >= 0) & (seconds > 0), cpu / seconds, np.nan)
    return _medians(runs, share, workload_names, platform_names)


def _medians(
    runs: Any, value: np.ndarray, workload_names: tuple[str, ...], platform_names: tuple[str, ...]
) -> np.ndarray:
    """Return (platforms, workloads) of what is finite, (n,), among runs alone."""
    c = runs.colocations
    workload, platform, _ = c.recode(workload_names, platform_names)
    alone = (c.number_of_corunners == 0) & runs.is_ok & (workload >= 0) & (platform >= 0)
    alone &= np.isfinite(value) & runs.is_steady & ~runs.unknown_corunners
    width = len(workload_names)
    out = np.full((len(platform_names), width), np.nan)
    cell = platform[alone].astype(np.int64) * width + workload[alone]
    order = np.argsort(cell, kind="stable")
    cells, starts = np.unique(cell[order], return_index=True)
    for at, part in zip(cells.tolist(), np.split(value[alone][order], starts[1:]), strict=False):
        out[at // width, at % width] = np.median(part)
    return out


def split_rows(
    runs: Any | int, fractions: Sequence[float], seed: int, unit: str = "window"
) -> list[np.ndarray]:
    """Split runs into disjoint sorted index arrays that cover all runs, one per fraction.

    runs: the runs, or how many rows there are (then every row stands alone). fractions: not
    negative, summing to 1. unit: `window` keeps rows that were measured together on one side, which
    an honest test needs; `together` keeps all runs of the same workloads on the same platform on one
    side; `row` keeps nothing together. Units are shared out separately for every number of
    co-runners, so that each part has its share of each. The same runs and seed give the same split.
    Raises UsageError.
    """
    if len(fractions) == 0 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
        raise UsageError(f"the fractions {list(fractions)} do not sum to 1")
    if isinstance(runs, int):
        if unit not in ("window", "row"):
            raise UsageError(
                f"split by {unit!r}", fix="Rows known by number alone are split one by one."
            )
        codes, degree = np.arange(runs), np.zeros(runs, np.int64)
    else:
        codes = runs.units(unit)
        degree = runs.colocations.number_of_corunners
    random = np.random.default_rng(seed)
    cuts = np.cumsum(fractions)[:-1]
    # A window's degree is that of its first row: rows measured together have the same as a rule.
    units, first = np.unique(codes, return_index=True)
    of_unit = np.zeros(len(units), np.int64)
    for d in np.unique(degree[first]):
        here = np.flatnonzero(degree[first] == d)
        # A random start for the cut points shares out remainders fairly among the parts.
        place = (random.permutation(len(here)) + random.random()) / len(here)
        of_unit[here] = np.searchsorted(cuts, np.minimum(place, 1 - 1e-12), side="right")
    part = of_unit[np.searchsorted(units, codes)]
    return [np.flatnonzero(part == number) for number in range(len(fractions))]


def windows_of(
    platform: np.ndarray, workload: np.ndarray, members: np.ndarray, seconds: np.ndarray
) -> np.ndarray:
    """Return (n,) int64: the first row of the window that each row belongs to.

    Rows belong together when platform and the set of all that ran are the same. Such a set measured
    several times gives each member several rows: the r-th rows of all members make the r-th window.
    A row that repeats another to the last digit is a copy of it and stays in its window.
    """
    n, k = members.shape
    if k == 0:
        return np.arange(n)
    exact = np.column_stack([platform, workload, members, seconds.view(np.int64)])
    _, first, inverse = np.unique(exact, axis=0, return_index=True, return_inverse=True)
    original = first[inverse.reshape(-1)]
    real = np.flatnonzero(original == np.arange(n))
    everyone = np.sort(np.column_stack([workload, members]), axis=1)[real]
    # How often the workload occurs in the set: beside itself it has that many rows in one window.
    times = 1 + (members[real] == workload[real, None]).sum(axis=1)
    row_key = np.column_stack([platform[real], everyone, workload[real]])
    ordinal = _ordinal(np.unique(row_key, axis=0, return_inverse=True)[1].reshape(-1))
    window_key = np.column_stack([platform[real], everyone, ordinal // times])
    _, head, which = np.unique(window_key, axis=0, return_index=True, return_inverse=True)
    window = np.zeros(n, np.int64)
    window[real] = real[head[which.reshape(-1)]]
    return window[original]


def _ordinal(codes: np.ndarray) -> np.ndarray:
    """Return (n,) how many earlier elements are equal to this one."""
    order = np.argsort(codes, kind="stable")
    place = np.arange(len(codes))
    starts = np.r_[True, np.diff(codes[order]) != 0] if len(codes) else np.zeros(0, bool)
    out = np.empty(len(codes), np.int64)
    out[order] = place - np.maximum.accumulate(np.where(starts, place, 0))
    return out
