"""Recording what workloads do over time, alone and side by side: counter samples as `traces/v1`.

Progress needs no hardware counter. A workload's beats (see `_harness`) are times at which an exactly
known number of instructions has been executed; between two beats, some tens of microseconds to some
milliseconds apart, progress is taken as even. Everything else is read from the system every interval
while the workloads run; what it does not tell is null.
"""

from __future__ import annotations

import base64
import hashlib
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import BadData, UsageError
from jostle.measure.campaign._campaign import can_run
from jostle.measure.host._engines import engine_setting, platform_name
from jostle.measure.host._facts import device_name, usable_cores
from jostle.measure.host._sampler import NAMES, Sampler
from jostle.measure.host._variants import variant_of
from jostle.measure.slots._available import find_engines
from jostle.measure.slots._slots import Slot, gather
from jostle.measure.tracing._progress import Phase, phases_of, progress_of
from jostle.measure.tracing._watch import Judgement, Watch
from jostle.measure.window._estimate import Tolerance
from jostle.measure.window._placement import phases as placements
from jostle.measure.window._window import part_of
from jostle.measure.workloads._program import Program, find_programs
from jostle.measure.workloads._workloads import Workload
from jostle.traces import LEVELS

if TYPE_CHECKING:
    from jostle.traces import Trace, Traces

_START_AHEAD_SECONDS = 0.005
_SHORTEST_INTERVAL_SECONDS = 0.001


def trace(
    members: Sequence[str | Workload | Program],
    *,
    engine: str = "speed",
    runs: int = 1,
    alone: bool = False,
    loop: bool = False,
    seconds: float = 1.0,
    interval_seconds: float = 0.01,
    cores: Sequence[int] | None = None,
    device: str | None = None,
    timeout_seconds: float = 120.0,
    attempts: int = 1,
    tolerance: Tolerance | None = None,
    clock: Callable[[], int] = time.time_ns,
    progress: Callable[[int, int], None] | None = None,
    judged: Callable[[Judgement], None] | None = None,
) -> Traces:
    """Counter samples of the members side by side, one run each; the same again `runs` times.

    members: workloads, or programs as text (`fft-m*300+stream-l*40`). A program with an end is
    followed to it, and `runtime_seconds` says how long it took; the others run as long as the first
    kind, or for `seconds` where all are without end, and their runtime is null. alone: also each
    member by itself, before. loop: programs that have ended begin again until all have ended once,
    so that all stay beside one another; traces hold the first pass. interval_seconds: at least
    0.001. timeout_seconds: for one window. attempts: a window that was disturbed by what is no
    member is recorded again, at most so often in all; the least disturbed attempt is kept, and
    `core_slowdown_ratio` says how much slower a core was. tolerance: what counts as disturbed; None
    does not watch. clock: nanoseconds, part of the run_ids. progress: called with (done, all)
    windows. judged: called for every attempt that was watched.

    Counters: `instructions` and others from the beats (PROGRESS), how many of a program's phases
    were passed, in parts by their beats (PHASES), what /proc, perf_event_open and PSI tell
    (NAMES), null where not available. Raises UsageError, UnknownName, MissingExtra, NotPermitted,
    and BadData for a member that fails or hangs.
    """
    from jostle.traces import Traces

    programs = find_programs(members)
    if not programs or runs < 1 or attempts < 1:
        raise UsageError("a trace needs at least one member, one run and one attempt")
    if not _SHORTEST_INTERVAL_SECONDS <= interval_seconds < float("inf"):
        raise UsageError(
            f"samples are at least {_SHORTEST_INTERVAL_SECONDS} s apart",
            where=f"interval_seconds={interval_seconds}",
        )
    if not interval_seconds <= seconds <= timeout_seconds < float("inf"):
        raise UsageError(
            "a trace is at least as long as an interval and at most as its timeout",
            where=f"seconds={seconds}, timeout_seconds={timeout_seconds}",
        )
    usable = usable_cores()
    chosen = usable if cores is None else tuple(sorted(set(cores)))
    if not chosen or not set(chosen) <= set(usable):
        raise UsageError(f"cores {chosen} are not all among those usable here, {usable}")
    (engine,) = find_engines([engine])
    chosen = chosen[: variant_of(engine).cpus]
    _require_runnable(programs, engine)
    windows: list[tuple[Program, ...]] = [(program,) for program in programs] if alone else []
    if not alone or len(programs) > 1:
        windows.append(programs)
    slots = [Slot(variant=replace(variant_of(engine), cpus=None)) for _ in programs]
    found: list[Trace] = []
    try:
        watch = None if tolerance is None else Watch(slots[0], chosen, tolerance)
        for number, window in enumerate(window for _ in range(runs) for window in windows):
            if progress is not None:
                progress(number, runs * len(windows))
            identity = hashlib.sha256(
                repr((clock(), number, engine, [p.name for p in window])).encode()
            ).hexdigest()[:16]
            where = platform_name(engine, device or device_name(chosen))
            made: list[tuple[float, list[Trace]]] = []
            for attempt in range(attempts):
                one = _Window(
                    window, engine, chosen, loop, seconds, interval_seconds, timeout_seconds, number
                )
                used = slots[: len(window)]
                taken, judgement = one.record(used, identity, where, watch, attempt)
                if judgement is None:
                    made.append((0.0, taken))
                    break
                if judged is not None:
                    judged(judgement)
                disturbed = judgement.reason is not None
                slow = judgement.slowdown_ratio or 1.0
                made.append((disturbed * (slow + (judgement.foreign_load_ratio or 0.0)), taken))
                if not disturbed:
                    break
            found += min(made, key=lambda one: one[0])[1]
    finally:
        for slot in slots:
            slot.kill()
    return Traces.from_traces(found)


