"""One traced window: programs side by side, their beats and samples, and whether it was disturbed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import BadData
from jostle.measure.host._sampler import NAMES, Sampler
from jostle.measure.slots._beats import beat_times
from jostle.measure.slots._parts import part_of
from jostle.measure.slots._slots import Slot, gather
from jostle.measure.tracing._following import Following, Samples
from jostle.measure.tracing._options import TraceOptions
from jostle.measure.tracing._progress import ProgramPhase, phases_of, progress_of
from jostle.measure.tracing._watch import Assessment, Watch
from jostle.measure.window._placement import phases as placements
from jostle.measure.workloads._program import TracedProgram
from jostle.traces import is_level

if TYPE_CHECKING:
    from jostle.traces import Trace


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
        """For each phase a core per member; cores are dealt anew in every window."""
        key = f"trace/{self.number}/{'+'.join(program.name for program in self.programs)}"
        return placements(len(self.programs), self.cores, key)

    @cached_property
    def seconds(self) -> float:
        """How long it lasts at most."""
        ends = any(program.ends for program in self.programs)
        return self.options.timeout_seconds if ends else self.options.seconds

    @cached_property
    def phases(self) -> list[list[ProgramPhase]]:
        """Of each program, in beats."""
        return [phases_of(program, self.seconds) for program in self.programs]

    def record(self, watch: Watch | None, attempt: int) -> tuple[list[Trace], Assessment | None]:
        """The window, run now, and whether it was disturbed."""
        slots = self.slots
        self._prepare()
        before = watch.before(slots, self.placement[0]) if watch else {}
        used = np.array([slot.cpu_ns() for slot in slots])
        # A native program runs in processes that the slot starts.
        tree = self.engine.startswith("native")
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
        if watch is not None:
            # A core each, and nothing that the slot started: else its CPU time does not tell.
            apart = len(self.placement) == 1 and len({*self.placement[0]}) == len(slots)
            known = apart and not tree
            cpu = (np.array([slot.cpu_ns() for slot in slots]) - used) * 1e-9 if known else None
            first = [int(beat_times(answer["pieces"][0])[0]) for answer in answers]
            assessment = watch.assessed(
                tuple(program.name for program in self.programs),
                attempt,
                (before, watch.after(slots, self.placement[-1])),
                ran_seconds=(np.array(following.ended_ns) - start_ns) * 1e-9,
                cpu_seconds=cpu,
                lateness_seconds=max(0.0, (max(first) - start_ns) * 1e-9),
            )
        slowdown = assessment.slowdown_ratio if assessment else None
        traces = [
            self._trace(place, answer, start_ns, following.samples, slowdown)
            for place, answer in enumerate(answers)
        ]
        return traces, assessment

    def _prepare(self) -> None:
        deadline = time.monotonic() + self.options.timeout_seconds
        for slot, core, phases in zip(self.slots, self.placement[0], self.phases, strict=True):
            slot.pin([core])
            parts = [part_of(phase.workload, self.engine) for phase in phases]
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
        slowdown_ratio: float | None,
    ) -> Trace:
        """The trace of one member from its beats and the samples of it."""
        from jostle.traces import Trace

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
            taken = totals[np.r_[0, inside]]
            # Nothing was read at the very end.
            value = taken[1:] if is_level(name) else np.maximum(0.0, np.diff(taken))
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
            core_slowdown_ratio=np.nan if slowdown_ratio is None else slowdown_ratio,
            time_seconds=(ends - start_ns) * 1e-9,
            interval_seconds=(ends - begins) * 1e-9,
            counters=counters,
        )
