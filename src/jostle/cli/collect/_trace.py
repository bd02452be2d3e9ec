"""`jostle trace`: what workloads do over time, alone and beside others, into a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._options import Limits, Short
from jostle.cli.console import command_of, note, print_json, say
from jostle.cli.console._fields import Cores, DatasetOutput, Device, Json

if TYPE_CHECKING:
    from jostle.measure import Assessment
    from jostle.traces import Trace, Traces


# Exact ones before those that hardware counted.
_PROGRESS = ("instructions", "perf_instructions")


@dataclass(frozen=True, kw_only=True)
class TraceCommand:
    """Record counter samples over time: exact progress in instructions, CPU time, memory, pressure.

    Hardware counters are recorded where this host has them and null where not. A window that others
    than its members disturbed is recorded again. Adds the tables traces/v1 and traced_runs/v1 to the dataset.
    """

    output: DatasetOutput
    workload: Annotated[
        tuple[str, ...],
        "A workload, or a program such as 'name=fft-m*300+stream-l*40'; repeat for more members "
        "side by side.",
        Short("-w"),
    ] = ()
    pid: Annotated[int | None, "Follow this process instead, with all it started."] = None
    cgroup: Annotated[
        str | None, "Follow all processes of this control group instead, such as a container's."
    ] = None
    name: Annotated[str | None, "What is followed is called so.  [default: its own name]"] = None
    engine: Annotated[str, "What they run on.", Short("-e")] = "speed"
    runs: Annotated[int, "Times to record everything.", Limits(1)] = 1
    alone: Annotated[bool, "Record each member by itself as well."] = False
    probes: Annotated[
        bool,
        "Record each member by itself and beside each of four stressors as well: five windows for each, "
        "as long as it takes.",
    ] = False
    stressors: Annotated[
        tuple[str, ...],
        "Only these stressors, so much less to record: cache, copy, scatter, stream, or core, where cores "
        "are shared; may be repeated.  [implies --probes]",
    ] = ()
    loop: Annotated[bool, "Who has ended begins again until all have ended once."] = False
    seconds: Annotated[float, "How long to follow members that have no end.", Limits(0.001)] = 1.0
    cut: Annotated[
        float | None,
        "What is followed has no end: cut it into runs of so many seconds.",
        Limits(0.001),
    ] = None
    interval: Annotated[float, "Seconds between samples.", Limits(0.001, 60)] = 0.01
    core: Cores = None
    device: Device = None
    timeout: Annotated[float, "Seconds one window may take.", Limits(0.1)] = 120.0
    attempts: Annotated[
        int, "Times a window is recorded at most, if it is disturbed.", Limits(1)
    ] = 3
    slowdown: Annotated[
        float, "Disturbed: a core is so many times slower than usual.", Limits(1)
    ] = 1.25
    foreign_load: Annotated[
        float, "Disturbed: members waited for their cores this share of the time.", Limits(0)
    ] = 0.15
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("trace")(command_of(TraceCommand, trace))


def trace(asked: TraceCommand) -> None:
    """Record, add what was recorded to the dataset, and print it."""
    from jostle.errors import UsageError
    from jostle.measure import Tolerance, TraceOptions, trace_running
    from jostle.measure import trace as record
    from jostle.traces import cut_traces, write_traces

    assessed: list[Assessment] = []
    options = TraceOptions(
        engine=asked.engine,
        runs=asked.runs,
        alone=asked.alone,
        probes=asked.probes or bool(asked.stressors),
        stressors=asked.stressors,
        loop=asked.loop,
        seconds=asked.seconds,
        interval_seconds=asked.interval,
        cores=asked.core,
        device=asked.device,
        timeout_seconds=max(asked.timeout, asked.seconds)
        if asked.pid is not None or asked.cgroup is not None
        else asked.timeout,
        attempts=asked.attempts,
        tolerance=Tolerance(foreign_load_ratio=asked.foreign_load, slowdown_ratio=asked.slowdown),
    )
    if asked.pid is not None or asked.cgroup is not None:
        if asked.workload:
            raise UsageError("either workloads to run, or what runs already")
        found = trace_running(asked.pid, asked.cgroup, options, name=asked.name)
    elif asked.cut is not None:
        raise UsageError("--cut is for what is followed", fix="Say --pid or --cgroup.")
    elif not asked.workload:
        raise UsageError(
            "nothing to trace",
            fix="Name a workload with -w, or what runs already: --pid, --cgroup.",
        )
    else:
        found = record(
            asked.workload,
            options,
            progress=lambda done, total, _: note(f"window {done + 1} of {total}"),
            on_attempt=assessed.append,
        )
    if asked.cut is not None:
        found = cut_traces(found, asked.cut)
    files = write_traces(asked.output, found)
    print_traces(found, asked.output, [str(file) for file in files], asked.json_, assessed)


def print_traces(
    found: Traces,
    output: Path,
    files: list[str],
    as_json: bool,
    assessed: Sequence[Assessment] = (),
) -> None:
    """What was recorded: a line for each run, or one document. assessed: every attempt, in order."""
    rows = [_row(one) for one in found]
    if as_json:
        document = {"schema": "trace/v1", "dataset": str(output), "files": files, "runs": rows}
        print_json(document | {"attempts": [vars(one) for one in assessed]})
        return
    for row in rows:
        beside = f" beside {' + '.join(row['corunners'])}" if row["corunners"] else " alone"
        took = f"{row['runtime_seconds']:.3f} s" if row["runtime_seconds"] else "no end"
        done = f", {row['instructions']:.4g} instructions" if row["instructions"] else ""
        say(f"{row['workload']}{beside}: {took}, {row['samples']} samples{done}")
    if rejected := [one for one in assessed if one.reason is not None]:
        # Attempts of a window follow one another: the last is disturbed only where all were.
        left = sum(
            one.reason is not None and (n + 1 == len(assessed) or assessed[n + 1].attempt == 0)
            for n, one in enumerate(assessed)
        )
        note(
            f"{len(rejected)} of {len(assessed)} attempts were disturbed ({rejected[-1].reason}); "
            f"{left} windows were at every attempt, of these the least disturbed is kept"
        )
    if missing := sorted({name for row in rows for name in row["not_available"]}):
        note(f"not available on this host: {', '.join(missing)}")


def _row(one: Trace) -> dict[str, Any]:
    import numpy as np

    counted = {name: float(np.nansum(values)) for name, values in one.counters.items()}
    known = sorted(name for name, v in one.counters.items() if np.isfinite(v).any())
    seconds, slowdown = one.runtime_seconds, one.core_slowdown_ratio
    return {
        "run_id": one.run_id,
        "core": one.core,
        "workload": one.workload,
        "platform": one.platform,
        "corunners": list(one.corunners),
        "window_id": one.window_id,
        "runtime_seconds": None if np.isnan(seconds) else seconds,
        "core_slowdown_ratio": None if np.isnan(slowdown) else slowdown,
        "samples": len(one),
        "instructions": next((counted[n] for n in _PROGRESS if n in known), None),
        "available": known,
        "not_available": sorted(set(one.counters) - set(known)),
    }
