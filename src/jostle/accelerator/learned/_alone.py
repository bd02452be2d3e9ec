"""How long workloads take alone: measured, or told by other runs, or by the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jostle.rules import solo_runtimes
from jostle.runs import solo_medians

if TYPE_CHECKING:
    from jostle.runs import Runs

FEWEST = 3  # workloads measured alone by which traces are related to times


def times_alone(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], trace_seconds: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """((platforms, workloads) log seconds, notes): the median of what was measured; without that what other
    platforms and runs beside others suggest; without these the trace, as traces and times of others are
    related. trace_seconds: (workloads,) of the traces."""
    measured = solo_medians(runs, *names)
    known = np.where(np.isfinite(measured), measured, solo_runtimes(runs, names)[0])
    guessed = int((np.isfinite(known) & ~np.isfinite(measured)).sum())
    traced = int((~np.isfinite(known)).sum())
    told = np.array([_by_traces(trace_seconds, here) for here in known]).reshape(known.shape)
    notes = []
    if guessed:
        notes.append(f"{guessed} times alone are told by other runs, none was measured")
    if traced:
        notes.append(f"{traced} times alone are told by the traces, no run was measured")
    return np.where(np.isfinite(known), known, told), tuple(notes)


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
