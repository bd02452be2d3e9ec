"""A workload alone: how much of everything it had counted, as a function of its own time.

Source: Saeed et al., MLCAD 2021, Sec. III: instructions do not depend on who runs beside, so that they are
the axis on which a run alone and a run beside others are laid over each other. Here samples of any length
become counts at the edges of equal periods, linear in between, so that totals stay what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData, UnknownName, UsageError

if TYPE_CHECKING:
    from jostle.traces import Trace

INSTRUCTIONS = "instructions"
# No core executes more than this; a count above it is a counter that wrapped around.
MOST_PER_SECOND = 1e12
MOST_GAP = 0.5  # of a sample: what may be missing between two
# Share of a counter's samples that may be null and are filled from their neighbours.
MOST_NULL = 0.5


@dataclass(frozen=True, eq=False)
class SoloCounters:
    """One workload alone on one slot, in T equal periods.

    counters: d names, instructions first. cumulative: (T + 1, d) counted by the edge of each period; the last
    period is drawn out at its own rate where the run ends inside it. idle: (T,) periods without instructions.
    """

    workload: str
    platform: str
    slot: int
    period_seconds: float
    duration_seconds: float
    counters: tuple[str, ...]
    cumulative: np.ndarray

    @property
    def periods(self) -> int:
        """T."""
        return len(self.cumulative) - 1

    @cached_property
    def idle(self) -> np.ndarray:
        return np.diff(self.cumulative[:, 0]) <= 0.0

    @cached_property
    def work(self) -> np.ndarray:
        """(T + 1,) the axis of progress: instructions, and in idle periods, which have none, as many as the
        workload executes in a busy one. Rises everywhere, so that it has an inverse."""
        steps = np.diff(self.cumulative[:, 0])
        steps[self.idle] = steps[~self.idle].mean()
        return np.concatenate([[0.0], np.cumsum(steps)])

    @cached_property
    def edges(self) -> np.ndarray:
        """(T + 1,) seconds."""
        return np.arange(self.periods + 1) * self.period_seconds

    @property
    def instructions(self) -> float:
        """Of the whole run."""
        return float(self.at(self.cumulative[:, :1], np.array([self.duration_seconds]))[0, 0])

    def narrowed(self, counters: tuple[str, ...]) -> SoloCounters:
        """Only these counters, in this order."""
        at = [self.counters.index(name) for name in counters]
        table = np.ascontiguousarray(self.cumulative[:, at])
        return replace(self, counters=counters, cumulative=table)

    def at(self, table: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """(s, k) a table (T + 1, k) at these seconds of the run alone; runs that loop go on after their
        end."""
        duration = self.duration_seconds
        rounds = np.floor_divide(seconds, duration)
        looped = bool(rounds.any())
        inside = np.clip(seconds - rounds * duration, 0.0, duration) if looped else seconds
        place = inside / self.period_seconds
        index = np.clip(place.astype(np.int64), 0, self.periods - 1)
        part = (place - index)[:, None]
        low = table[index]
        found = low + part * (table[index + 1] - low)
        if looped:
            found += rounds[:, None] * self.at(table, np.array([duration * (1 - 1e-15)]))
        return found

    def seconds_at(self, instructions: np.ndarray) -> np.ndarray:
        """(s,) the solo time by which so many instructions were executed; where it idles, the end of
        that. Runs that loop go on after their end."""
        rounds = np.maximum(np.ceil(instructions / self.instructions * (1 - 1e-12)) - 1, 0)
        instructions = instructions - rounds * self.instructions
        index, part = place_of(instructions, self.cumulative[:, 0])
        inside = self.edges[index] + part * self.period_seconds
        return rounds * self.duration_seconds + np.minimum(inside, self.duration_seconds)


def place_of(wanted: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((m,) the sample in which so much had been counted, (m,) how far in it, from 0 to 1); where nothing
    is counted meanwhile, the end of that. counted: (n + 1,) by the edges of n samples."""
    index = np.clip(np.searchsorted(counted, wanted, "right") - 1, 0, len(counted) - 2)
    step = counted[index + 1] - counted[index]
    part = (wanted - counted[index]) / np.where(step > 0, step, np.inf)
    return index, np.clip(part, 0.0, 1.0)


def solo_counters(
    trace: Trace,
    counters: Sequence[str] = (),
    period_seconds: float | None = None,
    slot: int | None = None,
) -> SoloCounters:
    """The solo counters of a trace of a whole run alone.

    counters: beside the instructions; by default all that the trace has. period_seconds: by default the
    median interval. Unequal samples are divided by their own intervals. Null samples of a counter are filled
    from their neighbours where at least half are known. Raises BadData for a trace that is not of a whole run
    alone, has gaps, no or impossible counts, UnknownName for a counter it does not have.
    """
    require_solo(trace)
    period = float(np.median(trace.interval_seconds)) if period_seconds is None else period_seconds
    names = counters_of([trace], counters)
    times, counted = track_of(trace, names)
    place = trace.core if slot is None else slot
    return gridded(times, counted, trace, names, period, place)


