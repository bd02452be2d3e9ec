"""A recording of what has no end, cut into runs of one length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.errors import BadData
from jostle.traces.counters._counters import Trace, Traces


def cut_traces(traces: Traces, length_seconds: float) -> Traces:
    """Every trace as runs of so many seconds; what is left at the end, shorter than half of one, is left out.

    A sample belongs to the run in which it ends. Raises BadData for a length that no trace has two of.
    """
    found: list[Trace] = []
    for trace in traces:
        # A hair of slack: samples that end where a run does are its last.
        numbers = np.ceil(trace.time_seconds / length_seconds - 1e-6).astype(np.int64) - 1
        for number in np.unique(numbers).tolist():
            mine = numbers == number
            part = trace.take(mine)
            times = part.time_seconds - number * length_seconds
            if number and times[-1] < length_seconds / 2:
                continue
            ending = f"-{number:04d}"
            found.append(
                replace(
                    part,
                    run_id=trace.run_id + ending,
                    window_id=trace.window_id and trace.window_id + ending,
                    runtime_seconds=float("nan"),
                    time_seconds=times,
                )
            )
    if len(found) < 2 * len(traces):
        raise BadData(
            f"the recording is shorter than two runs of {length_seconds:g} s",
            fix="Record longer, or cut shorter runs.",
        )
    return Traces.from_traces(found)
