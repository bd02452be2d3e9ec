"""What is known of every workload alone: solo counters by workload, platform and slot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import UnknownName
from jostle.learn.learners.counters.solo._quiet import quiet_seconds
from jostle.learn.learners.counters.solo._solo_counters import SoloCounters, solo_counters

if TYPE_CHECKING:
    from jostle.data import Trace, Traces

UNSTEADY = 1.25


@dataclass(frozen=True, eq=False)
class SoloIndex:
    """Solo counters by workload, platform and slot; a slot without any takes those of another slot."""

    all: tuple[SoloCounters, ...]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], dict[int, SoloCounters]]:
        by_name: dict[tuple[str, str], dict[int, SoloCounters]] = {}
        for solo in self.all:
            by_name.setdefault((solo.platform, solo.workload), {}).setdefault(solo.slot, solo)
        return by_name

    @classmethod
    def from_traces(
        cls,
        traces: Traces,
        counters: tuple[str, ...],
        period_seconds: float | None = None,
        *,
        repeats: int | None = None,
    ) -> SoloIndex:
        """One entry per workload, platform and slot: of the quiet stretches of all its runs alone.
        period_seconds: by default the `sampling_period`. repeats: see `solo_counters`."""
        groups = solo_runs(traces)
        if period_seconds is None:
            period_seconds = sampling_period(traces)
        return cls(
            tuple(
                solo_counters(groups[key], counters, period_seconds, repeats)
                for key in sorted(groups)
            )
        )

    def of(self, workload: str, platform: str, slot: int) -> SoloCounters:
        """Raises UnknownName where the workload has no trace alone on the platform."""
        home = self._by_name.get((platform, workload))
        if home is None:
            known = sorted(name for place, name in self._by_name if place == platform)
            kind = f"workload with a trace alone on {platform!r}:"
            raise UnknownName(kind, workload, known)
        return home.get(slot) or next(iter(home.values()))

    def slotted(self, workload: str, platform: str) -> bool:
        """Whether it was traced alone on more than one slot."""
        return len(self._by_name.get((platform, workload), ())) > 1


def solo_runs(traces: Traces) -> dict[tuple[str, str, int], list[Trace]]:
    """{(workload, platform, core): runs alone in the order of run_ids}."""
    by_member: dict[tuple[str, str, int], list[Trace]] = {}
    for trace in sorted((t for t in traces if t.solo), key=lambda t: t.run_id):
        by_member.setdefault((trace.workload, trace.platform, trace.core), []).append(trace)
    return by_member


def solo_run_ids(traces: Traces) -> set[str]:
    """run_ids of the runs alone that the method takes as inputs, so that nothing may be calibrated on
    them."""
    return {run.run_id for runs in solo_runs(traces).values() for run in runs}


def sampling_period(traces: Traces) -> float:
    """Seconds: the median, over the runs alone, of the median interval between samples."""
    runs = [run for group in solo_runs(traces).values() for run in group]
    return float(np.median([np.median(run.interval_seconds) for run in runs]))


def unsteady_workloads(traces: Traces, period_seconds: float) -> tuple[str, ...]:
    """Workloads traced alone three times or more whose usual run takes over a quarter longer than their
    quiet run time: what others do to them cannot be told from what happens to them alone."""
    unsteady = set()
    for (name, _, _), runs in solo_runs(traces).items():
        usual = np.median([run.runtime_seconds for run in runs])
        if len(runs) >= 3 and usual > UNSTEADY * quiet_seconds(runs, period_seconds):
            unsteady.add(name)
    return tuple(sorted(unsteady))
