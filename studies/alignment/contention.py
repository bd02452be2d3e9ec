"""A contention simulator: programs with phases on cores that share a cache and a memory bus.

It is the truth that the alignment method is checked against, and no prediction ever uses it. Between two
events (a phase or a program ends, a program starts) the phases that run are fixed, so are all speeds, and the
next event is a division away: run times and counters are exact for any schedule, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jostle.errors import UsageError
from studies.alignment.machine import (
    COUNTERS,
    Law,
    SimulatedPhase,
    SimulatedProgram,
)


@dataclass(frozen=True)
class Job:
    """A program on a core from start_seconds on; looping ones begin anew until no other is left."""

    program: SimulatedProgram
    core: int = 0
    start_seconds: float = 0.0
    loop: bool = False


@dataclass(frozen=True)
class JobHistory:
    """What one job did. time_seconds: (e,) when anything changed, counters: (e, len(COUNTERS)) counted until
    then, linear in between. end_seconds: when its last instruction was done, or looping stopped; rounds: how
    often a looping job got to its end."""

    job: Job
    time_seconds: np.ndarray
    counters: np.ndarray
    end_seconds: float
    rounds: int

    @property
    def runtime_seconds(self) -> float:
        return self.end_seconds - self.job.start_seconds

    def at(self, time_seconds: np.ndarray) -> np.ndarray:
        """(t, len(COUNTERS)) counted by these times."""
        columns = [np.interp(time_seconds, self.time_seconds, c) for c in self.counters.T]
        return np.stack(columns, axis=1)


def simulate(machine: Law, jobs: Sequence[Job]) -> list[JobHistory]:
    """Run the jobs, aligned with the input. Ends when all that do not loop have ended; at least one must
    not. Raises UsageError for two jobs on one core, or a core that is not there."""
    cores = [job.core for job in jobs]
    if len(set(cores)) != len(cores) or not all(0 <= c < len(machine.clock_hertz) for c in cores):
        raise UsageError(f"jobs on cores {cores}: one each, of {len(machine.clock_hertz)}")
    if all(job.loop for job in jobs):
        raise UsageError("all jobs loop: the schedule would never end")
    tracks = [_RunningJob(job) for job in jobs]
    now = 0.0
    while any(not t.job.loop and t.end is None for t in tracks):
        active = [t for t in tracks if t.end is None and t.job.start_seconds <= now]
        key = tuple((t.job.core, t.phase) for t in active)
        rates = _speeds(machine, key)
        steps = [t.left / (rate[0] or 1.0) for t, rate in zip(active, rates, strict=True)]
        arrivals = [t.job.start_seconds - now for t in tracks if t.job.start_seconds > now]
        step = min([*steps, *arrivals])
        now += step
        for track, rate, own in zip(active, rates, steps, strict=True):
            track.advance(now, step, rate, done=own <= step)
    return [t.history(now) for t in tracks]


@lru_cache(maxsize=20_000)
def _speeds(law: Law, running: tuple[tuple[int, SimulatedPhase], ...]) -> np.ndarray:
    """The same phases meet again and again."""
    return law.speeds(running)


class _RunningJob:
    """One job while it runs. left: instructions (or idle seconds) to the end of its phase."""

    def __init__(self, job: Job) -> None:
        self.job, self.number, self.rounds = job, 0, 0
        self.end: float | None = None
        self.times, self.counts = [job.start_seconds], [np.zeros(len(COUNTERS))]
        self.left = self._size()

    @property
    def phase(self) -> SimulatedPhase:
        return self.job.program.phases[self.number]

    def _size(self) -> float:
        return self.phase.instructions or self.phase.idle_seconds

    def advance(self, now: float, step: float, rate: np.ndarray, *, done: bool) -> None:
        counts = self.counts[-1] + step * rate
        self.left -= step * (rate[0] or 1.0)
        if done:
            self.number += 1
            if self.number == len(self.job.program.phases):
                self.number, self.rounds = 0, self.rounds + 1
                if not self.job.loop:
                    self.end = now
                # Rounding must not add up over phases: at the end of a round the count is exact.
                counts[0] = self.rounds * self.job.program.instructions
            self.left = self._size()
        self.times.append(now)
        self.counts.append(counts)

    def history(self, now: float) -> JobHistory:
        end = now if self.end is None else self.end
        return JobHistory(self.job, np.array(self.times), np.array(self.counts), end, self.rounds)
