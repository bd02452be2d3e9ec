"""Progress: how far each run has come, as the axis on which repeated runs line up.

Runs of one program do the same things in the same order, but not at the same times. At one time they are
at different places, and what they use there depends on the place. A clock counts progress: *work*
(retired instructions, which rise at a rate that itself says what the program is doing) or *beats* (marks
that the program makes between its phases). The clock is known over the whole of every run, being one
counter; the states need be known at the snapshots only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.traces import Trace

ClockKind = Literal["work", "beats"]


@dataclass(frozen=True, eq=False)
class Clock:
    """times[core][run], counts[core][run]: the run's cumulative count at the ends of its samples.

    kind: `work`, a count that rises all the time, or `beats`, marks between phases.
    """

    kind: ClockKind
    times: Mapping[int, Sequence[np.ndarray]]
    counts: Mapping[int, Sequence[np.ndarray]]

    @classmethod
    def of(
        cls, traces: Sequence[Trace], row: Mapping[str, int], counter: str, kind: ClockKind
    ) -> Clock:
        """From traces; row: the number of each run. Samples without the counter are bridged."""
        if kind not in ("work", "beats"):
            raise UsageError(f"clock_kind {kind!r}", fix="One of work, beats.")
        cores = sorted({trace.core for trace in traces})
        nothing = np.zeros(0)
        times = {core: [nothing] * len(row) for core in cores}
        counts = {core: [nothing] * len(row) for core in cores}
        for trace in traces:
            if counter not in trace.counters:
                continue
            value = trace.counters[counter]
            known = np.isfinite(value)
            if known.any():
                begin = float(trace.time_seconds[0] - trace.interval_seconds[0])
                # A sample that is missing went on at the mean rate of the others.
                rate = value[known].sum() / trace.interval_seconds[known].sum()
                steps = np.where(known, value, rate * trace.interval_seconds)
                if kind == "beats":
                    steps = np.where(known, value, 0.0)
                run = row[trace.run_id]
                times[trace.core][run] = np.append(begin, trace.time_seconds)
                counts[trace.core][run] = np.append(0.0, np.cumsum(steps))
        return cls(kind, times, counts)

    def at(self, core: int, time_seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """(R,) progress and (R,) its rate per second at a time; NaN for runs not traced then.

        Beats are whole numbers: the phase that a run is in.
        """
        n = len(self.times[core])
        progress, rate = np.full(n, np.nan), np.full(n, np.nan)
        pairs = zip(self.times[core], self.counts[core], strict=True)
        for run, (times, counts) in enumerate(pairs):
            if not len(times) or not times[0] <= time_seconds <= times[-1] * (1 + 1e-9):
                continue
            sample = min(max(int(np.searchsorted(times, time_seconds - 1e-9)), 1), len(times) - 1)
            rate[run] = (counts[sample] - counts[sample - 1]) / (times[sample] - times[sample - 1])
            if self.kind == "beats":
                progress[run] = np.floor(counts[sample] + 1e-9)
            else:
                progress[run] = np.interp(time_seconds, times, counts)
        return progress, rate
