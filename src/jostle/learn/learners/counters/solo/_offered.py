"""Which counters there are to learn from."""

from __future__ import annotations

from collections import Counter

import numpy as np

from jostle.data import MARKS, Traces
from jostle.errors import BadData, NotEnoughRuns
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS, MOST_NULL

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

OF_THE_RECORDING = ("_running_ratio",)  # how much of the time perf counted something


def offered_counters(
    traces: Traces, wanted: tuple[str, ...] | None
) -> tuple[tuple[str, ...], list[str]]:
    """(counters that every run alone has, instructions first; notes on those left out), without those that
    are not of the program where none are asked for by name."""
    solo = [trace for trace in traces if trace.solo]
    if not solo:
        raise NotEnoughRuns("no workload was traced alone", fix="Trace every workload alone.")
    if wanted is not None:
        return (INSTRUCTIONS, *(name for name in wanted if name != INSTRUCTIONS)), []
    count = Counter(
        name
        for trace in solo
        for name, values in trace.counters.items()
        if name not in NOT_OF_THE_PROGRAM
        and name not in MARKS
        and not name.endswith(OF_THE_RECORDING)
        and np.isnan(values).mean() <= MOST_NULL
    )
    if not count[INSTRUCTIONS]:
        raise BadData(
            "no trace counts instructions",
            fix="Record them: they are the axis (jostle trace, or perf stat -e instructions).",
        )
    notes = [
        f"counter {name} was left out: {len(solo) - n} of {len(solo)} runs alone do not have it"
        for name, n in sorted(count.items())
        if n < len(solo) and name != INSTRUCTIONS
    ]
    rest = sorted(n for n, c in count.items() if c == len(solo) and n != INSTRUCTIONS)
    return (INSTRUCTIONS, *rest), notes
