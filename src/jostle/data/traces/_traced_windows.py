"""Members traced side by side, as the cores of one run: what multi-core graphs are made of.

A program on a core of its own waits only for those that are none of its co-runners: other processes of the
host, and whoever records it, which has no core left when all are in use. What it waited is known to the
microsecond (`run_delay_seconds`), so that it can be left out. It must not be where members share cores:
there, waiting for each other is interference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from jostle.data.traces._traces import Trace, Traces
from jostle.errors import BadData, UnknownName


class Windows:
    """Windows as runs: run_id is the window's, core 0, 1, … its members in the order of their workloads.

    Members of one workload keep the order of their run_ids, which for `jostle trace` is that of its
    members. `runtime_seconds` stays each member's own: members end at different times.
    """

    def __init__(self, members: Mapping[str, Sequence[Trace]]) -> None:
        self._members = dict(members)

    @classmethod
    def of(cls, traces: Traces) -> Windows:
        """Return all windows of the traces; runs alone are no window and are left out.

        Raises BadData where there is none, or where windows differ in their members.
        """
        windows_of_members: dict[str, list[Trace]] = {}
        for trace in traces:
            if trace.window_id is not None:
                windows_of_members.setdefault(trace.window_id, []).append(trace)
        if not windows_of_members:
            raise BadData(
                "no traced run has a window",
                fix="Members traced side by side share one: jostle trace -w A -w B.",
            )
        windows, kinds = {}, {}
        for window_id, members in windows_of_members.items():
            members.sort(key=lambda trace: (trace.workload, _natural(trace.run_id), trace.core))
            kinds.setdefault(tuple(trace.workload for trace in members), window_id)
            windows[window_id] = [
                replace(trace, run_id=window_id, core=core) for core, trace in enumerate(members)
            ]
        if len(kinds) > 1:
            few = ", ".join(
                f"{'+'.join(kind)} ({where})" for kind, where in list(kinds.items())[:3]
            )
            raise BadData(
                f"the windows differ in their members: {few}{', …' if len(kinds) > 3 else ''}",
                fix="Choose windows of one kind by `workload` and `beside`.",
            )
        return cls(windows)

    def __len__(self) -> int:
        """Return how many windows."""
        return len(self._members)

    def __iter__(self) -> Iterator[Trace]:
        """Yield every core of every window."""
        for members in self._members.values():
            yield from members

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The windows' ids, in the order of the traces."""
        return tuple(self._members)

    @cached_property
    def counters(self) -> tuple[str, ...]:
        """All counters that occur, sorted."""
        return tuple(sorted({name for trace in self for name in trace.counters}))

    def select(self, run_ids: Sequence[str]) -> Windows:
        """Keep only these windows, in this order. Raises UnknownName."""
        for run_id in run_ids:
            if run_id not in self._members:
                raise UnknownName("window", run_id, self.run_ids)
        return Windows({run_id: self._members[run_id] for run_id in run_ids})


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sort run-2 before run-10."""
    parts = re.split(r"(\d+)", text)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


WAITED = "run_delay_seconds"
SHORTEST = 0.25  # of a usual sample: what is left of one that was mostly waiting joins the next


def without_waiting(trace: Trace) -> Trace:
    """Return the same run without the time it waited for its core; times, intervals and runtime are shorter
    by it.

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
    last_samples, last = [], begin
    for k, end in enumerate(ends[:-1].tolist()):
        if end - last >= shortest and ends[-1] - end > 0:
            last_samples.append(k)
            last = end
    last_samples.append(len(ends) - 1)
    starts = np.r_[0, np.array(last_samples[:-1], np.int64) + 1]
    times = ends[last_samples]
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
    """Return `without_waiting` of every trace."""
    return Traces.from_traces([without_waiting(trace) for trace in traces])
