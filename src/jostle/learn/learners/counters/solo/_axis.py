"""The axis of progress under the names that recorders give it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS

if TYPE_CHECKING:
    from jostle.data import Trace, Traces

# What perf and the performance units call instructions that were executed, the plainest first.
NAMES = (
    INSTRUCTIONS,
    "perf_instructions",
    "perf_instructions_u",
    "perf_inst_retired",
    "perf_inst_retired_any",
    "perf_cpu_core_instructions",
)


def with_instructions(traces: Traces) -> Traces:
    """Rename the counter that traces are aligned by to `instructions`.

    If some traces lack that counter, all use the first of NAMES that every trace has. Without such a name the
    traces are returned as they are.
    """
    every = list(traces)
    common = next((name for name in NAMES if all(name in t.counters for t in every)), None)
    if common in (None, INSTRUCTIONS):
        return traces

    def renamed(trace: Trace) -> Trace:
        counters = {k: v for k, v in trace.counters.items() if k not in (INSTRUCTIONS, common)}
        return replace(trace, counters={INSTRUCTIONS: trace.counters[common], **counters})

    return type(traces).from_traces([renamed(trace) for trace in every])
