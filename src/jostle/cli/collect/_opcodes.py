"""`jostle opcodes`: what a workload executes, instruction by instruction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from jostle._options import Limits, Positional, Short
from jostle.cli.console import command_of, print_json, say
from jostle.cli.console._fields import Json


@dataclass(frozen=True, kw_only=True)
class OpcodesCommand:
    """Exact counts of executed instructions: of a WebAssembly workload, or of a native command."""

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
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("opcodes")(command_of(OpcodesCommand, opcodes))


def opcodes(asked: OpcodesCommand) -> None:
    """Print the counts, the most frequent first, or one document."""
    from jostle.errors import UsageError

    if [asked.workload is None, not asked.words, asked.callgrind is None].count(False) != 1:
        raise UsageError("name one workload with -w, a command line after --, or --callgrind FILE")
    document = (
        _native(asked) if asked.workload is None else _webassembly(asked.workload, asked.timeout)
    )
    if asked.json_:
        print_json({"schema": "opcodes/v1", **document})
        return
    total = document["instructions"]
    say(f"{total} instructions")
    for name, count in sorted(document["opcodes"].items(), key=lambda pair: -pair[1]):
        say(f"{count:>14}  {count / max(1, total):6.2%}  {name}")


def _webassembly(workload: str, timeout_seconds: float) -> dict[str, Any]:
    from jostle.errors import UsageError
    from jostle.measure import count_opcodes, find_workloads

    found = find_workloads([workload])
    if len(found) != 1:
        raise UsageError(f"{workload!r} fits {len(found)} workloads; name one")
    counts = count_opcodes(found[0], timeout_seconds=timeout_seconds)
    return {
        "workload": found[0].name,
        "instructions": counts.instructions,
        "opcodes": counts.opcodes,
        "bulk_bytes": counts.bulk_bytes,
        "memory_bytes": counts.memory_bytes,
    }


def _native(asked: OpcodesCommand) -> dict[str, Any]:
    from jostle.measure import native_mix, read_callgrind

    if asked.callgrind is None:
        mix, source = (
            native_mix(list(asked.words), timeout_seconds=asked.timeout),
            {"command": list(asked.words)},
        )
    else:
        mix, source = read_callgrind(asked.callgrind), {"callgrind": str(asked.callgrind)}
    return {
        **source,
        "instructions": mix.instructions,
        "opcodes": mix.mnemonics,
        "unknown": mix.unknown,
        "classes": mix.columns(),
    }
