"""Log seconds alone of every workload on every platform: measured, or what both suggest."""

from __future__ import annotations

import numpy as np

from jostle.data import Runs
from jostle.learn.training._linear_baseline import fit_baseline
from jostle.learn.training._slowdown_rows import error_weight

SHRINKAGE, SWEEPS = 1.0, 20  # of the co-runners' effects where no time alone is known
HELPED = 0.3  # log factor by which company may make work faster
FEWEST_TRACED = 3  # workloads measured alone by which traces are related to times


def solo_runtimes(runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]) -> np.ndarray:
    """Estimate (platforms, workloads) log seconds alone: closest to those measured; elsewhere as workload and
    platform suggest if runs connect the two, else NaN."""
    c = runs.colocations
    workload, platform, _ = c.recode(*names)
    alone = c.number_of_corunners == 0
    log_runtime = np.log(runs.runtime_seconds)
    w, p = len(names[0]), len(names[1])
    base = fit_baseline(workload[alone], platform[alone], log_runtime[alone], w, p)
    solo = base.platform[:, None] + base.workload[None]
    joined = (base.platform_component[:, None] == base.workload_component[None]) & (
        base.platform_component[:, None] >= 0
    )
    solo[~joined] = np.nan
    cell = platform.astype(np.int64) * w + workload
    trust = np.sqrt(error_weight(runs.runtime_error_ratio[alone]))
    measured = relative_medians(cell[alone], log_runtime[alone], w * p, trust).reshape(p, w)
    if "node" in runs.table.column_names:
        measured = _plausible(measured, cell[~alone], log_runtime[~alone], cell[alone])
    solo = np.where(np.isnan(measured), solo, measured)
    unknown = ~alone & np.isnan(solo[platform, workload])
    if unknown.any():
        solo = np.where(np.isnan(solo), _levels(runs, names, solo), solo)
    return solo


def _plausible(
    measured: np.ndarray, beside: np.ndarray, log_runtime: np.ndarray, alone: np.ndarray
) -> np.ndarray:
    """Times alone (platforms, workloads) of a log, which no one chose to measure: longer than those beside
    others only as far as their number tells, as company hardly makes work faster.

    The posterior mean of a normal law with scale HELPED about the median beside others. beside, alone: cells
    of runs beside others, which took log_runtime, and of those alone.
    """
    cells = measured.size
    usual = relative_medians(beside, log_runtime, cells)
    spread = relative_medians(beside, np.abs(log_runtime - usual[beside]), cells) * 1.4826
    count = np.maximum(np.bincount(alone, minlength=cells), 1)
    longer = np.maximum(measured.ravel() - usual, 0.0)
    error = spread**2 / count + (longer / count) ** 2  # few may be outliers, such as cold starts
    taken = longer * error / (error + HELPED**2)
    return measured - np.nan_to_num(taken).reshape(measured.shape)


def fill_solo_from_traces(log_solo: np.ndarray, log_traces: np.ndarray) -> np.ndarray:
    """Fill unknown log seconds alone (platforms, workloads) from traces (workloads,), NaN for none: as times
    and traces of others there are related, times a factor or plus so many seconds, whichever is closer to
    those known."""
    out = log_solo.copy()
    for here in out:
        both = np.isfinite(here) & np.isfinite(log_traces)
        longer = here[both] - log_traces[both]
        told = log_traces + (np.median(longer) if both.any() else 0.0)
        if both.sum() >= FEWEST_TRACED:
            extra = np.exp(here[both]) - np.exp(log_traces[both])
            moved = np.log(np.exp(log_traces) + max(0.0, float(np.median(extra))))
            off = [np.median(np.abs((way - here)[both])) for way in (told, moved)]
            told = moved if off[1] < off[0] else told
        here[np.isnan(here)] = told[np.isnan(here)]
    return out


def relative_medians(
    cell: np.ndarray, log_runtime: np.ndarray, cells: int, trust: np.ndarray | None = None
) -> np.ndarray:
    """Find the (cells,) log seconds of least mean relative error over each cell's runs, NaN without any.
    trust: (n,) weight of each run.

    That is the median with weights of one over the time, which of times of two kinds takes the short ones:
    who answers with the long ones is off by their ratio where a run is short. Between two runs it is read off
    the line between them, so that of times that hardly differ it is the plain median.
    """
    out = np.full(cells, np.nan)
    order = np.lexsort((log_runtime, cell))
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    for own in np.split(order, starts[1:]) if len(order) else []:
        times = log_runtime[own]
        weight = np.exp(times[0] - times) * (1.0 if trust is None else trust[own])
        out[cell[own[0]]] = np.interp(0.5 * weight.sum(), np.cumsum(weight) - weight / 2, times)
    return out


def _levels(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], solo: np.ndarray
) -> np.ndarray:
    """Estimate (platforms, workloads) log seconds alone from runs beside others: less additive effects of
    co-runners and the typical slowdown where times alone are known; if none is, as if no slowdown were."""
    c = runs.colocations
    w, p = len(names[0]), len(names[1])
    workload, platform, corunner = (codes.astype(np.int64) for codes in c.recode(*names))
    beside = c.number_of_corunners > 0
    log_runtime, cell = np.log(runs.runtime_seconds), platform * w + workload
    row = c.corunner_row
    at, share = platform[row] * w + corunner, 1 / c.number_of_corunners[row]
    slow = (log_runtime - solo[platform, workload])[beside]
    known = slow[np.isfinite(slow)]
    # Company does not make work faster: who seems to be was alone with other work, such as a cold start.
    typical = max(float(np.median(known)), 0.0) if len(known) else 0.0
    count = np.bincount(cell[beside], minlength=p * w)
    weight = np.bincount(at, share, p * w) + SHRINKAGE
    effect, level = np.zeros(p * w), np.zeros(p * w)
    for _ in range(SWEEPS):
        pressed = np.bincount(row, share * effect[at], len(runs))
        total = np.bincount(cell[beside], (log_runtime - pressed)[beside], p * w)
        level = total / np.maximum(count, 1)
        left = log_runtime - level[cell]
        effect = np.bincount(at, share * left[row], p * w) / weight
    return np.where(count > 0, level - typical, np.nan).reshape(p, w)
