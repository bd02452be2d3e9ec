"""A trace on the axis of the time in which its program had a core, where other processes took it at times.

A program on a core of its own waits only for those that are none of its co-runners: other processes of the
host, and whoever records it, which has no core left when all are in use. What it waited is known to the
microsecond (`run_delay_seconds`), so that it can be left out. It must not be where members share cores:
there, waiting for each other is interference.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.errors import BadData
from jostle.traces.counters._counters import Trace, Traces

WAITED = "run_delay_seconds"
SHORTEST = 0.25  # of a usual sample: what is left of one that was mostly waiting joins the next


def without_waiting(trace: Trace) -> Trace:
    """The same run without the time it waited for its core; times, intervals and runtime are shorter by it.

    Waiting is told when it ends, so it may belong to the sample before: times never run backwards for
    it, and samples that would be shorter than a quarter of a usual one join the next. Their counts
    add up. Raises BadData for a trace that does not say how long it waited.
    """
    waited = np.asarray(trace.counters.get(WAITED, np.nan), np.float64)
    if np.isnan(waited).all():
        raise BadData(
            "it does not say how long it waited for its core",
            where=f"the trace of {trace.run_id}",
            fix=f"Record it with the counter {WAITED}, as jostle trace does where the kernel tells.",
        )
    begin = trace.time_seconds[0] - trace.interval_seconds[0]
    # Null samples (the last, as a rule) are taken as without waiting: what is not told is not left out.
    total = np.cumsum(np.nan_to_num(waited))
    ends = np.minimum.accumulate((trace.time_seconds - total)[::-1])[::-1]
    shortest = SHORTEST * float(np.median(trace.interval_seconds))
    kept, last = [], begin
    for k, end in enumerate(ends[:-1].tolist()):
        if end - last >= shortest and ends[-1] - end > 0:
            kept.append(k)
            last = end
    kept.append(len(ends) - 1)
    starts = np.r_[0, np.array(kept[:-1], np.int64) + 1]
    times = ends[kept]
    if times[0] <= begin:
        raise BadData(
            "it waited for all of its time",
            where=f"the trace of {trace.run_id}",
            fix="Trace it again.",
        )
    return replace(
        trace,
        runtime_seconds=trace.runtime_seconds - float(total[-1]),
        time_seconds=times,
        interval_seconds=np.diff(times, prepend=begin),
        counters={name: np.add.reduceat(v, starts) for name, v in trace.counters.items()},
    )


def all_without_waiting(traces: Traces) -> Traces:
    """`without_waiting` of every trace."""
    return Traces.from_traces([without_waiting(trace) for trace in traces])
