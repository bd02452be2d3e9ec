"""Traces of whole runs as curves: what was counted by when, without gaps, nulls or wrapped counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData, require_known

if TYPE_CHECKING:
    from jostle.data import Trace

INSTRUCTIONS = "instructions"
# No core executes more than this; a count above it is a counter that wrapped around.
MOST_PER_SECOND = 1e12
MOST_GAP = 0.5  # of a sample: what may be missing between two
# Share of a counter's samples that may be null and are filled from their neighbours.
MOST_NULL = 0.5

Track = tuple[np.ndarray, np.ndarray]
"""((n + 1,) seconds, (n + 1, d) counted by then), instructions first."""


def track_of(trace: Trace, names: Sequence[str]) -> Track:
    """Make the track of a whole run, from 0 to its end. Raises BadData, UnknownName."""
    where = f"the trace of {trace.run_id}"
    times = edges_of(trace, where)
    duration = trace.runtime_seconds
    if np.isnan(duration):
        raise BadData(
            "the run had not ended when the trace did",
            where=where,
            fix="Trace a whole run; where a recording of perf ended with it, import it as whole.",
        )
    longest = 1.5 * float(np.median(trace.interval_seconds))
    if duration - times[-1] > longest:
        raise BadData(
            f"it stops early: {times[-1]:.6g} s of a run of {duration:.6g} s",
            where=where,
            fix="Trace it again; what was not traced cannot be predicted.",
        )
    require_known("counter", names, trace.counters, where=where)
    rates = np.stack([_rates(trace, name, where) for name in names], axis=1)
    # What was counted is counted, also where there is a small gap before a sample.
    counted = np.concatenate(
        [np.zeros((1, rates.shape[1])), np.cumsum(rates * trace.interval_seconds[:, None], axis=0)]
    )
    # A run that ends after its last sample goes on as it did; samples past its end do not count.
    if times[-1] < duration:
        counted[-1] += rates[-1] * (duration - times[-1])
        times[-1] = duration
    elif times[-1] > duration:
        end = [np.interp(duration, times, column) for column in counted.T]
        inside = times < duration
        times = np.append(times[inside], duration)
        counted = np.concatenate([counted[inside], [end]])
    if counted[-1, 0] <= 0:
        raise BadData("it counts no instructions at all", where=where)
    return times, counted


def place_of(wanted: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find ((m,) the sample in which so much had been counted, (m,) how far in it, from 0 to 1); if nothing
    is counted meanwhile, the end of that. counted: (n + 1,) by the edges of n samples."""
    index = np.clip(np.searchsorted(counted, wanted, "right") - 1, 0, len(counted) - 2)
    step = counted[index + 1] - counted[index]
    part = (wanted - counted[index]) / np.where(step > 0, step, np.inf)
    return index, np.clip(part, 0.0, 1.0)


def edges_of(trace: Trace, where: str) -> np.ndarray:
    """Find (n + 1,) seconds at which samples begin or end, small gaps closed. Raises BadData if large."""
    if not len(trace):
        raise BadData("it holds no samples", where=where)
    began = trace.time_seconds - trace.interval_seconds
    ended = np.concatenate([[0.0], trace.time_seconds[:-1]])
    gap = began - ended
    worst = int(np.argmax(gap - MOST_GAP * np.median(trace.interval_seconds)))
    if gap[worst] > MOST_GAP * np.median(trace.interval_seconds):
        raise BadData(
            f"nothing was sampled from {ended[worst]:.6g} to {began[worst]:.6g} s",
            where=where,
            fix="Trace it again without a pause.",
        )
    return np.concatenate([[0.0], trace.time_seconds])


def _rates(trace: Trace, name: str, where: str) -> np.ndarray:
    """Compute (n,) rates per second, nulls filled."""
    rate = np.asarray(trace[name], np.float64) / trace.interval_seconds
    null = np.isnan(rate)
    if name == INSTRUCTIONS and null.any():
        raise BadData(
            f"{null.sum()} samples have no instructions", where=where, fix="All need them."
        )
    if null.mean() > MOST_NULL:
        raise BadData(
            f"counter {name!r} is null in {null.sum()} of {len(rate)} samples",
            where=where,
            fix="Leave the counter out, or trace it with fewer counters at once.",
        )
    if null.any():
        at = trace.time_seconds - trace.interval_seconds / 2
        rate = np.interp(at, at[~null], rate[~null])
    if rate.min() < 0:
        raise BadData(
            f"counter {name!r} falls",
            where=where,
            fix="Counts only rise: give what each sample counted.",
        )
    most = MOST_PER_SECOND * (1 if name == INSTRUCTIONS else 1e6)
    if not np.isfinite(rate).all() or rate.max() > most:
        worst = int(np.argmax(rate))
        raise BadData(
            f"counter {name!r} rises by {trace[name][worst]:.4g} in "
            f"{trace.interval_seconds[worst]:.3g} s: it wrapped around",
            where=where,
            fix="Where a reading is below the one before it, add 2 to the number of its bits.",
        )
    return rate
