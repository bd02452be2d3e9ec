"""What is learned from: traces as they are taken, and periods of windows laid over the runs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.data import all_without_waiting
from jostle.errors import NotEnoughRuns
from jostle.learn.learners.counters._alignment_settings import AlignmentSettings
from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows, Member, member_of
from jostle.learn.learners.counters.learning._aligned_windows import (
    Lay,
    aligned_rows,
    is_looped,
    traced_windows,
)
from jostle.learn.learners.counters.solo._axis import with_instructions
from jostle.learn.learners.counters.solo._index import (
    UNSTEADY,
    SoloIndex,
    sampling_period,
    unsteady_workloads,
)
from jostle.learn.learners.counters.solo._offered import offered_counters
from jostle.learn.learners.counters.solo._probed import (
    EVERY_STRESSOR,
    LOST,
    only_stressors,
    with_probes,
)
from jostle.learn.learners.counters.solo._quiet import equal_repeats

if TYPE_CHECKING:
    from collections.abc import Collection

    from jostle.data import Runs, Trace, Traces
    from jostle.learn.contract._data import Data


@dataclass(frozen=True, eq=False)
class TracedGround:
    """What is learned from: solos and windows, periods laid over the runs alone, and what was left out."""

    solos: SoloIndex
    windows: dict[str, list[Trace]]
    rows: AlignedRows
    offered: tuple[str, ...]
    notes: tuple[str, ...]
    loop: bool
    repeats: int

    @property
    def most(self) -> int:
        """The most workloads of a window."""
        return max(len(one) for one in self.windows.values())

    def rows_of(self, members: Collection[Member]) -> AlignedRows:
        """Of these (platform, workload, sorted co-runners) alone."""
        kept = [member_of(w, p, others) in members for p, w, others in self.rows.members]
        return self.rows.take(np.array(kept, bool)[self.rows.run])


def ground_of(
    settings: AlignmentSettings, traces: Traces, runs: Runs, lay: Lay | None = None
) -> TracedGround:
    """Of the windows of these runs; traces: with what probes showed. lay: as in `aligned_rows`. Raises
    NotEnoughRuns where none was traced beside others."""
    offered, notes = offered_counters(traces, settings.counters)
    repeats = equal_repeats(traces)
    period = settings.period_seconds or sampling_period(traces)
    solos = SoloIndex.from_traces(traces, offered, period, repeats=repeats)
    ids = set(traces.run_ids).intersection(runs.table.column("run_id").to_pylist())
    windows = traced_windows(traces, ids)
    if not windows:
        raise NotEnoughRuns(
            "none of the runs to learn from was traced beside others",
            fix="Trace windows of several workloads (jostle trace), each with one window_id.",
        )
    unsteady = unsteady_workloads(traces, period)
    if unsteady:
        notes.append(
            f"not learned from, except as co-runners, because their usual run alone takes over "
            f"{UNSTEADY - 1:.0%} longer than their quiet one: {', '.join(unsteady)}"
        )
    loop = settings.corunners == "loop"
    if settings.corunners == "auto":
        loop = is_looped(windows, solos)
    how: dict[str, Any] = {} if lay is None else {"lay": lay}
    rows = aligned_rows(windows, solos, loop=loop, leave_out=unsteady, repeats=repeats, **how)
    return TracedGround(solos, windows, rows, offered, tuple(notes), loop, repeats)


def traces_of(settings: AlignmentSettings, data: Data, *, probes: bool = True) -> Traces:
    """As they are learned from; probes: those of programs alone, with what stressors showed. Raises
    NotEnoughRuns where no program ran beside the stressors named."""
    traces = with_instructions(data.traces)
    traces = all_without_waiting(traces) if settings.own_cores else traces
    traces = only_stressors(traces, settings.stressors)
    if not probes:
        return traces
    probed = with_probes(traces, settings.stressors)
    counted = {name for trace in probed for name in trace.counters}
    if settings.stressors != EVERY_STRESSOR and not any(n.startswith(LOST) for n in counted):
        raise NotEnoughRuns(
            f"no program was traced beside {', '.join(settings.stressors)}",
            fix="Trace beside stressors (`probes` of jostle trace), or leave `stressors` away.",
        )
    return probed
