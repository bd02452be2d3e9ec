"""Progress: how far each run has come, as the axis on which repeated runs line up.

Runs of one program do the same things in the same order, but not at the same times. At one time they are
at different places, and what they use there depends on the place. A clock counts progress: *work*
(retired instructions, which rise at a rate that itself says what the program is doing) or *beats* (marks
that the program makes between its phases). The clock is known over the whole of every run, being one
counter; the states need be known at the snapshots only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.traces import Trace

ClockKind = Literal["work", "beats"]
SLACK = 1e-7  # of a phase: sums of many parts of a mark fall short of it


@dataclass(frozen=True)
class ClockSettings:
    """Which counter is a clock, and how it is read.

    marks: what the counter has reached, since a run began, where its next phases begin: makes beats of a
    counter of work that is the same in every run. period: of beats, after how many phases the program begins
    anew. Raises UsageError.
    """

    counter: str
    kind: ClockKind = "work"
    marks: tuple[float, ...] = ()
    period: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("work", "beats"):
            raise UsageError(f"clock_kind {self.kind!r} is not known", fix="One of work, beats.")
        marks = np.asarray(self.marks, np.float64)
        if not (marks > 0).all() or (np.diff(marks) <= 0).any():
            raise UsageError("the marks of a clock must be above 0 and rise")
        if (self.marks or self.period is not None) and self.kind != "beats":
            raise UsageError("only a clock of kind 'beats' has marks or a period")
        if self.period is not None and self.period < 1:
            raise UsageError(f"a clock cannot have a period of {self.period} phases")


@dataclass(frozen=True, eq=False)
class Clock:
    """times[core][run], counts[core][run]: the run's cumulative count at the ends of its samples.

    kind: `work`, a count that rises all the time, or `beats`, phases passed, where a part of one says how far
    in it a run is, and a program that only counts marks gives whole numbers. period: of beats, after
    how many phases the program begins anew; a phase is then its number modulo it. None: never.
    """

    kind: ClockKind
    times: Mapping[int, Sequence[np.ndarray]]
    counts: Mapping[int, Sequence[np.ndarray]]
    period: int | None = None

    @classmethod
    def of(cls, traces: Sequence[Trace], row: Mapping[str, int], settings: ClockSettings) -> Clock:
        """From traces; row: the number of each run. Samples without the counter are bridged."""
        cores = sorted({trace.core for trace in traces})
        nothing = np.zeros(0)
        times = {core: [nothing] * len(row) for core in cores}
        counts = {core: [nothing] * len(row) for core in cores}
        for trace in traces:
            if settings.counter not in trace.counters:
                continue
            value = trace.counters[settings.counter]
            known = np.isfinite(value)
            if known.any():
                begin = float(trace.time_seconds[0] - trace.interval_seconds[0])
                # A sample that is missing went on at the mean rate of the others.
                rate = value[known].sum() / trace.interval_seconds[known].sum()
                only_counts_marks = settings.kind == "beats" and not settings.marks
                missing = 0.0 if only_counts_marks else rate * trace.interval_seconds
                count = np.append(0.0, np.cumsum(np.where(known, value, missing)))
                if settings.marks:
                    count = _in_phases(count, np.array(settings.marks, np.float64))
                run = row[trace.run_id]
                times[trace.core][run] = np.append(begin, trace.time_seconds)
                counts[trace.core][run] = count
        return cls(settings.kind, times, counts, settings.period)

    def at(self, core: int, time_seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """(R,) progress and (R,) its rate per second at a time; NaN for runs not traced then.

        Beats are whole numbers: the phase that a run is in, NaN where its sample then has parts of two.
        """
        if self.kind == "beats":
            first, last, _ = self.phases(core, time_seconds)
            whole = np.where(first == last, last, np.nan)
            return self.kind_of_phase(whole), np.where(np.isnan(first), np.nan, last - first)
        n = len(self.times[core])
        progress, rate = np.full(n, np.nan), np.full(n, np.nan)
        for run, sample in self._samples(core, time_seconds):
            times, counts = self.times[core][run], self.counts[core][run]
            rate[run] = (counts[sample] - counts[sample - 1]) / (times[sample] - times[sample - 1])
            progress[run] = np.interp(time_seconds, times, counts)
        return progress, rate

    def phases(self, core: int, time_seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(R,) the phase in which the sample at that time begins, (R,) that in which it ends, and (R,) the
        share of its time that belongs to the first; NaN for runs not traced then, and for a share that the
        clock does not tell (it counts marks only, or the phases beside are no longer than a sample)."""
        n = len(self.times[core])
        first, last, share = (np.full(n, np.nan) for _ in range(3))
        for run, sample in self._samples(core, time_seconds):
            times, counts = self.times[core][run], self.counts[core][run] + SLACK
            first[run], last[run] = np.floor(counts[sample - 1]), np.floor(counts[sample])
            if first[run] == last[run]:
                share[run] = 1.0
            elif 2 <= sample < len(times) - 1:
                # How fast it went through either phase, in the samples before and after.
                before = (counts[sample - 1] - counts[sample - 2]) / (
                    times[sample - 1] - times[sample - 2]
                )
                after = (counts[sample + 1] - counts[sample]) / (times[sample + 1] - times[sample])
                same = (
                    np.floor(counts[sample - 2]) == first[run],
                    np.floor(counts[sample + 1]) == last[run],
                )
                if all(same) and before > 0 and after > 0:
                    spent = (first[run] + 1 - counts[sample - 1]) / before
                    left = (counts[sample] - last[run]) / after
                    share[run] = spent / (spent + left) if spent + left > 0 else np.nan
        return first, last, share

    def kind_of_phase(self, phases: np.ndarray) -> np.ndarray:
        """The phases' numbers modulo the period."""
        return phases if self.period is None else phases % self.period

    def _samples(self, core: int, time_seconds: float) -> Iterator[tuple[int, int]]:
        """(run, number of the sample that covers the time) of every run traced then; 1 is the first."""
        for run, times in enumerate(self.times[core]):
            if len(times) < 2:
                continue
            # Of the run's own length: a clock may count from anywhere.
            slack = 1e-9 * (times[-1] - times[0]) + 2 * np.spacing(abs(times[-1]))
            if times[0] <= time_seconds <= times[-1] + slack:
                sample = int(np.searchsorted(times, time_seconds - slack))
                yield run, min(max(sample, 1), len(times) - 1)


def _in_phases(counts: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Counts of work as phases passed, with parts of one in proportion to the work between its marks."""
    last = marks[-1] + (marks[-1] - marks[-2] if len(marks) > 1 else marks[-1])
    known = np.concatenate([[0.0], marks, [last]])
    phases = np.interp(counts, known, np.arange(len(known)))
    return np.minimum(phases, len(marks) + 1 - 2 * SLACK)
