"""`jostle trace`: what workloads do over time, alone and beside others, into a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.option_fields import Limits, Short
from jostle._base.report import Report
from jostle.cli.console import followed, note, running
from jostle.cli.console._shared_options import DatasetOutput, Follow
from jostle.collect import TraceOptions
from jostle.errors import UsageError
from jostle.operations import traces_report

if TYPE_CHECKING:
    from jostle.data import Trace


_WITHOUT_END_SECONDS = 1e9  # a command that is started is not cut short


@dataclass(frozen=True, kw_only=True)
class TraceCommand:
    """Options of `jostle trace`: what to trace, and what counts as disturbed."""

    output: DatasetOutput
    workload: Annotated[
        tuple[str, ...],
        "A workload, or a program such as 'name=fft-m*300+stream-l*40'; repeat for more members "
        "side by side.",
        Short("-w"),
    ] = ()
    follow: Follow = None
    name: Annotated[str | None, "What is followed is called so.  [default: its own name]"] = None
    cut: Annotated[
        float | None,
        "What is followed has no end: cut it into runs of so many seconds.",
        Limits(0.001),
    ] = None


def trace(
    command: TraceCommand,
    how: Annotated[dict[str, Any], TraceOptions(attempts=3, most_disturbed_ratio=0.15)],
) -> Report:
    """Record counter samples over time: exact progress in instructions, CPU time, memory, pressure.

    Hardware counters are recorded where this host has them and null where not. A window that others
    than its members disturbed is recorded again. Adds the tables traces/v1 and traced_runs/v1 to the dataset.
    """
    from jostle.collect import trace as record
    from jostle.collect import trace_running
    from jostle.data import Traces, cut_traces, write_traces

    is_running = any(running(command.follow or ""))
    if command.follow is not None and not is_running:
        how["seconds"] = how["timeout_seconds"] = _WITHOUT_END_SECONDS
    if is_running:
        how["timeout_seconds"] = max(how["timeout_seconds"], how["seconds"])
    how["probes"] |= bool(how["stressors"])
    options, assessed = TraceOptions(**how), []
    if command.workload and command.follow is not None:
        raise UsageError("either workloads to run, or what is followed")
    if command.follow is not None:
        runs: list[Trace] = []
        for _ in range(1 if is_running else options.runs):
            with followed(command.follow) as there:
                runs += trace_running(*there, options, name=command.name)
        traces = Traces.from_traces(runs)
    elif command.cut is not None:
        raise UsageError("--cut is for what is followed", fix="Say --follow.")
    elif not command.workload:
        raise UsageError(
            "nothing to trace",
            fix="Name a workload with -w, or what to follow by --follow.",
        )
    else:
        traces = record(
            command.workload,
            options,
            progress=lambda done, total, _: note(f"window {done + 1} of {total}"),
            on_attempt=assessed.append,
        )
    if command.cut is not None:
        traces = cut_traces(traces, command.cut)
    files = write_traces(command.output, traces)
    return traces_report(traces, command.output, files, assessed)
