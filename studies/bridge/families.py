"""Made families of runs that differ in kind, each with what real services show and a smooth drift does not.

`made_family(name, runs, seed=...)` gives traces of COUNTERS, LENGTH seconds long. The process depends on the
seed alone; runs are drawn from it independently.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jostle.data import Traces
from jostle.errors import UnknownName
from studies.bridge.data import UNITS, made_trace

SAMPLES, INTERVAL_SECONDS = 150, 0.02
TIME = INTERVAL_SECONDS * np.arange(1, SAMPLES + 1)
LENGTH = SAMPLES * INTERVAL_SECONDS
NOISE = 0.15  # of the log of a sample


def made_family(name: str, runs: int, *, seed: int = 0) -> Traces:
    """Traces of one family. Raises UnknownName."""
    if name not in FAMILIES:
        raise UnknownName("family", name, sorted(FAMILIES))
    number = sorted(FAMILIES).index(name)
    program = np.random.default_rng([seed, 10, number])
    draw = FAMILIES[name](program)
    levels = (draw(np.random.default_rng([seed, 11, number, run])) * UNITS for run in range(runs))
    return Traces.from_traces([made_trace(run, TIME, rates) for run, rates in enumerate(levels)])


Draw = Callable[[np.random.Generator], np.ndarray]


def _wave(program: np.random.Generator) -> np.ndarray:
    """(T, 3) a slow wave for each counter."""
    turns = program.uniform(0.6, 1.6, 3)
    return 1 + 0.6 * np.sin(
        2 * np.pi * TIME[:, None] / LENGTH * turns + program.uniform(0, 2 * np.pi, 3)
    )


def _steps(program: np.random.Generator, phases: int) -> tuple[np.ndarray, np.ndarray]:
    """(phases, 3) levels and (phases,) ends of phases, in seconds."""
    ends = np.cumsum(program.dirichlet(np.full(phases, 10.0))) * LENGTH
    return program.gamma(2.0, 0.5, (phases, 3)) + 0.1, ends


def _noisy(levels: np.ndarray, random: np.random.Generator, noise: float = NOISE) -> np.ndarray:
    effect = np.exp(0.1 * random.standard_normal(3))
    return levels * effect * np.exp(noise * random.standard_normal(levels.shape))


def heavy(program: np.random.Generator) -> Draw:
    """Log-normal samples of deviation 1.2 around a slow wave."""
    wave = _wave(program)
    return lambda random: _noisy(wave, random, 1.2)


def glitches(program: np.random.Generator) -> Draw:
    """A slow wave; one sample in 200 is 300 times too large."""
    wave = _wave(program)

    def draw(random: np.random.Generator) -> np.ndarray:
        found = _noisy(wave, random)
        return np.where(random.random(found.shape) < 0.005, 300 * found, found)

    return draw


def zeros(program: np.random.Generator) -> Draw:
    """A slow wave; the last counter is 0 in 85% of the samples, the second in 30%."""
    wave = _wave(program)

    def draw(random: np.random.Generator) -> np.ndarray:
        found = _noisy(wave, random)
        return np.where(random.random(found.shape) < [0.0, 0.3, 0.85], 0.0, found)

    return draw


def turns(program: np.random.Generator) -> Draw:
    """Phases with 10% jitter; 30% of each counter's samples were not counted."""
    steps = stages(program)

    def draw(random: np.random.Generator) -> np.ndarray:
        found = steps(random)
        return np.where(random.random(found.shape) < 0.3, np.nan, found)

    return draw


def stages(program: np.random.Generator) -> Draw:
    """Six phases whose lengths jitter by 10%."""
    levels, ends = _steps(program, 6)
    lengths = np.diff(ends, prepend=0.0)

    def draw(random: np.random.Generator) -> np.ndarray:
        own = np.cumsum(lengths * np.exp(0.1 * random.standard_normal(6)))
        return _noisy(levels[np.minimum(np.searchsorted(own, TIME), 5)], random)

    return draw


def speeds(program: np.random.Generator) -> Draw:
    """Six phases through which each run goes at a speed of its own, 25% apart."""
    levels, ends = _steps(program, 6)

    def draw(random: np.random.Generator) -> np.ndarray:
        place = np.searchsorted(ends, TIME * np.exp(0.25 * random.standard_normal()))
        return _noisy(levels[np.minimum(place, 5)], random)

    return draw


def restarts(program: np.random.Generator) -> Draw:
    """A start-up that settles; a run begins anew at random times, once on average."""
    top, rate = program.uniform(0.5, 2.0, 3), program.uniform(0.3, 1.0)

    def draw(random: np.random.Generator) -> np.ndarray:
        begun = np.zeros(SAMPLES)
        for moment in np.sort(random.uniform(0, LENGTH, random.poisson(1.0))):
            begun[moment <= TIME] = moment
        return _noisy(top * (1.05 - np.exp(-(TIME - begun)[:, None] / rate)), random)

    return draw


def modes(program: np.random.Generator) -> Draw:
    """Two ways to run: most change from the one to the other at a random time."""
    waves = [_wave(program) * program.uniform(0.5, 3.0, 3) for _ in range(2)]

    def draw(random: np.random.Generator) -> np.ndarray:
        first, change = random.integers(2), random.uniform(0, 1.5 * LENGTH)
        return _noisy(np.where((change > TIME)[:, None], waves[first], waves[1 - first]), random)

    return draw


def periodic(program: np.random.Generator) -> Draw:
    """Four cycles of three phases, begun at slightly different times."""
    levels, ends = _steps(program, 3)

    def draw(random: np.random.Generator) -> np.ndarray:
        place = (TIME + 0.05 * LENGTH * random.standard_normal()) * 4 % LENGTH
        return _noisy(levels[np.minimum(np.searchsorted(ends, place), 2)], random)

    return draw


def walk(program: np.random.Generator) -> Draw:
    """The log of each level walks at random and comes back slowly."""
    home = program.uniform(0.3, 2.0, 3)

    def draw(random: np.random.Generator) -> np.ndarray:
        levels = np.zeros((SAMPLES, 3))
        levels[0] = 0.5 * random.standard_normal(3)
        for t in range(1, SAMPLES):
            levels[t] = 0.98 * levels[t - 1] + 0.1 * random.standard_normal(3)
        return _noisy(home * np.exp(levels), random, 0.05)

    return draw


def bursts(program: np.random.Generator) -> Draw:
    """Idle or busy, for random times, busier and busier."""
    idle, busy = program.uniform(0.05, 0.3, 3), program.uniform(1.0, 4.0, 3)

    def draw(random: np.random.Generator) -> np.ndarray:
        state, found = random.random() < 0.3, np.empty((SAMPLES, 3))
        for t in range(SAMPLES):
            turn = 0.06 if state else 0.03 + 0.06 * t / SAMPLES
            state = state != (random.random() < turn)
            found[t] = busy if state else idle
        return _noisy(found, random)

    return draw


def smooth(program: np.random.Generator) -> Draw:
    """A slow wave."""
    wave = _wave(program)
    return lambda random: _noisy(wave, random)


FAMILIES: dict[str, Callable[[np.random.Generator], Draw]] = {
    rule.__name__: rule
    for rule in (
        heavy, glitches, zeros, turns, stages, speeds, restarts, modes, periodic, walk, bursts, smooth,
    )
}  # fmt: skip
