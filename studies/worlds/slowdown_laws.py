"""What company costs, by laws that differ in kind: slowdowns of made programs on made platforms.

A law is drawn once for all programs and platforms, and then says the slowdown of one program beside any
number of others. Most follow from traits of the programs, of which a campaign may show some as features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# (platform, target, co-runners) -> slowdown; at least one co-runner
Slowdown = Callable[[int, int, np.ndarray], float]
TRAITS = 4


@dataclass(frozen=True)
class MadeNames:
    """traits: (programs, TRAITS) and machines: (platforms,), standard normal. random: for what no trait
    tells."""

    random: np.random.Generator
    traits: np.ndarray
    machines: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(platforms, programs)."""
        return len(self.machines), len(self.traits)

    def positive(self, trait: int, size: float, spread: float = 0.6) -> np.ndarray:
        """(platforms, programs) above 0, median about size: mostly by a trait and the platform, the rest
        each program's own."""
        own = 0.5 * self.random.normal(size=self.shape[1]) + 0.8 * self.traits[:, trait]
        there = 0.3 * self.random.normal(size=self.shape) + 0.4 * self.machines[:, None]
        return size * np.exp(spread * (own + there))


def adding(made: MadeNames) -> Slowdown:
    """Each co-runner adds its own share of the time alone, and any company some more."""
    any_company, each = made.positive(0, 0.1), made.positive(1, 0.12)
    return lambda p, i, others: float(1 + any_company[p, i] + each[p, others].sum())


def strongest(made: MadeNames) -> Slowdown:
    """Only the strongest of the co-runners matters."""
    press, hit = made.positive(0, 0.35), made.positive(1, 1.0, 0.3)
    return lambda p, i, others: float(1 + hit[p, i] * press[p, others].max())


def product(made: MadeNames) -> Slowdown:
    """Susceptibility times the sum of pressures."""
    hit, press = made.positive(0, 0.3), made.positive(1, 0.7)
    return lambda p, i, others: float(1 + hit[p, i] * press[p, others].sum())


def saturating(made: MadeNames) -> Slowdown:
    """A program loses at most its cached part, the sooner the more is beside it."""
    most, half, press = made.positive(0, 0.7), made.positive(1, 0.8, 0.3), made.positive(2, 1.0)

    def law(p: int, i: int, others: np.ndarray) -> float:
        total = press[p, others].sum()
        return float(1 + most[p, i] * total / (total + half[p, i]))

    return law


def once(made: MadeNames) -> Slowdown:
    """Company costs, whoever and how many: a clock that falls, a core that is no longer one's own."""
    cost = made.positive(0, 0.25)
    return lambda p, i, others: float(1 + cost[p, i])


def helping(made: MadeNames) -> Slowdown:
    """Programs of a family read the same pages and help each other; others cost a little."""
    family = made.random.integers(0, 4, made.shape[1])
    gain, cost = made.positive(0, 0.12, 0.3), made.positive(1, 0.05)

    def law(p: int, i: int, others: np.ndarray) -> float:
        same = family[others] == family[i]
        return float(np.exp(cost[p, others[~same]].sum() - gain[p, i] * np.sqrt(same.sum())))

    return law


def free_signs(made: MadeNames) -> Slowdown:
    """Three hidden traits of each side, of either sign, whose products add up in the log."""
    p, w = made.shape
    ours = made.random.normal(size=(w, 3))
    theirs = made.random.normal(size=(w, 3))
    strength = 0.07 * np.exp(0.3 * made.random.normal(size=(p, 3)))
    return lambda p, i, others: float(
        np.exp(0.1 + (strength[p] * ours[i] * theirs[others].sum(0)).sum())
    )


def threshold(made: MadeNames) -> Slowdown:
    """Nothing until the memory that all need, which is a feature, is more than the platform has."""
    need = np.exp(0.7 * made.traits[:, 0])
    there = 3.0 * np.exp(0.3 * made.machines)
    steep = 0.6 * np.exp(0.3 * made.traits[:, 1])

    def law(p: int, i: int, others: np.ndarray) -> float:
        over = (need[i] + need[others].sum()) / there[p] - 1
        return float(1 + steep[i] * max(over, 0.0))

    return law


def fair_slices(made: MadeNames) -> Slowdown:
    """Each asks for a share of the cores and gets it, or what is fair of those where all ask for more."""
    asks = 1 / (1 + np.exp(-made.traits[:, 0] - 0.5 * made.random.normal(size=made.shape[1])))
    cores = np.where(made.machines > 0, 1.5, 1.0)

    def law(p: int, i: int, others: np.ndarray) -> float:
        everyone = np.sort(np.append(asks[others], asks[i]))
        left, fair = cores[p], np.inf
        for place, ask in enumerate(everyone):
            if ask * (len(everyone) - place) >= left:
                fair = left / (len(everyone) - place)
                break
            left -= ask
        return float(asks[i] / min(asks[i], fair))

    return law


def signs_of_platforms(made: MadeNames) -> Slowdown:
    """What costs on one platform helps on the next."""
    sign = np.where(np.arange(made.shape[0]) % 2 == 0, 1.0, -0.6)
    hit, press = made.positive(0, 0.12), made.positive(1, 0.12)
    return lambda p, i, others: float(np.exp(sign[p] * (hit[p, i] + press[p, others].mean())))


def ranks(made: MadeNames) -> Slowdown:
    """Who is stronger goes first: a program waits for those above it and hardly for those below."""
    rank = made.traits[:, 0] + 0.3 * made.random.normal(size=made.shape[1])
    load = made.positive(1, 0.3, 0.4)

    def law(p: int, i: int, others: np.ndarray) -> float:
        above = rank[others] > rank[i]
        return float(1 + load[p, others[above]].sum() + 0.04 * (~above).sum())

    return law


def shared_bus(made: MadeNames) -> Slowdown:
    """The part of a program that is on the bus slows down as all ask for more than the bus gives."""
    asks, part = made.positive(0, 0.35), 1 / (1 + np.exp(-1.5 * made.traits[:, 1]))

    def law(p: int, i: int, others: np.ndarray) -> float:
        demand = asks[p, i] + asks[p, others].sum()
        return float(1 - part[i] + part[i] * max(1.0, demand))

    return law


def nothing(made: MadeNames) -> Slowdown:
    """Nobody notices anybody."""
    return lambda p, i, others: 1.0


def heavy_tails(made: MadeNames, size: int) -> np.ndarray:
    """(size,) log noise with a few runs that take far longer."""
    return 0.02 * made.random.normal(size=size) + np.where(
        made.random.random(size) < 0.05, made.random.exponential(0.5, size), 0.0
    )
