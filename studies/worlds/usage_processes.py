"""Eight made processes of memory over a run's life, for limits: each fails another simple rule.

A run is (T,) bytes at even times. bursts: a level with rare, heavy-tailed bursts. periods: a wave whose
height is the run's own. regimes: runs change between two levels. ramps: growth to a size of the run's own,
then flat. leaks: growth at a rate of the run's own until it ends. shared: a level times a load that comes and
goes, with noise. lengths: independent steps in runs of very different lengths, so that long ones reach
higher. cut: ramps of which each run has a limit of its own, and ends where it reaches it.

Eight more say how peaks of one run after the other turn on their order: ORDERED.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MIB = 2.0**20
USUAL = 60  # samples of a run
Run = tuple[np.ndarray, bool]  # what it used, and whether its limit ended it
Law = Callable[[np.random.Generator], np.ndarray]


def bursts(random: np.random.Generator) -> np.ndarray:
    use = 400 + 10 * random.standard_normal(USUAL)
    return use + np.where(random.random(USUAL) < 0.03, 100 * random.pareto(2.5, USUAL), 0.0)


def periods(random: np.random.Generator) -> np.ndarray:
    height, phase = 150 * random.gamma(8, 1 / 8), random.uniform(0, 2 * np.pi)
    wave = np.sin(np.arange(USUAL) * 2 * np.pi / 15 + phase)
    return 400 + height * (1 + wave) + 10 * random.standard_normal(USUAL)


def regimes(random: np.random.Generator) -> np.ndarray:
    is_high = np.cumsum(random.random(USUAL) < 0.01) + (random.random() < 0.3)
    return np.where(is_high % 2, 900.0, 400.0) * np.exp(0.05 * random.standard_normal(USUAL))


def ramps(random: np.random.Generator) -> np.ndarray:
    size, share = 600 * np.exp(0.4 * random.standard_normal()), random.uniform(0.2, 0.8)
    use = size * np.minimum(np.arange(1, USUAL + 1) / (share * USUAL), 1.0)
    return 100 + use * np.exp(0.02 * random.standard_normal(USUAL))


def leaks(random: np.random.Generator) -> np.ndarray:
    length, rate = random.integers(30, 91), 5 * random.gamma(4, 1 / 4)
    steps = rate * random.gamma(2, 1 / 2, length)
    return 200 + np.cumsum(steps)


def shared(random: np.random.Generator) -> np.ndarray:
    load = 1 + 0.5 * random.beta(2, 4) * np.sin(np.linspace(0, np.pi, USUAL))
    return 300 * load * np.exp(0.1 * random.standard_normal(USUAL))


def lengths(random: np.random.Generator) -> np.ndarray:
    length = int(np.clip(40 * np.exp(random.standard_normal()), 3, 400))
    return 300 + 50 * random.standard_exponential(length)


LAWS: dict[str, Law] = {
    "bursts": bursts,
    "periods": periods,
    "regimes": regimes,
    "ramps": ramps,
    "leaks": leaks,
    "shared": shared,
    "lengths": lengths,
    "cut": ramps,
}
LIMITS = (700.0, 1600.0)  # of `cut`: from which each run's own is drawn


def a_run(name: str, random: np.random.Generator) -> Run:
    """What it used until it ended, or until its limit ended it."""
    whole = LAWS[name](random)
    if name != "cut":
        return MIB * whole, False
    limit = random.uniform(*LIMITS)
    over = np.flatnonzero(whole > limit)
    return (MIB * whole, False) if not len(over) else (MIB * whole[: max(over[0], 1)], True)


def whole_runs(name: str, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Of each all that it uses where no limit ends it."""
    return [MIB * LAWS[name](random) for _ in range(count)]


def _one_load(n: int, random: np.random.Generator) -> np.ndarray:
    """A load that comes and goes over several runs: autoregressive, .9 from one run to the next."""
    load = random.standard_normal(n)
    for i in range(1, n):
        load[i] = 0.9 * load[i - 1] + np.sqrt(1 - 0.81) * load[i]
    return load


def _stepped(n: int, random: np.random.Generator, low: float, high: float) -> np.ndarray:
    return (np.arange(n) >= random.integers(int(low * n), int(high * n))).astype(float)


# Log peaks of n runs, noise of a tenth aside.
ORDERED: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "steady": lambda n, random: np.zeros(n),
    "grows by 1%": lambda n, random: 0.01 * np.arange(n),
    "grows by as much": lambda n, random: np.log1p(0.02 * np.arange(n)),
    "grows faster": lambda n, random: 0.5 * (np.arange(n) / n) ** 2,
    "steps up": lambda n, random: 0.4 * _stepped(n, random, 0.2, 0.95),
    "steps twice": lambda n, random: (
        0.4 * _stepped(n, random, 0.1, 0.4) - 0.2 * _stepped(n, random, 0.4, 0.8)
    ),
    "walks": lambda n, random: 0.05 * np.cumsum(random.standard_normal(n)),
    "shared load": lambda n, random: 0.2 * _one_load(n, random),
}


def peaks_in_order(name: str, n: int, random: np.random.Generator) -> np.ndarray:
    """(n,) peaks of runs, the oldest first."""
    noise = 0.1 * random.standard_normal(n)
    return 400 * MIB * np.exp(ORDERED[name](n, random) + noise)