def require_solo(trace: Trace) -> None:
    """Raises BadData for a run beside others."""
    if not trace.solo:
        where = f"the trace of {trace.run_id}"
        raise BadData("it ran beside others", where=where, fix="Give the trace of a run alone.")


def counters_of(traces: Sequence[Trace], counters: Sequence[str] = ()) -> tuple[str, ...]:
    """Instructions first, then the wanted ones, by default all that every trace has."""
    every = set.intersection(*(set(trace.counters) for trace in traces))
    return (INSTRUCTIONS, *(n for n in (counters or sorted(every)) if n != INSTRUCTIONS))


def track_of(trace: Trace, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """((n + 1,) seconds, (n + 1, d) counted by then) of a whole run, from 0 to its end."""
    where = f"the trace of {trace.run_id}"
    times = edges_of(trace, where)
    duration = trace.runtime_seconds
    if np.isnan(duration):
        raise BadData(
            "the run had not ended when the trace did", where=where, fix="Trace a whole run."
        )
    longest = 1.5 * float(trace.interval_seconds.max())
    if duration - times[-1] > longest:
        raise BadData(
            f"it stops early: {times[-1]:.6g} s of a run of {duration:.6g} s",
            where=where,
            fix="Trace it again; what was not traced cannot be predicted.",
        )
    for name in names:
        if name not in trace.counters:
            raise UnknownName("counter", name, sorted(trace.counters), where=where)
    rates = np.stack([_rates(trace, name, where) for name in names], axis=1)
    counted = np.concatenate(
        [np.zeros((1, rates.shape[1])), np.cumsum(rates * np.diff(times)[:, None], axis=0)]
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


def gridded(
    times: np.ndarray,
    counted: np.ndarray,
    trace: Trace,
    names: tuple[str, ...],
    period: float,
    slot: int,
) -> SoloCounters:
    """The solo counters of the trace's workload, from what was counted by when."""
    if not (np.isfinite(period) and period > 0):
        raise UsageError(f"period_seconds {period} is not above 0")
    duration = float(times[-1])
    n = max(1, int(np.ceil(duration / period - 1e-9)))
    edges = np.minimum(np.arange(n + 1) * period, duration)
    table = np.stack([np.interp(edges, times, column) for column in counted.T], axis=1)
    last = edges[-1] - edges[-2]
    table[-1] = table[-2] + (table[-1] - table[-2]) * (period / last)
    return SoloCounters(trace.workload, trace.platform, slot, period, duration, names, table)


def edges_of(trace: Trace, where: str) -> np.ndarray:
    """(n + 1,) seconds at which samples begin and end, small gaps closed. Raises BadData for large ones."""
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
    """(n,) per second, nulls filled."""
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
            fix="Counts only rise: see counts_from_readings.",
        )
    most = MOST_PER_SECOND * (1 if name == INSTRUCTIONS else 1e6)
    if not np.isfinite(rate).all() or rate.max() > most:
        worst = int(np.argmax(rate))
        raise BadData(
            f"counter {name!r} rises by {trace[name][worst]:.4g} in "
            f"{trace.interval_seconds[worst]:.3g} s: it wrapped around",
            where=where,
            fix="Difference its readings with counts_from_readings(readings, bits=...).",
        )
    return rate


def counts_from_readings(
    readings: Sequence[float] | np.ndarray, bits: int | None = None
) -> np.ndarray:
    """(n - 1,) counts per sample from n running readings of a counter; NaN stays NaN on both sides.

    bits: the counter's width; a reading below the one before it then means that it wrapped around once.
    Without it, or where a reading does not fit the width, raises BadData naming the reading.
    """
    values = np.asarray(readings, np.float64)
    if bits is not None and (values >= 2.0**bits).any():
        at = int(np.argmax(values >= 2.0**bits))
        raise BadData(f"reading {at} is {values[at]:.17g}, more than {bits} bits hold")
    counts = np.diff(values)
    falls = counts < 0
    if falls.any():
        if bits is None:
            at = int(np.argmax(falls)) + 1
            raise BadData(
                f"reading {at} is {values[at]:.17g}, below the {values[at - 1]:.17g} before it",
                fix="Say how many bits the counter has if it wraps around; otherwise it was reset.",
            )
        counts[falls] += 2.0**bits
    return counts
