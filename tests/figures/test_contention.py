"""The simulator against closed forms and against small steps with another solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from studies.alignment.contention import Job, simulate
from studies.alignment.machine import Machine, SimulatedPhase, SimulatedProgram
from studies.alignment.simulated import draw_programs

MACHINE = Machine()


def seconds_per_instruction(
    machine: Machine, running: list[tuple[int, SimulatedPhase]]
) -> list[float]:
    """The module's equations, solved over the utilisation by SciPy instead of over the latency."""
    busy = [(c, p) for c, p in running if p.instructions]
    demand = sum(p.working_set_bytes for _, p in busy)
    kept = min(1.0, machine.cache_bytes / demand) if demand else 1.0
    misses = [
        p.accesses_per_instruction * (p.floor_ratio + (1 - p.floor_ratio) * (1 - kept))
        if p.working_set_bytes
        else 0.0
        for _, p in busy
    ]

    def each(u: float) -> list[float]:
        latency = machine.idle_latency_seconds * (1 + machine.queueing * u * u / (1 - u))
        return [
            p.cycles_per_instruction / machine.clock_hertz[c] + m / p.overlap * latency
            for (c, p), m in zip(busy, misses, strict=True)
        ]

    def surplus(u: float) -> float:
        traffic = sum(
            64 * m * (1 + p.write_ratio) / s
            for m, (_, p), s in zip(misses, busy, each(u), strict=True)
        )
        return traffic / machine.bandwidth - u

    solve: Any = brentq
    return each(solve(surplus, 0.0, 1 - 1e-12, xtol=1e-15) if surplus(0.0) > 0 else 0.0)


def some_programs(seed: int) -> list[SimulatedProgram]:
    return draw_programs(3, seed, seconds=0.004, shortest_seconds=3e-4, longest_seconds=2e-3)


@pytest.mark.parametrize("seed", range(2))
def test_as_in_small_steps(seed: int) -> None:
    programs = some_programs(seed)
    ends = [h.end_seconds for h in simulate(MACHINE, [Job(p, i) for i, p in enumerate(programs)])]
    place = [(0, 0.0)] * 3
    found: list[float | None] = [None] * 3
    now, step = 0.0, 2e-5
    known: dict[tuple[int, ...], list[float]] = {}
    while any(e is None for e in found):
        active = [i for i in range(3) if found[i] is None]
        key = tuple(place[i][0] if found[i] is None else -1 for i in range(3))
        if key not in known:
            known[key] = seconds_per_instruction(
                MACHINE, [(i, programs[i].phases[place[i][0]]) for i in active]
            )
        for i, each in zip(active, known[key], strict=True):
            phase, done = place[i]
            done += step / each
            over = done - programs[i].phases[phase].instructions
            if over >= 0:
                phase, done = phase + 1, over
                if phase == len(programs[i].phases):
                    found[i] = now + step - over * each
            place[i] = (phase, done)
        now += step
    np.testing.assert_allclose(ends, np.array(found, float), rtol=1e-2)


def test_computing_alone_takes_cycles_over_clock_whoever_is_beside() -> None:
    compute = SimulatedProgram("c", (SimulatedPhase(2e6, 1.5), SimulatedPhase(1e6, 0.5)))
    stream = SimulatedProgram("s", (SimulatedPhase(1e7, 1.0, 0.05, 2.0**25, 0.9, 2.0),))
    expected = (2e6 * 1.5 + 1e6 * 0.5) / MACHINE.clock_hertz[0]
    for jobs in ([Job(compute)], [Job(compute), Job(stream, 1)]):
        assert simulate(MACHINE, jobs)[0].end_seconds == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_nobody_is_faster_beside_others_and_all_instructions_are_executed(seed: int) -> None:
    programs = some_programs(seed)
    beside = simulate(MACHINE, [Job(p, i) for i, p in enumerate(programs)])
    for i, (program, history) in enumerate(zip(programs, beside, strict=True)):
        alone = simulate(MACHINE, [Job(program, i)])[0]
        assert history.runtime_seconds >= alone.runtime_seconds * (1 - 1e-9)
        assert history.counters[-1, 0] == pytest.approx(program.instructions, rel=1e-12)
        assert (np.diff(history.counters, axis=0) >= 0).all()


def test_later_starts_loops_and_idle_phases() -> None:
    work = SimulatedProgram("w", (SimulatedPhase(2e6, 1.0),))
    pause = SimulatedProgram(
        "i",
        (SimulatedPhase(1e6, 1.0), SimulatedPhase(0, idle_seconds=0.005), SimulatedPhase(1e6, 1.0)),
    )
    late, looping = simulate(MACHINE, [Job(work, 0, 0.002), Job(work, 2, loop=True)])
    assert late.runtime_seconds == pytest.approx(0.001)
    assert looping.rounds == 3
    assert looping.counters[-1, 0] == pytest.approx(6e6)
    assert simulate(MACHINE, [Job(pause)])[0].end_seconds == pytest.approx(0.006)
