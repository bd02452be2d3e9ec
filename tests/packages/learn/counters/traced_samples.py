"""Traces made for tests: by hand, and of small programs that press on one memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jostle.data import Trace, Traces
from jostle.learn.learners.counters import SoloCounters

COUNTERS = ("instructions", "loads", "misses")
HOG = "probe-hog"
STEP, SAMPLES, RATE = 0.01, 80, 1e8
PERIOD = 1e-3


def a_trace(
    instructions: Sequence[float] | np.ndarray,
    *,
    interval: float | Sequence[float] | np.ndarray = STEP,
    runtime: float | None = None,
    counters: Mapping[str, Sequence[float] | np.ndarray] | None = None,
    **facts: Any,
) -> Trace:
    """Make a trace without gaps. runtime: by default the run ends with its last sample. facts: of the fields
    of a Trace; what is not named is that of workload w alone."""
    steps = np.broadcast_to(np.asarray(interval, float), len(instructions)).copy()
    counted = {"instructions": instructions, **(counters or {})}
    times = np.cumsum(steps)
    made = Trace(
        run_id="r",
        core=0,
        workload="w",
        platform="p",
        corunners=(),
        window_id=None,
        runtime_seconds=float(times[-1]) if runtime is None else runtime,
        time_seconds=times,
        interval_seconds=steps,
        counters={name: np.asarray(values, float) for name, values in counted.items()},
    )
    return replace(made, **facts)


def a_solo(counts: np.ndarray, tau: float = 1.0, *, name: str = "w") -> SoloCounters:
    """Make solo counters of (T, d) counts per period, instructions first."""
    table = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    names = ("instructions", *(f"c{i}" for i in range(1, counts.shape[1])))
    return SoloCounters(name, "p", tau, len(counts) * tau, names, table)


Phase = tuple[float, np.ndarray]
"""Seconds alone, and how often it counts each of COUNTERS a second."""


def draw_program(random: np.random.Generator, phases: int = 12) -> list[Phase]:
    """Draw phases of a few kinds, each 3 to 12 periods long."""
    kinds = [
        np.exp(random.uniform(np.log([4e8, 5e7, 1e6]), np.log([2e9, 5e8, 4e7]))) for _ in range(3)
    ]
    return [(PERIOD * random.uniform(3, 12), kinds[random.integers(3)]) for _ in range(phases)]


def slowdown(own: np.ndarray, others: np.ndarray) -> float:
    """Return how much longer a phase takes beside phases that count so much together: all misses queue."""
    return 1 + 0.4 * own[2] / 4e7 * others[2] / 4e7 + 0.3 * own[2] / 4e7 * np.sqrt(others[2] / 4e7)


def run_together(programs: Sequence[list[Phase]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Run programs from the same moment on, each once; who is left goes on alone.

    Return ((e,) seconds, (e, 3) counted by then) of each.
    """
    place, left = [0] * len(programs), [program[0][0] for program in programs]
    curves = [([0.0], [np.zeros(3)]) for _ in programs]
    now = 0.0
    while running := [i for i, program in enumerate(programs) if place[i] < len(program)]:
        rates = {i: programs[i][place[i]][1] for i in running}
        slow = {
            i: slowdown(rates[i], sum((r for k, r in rates.items() if k != i), np.zeros(3)))
            for i in running
        }
        step = min(left[i] * slow[i] for i in running)
        now += step
        for i in running:
            curves[i][0].append(now)
            curves[i][1].append(curves[i][1][-1] + rates[i] * step / slow[i])
            left[i] -= step / slow[i]
            if left[i] <= 1e-12:
                place[i] += 1
                left[i] = programs[i][place[i]][0] if place[i] < len(programs[i]) else 0.0
    return [(np.array(times), np.array(counts)) for times, counts in curves]


def sampled(curve: tuple[np.ndarray, np.ndarray], **facts: Any) -> Trace:
    """Make the trace that a recorder reads every period."""
    times, counts = curve
    edges = np.append(np.arange(0.0, times[-1] - 1e-9, PERIOD), times[-1])
    counted = np.stack([np.diff(np.interp(edges, times, column)) for column in counts.T])
    more: dict[str, np.ndarray] = dict(zip(COUNTERS[1:], counted[1:], strict=True))
    return a_trace(counted[0], interval=np.diff(edges), counters=more, **facts)


def traced_programs(
    number: int = 6, seed: int = 3, pairs: Sequence[tuple[int, int]] = ()
) -> Traces:
    """Trace programs alone and in pairs, by default all of different ones."""
    random = np.random.default_rng(seed)
    programs = [draw_program(random) for _ in range(number)]
    names = [f"program-{i:02d}" for i in range(number)]
    every = [
        sampled(run_together([program])[0], workload=name, run_id=f"alone-{name}")
        for name, program in zip(names, programs, strict=True)
    ]
    for pair in pairs or [(a, b) for a in range(number) for b in range(a)]:
        window = "+".join(names[i] for i in pair)
        for core, curve in enumerate(run_together([programs[i] for i in pair])):
            facts = {"workload": names[pair[core]], "corunners": (names[pair[1 - core]],)}
            facts |= {"run_id": f"{window}-{core}", "window_id": window, "core": core}
            every.append(sampled(curve, **facts))
    return Traces.from_traces(every)


def two_halves(name: str, first: float, second: float, **facts: Any) -> Trace:
    """Make a program of two phases alike in all it counts, each so much longer than alone."""
    lengths = np.repeat([first * STEP, second * STEP], SAMPLES // 2)
    return a_trace([RATE * STEP] * SAMPLES, interval=lengths, workload=name, **facts)


def a_hog(seconds: float, slow: float, **facts: Any) -> Trace:
    """Make a stressor's trace, so many times slower than alone."""
    facts = {"workload": HOG, **facts}
    return a_trace([RATE * STEP / slow] * round(seconds / STEP), **facts)


def probed_programs() -> tuple[np.ndarray, np.ndarray, list[Trace]]:
    """Return (how much each of seven programs suffers, how much it presses, its traces alone, beside a
    stressor and in pairs)."""
    random = np.random.default_rng(2)
    suffers, presses = random.uniform(0.05, 0.6, 7), random.uniform(0.05, 1.0, 7)
    every = [a_hog(1.0, 1.0, run_id="sh")]
    for i in range(7):
        name, slow = f"w{i}", 1 + suffers[i]
        every.append(two_halves(name, 1.0, 1.0, run_id=f"s{i}"))
        facts: dict[str, Any] = {"window_id": f"p{i}"}
        every.append(two_halves(name, slow, slow, run_id=f"p{i}", corunners=(HOG,), **facts))
        beside = {"run_id": f"h{i}", "corunners": (name,), "core": 1, **facts}
        every.append(a_hog(0.8 * slow, 1 + presses[i], **beside))
        for j in range(i):
            for core, (a, b) in enumerate(((i, j), (j, i))):
                slow = 1 + suffers[a] * presses[b]
                facts = {"window_id": f"v{i}{j}", "core": core, "corunners": (f"w{b}",)}
                every.append(two_halves(f"w{a}", slow, slow, run_id=f"r{i}{j}{core}", **facts))
    return suffers, presses, every
