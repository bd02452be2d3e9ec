"""Programs drawn at random that run beside each other under a law of shared memory, and their traces.

It is the truth that the counters' learner is checked against, and no prediction ever uses it. Between two
events (a phase or a program ends, a program starts) the phases that run are fixed, so are all speeds, and the
next event is a division away: run times and counters are exact for any schedule, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from jostle.data import Trace, Traces
from studies.worlds.memory_laws import COUNTERS, Law, SimulatedPhase, SimulatedProgram

PLATFORM = "simulated"
SHORTEST_SECONDS, LONGEST_SECONDS = 3e-4, 4e-2
PERIOD_SECONDS = 1e-3  # of samples


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
    """Run the jobs, aligned with the input. Ends when all that do not loop have
    ended; at least one must not."""
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


def draw_programs(
    number: int,
    seed: int,
    *,
    seconds: float = 0.5,
    longest_seconds: float = LONGEST_SECONDS,
    machine: Law,
) -> list[SimulatedProgram]:
    """Programs of three to eight kinds of phases in loops, about `seconds` long alone on core 0.

    The length of a phase is drawn log-uniformly between the two limits, its kind from compute-bound to
    memory-bound, its working set from 64 KiB to 32 MiB.
    """
    random, powers = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    return [
        SimulatedProgram(
            f"program-{i:02d}",
            _phases(random, powers, machine, seconds, longest_seconds),
        )
        for i in range(number)
    ]


def _phases(
    random: np.random.Generator,
    powers: np.random.Generator,
    machine: Law,
    seconds: float,
    longest: float,
) -> tuple[SimulatedPhase, ...]:
    kinds = []
    for _ in range(random.integers(3, 9)):
        phase = SimulatedPhase(
            instructions=1.0,
            cycles_per_instruction=float(random.uniform(0.4, 1.4)),
            accesses_per_instruction=float(np.exp(random.uniform(np.log(1e-3), np.log(6e-2)))),
            working_set_bytes=float(np.exp(random.uniform(np.log(2.0**16), np.log(2.0**25)))),
            floor_ratio=float(random.choice([0.02, 0.1, 0.5, 0.95])),
            overlap=float(random.uniform(1.5, 5.0)),
            write_ratio=float(random.uniform(0.0, 0.6)),
            branch_ratio=float(random.uniform(0.02, 0.2)),
            load_ratio=float(random.uniform(0.15, 0.4)),
            reuse_power=float(powers.uniform(0.3, 1.2)),
        )
        rate = float(machine.speeds([(0, phase)])[0, 0])
        length = np.exp(random.uniform(np.log(SHORTEST_SECONDS), np.log(longest)))
        kinds.append((phase, rate, length))
    phases, spent = [], 0.0
    while spent < seconds:
        # A stretch repeats one to three kinds, as loops of programs do.
        loop = random.integers(0, len(kinds), random.integers(1, 4))
        for _ in range(random.integers(1, 12)):
            for kind in loop:
                phase, rate, length = kinds[kind]
                phases.append(replace(phase, instructions=float(np.ceil(rate * length))))
                spent += length
    return tuple(phases)


def trace_of(
    history: JobHistory,
    *,
    run_id: str,
    corunners: Sequence[str] = (),
    window_id: str | None = None,
) -> Trace:
    """What a recorder reads every PERIOD_SECONDS from the job's start; the last sample may be shorter."""
    start, end = history.job.start_seconds, history.end_seconds
    times = np.arange(1, int(np.floor((end - start) / PERIOD_SECONDS * (1 + 1e-12))) + 1)
    times = times * PERIOD_SECONDS
    if not len(times) or end - start - times[-1] > 1e-6 * PERIOD_SECONDS:
        times = np.append(times, end - start)
    counts = np.diff(history.at(np.r_[0.0, times] + start), axis=0)
    return Trace(
        run_id=run_id,
        core=history.job.core,
        workload=history.job.program.name,
        platform=PLATFORM,
        corunners=tuple(sorted(corunners)),
        window_id=window_id,
        runtime_seconds=np.nan if history.job.loop else end - start,
        time_seconds=times,
        interval_seconds=np.diff(times, prepend=0.0),
        counters=dict(zip(COUNTERS, counts.T, strict=True)),
    )


