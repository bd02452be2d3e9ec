"""One traced window: programs side by side, from their common start to their last answer."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.collect.host._sampler import NAMES, Sampler
from jostle.collect.kernels._beats import beat_times
from jostle.collect.slots._slots import Slot, gather
from jostle.collect.tracing._beat_progress import ProgramPhase, phases_of, progress_of
from jostle.collect.tracing._trace_settings import Assessment, TraceOptions, assessed
from jostle.collect.window._core_placement import phases as placements
from jostle.collect.workloads._program import TracedProgram
from jostle.data import Trace, is_level
from jostle.errors import BadData

_START_AHEAD_SECONDS = 0.005
# Where members share cores, who shares with whom changes so often at most.
_SHORTEST_TURN_NS = 50_000_000

Samples = list[tuple[int, list[dict[str, float]]]]
"""[(when, [totals of each member])], the first at the start."""


class Following:
    """State of the slots that are being recorded. answers: of each slot, when all have come. ended_ns: when
    each came."""

    def __init__(
        self,
        programs: Sequence[TracedProgram],
        slots: Sequence[Slot],
        samplers: Sequence[Sampler],
        options: TraceOptions,
    ) -> None:
        self.slots, self.samplers, self.options = slots, samplers, options
        self.answers: list[dict[str, Any]] = [{} for _ in slots]
        self.ended_ns = [0] * len(slots)
        self.start_ns = 0
        self.samples: Samples = []
        self._running = set(range(len(slots)))
        # Those that are waited for; the others are then told to stop.
        self._to_finish = {i for i, p in enumerate(programs) if p.ends} or set(self._running)

    def run(
        self,
        phases: Sequence[Sequence[ProgramPhase]],
        placement: Sequence[Sequence[int]],
        seconds: float,
    ) -> None:
        """Follow until every slot has answered or its time is over. seconds: to follow at most."""
        deadline = time.monotonic() + self.options.timeout_seconds
        interval_ns = int(self.options.interval_seconds * 1e9)
        self._start(phases, seconds)
        turns = self._turns(placement, interval_ns)
        next_ns = self.start_ns + interval_ns
        told_to_stop = False
        while self._running:
            if time.monotonic() > deadline:
                for place in self._running:
                    self.answers[place] = {"timeout": True}
                break
            until_ns = min(next_ns, turns[0][0]) if turns else next_ns
            self._listen(max(0.0, (until_ns - time.monotonic_ns()) * 1e-9))
            if not self._to_finish and self._running and not told_to_stop:
                told_to_stop = True
                for place in self._running:
                    self.slots[place].send({"do": "stop"})
            now_ns = time.monotonic_ns()
            while turns and now_ns >= turns[0][0]:
                for slot, core in zip(self.slots, turns.pop(0)[1], strict=True):
                    slot.pin([core])
            if now_ns >= next_ns:
                self._sample()
                next_ns += interval_ns * max(1, (now_ns - next_ns) // interval_ns + 1)
        self._sample()

    def _start(self, phases: Sequence[Sequence[ProgramPhase]], seconds: float) -> None:
        first = [sampler.read() for sampler in self.samplers]
        self.start_ns = time.monotonic_ns() + int(_START_AHEAD_SECONDS * 1e9)
        self.samples.append((self.start_ns, first))
        for slot, own in zip(self.slots, phases, strict=True):
            loop = self.options.loop and own[-1].beats is not None and len(self.slots) > 1
            slot.send(
                {
                    "do": "follow",
                    "phases": [{"repeats": one.repeats, "beats": one.beats} for one in own],
                    "loop": loop,
                    "start_ns": self.start_ns,
                    "until_ns": self.start_ns + int(seconds * 1e9),
                }
            )

    def _sample(self) -> None:
        self.samples.append((time.monotonic_ns(), [sampler.read() for sampler in self.samplers]))

    def _turns(
        self, placement: Sequence[Sequence[int]], interval_ns: int
    ) -> list[tuple[int, Sequence[int]]]:
        """Return when members that share cores move, and where to."""
        if len(placement) == 1:
            return []
        length_ns = max(_SHORTEST_TURN_NS, interval_ns)
        ends_ns = int(self.options.timeout_seconds * 1e9)
        return [
            (self.start_ns + number * length_ns, placement[number % len(placement)])
            for number in range(1, ends_ns // length_ns)
        ]

    def _listen(self, timeout_seconds: float) -> None:
        """Wait so long for a message, and take it in."""
        poll = select.poll()
        places = {self.slots[place].fileno(): place for place in self._running}
        for file in places:
            poll.register(file, select.POLLIN | select.POLLHUP)
        for file, _ in poll.poll(max(0, round(timeout_seconds * 1000 - 0.3))):
            place = places[file]
            answer = self.slots[place].answer()
            if answer is None:
                continue
            self._to_finish.discard(place)
            if "pieces" in answer or "failed" in answer:
                self.answers[place] = answer
                self.ended_ns[place] = time.monotonic_ns()
                self._running.discard(place)


@dataclass(frozen=True)
class TracedWindow:
    """Programs to record side by side, one a slot. number: of the window. identity: of its runs."""

    programs: tuple[TracedProgram, ...]
    slots: Sequence[Slot]
    engine: str
    cores: tuple[int, ...]
    options: TraceOptions
    number: int
    platform: str
    identity: str

    @cached_property
    def placement(self) -> tuple[tuple[int, ...], ...]:
        """A core per member for each phase; cores are dealt anew in every window."""
        key = f"trace/{self.number}/{'+'.join(program.name for program in self.programs)}"
        return placements(len(self.programs), self.cores, key)

    @cached_property
    def seconds(self) -> float:
        """Seconds that the window lasts at most."""
        ends = any(program.ends for program in self.programs)
        return self.options.timeout_seconds if ends else self.options.seconds

    @cached_property
    def phases(self) -> list[list[ProgramPhase]]:
        """Phases of each program, in beats."""
        return [phases_of(program, self.seconds) for program in self.programs]

    def record(self, attempt: int) -> tuple[list[Trace], Assessment | None]:
        """Run the window now. Returns its traces, and whether it was disturbed; None if nobody watches."""
        slots = self.slots
        self._prepare()
        used = np.array([slot.cpu_ns() for slot in slots])
        # A native program runs in processes that the slot starts.
        tree = self.engine == "native"
        samplers = [Sampler(slot.pid, tree=tree) for slot in slots]
        try:
            following = Following(self.programs, slots, samplers, self.options)
            following.run(self.phases, self.placement, self.seconds)
        finally:
            for sampler in samplers:
                sampler.close()
        answers, start_ns = following.answers, following.start_ns
        self._require(answers, "the run")
        assessment = None
        if self.options.most_disturbed_ratio is not None:
            # A core each, and nothing that the slot started: else its CPU time does not tell.
            apart = len(self.placement) == 1 and len({*self.placement[0]}) == len(slots)
            known = apart and not tree
            cpu = (np.array([slot.cpu_ns() for slot in slots]) - used) * 1e-9 if known else None
            first = [int(beat_times(answer["pieces"][0])[0]) for answer in answers]
            assessment = assessed(
                tuple(program.name for program in self.programs),
                attempt,
                self.options.most_disturbed_ratio,
                ran_seconds=(np.array(following.ended_ns) - start_ns) * 1e-9,
                cpu_seconds=cpu,
                lateness_seconds=max(0.0, (max(first) - start_ns) * 1e-9),
            )
        traces = [
            self._trace(place, answer, start_ns, following.samples)
            for place, answer in enumerate(answers)
        ]
        return traces, assessment

    def _prepare(self) -> None:
        deadline = time.monotonic() + self.options.timeout_seconds
        for slot, core, phases in zip(self.slots, self.placement[0], self.phases, strict=True):
            slot.pin([core])
            parts = [phase.workload.part() for phase in phases]
            slot.send({"do": "prepare", "engine": self.engine, "parts": parts})
        self._require(gather(self.slots, deadline, lambda: False) or [], "set-up")

    def _require(self, answers: Sequence[dict[str, Any]], what: str) -> None:
        for program, answer in zip(self.programs, answers, strict=True):
            if answer.get("timeout"):
                raise BadData(
                    f"{what} failed: it took more than {self.options.timeout_seconds:g} s",
                    where=program.name,
                    fix="Allow fewer repetitions, or a longer timeout.",
                )
            if "failed" in answer:
                raise BadData(f"{what} failed: {answer['failed']}", where=program.name)

    def _trace(
        self,
        place: int,
        answer: dict[str, Any],
        start_ns: int,
        samples: Samples,
    ) -> Trace:
        """Return the trace of one member from its beats and the samples of it."""
        times, done = progress_of(self.phases[place], answer["pieces"])
        end_ns = times[-1]
        # Samples end with the run; what is left of the last interval is a shorter one.
        at = np.array([at_ns for at_ns, _ in samples], np.int64)
        inside = np.flatnonzero((at > start_ns) & (at < end_ns))
        ends = np.r_[at[inside], end_ns]
        begins = np.r_[start_ns, at[inside]]
        counters: dict[str, np.ndarray] = {
            name: np.diff(np.interp(np.r_[start_ns, ends], times, total))
            for name, total in done.items()
        }
        for name in NAMES:
            totals = np.array([rows[place].get(name, np.nan) for _, rows in samples], np.float64)
            values = totals[np.r_[0, inside]]
            # Nothing was read at the very end.
            value = values[1:] if is_level(name) else np.maximum(0.0, np.diff(values))
            counters[name] = np.r_[value, np.nan]
        names = [program.name for program in self.programs]
        return Trace(
            run_id=f"{self.identity}-{place}",
            core=0,
            workload=names[place],
            corunners=tuple(sorted(names[:place] + names[place + 1 :])),
            window_id=self.identity if len(names) > 1 else None,
            platform=self.platform,
            runtime_seconds=(end_ns - start_ns) * 1e-9 if answer["finished"] else np.nan,
            time_seconds=(ends - start_ns) * 1e-9,
            interval_seconds=(ends - begins) * 1e-9,
            counters=counters,
        )
