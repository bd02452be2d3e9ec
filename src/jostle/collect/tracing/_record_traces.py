"""Recording what workloads do over time, alone and side by side: counter samples as `traces/v1`.

Progress needs no hardware counter. A workload's beats are times at which an exactly known number of
instructions has been executed; between two beats, some tens of microseconds to some milliseconds
apart, progress is taken as even. Everything else is read from the system every interval while the
workloads run; what it does not tell is null.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

from jostle._base.progress import Progress
from jostle.collect.host._facts import chosen_cores, device_name, platform_name
from jostle.collect.slots._available import can_run, find_engines
from jostle.collect.slots._slots import Slot
from jostle.collect.tracing._recording import TracedWindow
from jostle.collect.tracing._trace_settings import Assessment, TraceOptions
from jostle.collect.workloads._program import TracedProgram, find_programs, probe_workloads
from jostle.collect.workloads._workloads import Workload
from jostle.data import Trace, Traces
from jostle.errors import UsageError


def trace(
    members: Sequence[str | Workload | TracedProgram],
    options: TraceOptions | None = None,
    *,
    progress: Progress | None = None,
    on_attempt: Callable[[Assessment], None] | None = None,
    clock: Callable[[], int] = time.time_ns,
) -> Traces:
    """Record counter samples of the members side by side, one run each; the same again `runs` times.

    members: workloads, or programs as text (`fft-m*300+stream-l*40`). A program with an end is
    followed to it, and `runtime_seconds` says how long it took; the others run as long as the first
    kind, or for `seconds` where all are without end, and their runtime is null. progress: called
    with the windows done. on_attempt: called for every attempt that was watched. clock:
    nanoseconds, part of the run_ids.

    Counters: `instructions` and others from the beats (PROGRESS), how many of a program's phases
    were passed, in parts by their beats (PHASES), what /proc, perf_event_open and PSI tell
    (NAMES), null where not available. Raises UsageError, UnknownName, MissingExtra, NotPermitted,
    and BadData for a member that fails or hangs.
    """
    options = options or TraceOptions()
    programs = find_programs(members)
    if not programs:
        raise UsageError("a trace needs at least one member")
    cores = chosen_cores(options.cores)
    (engine,) = find_engines([options.engine])
    _require_runnable(programs, engine)
    platform = platform_name(engine, options.device or device_name(cores))
    windows: list[tuple[TracedProgram, ...]] = []
    if options.alone or options.probes:
        windows += [(program,) for program in programs]
    if not windows or len(programs) > 1:
        windows.append(programs)
    if options.probes:
        stressors = find_programs(probe_workloads(options.stressors))
        windows += _beside_probes(programs, stressors, engine, len(cores))
    slots = [Slot() for _ in max(windows, key=len)]
    traces: list[Trace] = []
    try:
        for number, window in enumerate(windows * options.runs):
            if progress is not None:
                progress(number, options.runs * len(windows), float("nan"))
            named = repr((clock(), number, engine, [program.name for program in window]))
            recording = TracedWindow(
                window,
                slots[: len(window)],
                engine,
                cores,
                options,
                number,
                platform,
                hashlib.sha256(named.encode()).hexdigest()[:16],
            )
            traces += least_disturbed(recording, options.attempts, on_attempt)
    finally:
        for slot in slots:
            slot.kill()
    return Traces.from_traces(traces)


def _beside_probes(
    programs: Sequence[TracedProgram],
    stressors: Sequence[TracedProgram],
    engine: str,
    cores: int,
) -> list[tuple[TracedProgram, ...]]:
    """Return windows of each program beside each stressor, and of the stressors alone."""
    if cores < 2:
        raise UsageError("probes need two cores: a workload's, and the stressor's")
    _require_runnable(stressors, engine)
    for program in programs:
        if not program.ends:
            raise UsageError(
                f"{program.name} has no end, so nothing says how far it is beside a stressor",
                fix=f"Say how often it is repeated: {program.name}*100.",
            )
    pairs = [(program, stressor) for program in programs for stressor in stressors]
    return [*pairs, *((stressor,) for stressor in stressors)]


def least_disturbed(
    recording: TracedWindow,
    attempts: int,
    on_attempt: Callable[[Assessment], None] | None,
) -> list[Trace]:
    """Return the first attempt that was not disturbed, or the least disturbed of all."""
    disturbed: list[tuple[float, list[Trace]]] = []
    for attempt in range(attempts):
        traces, assessment = recording.record(attempt)
        if assessment is None:
            return traces
        if on_attempt is not None:
            on_attempt(assessment)
        if assessment.reason is None:
            return traces
        disturbed.append((assessment.foreign_load_ratio or 0.0, traces))
    return min(disturbed, key=lambda one: one[0])[1]


def _require_runnable(programs: Sequence[TracedProgram], engine: str) -> None:
    for program in programs:
        kinds = {workload.kind for workload, _ in program.phases}
        for workload, _ in program.phases:
            if not can_run(engine, workload):
                raise UsageError(
                    f"engine {engine!r} cannot run {workload.name}", where=program.name
                )
        if "wasi" in kinds and len(kinds) > 1:
            raise UsageError("a program's phases are all WASI or none is", where=program.name)
