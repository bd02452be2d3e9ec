"""Members traced side by side, as the cores of one run: what multi-core graphs are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from jostle.errors import BadData, UnknownName
from jostle.traces.counters._counters import Trace, Traces


class Windows:
    """Windows as runs: run_id is the window's, core 0, 1, … its members in the order of their workloads.

    Members of one workload keep the order of their run_ids, which for `jostle trace` is that of its
    members. `runtime_seconds` stays each member's own: members end at different times.
    """

    def __init__(self, members: Mapping[str, Sequence[Trace]]) -> None:
        self._members = dict(members)

    @classmethod
    def of(cls, traces: Traces) -> Windows:
        """All windows of the traces; runs alone are no window and are left out.

        Raises BadData where there is none, or where windows differ in their members.
        """
        found: dict[str, list[Trace]] = {}
        for trace in traces:
            if trace.window_id is not None:
                found.setdefault(trace.window_id, []).append(trace)
        if not found:
            raise BadData(
                "no traced run has a window",
                fix="Members traced side by side share one: jostle trace -w A -w B.",
            )
        windows, kinds = {}, {}
        for window_id, members in found.items():
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
        """How many windows."""
        return len(self._members)

    def __iter__(self) -> Iterator[Trace]:
        """Every core of every window."""
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
        """Only these windows, in this order. Raises UnknownName."""
        for run_id in run_ids:
            if run_id not in self._members:
                raise UnknownName("window", run_id, self.run_ids)
        return Windows({run_id: self._members[run_id] for run_id in run_ids})


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sorts run-2 before run-10."""
    parts = re.split(r"(\d+)", text)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
