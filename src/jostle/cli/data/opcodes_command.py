"""`jostle opcodes`: what a workload executes, instruction by instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._base.option_fields import Limits, Short
from jostle._base.report import Report
from jostle.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class OpcodesCommand:
    """What is counted."""

    workload: Annotated[str, "A workload, or a .wasm file with its arguments.", Short("-w")]
    timeout: Annotated[float, "Seconds that counting may take.", Limits(0.1)] = 120.0


def opcodes(command: OpcodesCommand) -> Report:
    """Count exactly what a WebAssembly workload executes in one repetition.

    A native program's instructions are counted by its own tools: valgrind --tool=callgrind, or perf stat.
    """
    from jostle.collect import count_opcodes, find_workloads

    workloads = find_workloads([command.workload])
    if len(workloads) != 1:
        raise UsageError(f"{command.workload!r} fits {len(workloads)} workloads; name one")
    counts = count_opcodes(workloads[0], timeout_seconds=command.timeout)
    total = counts.instructions
    lines = [
        f"{count:>14}  {count / max(1, total):6.2%}  {name}"
        for name, count in sorted(counts.opcodes.items(), key=lambda pair: -pair[1])
    ]
    document = {
        "schema": "opcodes/v1",
        "workload": workloads[0].name,
        "instructions": total,
        "opcodes": counts.opcodes,
        "bulk_bytes": counts.bulk_bytes,
        "memory_bytes": counts.memory_bytes,
    }
    return Report(document, [f"{total} instructions", *lines])