class _Window:
    """Programs side by side, once."""

    def __init__(
        self,
        programs: tuple[Program, ...],
        engine: str,
        cores: tuple[int, ...],
        loop: bool,
        seconds: float,
        interval_seconds: float,
        timeout_seconds: float,
        number: int,
    ) -> None:
        self.programs, self.engine, self.loop = programs, engine, loop
        self.interval_ns = int(interval_seconds * 1e9)
        self.timeout_seconds, self.seconds = timeout_seconds, seconds
        self.finite = any(program.ends for program in programs)
        # Cores are dealt anew in every window.
        key = f"trace/{number}/{'+'.join(program.name for program in programs)}"
        self.placement = placements(len(programs), cores, key)
        longest = timeout_seconds if self.finite else seconds
        self.phases = [phases_of(program, longest) for program in programs]
        self.ended_ns = [0] * len(programs)

    def record(
        self,
        slots: Sequence[Slot],
        identity: str,
        platform: str,
        watch: Watch | None = None,
        attempt: int = 0,
    ) -> tuple[list[Trace], Judgement | None]:
        """The window, run now, and what the watch says of it."""
        deadline = time.monotonic() + self.timeout_seconds
        self._prepare(slots, deadline)
        before = watch.before(slots, self.placement[0]) if watch else {}
        used = np.array([slot.cpu_ns() for slot in slots])
        deadline = time.monotonic() + self.timeout_seconds
        tree = self.engine.startswith("native")
        samplers = [Sampler(slot.pid, tree=tree) for slot in slots]
        try:
            start_ns, table, answers = self._run(slots, samplers, deadline)
        finally:
            for sampler in samplers:
                sampler.close()
        names = [program.name for program in self.programs]
        judgement = None
        if watch is not None:
            # One core each, and nothing that the slot started: else its CPU time does not tell.
            known = len(self.placement) == 1 and not tree
            cpu = (np.array([slot.cpu_ns() for slot in slots]) - used) * 1e-9 if known else None
            first = [_first_ns(answer) for answer in answers]
            judgement = watch.judged(
                tuple(names),
                attempt,
                (before, watch.after(slots, self.placement[-1])),
                ran_seconds=(np.array(self.ended_ns) - start_ns) * 1e-9,
                cpu_seconds=cpu,
                lateness_seconds=max(0.0, (max(first) - start_ns) * 1e-9),
            )
        slow = judgement.slowdown_ratio if judgement else None
        return [
            _assembled(
                phases,
                answer,
                start_ns,
                [(at_ns, row[place]) for at_ns, row in table],
                run_id=f"{identity}-{place}",
                workload=names[place],
                corunners=tuple(sorted(names[:place] + names[place + 1 :])),
                window_id=identity if len(names) > 1 else None,
                platform=platform,
                core_slowdown_ratio=np.nan if slow is None else slow,
            )
            for place, (phases, answer) in enumerate(zip(self.phases, answers, strict=True))
        ], judgement

    def _prepare(self, slots: Sequence[Slot], deadline: float) -> None:
        for slot, core, phases in zip(slots, self.placement[0], self.phases, strict=True):
            slot.pin([core])
            parts = [part_of(phase.workload, self.engine) for phase in phases]
            slot.send({"do": "prepare", "engine": self.engine, "parts": parts})
        ready = gather(slots, deadline, lambda: False) or []
        self._require(ready, "set-up")

    def _run(
        self, slots: Sequence[Slot], samplers: Sequence[Sampler], deadline: float
    ) -> tuple[int, list[tuple[int, list[dict[str, float]]]], list[dict[str, Any]]]:
        """(start, [(when, [totals of each member])], answers)."""
        table = [(0, [sampler.read() for sampler in samplers])]
        start_ns = time.monotonic_ns() + int(_START_AHEAD_SECONDS * 1e9)
        table[0] = (start_ns, table[0][1])
        end_ns = start_ns + int((self.timeout_seconds if self.finite else self.seconds) * 1e9)
        for slot, phases in zip(slots, self.phases, strict=True):
            told = [{"repeats": phase.repeats, "beats": phase.beats} for phase in phases]
            loops = self.loop and phases[-1].beats is not None and len(slots) > 1
            slot.send(
                {
                    "do": "follow",
                    "phases": told,
                    "loop": loops,
                    "start_ns": start_ns,
                    "until_ns": end_ns,
                }
            )
        running = set(range(len(slots)))
        to_finish = {i for i, p in enumerate(self.programs) if p.ends} or set(running)
        answers: list[dict[str, Any]] = [{} for _ in slots]
        # Where members share cores, who shares with whom changes all the time.
        turns = self._turns(start_ns)
        next_ns = start_ns + self.interval_ns
        told_to_stop = False
        while running:
            if time.monotonic() > deadline:
                for place in running:
                    answers[place] = {"timeout": True}
                break
            until = min(next_ns, turns[0][0]) if turns else next_ns
            timeout = max(0.0, (until - time.monotonic_ns()) * 1e-9)
            self._listen(slots, running, to_finish, answers, timeout)
            if not to_finish and running and not told_to_stop:
                told_to_stop = True
                for place in running:
                    slots[place].send({"do": "stop"})
            now_ns = time.monotonic_ns()
            while turns and now_ns >= turns[0][0]:
                for slot, core in zip(slots, turns.pop(0)[1], strict=True):
                    slot.pin([core])
            if now_ns >= next_ns:
                table.append((time.monotonic_ns(), [sampler.read() for sampler in samplers]))
                next_ns += self.interval_ns * max(1, (now_ns - next_ns) // self.interval_ns + 1)
        table.append((time.monotonic_ns(), [sampler.read() for sampler in samplers]))
        self._require(answers, "the run")
        return start_ns, table, answers

    def _turns(self, start_ns: int) -> list[tuple[int, tuple[int, ...]]]:
        if len(self.placement) == 1:
            return []
        length_ns = max(50_000_000, self.interval_ns)
        ends = int(self.timeout_seconds * 1e9)
        return [
            (start_ns + number * length_ns, self.placement[number % len(self.placement)])
            for number in range(1, ends // length_ns)
        ]

    def _listen(
        self,
        slots: Sequence[Slot],
        running: set[int],
        to_finish: set[int],
        answers: list[dict[str, Any]],
        timeout: float,
    ) -> None:
        """Wait so long for something to be said, and take it in."""
        poll = select.poll()
        places = {slots[place].fileno(): place for place in running}
        for file in places:
            poll.register(file, select.POLLIN | select.POLLHUP)
        for file, _ in poll.poll(max(0, round(timeout * 1000 - 0.3))):
            place = places[file]
            answer = slots[place].answer()
            if answer is None:
                continue
            to_finish.discard(place)
            if "pieces" in answer or "failed" in answer:
                answers[place] = answer
                self.ended_ns[place] = time.monotonic_ns()
                running.discard(place)

    def _require(self, answers: Sequence[dict[str, Any]], what: str) -> None:
        for program, answer in zip(self.programs, answers, strict=True):
            if "failed" in answer or answer.get("timeout"):
                why = answer.get("failed") or f"it took more than {self.timeout_seconds:g} s"
                raise BadData(
                    f"{what} failed: {why}",
                    where=program.name,
                    fix="Fewer repetitions, or a longer --timeout."
                    if "timeout" in answer
                    else None,
                )


def _first_ns(answer: dict[str, Any]) -> int:
    """When it began."""
    piece = answer["pieces"][0]
    return int(np.frombuffer(base64.b64decode(piece["times"]), "<i8")[0]) + piece["clock_offset_ns"]


def _require_runnable(programs: Sequence[Program], engine: str) -> None:
    if engine_setting(engine).host != "python":
        raise UsageError(
            f"traces cannot be recorded on engine {engine!r}",
            fix="Choose one of wasmtime's, native or wasm3.",
        )
    for program in programs:
        kinds = {workload.kind for workload, _ in program.phases}
        for workload, _ in program.phases:
            if not can_run(engine, workload):
                raise UsageError(
                    f"engine {engine!r} cannot run {workload.name}", where=program.name
                )
        if "wasi" in kinds and len(kinds) > 1:
            raise UsageError("a program's phases are all WASI or none is", where=program.name)


def _assembled(
    phases: Sequence[Phase],
    answer: dict[str, Any],
    start_ns: int,
    table: Sequence[tuple[int, dict[str, float]]],
    **facts: Any,
) -> Trace:
    """The trace of one member from its beats and the samples of it."""
    from jostle.traces import Trace

    times, done = progress_of(phases, answer["pieces"])
    end_ns = times[-1]
    # Samples end with the run; what is left of the last interval is a shorter one.
    at = np.array([at_ns for at_ns, _ in table], np.int64)
    inside = np.flatnonzero((at > start_ns) & (at < end_ns))
    ends = np.r_[at[inside], end_ns]
    begins = np.r_[start_ns, at[inside]]
    counters: dict[str, np.ndarray] = {
        name: np.diff(np.interp(np.r_[start_ns, ends], times, total))
        for name, total in done.items()
    }
    for name in NAMES:
        totals = np.array([row.get(name, np.nan) for _, row in table], np.float64)
        taken = totals[np.r_[0, inside]]
        # The system was not asked at the very end.
        value = taken[1:] if name in LEVELS else np.maximum(0.0, np.diff(taken))
        counters[name] = np.r_[value, np.nan]
    return Trace(
        core=0,
        runtime_seconds=(end_ns - start_ns) * 1e-9 if answer["finished"] else np.nan,
        time_seconds=(ends - start_ns) * 1e-9,
        interval_seconds=(ends - begins) * 1e-9,
        counters=counters,
        **facts,
    )
