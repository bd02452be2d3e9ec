"""Programs drawn at random and the traces that a recorder would have made of them in the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from jostle.data import Trace, Traces
from jostle.errors import UsageError
from studies.alignment.contention import Job, JobHistory, simulate
from studies.alignment.machine import (
    COUNTERS,
    Law,
    Machine,
    SimulatedPhase,
    SimulatedProgram,
)

PLATFORM = "simulated"
SHORTEST_SECONDS, LONGEST_SECONDS = 3e-4, 4e-2


def draw_programs(
    number: int,
    seed: int,
    *,
    seconds: float = 0.5,
    shortest_seconds: float = SHORTEST_SECONDS,
    longest_seconds: float = LONGEST_SECONDS,
    machine: Law | None = None,
) -> list[SimulatedProgram]:
    """Programs of three to eight kinds of phases in loops, about `seconds` long alone on core 0.

    The length of a phase is drawn log-uniformly between the two limits, its kind from compute-bound to
    memory-bound, its working set from 64 KiB to 32 MiB.
    """
    if number < 1 or not 0 < shortest_seconds <= longest_seconds or seconds <= 0:
        raise UsageError("number, seconds and phase lengths must be above 0, shortest first")
    machine = machine or Machine()
    random, powers = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    return [
        SimulatedProgram(
            f"program-{i:02d}",
            _phases(random, powers, machine, seconds, shortest_seconds, longest_seconds),
        )
        for i in range(number)
    ]


def _phases(
    random: np.random.Generator,
    powers: np.random.Generator,
    machine: Law,
    seconds: float,
    shortest: float,
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
        length = np.exp(random.uniform(np.log(shortest), np.log(longest)))
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
    period_seconds: float,
    *,
    run_id: str,
    corunners: Sequence[str] = (),
    window_id: str | None = None,
    noise_ratio: float = 0.0,
    seed: int = 0,
) -> Trace:
    """What a recorder reads every period_seconds from the job's start; the last sample may be shorter.

    noise_ratio: each sample of each counter but the instructions is off by this much, log-normally.
    """
    start, end = history.job.start_seconds, history.end_seconds
    times = np.arange(1, int(np.floor((end - start) / period_seconds * (1 + 1e-12))) + 1)
    times = times * period_seconds
    if not len(times) or end - start - times[-1] > 1e-6 * period_seconds:
        times = np.append(times, end - start)
    counts = np.diff(history.at(np.r_[0.0, times] + start), axis=0)
    if noise_ratio:
        random = np.random.default_rng(seed)
        counts[:, 1:] *= np.exp(noise_ratio * random.normal(size=counts[:, 1:].shape))
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
    machine: Law | None = None,
    *,
    period_seconds: float = 1e-3,
    sets: Sequence[Sequence[int]] | None = None,
    loop: bool = False,
    noise_ratio: float = 0.0,
    seed: int = 0,
    probes: Sequence[SimulatedProgram] = (),
) -> Traces:
    """Every program alone on the first two cores, and together in sets.

    sets: numbers of programs, on core 0, 1, …; by default all pairs, each both ways, and each program
    beside itself. loop: each member is measured once beside the others repeating; otherwise all start
    together and run once, and who is left goes on alone. probes: stressors, each traced alone, and repeating
    beside each program.
    """
    if sets is None:
        pairs = list(combinations_with_replacement(range(len(programs)), 2))
        sets = pairs + [(b, a) for a, b in pairs if a != b]
    return Traces.from_traces(
        [
            trace_of(
                history,
                period_seconds,
                run_id=run_id,
                corunners=corunners,
                window_id=window,
                noise_ratio=noise_ratio,
                seed=seed + number,
            )
            for number, (history, run_id, corunners, window) in enumerate(
                (
                    *_histories(programs, machine or Machine(), sets, loop),
                    *_beside_probes(programs, machine or Machine(), probes),
                )
            )
        ]
    )


def _histories(
    programs: Sequence[SimulatedProgram],
    machine: Law,
    sets: Sequence[Sequence[int]],
    loop: bool,
) -> Iterator[tuple[JobHistory, str, list[str], str | None]]:
    """(history, run_id, co-runners, window_id) of every job."""
    cores = max([2, *(len(members) for members in sets)])
    for program in programs:
        for core in range(cores):
            (alone,) = simulate(machine, [Job(program, core)])
            yield alone, f"solo-{program.name}-{core}", [], None
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
