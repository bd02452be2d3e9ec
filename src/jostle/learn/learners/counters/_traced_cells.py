"""What is learned from: traces as they are taken, and periods of windows laid over the runs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.data import MARKS, all_without_waiting
from jostle.errors import BadData, NotEnoughRuns
from jostle.learn.learners.counters._alignment_settings import AlignmentSettings
from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows, Member, member_of
from jostle.learn.learners.counters.learning._aligned_windows import (
    Lay,
    aligned_rows,
    is_looped,
    traced_windows,
)
from jostle.learn.learners.counters.solo._axis import with_instructions
from jostle.learn.learners.counters.solo._probed import (
    EVERY_STRESSOR,
    LOST,
    only_stressors,
    with_probes,
)
from jostle.learn.learners.counters.solo._solo_counters import Solos
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS, MOST_NULL

if TYPE_CHECKING:
    from collections.abc import Collection

    from jostle.data import Runs, Trace, Traces
    from jostle.learn.contract._data import Data

# What the machine did to a program, or how it was recorded, rather than what the program does: no counters to
# learn from, unless they are asked for by name. Levels are no counts.
NOT_OF_THE_PROGRAM = frozenset(
    (
        "repetitions",
        "cpu_seconds",
        "run_delay_seconds",
        "timeslices",
        "voluntary_switches",
        "involuntary_switches",
        "resident_bytes",
        "pressure_cpu_seconds",
        "pressure_memory_seconds",
        "pressure_io_seconds",
        "perf_task_clock_ns",
        "perf_context_switches",
        "perf_cpu_migrations",
    )
)


@dataclass(frozen=True, eq=False)
class TracedCells:
    """What is learned from: solos and windows, periods laid over the runs alone, and what was left out."""

    solos: Solos
    windows: dict[str, list[Trace]]
    rows: AlignedRows
    offered: tuple[str, ...]
    notes: tuple[str, ...]
    loop: bool

    @property
    def most(self) -> int:
        """The most workloads of a window."""
        return max(len(one) for one in self.windows.values())

    def rows_of(self, members: Collection[Member]) -> AlignedRows:
        """Keep the rows of these (platform, workload, sorted co-runners)."""
        kept = [member_of(w, p, others) in members for p, w, others in self.rows.members]
        return self.rows.take(np.array(kept, bool)[self.rows.run])


def cell_table_of(
    settings: AlignmentSettings, traces: Traces, runs: Runs, lay: Lay | None = None
) -> TracedCells:
    """Make the cells of the windows of these runs; traces: with what probes showed. lay: as in
    `aligned_rows`. Raises NotEnoughRuns if none was traced beside others."""
    offered, notes = offered_counters(traces, settings.counters)
    solos = Solos.from_traces(traces, offered, settings.period_seconds)
    ids = set(traces.run_ids).intersection(runs.table.column("run_id").to_pylist())
    windows = traced_windows(traces, ids)
    if not windows:
        raise NotEnoughRuns(
            "none of the runs to learn from was traced beside others",
            fix="Trace windows of several workloads (jostle trace), each with one window_id.",
        )
    loop = settings.corunners == "loop"
    if settings.corunners == "auto":
        loop = is_looped(windows, solos)
    how: dict[str, Any] = {} if lay is None else {"lay": lay}
    rows = aligned_rows(windows, solos, loop=loop, **how)
    return TracedCells(solos, windows, rows, offered, notes, loop)


def traces_of(settings: AlignmentSettings, data: Data, *, probes: bool = True) -> Traces:
    """Return the traces as they are learned from; probes: those of programs alone, with what stressors
    showed. Raises NotEnoughRuns where no program ran beside the stressors named."""
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


def offered_counters(
    traces: Traces, wanted: tuple[str, ...] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the counters that every run alone has, instructions first, and a note on those left out.

    wanted: by name, instead of all that are of the program.
    """
    solo = [trace for trace in traces if trace.solo]
    if not solo:
        raise NotEnoughRuns("no workload was traced alone", fix="Trace every workload alone.")
    if wanted is not None:
        return (INSTRUCTIONS, *(name for name in wanted if name != INSTRUCTIONS)), ()
    counted = [
        {name for name, each in trace.counters.items() if np.isnan(each).mean() <= MOST_NULL}
        - NOT_OF_THE_PROGRAM
        - set(MARKS)
        for trace in solo
    ]
    some, every = set.union(*counted), set.intersection(*counted)
    if INSTRUCTIONS not in some:
        raise BadData(
            "no trace counts instructions",
            fix="Record them: they are the axis (jostle trace, or perf stat -e instructions).",
        )
    missing = ", ".join(sorted(some - every - {INSTRUCTIONS}))
    notes = (f"counters that some runs alone do not have were left out: {missing}",)
    rest = sorted(n for n in every - {INSTRUCTIONS} if not n.endswith("_running_ratio"))
    return (INSTRUCTIONS, *rest), notes if missing else ()
