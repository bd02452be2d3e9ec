"""Following members from their common start to their last answer, sampling the system meanwhile."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Any

from jostle.measure.host._sampler import Sampler
from jostle.measure.slots._slots import Slot
from jostle.measure.tracing._options import TraceOptions
from jostle.measure.tracing._progress import ProgramPhase
from jostle.measure.workloads._program import TracedProgram

_START_AHEAD_SECONDS = 0.005
# Where members share cores, who shares with whom changes so often at most.
_SHORTEST_TURN_NS = 50_000_000

Samples = list[tuple[int, list[dict[str, float]]]]
"""[(when, [totals of each member])], the first at the start."""


class Following:
    """answers: of each slot, when all have come. ended_ns: when each came."""

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
        """Until every slot has answered or its time is over. seconds: to follow at most."""
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
        """When members that share cores move, and where to."""
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
