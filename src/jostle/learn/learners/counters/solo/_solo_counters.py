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
from jostle.learn.learners.counters.solo._phases import same_phase
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS, place_of, track_of

if TYPE_CHECKING:
    from jostle.data import Trace, Traces

MOST_DIFFERENCE = 0.02  # between the instructions of two runs of one program


@dataclass(frozen=True, eq=False)
class SoloCounters:
    """One workload alone, in T equal periods.

    counters: d names, instructions first. cumulative: (T + 1, d) counted by the edge of each period; the last
    period is drawn out at its own rate where the run ends inside it. idle: (T,) periods without instructions.
    """

    workload: str
    platform: str
    period_seconds: float
    duration_seconds: float
    counters: tuple[str, ...]
    cumulative: np.ndarray

    @property
    def periods(self) -> int:
        """Number T of periods that the run is cut into."""
        return len(self.cumulative) - 1

    @cached_property
    def idle(self) -> np.ndarray:
        return np.diff(self.cumulative[:, 0]) <= 0.0

    @cached_property
    def changes(self) -> np.ndarray:
        """Number of changes between neighbouring samples up to each, (T,), that are larger than noise."""
        rates = np.diff(self.cumulative, axis=0)
        return np.concatenate([[0], np.cumsum(~same_phase(rates))])

    def inside_phase(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Tell whether stretches (s,), in seconds of the run alone, lie inside one phase: in samples all
        alike, or in a single sample that is like a neighbour."""
        rounds = np.floor_divide(begin, self.duration_seconds)
        low, high = (
            (x - rounds * self.duration_seconds) / self.period_seconds for x in (begin, end)
        )
        first = np.clip(np.floor(low + 1e-6).astype(np.int64), 0, self.periods - 1)
        last = np.clip(np.ceil(high - 1e-6).astype(np.int64) - 1, first, self.periods - 1)
        alike = self.changes[last] == self.changes[first]
        before = self.changes[first] == self.changes[np.maximum(first - 1, 0)]
        after = self.changes[last] == self.changes[np.minimum(last + 1, self.periods - 1)]
        alone = (before & (first > 0)) | (after & (last < self.periods - 1)) | (self.periods == 1)
        return (
            alike & ((last > first) | alone) & (high * self.period_seconds <= self.duration_seconds)
        )

    @cached_property
    def edges(self) -> np.ndarray:
        """Edges of the periods in seconds, (T + 1,)."""
        return np.arange(self.periods + 1) * self.period_seconds

    @property
    def instructions(self) -> float:
        """Instructions of the whole run."""
        return float(self.at(self.cumulative[:, :1], np.array([self.duration_seconds]))[0, 0])

    def narrowed(self, counters: tuple[str, ...]) -> SoloCounters:
        """Keep only these counters, in this order."""
        at = [self.counters.index(name) for name in counters]
        table = np.ascontiguousarray(self.cumulative[:, at])
        return replace(self, counters=counters, cumulative=table)

    def at(self, table: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Look up a table (T + 1, k) at these seconds of the run alone, (s, k); runs that loop go on after
        their end."""
        duration = self.duration_seconds
        rounds = np.floor_divide(seconds, duration)
        looped = bool(rounds.any())
        inside = np.clip(seconds - rounds * duration, 0.0, duration) if looped else seconds
        place = inside / self.period_seconds
        index = np.clip(place.astype(np.int64), 0, self.periods - 1)
        part = (place - index)[:, None]
        low = table[index]
        counts = low + part * (table[index + 1] - low)
        if looped:
            counts += rounds[:, None] * self.at(table, np.array([duration * (1 - 1e-15)]))
        return counts

    def section(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Average counts per second (s, d) over exactly the stretches between these seconds."""
        length = np.maximum(end - begin, 1e-9 * self.period_seconds)
        at = (self.at(self.cumulative, seconds) for seconds in (end, end - length))
        return (next(at) - next(at)) / length[:, None]

    def seconds_at(self, instructions: np.ndarray) -> np.ndarray:
        """Find the solo time (s,) by which so many instructions were executed; if it idles then, the end of
        that. Runs that loop go on after their end."""
        rounds = np.maximum(np.ceil(instructions / self.instructions * (1 - 1e-12)) - 1, 0)
        instructions = instructions - rounds * self.instructions
        index, part = place_of(instructions, self.cumulative[:, 0])
        inside = self.edges[index] + part * self.period_seconds
        return rounds * self.duration_seconds + np.minimum(inside, self.duration_seconds)


def solo_counters(
    runs: Trace | Sequence[Trace],
    counters: Sequence[str] = (),
    period_seconds: float | None = None,
) -> SoloCounters:
    """Make the solo counters of a program from a whole run alone; of several, from the one that took the
    (lower) median time.

    counters: beside the instructions; by default all that every run has. period_seconds: by default the
    median interval. Unequal samples are divided by their own intervals. Null samples of a counter are filled
    from their neighbours where at least half are known. Raises BadData for a trace that is not of a whole run
    alone, has gaps, no or impossible counts, and for runs that executed over 2% apart; UnknownName for a
    counter that one does not have.
    """
    runs = runs if isinstance(runs, Sequence) else (runs,)
    if not runs:
        raise UsageError("solo counters need at least one trace")
    for run in runs:
        if not run.solo:
            where = f"the trace of {run.run_id}"
            raise BadData("it ran beside others", where=where, fix="Give the trace of a run alone.")
    if period_seconds is None:
        period_seconds = float(np.median([np.median(run.interval_seconds) for run in runs]))
    if not (np.isfinite(period_seconds) and period_seconds > 0):
        raise UsageError(f"period_seconds {period_seconds} is not above 0")
    every = set.intersection(*(set(run.counters) for run in runs))
    names = (INSTRUCTIONS, *(n for n in (counters or sorted(every)) if n != INSTRUCTIONS))
    tracks = [track_of(run, names) for run in runs]
    totals = [float(counted[-1, 0]) for _, counted in tracks]
    if max(totals) > (1 + MOST_DIFFERENCE) * min(totals):
        raise BadData(
            f"they executed from {min(totals):.6g} to {max(totals):.6g} instructions",
            where=f"the runs of {runs[0].workload!r} alone",
            fix="Repeats are of the same program with the same input.",
        )
    order = np.argsort([times[-1] for times, _ in tracks], kind="stable")
    one, (times, counted) = runs[0], tracks[order[(len(runs) - 1) // 2]]
    duration = float(times[-1])
    n = max(1, int(np.ceil(duration / period_seconds - 1e-9)))
    edges = np.minimum(np.arange(n + 1) * period_seconds, duration)
    table = np.stack([np.interp(edges, times, column) for column in counted.T], axis=1)
    last = edges[-1] - edges[-2]
    table[-1] = table[-2] + (table[-1] - table[-2]) * (period_seconds / last)
    return SoloCounters(one.workload, one.platform, period_seconds, duration, names, table)


@dataclass(frozen=True, eq=False)
class Solos:
    """What is known of every workload alone, by workload and platform."""

    all: tuple[SoloCounters, ...]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], SoloCounters]:
        return {(solo.platform, solo.workload): solo for solo in self.all}

    @classmethod
    def from_traces(
        cls, traces: Traces, counters: tuple[str, ...], period_seconds: float | None = None
    ) -> Solos:
        """Make one entry per workload and platform. period_seconds: by default the median interval between
        samples of the runs alone."""
        runs: dict[tuple[str, str], list[Trace]] = {}
        for trace in sorted((t for t in traces if t.solo), key=lambda t: t.run_id):
            runs.setdefault((trace.workload, trace.platform), []).append(trace)
        if period_seconds is None:
            each = [np.median(run.interval_seconds) for some in runs.values() for run in some]
            period_seconds = float(np.median(each))
        return cls(
            tuple(solo_counters(runs[key], counters, period_seconds) for key in sorted(runs))
        )

    def of(self, workload: str, platform: str) -> SoloCounters:
        """Return one workload. Raises UnknownName where it has no trace alone on the platform."""
        found = self._by_name.get((platform, workload))
        if found is None:
            known = sorted(name for place, name in self._by_name if place == platform)
            kind = f"workload with a trace alone on {platform!r}:"
            raise UnknownName(kind, workload, known)
        return found
