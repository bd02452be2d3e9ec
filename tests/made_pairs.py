"""Made campaigns of pairs whose law of slowdown is known: a test bed in which no one form is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jostle.data import Runs
from jostle.errors import UsageError


@dataclass(frozen=True)
class MadeCampaign:
    """Every workload alone and beside every other, on each platform, by a law of LAWS.

    noise: standard deviation of the log runtime that no rule explains. repeats: runs of every workload alone.
    corunners: more than 1 adds as many sets of each size as there are pairs, drawn at random; their
    slowdown is by the law's own rule for several.
    """

    law: str
    workloads: int = 24
    platforms: int = 3
    noise: float = 0.02
    repeats: int = 3
    corunners: int = 1

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise UsageError(f"unknown law {self.law!r}", fix=f"One of {', '.join(LAWS)}.")

    def runs(self, seed: int) -> Runs:
        """Drawn with the seed."""
        w, p = self.workloads, self.platforms
        random = np.random.default_rng([seed, list(LAWS).index(self.law)])
        law = LAWS[self.law](_Draw(random, w, p))
        solo = np.exp(random.normal(0, 1, w)[None] + random.normal(0, 0.3, (p, w)))
        rows: list[tuple[int, int, tuple[int, ...]]] = []
        for place in range(p):
            rows += [(place, i, ()) for i in range(w) for _ in range(self.repeats)]
            rows += [(place, i, (j,)) for i in range(w) for j in range(w)]
            for size in range(2, self.corunners + 1):
                for _ in range(w * w // (size + 1)):
                    members = random.integers(0, w, size + 1).tolist()
                    for at in range(size + 1):
                        rows.append((place, members[at], (*members[:at], *members[at + 1 :])))
        slow = [law(place, i, np.array(beside)) if beside else 0.0 for place, i, beside in rows]
        noise = self.noise * random.normal(size=len(rows))
        names = [f"w{i:03d}" for i in range(w)]
        return Runs.from_columns(
            workload=[names[i] for _, i, _ in rows],
            platform=[f"p{place}" for place, _, _ in rows],
            corunners=[[names[j] for j in beside] for *_, beside in rows],
            runtime_seconds=[
                float(solo[place, i] * np.exp(s + e))
                for (place, i, _), s, e in zip(rows, slow, noise, strict=True)
            ],
        )


class _Draw:
    """Random numbers of workloads on platforms: mostly the workload's own, some of the platform's."""

    def __init__(self, random: np.random.Generator, workloads: int, platforms: int) -> None:
        self.random, self.workloads, self.platforms = random, workloads, platforms

    def numbers(self, types: int = 1) -> np.ndarray:
        """(platforms, workloads, types) above 0, median 1."""
        own = self.random.normal(0, 0.7, (1, self.workloads, types))
        there = self.random.normal(0, 0.25, (self.platforms, self.workloads, types))
        return np.exp(own + there + self.random.normal(0, 0.3, (self.platforms, 1, 1)))


# (platform, target, co-runners) -> log slowdown
Law = Callable[[int, int, np.ndarray], float]


def _additive(draw: _Draw) -> Law:
    hit, press = 0.15 * draw.numbers(), 0.15 * draw.numbers()
    return lambda p, i, beside: float(hit[p, i, 0] + press[p, beside, 0].sum())


def _multiplicative(draw: _Draw) -> Law:
    hit, press = 0.4 * draw.numbers(), draw.numbers()
    return lambda p, i, beside: float(np.log1p(hit[p, i, 0] * press[p, beside, 0].sum()))


def _low_rank(draw: _Draw) -> Law:
    hit, press = draw.numbers(3), draw.numbers(3)
    return lambda p, i, beside: float(0.04 * (hit[p, i] * press[p, beside].sum(0)).sum())


def _saturating(draw: _Draw) -> Law:
    most, press = 0.8 * draw.numbers(), draw.numbers()

    def law(p: int, i: int, beside: np.ndarray) -> float:
        return float(np.log1p(most[p, i, 0] * -np.expm1(-press[p, beside, 0].sum())))

    return law


def _worst_of(draw: _Draw) -> Law:
    """The most loaded of four resources decides."""
    hit, press = draw.numbers(4), draw.numbers(4)

    def law(p: int, i: int, beside: np.ndarray) -> float:
        return float(np.log1p(0.2 * (hit[p, i] * press[p, beside].sum(0)).max()))

    return law


def _capacity(draw: _Draw) -> Law:
    """Nothing happens until the demands exceed what there is; then all are slowed in proportion."""
    demand = draw.numbers()
    there = 1.5 * np.exp(draw.random.normal(0, 0.2, draw.platforms))

    def law(p: int, i: int, beside: np.ndarray) -> float:
        asked = demand[p, i, 0] + demand[p, beside, 0].sum()
        return float(np.log(max(1.0, asked / there[p])))

    return law


def _speed_ups(draw: _Draw) -> Law:
    """Half of the co-runners help: a cache they warm, a clock they keep up."""
    own = draw.random.normal(0, 0.1, (draw.platforms, draw.workloads))
    own = own + draw.random.normal(0, 0.1, draw.workloads)
    other = draw.random.normal(0, 0.1, draw.workloads)
    return lambda p, i, beside: float(own[p, i] + other[beside].sum())


def _none(draw: _Draw) -> Law:
    return lambda p, i, beside: 0.0


def _pair_specific(draw: _Draw) -> Law:
    """What two programs do to each other follows from neither, but is alike everywhere."""
    own = 0.1 * draw.numbers()
    pair = 0.25 * np.abs(draw.random.normal(size=(draw.workloads, draw.workloads)))
    gain = np.exp(draw.random.normal(0, 0.2, draw.platforms))
    return lambda p, i, beside: float(own[p, i, 0] + gain[p] * pair[i, beside].sum())


def _platform_constant(draw: _Draw) -> Law:
    level = draw.random.uniform(0.05, 0.6, draw.platforms)
    return lambda p, i, beside: float(np.log1p(level[p] * len(beside)))


LAWS: dict[str, Callable[[_Draw], Law]] = {
    "additive": _additive,
    "multiplicative": _multiplicative,
    "low_rank": _low_rank,
    "saturating": _saturating,
    "worst_of": _worst_of,
    "capacity": _capacity,
    "speed_ups": _speed_ups,
    "none": _none,
    "pair_specific": _pair_specific,
    "platform_constant": _platform_constant,
}