def simulate_campaign(
    programs: Sequence[SimulatedProgram],
    law: Law,
    *,
    sets: Sequence[Sequence[int]] | None = None,
    loop: bool = False,
    probes: Sequence[SimulatedProgram] = (),
) -> Traces:
    """Every program alone, and together in sets.

    sets: numbers of programs, on core 0, 1, …; by default all pairs, each both ways, and each program
    beside itself. loop: each member is measured once beside the others repeating; otherwise all start
    together and run once, and who is left goes on alone. probes: stressors, each traced alone, and repeating
    beside each program.
    """
    if sets is None:
        pairs = list(combinations_with_replacement(range(len(programs)), 2))
        sets = pairs + [(b, a) for a, b in pairs if a != b]
    every = (*_histories(programs, law, sets, loop), *_beside_probes(programs, law, probes))
    return Traces.from_traces(
        [
            trace_of(history, run_id=name, corunners=others, window_id=window)
            for history, name, others, window in every
        ]
    )


def _histories(
    programs: Sequence[SimulatedProgram],
    machine: Law,
    sets: Sequence[Sequence[int]],
    loop: bool,
) -> Iterator[tuple[JobHistory, str, list[str], str | None]]:
    """(history, run_id, co-runners, window_id) of every job."""
    for program in programs:
        (alone,) = simulate(machine, [Job(program)])
        yield alone, f"solo-{program.name}", [], None
    for number, members in enumerate(sets):
        names = [programs[m].name for m in members]
        rounds = [range(len(members))] if not loop else [[place] for place in range(len(members))]
        for measured in rounds:
            window = f"window-{number:05d}" + (f"-{measured[0]}" if loop else "")
            jobs = [
                Job(programs[m], core, loop=loop and core not in measured)
                for core, m in enumerate(members)
            ]
            for place, history in enumerate(simulate(machine, jobs)):
                yield history, f"{window}-{place}", names[:place] + names[place + 1 :], window


def _beside_probes(
    programs: Sequence[SimulatedProgram], machine: Law, probes: Sequence[SimulatedProgram]
) -> Iterator[tuple[JobHistory, str, list[str], str | None]]:
    for probe in probes:
        (alone,) = simulate(machine, [Job(probe)])
        yield alone, f"solo-{probe.name}", [], None
        for program in programs:
            window = f"{probe.name}-{program.name}"
            jobs = [Job(program, 0), Job(probe, 1, loop=True)]
            for place, history in enumerate(simulate(machine, jobs)):
                yield history, f"{window}-{place}", [jobs[1 - place].program.name], window


def protocol_sets(
    workloads: Sequence[str], windows: int, held: int, seed: int
) -> list[tuple[int, int]]:
    """Draw pairs of workloads by number: `windows` at random to learn from, and all pairs, both ways, of
    those that the folds of this seed (`held` workloads each) hold out together."""
    names = sorted(workloads)
    number = {name: i for i, name in enumerate(workloads)}
    order = np.random.default_rng(seed).permutation(names).tolist()
    folds = [order[at : at + held] for at in range(0, len(order) - held + 1, held)]
    tested = [(number[a], number[b]) for fold in folds for a in fold for b in fold if a != b]
    # Every program is in at least one window, so that the folds drawn from the traces are the same.
    random = np.random.default_rng(seed + 1)
    pairs = {(int(a), int(b)) for a, b in random.integers(0, len(number), (4 * windows, 2))}
    learned = sorted(pairs - set(tested))
    picked = random.permutation(len(learned))[:windows]
    return [learned[i] for i in sorted(picked)] + tested
