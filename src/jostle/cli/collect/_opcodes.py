"""`jostle opcodes`: what a workload executes, instruction by instruction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("opcodes")(opcodes)


def opcodes(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND…", help="A command line, counted by callgrind."),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option("--workload", "-w", help="A workload, or a .wasm file with its arguments."),
    ] = None,
    callgrind: Annotated[
        Path | None,
        typer.Option(help="A file that callgrind wrote, with --dump-instr=yes --cache-sim=yes."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Exact counts of executed instructions: of a WebAssembly workload, or of a native command."""
    from jostle.errors import UsageError
    from jostle.measure import count_opcodes, find_workloads, native_mix, read_callgrind

    if [workload is None, not words, callgrind is None].count(False) != 1:
        raise UsageError("name one workload with -w, a command line after --, or --callgrind FILE")
    document: dict[str, Any]
    if workload is not None:
        found = find_workloads([workload])
        if len(found) != 1:
            raise UsageError(f"{workload!r} fits {len(found)} workloads; name one")
        counts = count_opcodes(found[0])
        document = {
            "workload": found[0].name,
            "instructions": counts.instructions,
            "opcodes": counts.opcodes,
            "bulk_bytes": counts.bulk_bytes,
            "memory_bytes": counts.memory_bytes,
        }
    else:
        mix = native_mix(words or []) if callgrind is None else read_callgrind(callgrind)
        source = {"command": words} if callgrind is None else {"callgrind": str(callgrind)}
        document = {
            **source,
            "instructions": mix.instructions,
            "opcodes": mix.mnemonics,
            "unknown": mix.unknown,
            "classes": mix.columns(),
        }
    if json_:
        typer.echo(json.dumps({"schema": "opcodes/v1", **document}))
        return
    total = document["instructions"]
    typer.echo(f"{total} instructions")
    for name, count in sorted(document["opcodes"].items(), key=lambda pair: -pair[1]):
        typer.echo(f"{count:>14}  {count / max(1, total):6.2%}  {name}")
