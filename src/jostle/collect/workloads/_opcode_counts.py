"""What one repetition of a workload executes, on whatever machine: exact instruction counts."""

from __future__ import annotations

from collections.abc import Callable

from jostle.collect.kernels.opcodes._opcode_counting import (
    DEFAULT_TIMEOUT_SECONDS,
    CountedModule,
    OpcodeCounts,
    module_counts,
)
from jostle.collect.workloads._workloads import Workload
from jostle.errors import BadData, JostleError

# What is counted is named in one place.
__all__ = ["OpcodeCounts", "count_opcodes"]


def count_opcodes(
    workload: Workload,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    stopped: Callable[[], bool] = lambda: False,
) -> OpcodeCounts:
    """Count the instructions of one repetition, after set-up. Computed once per module and arguments.

    A module that does not come with Jostle is run in a process of its own, for so long at most. stopped:
    asked ten times a second whether to give up.
    Raises BadData where the module cannot be counted, fails or takes too long, and for a command line.
    """
    if workload.kind == "command":
        raise BadData(
            "a command line has no WebAssembly instructions",
            where=f"workload {workload.name!r}",
        )
    question = CountedModule(
        str(workload.module),
        workload.digest,
        workload.kind,
        (workload.module.name, *workload.arguments),
        workload.argument,
        workload.repeats,
    )
    try:
        return module_counts(question, timeout_seconds, stopped)
    except JostleError as error:
        raise BadData(error.what, where=f"workload {workload.name!r}", fix=error.fix) from error
