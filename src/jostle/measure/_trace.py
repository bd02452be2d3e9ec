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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import BadData, UsageError
from jostle.traces import LEVELS

from ._campaign import can_run
from ._counts import count_opcodes
from ._engines import engine_setting, find_engines, platform_name
from ._facts import device_name, usable_cores
from ._harness import CAPACITY
from ._placement import phases as placements
from ._program import Program, find_programs
from ._sampler import NAMES, Sampler
from ._slots import Slot, gather
from ._variants import variant_of
from ._window import part_of
from ._workloads import Workload

if TYPE_CHECKING:
    from jostle.traces import Trace, Traces

_START_AHEAD_SECONDS = 0.005
_SHORTEST_INTERVAL_SECONDS = 0.001
# Beats finer than this part of a repetition say nothing more at intervals of a millisecond.
_FINEST = 16
# What is usual for a repetition: only to keep a long trace's beats within the harness's memory.
_SHORT_REPETITION_SECONDS = 0.0005
# Counters made of opcode counts: the classes of instructions that a column adds up.
_CLASSES: dict[str, tuple[str, ...]] = {
    "loads": (".load",),
    "stores": (".store",),
    "branches": ("br_if", "br_table", "if", "br"),
    "calls": ("call", "call_indirect", "return_call", "return_call_indirect"),
    "float_operations": tuple(
        f"f{bits}.{name}"
        for bits in (32, 64)
        for name in ("add", "sub", "mul", "div", "sqrt", "min", "max", "neg", "abs")
    ),
}
PROGRESS = ("instructions", "repetitions", *_CLASSES, "bulk_bytes")
PHASES = "phases"


@dataclass(frozen=True)
class _Phase:
    """repeats: of `run` in one beat. beats: how many, None without end. per_beat: by counter."""

    workload: Workload
    repeats: int
    beats: int | None
    per_beat: dict[str, float]


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
    clock: Callable[[], int] = time.time_ns,
    progress: Callable[[int, int], None] | None = None,
) -> Traces:
    """Counter samples of the members side by side, one run each; the same again `runs` times.

    members: workloads, or programs as text (`fft-m*300+stream-l*40`). A program with an end is
    followed to it, and `runtime_seconds` says how long it took; the others run as long as the first
    kind, or for `seconds` where all are without end, and their runtime is null. alone: also each
    member by itself, before. loop: programs that have ended begin again until all have ended once,
    so that all stay beside one another; traces hold the first pass. interval_seconds: at least
    0.001. timeout_seconds: for one window. clock: nanoseconds, part of the run_ids. progress:
    called with (done, all) windows.

    Counters: `instructions` and others from the beats (PROGRESS), how many of a program's phases
    were passed, in parts by their beats (PHASES), what /proc, perf_event_open and PSI tell
    (NAMES), null where not available. Raises UsageError, UnknownName, MissingExtra, NotPermitted,
    and BadData for a member that fails or hangs.
    """
    from jostle.traces import Traces

    programs = find_programs(members)
    if not programs or runs < 1:
        raise UsageError("a trace needs at least one member and one run")
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
        for number, window in enumerate(window for _ in range(runs) for window in windows):
            if progress is not None:
                progress(number, runs * len(windows))
            one = _Window(
                window, engine, chosen, loop, seconds, interval_seconds, timeout_seconds, number
            )
            identity = hashlib.sha256(
                repr((clock(), number, engine, [p.name for p in window])).encode()
            ).hexdigest()[:16]
            where = platform_name(engine, device or device_name(chosen))
            found += one.record(slots[: len(window)], identity, where)
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
        self.phases = [_phases(program, longest) for program in programs]

    def record(self, slots: Sequence[Slot], identity: str, platform: str) -> list[Trace]:
        """The window, run now."""
        deadline = time.monotonic() + self.timeout_seconds
        self._prepare(slots, deadline)
        tree = self.engine.startswith("native")
        samplers = [Sampler(slot.pid, tree=tree) for slot in slots]
        try:
            start_ns, table, answers = self._run(slots, samplers, deadline)
        finally:
            for sampler in samplers:
                sampler.close()
        names = [program.name for program in self.programs]
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
            )
            for place, (phases, answer) in enumerate(zip(self.phases, answers, strict=True))
        ]

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


def _phases(program: Program, longest_seconds: float) -> list[_Phase]:
    """The program in beats that are as fine as useful and fill no memory."""
    room = CAPACITY * _SHORT_REPETITION_SECONDS / (4 * longest_seconds)
    finest = max(1, min(_FINEST, int(room)))
    found = []
    for workload, repetitions in program.phases:
        parts = max(k for k in range(1, finest + 1) if workload.repeats % k == 0)
        repeats = workload.repeats // parts
        one = replace(workload, repeats=repeats)
        beats = None if repetitions is None else repetitions * parts
        found.append(_Phase(workload, repeats, beats, _per_beat(one, 1 / parts)))
    return found


def _per_beat(workload: Workload, repetitions: float) -> dict[str, float]:
    """Exact counts of one beat, null where the module cannot be counted."""
    try:
        counts = count_opcodes(workload)
    except BadData:
        return {**dict.fromkeys(PROGRESS, float("nan")), "repetitions": repetitions}
    found: dict[str, float] = {
        "instructions": counts.instructions,
        "repetitions": repetitions,
        "bulk_bytes": counts.bulk_bytes,
    }
    for name, wanted in _CLASSES.items():
        found[name] = sum(
            count
            for opcode, count in counts.opcodes.items()
            if opcode in wanted or any(w.startswith(".") and w in opcode for w in wanted)
        )
    return found


def _assembled(
    phases: Sequence[_Phase],
    answer: dict[str, Any],
    start_ns: int,
    table: Sequence[tuple[int, dict[str, float]]],
    **facts: Any,
) -> Trace:
    """The trace of one member from its beats and the samples of it."""
    from jostle.traces import Trace

    times, done = _progress(phases, answer["pieces"])
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


def _progress(
    phases: Sequence[_Phase], pieces: Sequence[dict[str, Any]]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(n,) times in nanoseconds that rise, and by counter (n,) how much was done at each."""
    times, steps, passed = [], [], []
    for piece in pieces:
        beats = np.frombuffer(base64.b64decode(piece["times"]), "<i8") + piece["clock_offset_ns"]
        per_beat = phases[piece["phase"]].per_beat
        times.append(beats)
        steps.append((len(beats), per_beat))
        # A beat's part of its phase; one without end is never passed.
        beats_of_phase = phases[piece["phase"]].beats
        passed.append(1 / beats_of_phase if beats_of_phase else 0.0)
    joined = np.maximum.accumulate(np.concatenate(times))
    done = {}
    for name in PROGRESS:
        # The first time of a piece is its start: nothing is done between pieces.
        parts = [np.r_[0.0, np.full(count - 1, per[name])] for count, per in steps]
        done[name] = np.cumsum(np.concatenate(parts))
    parts = [
        np.r_[0.0, np.full(count - 1, part)] for part, (count, _) in zip(passed, steps, strict=True)
    ]
    done[PHASES] = np.cumsum(np.concatenate(parts))
    return joined, done
