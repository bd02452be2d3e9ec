"""`jostle opcodes`: what a workload executes, instruction by instruction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from jostle._options import Limits, Positional, Short
from jostle._report import Report
from jostle.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class OpcodesCommand:
    """What is counted."""

    words: Annotated[
        tuple[str, ...], "A command line, counted by callgrind.", Positional("-- COMMAND…")
    ] = ()
    workload: Annotated[
        str | None, "A workload, or a .wasm file with its arguments.", Short("-w")
    ] = None
    callgrind: Annotated[
        Path | None, "A file that callgrind wrote, with --dump-instr=yes --cache-sim=yes."
    ] = None
    timeout: Annotated[float, "Seconds that counting may take.", Limits(0.1)] = 120.0


def opcodes(command: OpcodesCommand) -> Report:
    """Exact counts of executed instructions: of a WebAssembly workload, or of a native command."""
    sources = (command.workload, command.words or None, command.callgrind)
    if sum(one is not None for one in sources) != 1:
        raise UsageError("name one workload with -w, a command line after --, or --callgrind FILE")
    counts = _native(command) if command.workload is None else _webassembly(command)
    total = counts["instructions"]
    lines = [
        f"{count:>14}  {count / max(1, total):6.2%}  {name}"
        for name, count in sorted(counts["opcodes"].items(), key=lambda pair: -pair[1])
    ]
    return Report({"schema": "opcodes/v1", **counts}, [f"{total} instructions", *lines])


def _webassembly(command: OpcodesCommand) -> dict[str, Any]:
    from jostle.measure import count_opcodes, find_workloads

    workloads = find_workloads([str(command.workload)])
    if len(workloads) != 1:
        raise UsageError(f"{command.workload!r} fits {len(workloads)} workloads; name one")
    counts = count_opcodes(workloads[0], timeout_seconds=command.timeout)
    return {
        "workload": workloads[0].name,
        "instructions": counts.instructions,
        "opcodes": counts.opcodes,
        "bulk_bytes": counts.bulk_bytes,
        "memory_bytes": counts.memory_bytes,
    }


def _native(command: OpcodesCommand) -> dict[str, Any]:
    from jostle.measure import native_mix, read_callgrind

    if command.callgrind is None:
        mix = native_mix(list(command.words), timeout_seconds=command.timeout)
        source: dict[str, Any] = {"command": list(command.words)}
    else:
        mix = read_callgrind(command.callgrind)
        source = {"callgrind": str(command.callgrind)}
    return {
        **source,
        "instructions": mix.instructions,
        "opcodes": mix.mnemonics,
        "unknown": mix.unknown,
        "classes": mix.columns(),
    }
