"""How long workloads take alone: measured, or told by runs beside others, or by the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jostle.runs import solo_medians

if TYPE_CHECKING:
    from jostle.runs import Runs

LOW = 0.1  # the quantile of runs beside others that stands for the least disturbed
LEAST = 0.3  # of that, under which no time alone is answered
FEWEST = 3  # workloads measured alone by which traces are related to times


def times_alone(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], trace_seconds: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """((platforms, workloads) log seconds, notes): the median of what was measured; without that a low
    quantile of the workload's runs beside others, less what others have more beside others; without these the
    trace, as traces and times of others are related. trace_seconds: (workloads,) of the traces."""
    measured = solo_medians(runs, *names)
    alone_seconds = measured.copy()
    c = runs.colocations
    workload, platform, _ = c.recode(*names)
    beside, seconds = c.number_of_corunners > 0, runs.runtime_seconds
    guessed = traced = 0
    for p in range(len(names[1])):
        here = beside & (platform == p)
        known = np.isfinite(measured[p])
        extra = (seconds - np.exp(measured[p, workload]))[here & known[workload]]
        typical = float(np.median(extra)) if len(extra) else 0.0
        for w in np.flatnonzero(~known):
            mine = seconds[here & (workload == w)]
            if len(mine):
                low = float(np.quantile(mine, LOW))
                alone_seconds[p, w] = np.log(max(low - max(typical, 0.0), LEAST * low))
                guessed += 1
        left = ~np.isfinite(alone_seconds[p])
        alone_seconds[p, left] = _by_traces(trace_seconds, alone_seconds[p])[left]
        traced += int(left.sum())
    notes = []
    if guessed:
        notes.append(f"{guessed} times alone are told by runs beside others, none was measured")
    if traced:
        notes.append(f"{traced} times alone are told by the traces, no run was measured")
    return alone_seconds, tuple(notes)


def idle_seconds(log_solo: np.ndarray, trace_seconds: np.ndarray) -> np.ndarray:
    """(workloads,) s that a run takes longer alone than its trace, in which it leaves the device idle, in the
    median of the platforms."""
    return np.maximum(np.median(np.exp(log_solo) - trace_seconds, axis=0), 0.0)


def _by_traces(trace_seconds: np.ndarray, log_seconds: np.ndarray) -> np.ndarray:
    """(w,) log seconds: traces times a factor, or plus so many seconds, as is closer to those known."""
    known = np.isfinite(log_seconds)
    traces = np.log(trace_seconds)
    if not known.any():
        return traces
    ratio = float(np.median(log_seconds[known] - traces[known]))
    scaled = traces + ratio
    if known.sum() < FEWEST:
        return scaled
    more = max(0.0, float(np.median(np.exp(log_seconds[known]) - trace_seconds[known])))
    moved = np.log(trace_seconds + more)

    def off(answers: np.ndarray) -> float:
        return float(np.median(np.abs(answers[known] - log_seconds[known])))

    return moved if off(moved) < off(scaled) else scaled
