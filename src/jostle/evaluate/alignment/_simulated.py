"""Programs drawn at random and the traces that a recorder would have made of them in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from jostle.errors import UsageError
from jostle.evaluate.alignment._contention import (
    COUNTERS,
    History,
    Job,
    Machine,
    Phase,
    Program,
    simulate,
    speeds,
)
from jostle.traces import Trace, Traces

PLATFORM = "simulated"
SHORTEST_SECONDS, LONGEST_SECONDS = 3e-4, 4e-2


def draw_programs(
    number: int,
    seed: int,
    *,
    seconds: float = 0.5,
    shortest_seconds: float = SHORTEST_SECONDS,
    longest_seconds: float = LONGEST_SECONDS,
    machine: Machine | None = None,
) -> list[Program]:
    """Programs of three to eight kinds of phases in loops, about `seconds` long alone on core 0.

    The length of a phase is drawn log-uniformly between the two limits, its kind from compute-bound to
    memory-bound, its working set from 64 KiB to 32 MiB.
    """
    if number < 1 or not 0 < shortest_seconds <= longest_seconds or seconds <= 0:
        raise UsageError("number, seconds and phase lengths must be above 0, shortest first")
    machine = machine or Machine()
    random = np.random.default_rng(seed)
    return [
        Program(
            f"program-{i:02d}",
            _phases(random, machine, seconds, shortest_seconds, longest_seconds),
        )
        for i in range(number)
    ]


def _phases(
    random: np.random.Generator, machine: Machine, seconds: float, shortest: float, longest: float
) -> tuple[Phase, ...]:
    kinds = []
    for _ in range(random.integers(3, 9)):
        phase = Phase(
            instructions=1.0,
            cycles_per_instruction=float(random.uniform(0.4, 1.4)),
            accesses_per_instruction=float(np.exp(random.uniform(np.log(1e-3), np.log(6e-2)))),
            working_set_bytes=float(np.exp(random.uniform(np.log(2.0**16), np.log(2.0**25)))),
            floor_ratio=float(random.choice([0.02, 0.1, 0.5, 0.95])),
            overlap=float(random.uniform(1.5, 5.0)),
            write_ratio=float(random.uniform(0.0, 0.6)),
            branch_ratio=float(random.uniform(0.02, 0.2)),
            load_ratio=float(random.uniform(0.15, 0.4)),
        )
        rate = float(speeds(machine, [(0, phase)])[0, 0])
        length = np.exp(random.uniform(np.log(shortest), np.log(longest)))
        kinds.append((phase, rate, length))
    phases, spent = [], 0.0
    while spent < seconds:
        # A stretch repeats one to three kinds, as loops of programs do.
        loop = random.integers(0, len(kinds), random.integers(1, 4))
        for _ in range(random.integers(1, 12)):
            for kind in loop:
                phase, rate, length = kinds[kind]
                phases.append(_with_instructions(phase, float(np.ceil(rate * length))))
                spent += length
    return tuple(phases)


def _with_instructions(phase: Phase, instructions: float) -> Phase:
    return replace(phase, instructions=instructions)


def trace_of(
    history: History,
    period_seconds: float,
    *,
    run_id: str,
    corunners: Sequence[str] = (),
    window_id: str | None = None,
    counters: Sequence[str] = COUNTERS,
    noise_ratio: float = 0.0,
    seed: int = 0,
    platform: str = PLATFORM,
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
        platform=platform,
        corunners=tuple(sorted(corunners)),
        window_id=window_id,
        runtime_seconds=np.nan if history.job.loop else end - start,
        time_seconds=times,
        interval_seconds=np.diff(times, prepend=0.0),
        counters={name: counts[:, COUNTERS.index(name)] for name in counters},
    )


def simulate_campaign(
    programs: Sequence[Program],
    machine: Machine | None = None,
    *,
    period_seconds: float = 1e-3,
    sets: Sequence[Sequence[int]] | None = None,
    loop: bool = False,
    noise_ratio: float = 0.0,
    seed: int = 0,
) -> Traces:
    """Every program alone on the first two cores, and together in sets.

    sets: numbers of programs, on core 0, 1, …; by default all pairs, each both ways, and each program
    beside itself. loop: each member is measured once beside the others repeating; otherwise all start
    together and run once, and who is left goes on alone.
    """
    machine = machine or Machine()
    if sets is None:
        pairs = list(combinations_with_replacement(range(len(programs)), 2))
        sets = pairs + [(b, a) for a, b in pairs if a != b]
    cores = max([2, *(len(members) for members in sets)])
    kept: list[Trace] = []

    def record(
        history: History, run_id: str, corunners: Sequence[str] = (), window: str | None = None
    ) -> None:
        kept.append(
            trace_of(
                history,
                period_seconds,
                run_id=run_id,
                corunners=corunners,
                window_id=window,
                noise_ratio=noise_ratio,
                seed=seed + len(kept),
            )
        )

    for program in programs:
        for core in range(cores):
            (alone,) = simulate(machine, [Job(program, core)])
            record(alone, f"solo-{program.name}-{core}")
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
                others = names[:place] + names[place + 1 :]
                record(history, f"{window}-{place}", others, window)
    return Traces.from_traces(kept)


def protocol_campaign(
    programs: int,
    windows: int,
    held: int,
    seed: int,
    *,
    seconds: float = 0.25,
    shortest_seconds: float = SHORTEST_SECONDS,
    longest_seconds: float = LONGEST_SECONDS,
    period_seconds: float = 1e-3,
    noise_ratio: float = 0.0,
    loop: bool = False,
) -> Traces:
    """What `evaluate alignment` learns from and tests on: `windows` pairs drawn at random, and all pairs,
    both ways, of workloads that the folds of this seed hold out together."""
    from jostle.evaluate.alignment._evaluation import workload_folds

    drawn = draw_programs(
        programs,
        seed,
        seconds=seconds,
        shortest_seconds=shortest_seconds,
        longest_seconds=longest_seconds,
    )
    number = {program.name: i for i, program in enumerate(drawn)}
    tested = [
        (number[a], number[b])
        for fold in workload_folds(list(number), held, None, seed)
        for a in fold
        for b in fold
        if a != b
    ]
    # Every program is in at least one window, so that the folds drawn from the traces are the same.
    random = np.random.default_rng(seed + 1)
    pairs = {(int(a), int(b)) for a, b in random.integers(0, programs, (4 * windows, 2))}
    learned = sorted(pairs - set(tested))
    picked = random.permutation(len(learned))[:windows]
    sets = [learned[i] for i in sorted(picked)] + tested
    return simulate_campaign(
        drawn,
        period_seconds=period_seconds,
        sets=sets,
        loop=loop,
        noise_ratio=noise_ratio,
        seed=seed,
    )
