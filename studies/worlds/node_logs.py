"""Logs of jobs that share nodes, of four kinds: what names do, and what co-runners cost, differs.

`repeats`: names repeat within 4%. `inputs`: how long a name takes turns on inputs that nobody knows.
`crowded`: co-runners cost much. `drifting`: a third of the names take longer and longer, or less and less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from jostle.data import Runs

NAMES, NODES, SLOTS = 14, 6, 4
WARM = 300  # jobs before and after those of the log, in which nodes fill and empty


@dataclass(frozen=True)
class LogLaw:
    """noise: from which to which each name's own spread lies. cost: of a demanding co-runner. drift: log
    seconds that a third of the names gains or loses over the log. load: how full nodes are."""

    noise: tuple[float, float]
    cost: float
    drift: float = 0.0
    load: float = 0.8


LAWS = {
    "repeats": LogLaw((0.01, 0.04), 0.5),
    "inputs": LogLaw((0.15, 0.5), 0.3),
    "crowded": LogLaw((0.03, 0.15), 2.0),
    "drifting": LogLaw((0.05, 0.2), 0.5, drift=0.8),
}


@dataclass
class LoggedJob:
    name: int
    work: float  # seconds alone, on the slower platform
    node: int
    start: float
    beside: list[tuple[float, list[str]]]
    left: float
    seconds: float = 0.0


# Where a job goes: its name, who is on each node, the time; None to wait.
Place = Callable[[int, Sequence[Sequence[LoggedJob]], float], int | None]


@dataclass(frozen=True)
class Names:
    """What names are like. seconds: alone. demand: on what is shared. suffers: from others. noise, drift: of
    each name's runs."""

    law: LogLaw
    seconds: np.ndarray
    demand: np.ndarray
    suffers: np.ndarray
    noise: np.ndarray
    drift: np.ndarray

    @classmethod
    def of(cls, law: LogLaw, random: np.random.Generator) -> Names:
        noise = np.geomspace(*law.noise, NAMES)
        drift = np.where(np.arange(NAMES) % 3 == 0, random.choice([-1.0, 1.0], NAMES), 0.0)
        return cls(
            law,
            np.exp(random.uniform(np.log(60), np.log(3600), NAMES)),
            random.beta(1, 1, NAMES),
            random.beta(1.5, 1.5, NAMES),
            random.permutation(noise),
            law.drift * drift,
        )

    def slow(self, members: np.ndarray, node: int) -> np.ndarray:
        """(k,) how many times longer than alone each of a node's members takes."""
        demand = self.demand[members]
        beside = demand.sum() - demand
        speed = 1.0 if node % 2 else 0.75
        pressed = beside + 0.5 * beside**2 / (1 + beside)
        return speed * (1 + self.law.cost * self.suffers[members] * pressed)


def node_log(kind: str, jobs: int, seed: int) -> Runs:
    """So many jobs that come as they may, each to the node with most room."""
    random = np.random.default_rng([seed, list(LAWS).index(kind)])
    names = Names.of(LAWS[kind], random)

    def most_room(name: int, here: Sequence[Sequence[LoggedJob]], clock: float) -> int | None:
        if min(map(len, here)) == SLOTS:
            return None
        return min(range(NODES), key=lambda n: (len(here[n]), random.random()))

    return runs_of(lives(names, jobs, random, most_room))


def lives(
    names: Names,
    jobs: int,
    random: np.random.Generator,
    place: Place,
    load: float | None = None,
    warm: int = WARM,
) -> list[LoggedJob]:
    """So many jobs that come as they may, in order of their starts; who waits is first."""
    whole = jobs + 2 * warm
    often = random.dirichlet(np.full(NAMES, 2.0))
    mean = float(often @ names.seconds)
    gap = mean * (1 + 0.45 * names.law.cost) / ((load or names.law.load) * NODES * SLOTS)
    here: list[list[LoggedJob]] = [[] for _ in range(NODES)]
    over: list[LoggedJob] = []
    waiting: list[int] = []
    clock, comes, number = 0.0, 0.0, 0
    while number < whole or any(here):
        rates = [
            1 / names.slow(np.array([job.name for job in on], int), node) if on else np.zeros(0)
            for node, on in enumerate(here)
        ]
        ends = [
            float((np.array([j.left for j in on]) / r).min())
            for on, r in zip(here, rates, strict=True)
            if on
        ]
        dt = min([*ends, comes - clock if number < whole else np.inf])
        clock += dt
        touched = set()
        for node, (on, rate) in enumerate(zip(here, rates, strict=True)):
            for job, one in zip(on, rate.tolist(), strict=True):
                job.left -= dt * one
            done = [job for job in on if job.left <= 1e-6]
            for job in done:
                job.seconds = clock - job.start
            over += done
            if done:
                here[node] = [job for job in on if job.left > 1e-6]
                touched.add(node)
        if number < whole and clock >= comes - 1e-9:
            waiting.append(int(random.choice(NAMES, p=often)))
            number += 1
            comes = clock + float(random.exponential(gap))
        while waiting and (node := place(waiting[0], here, clock)) is not None:
            name = waiting.pop(0)
            shift = (
                names.drift[name] * ((number - warm) / jobs - 0.5)
                + names.noise[name] * random.normal()
            )
            work = float(names.seconds[name] * np.exp(shift))
            here[node].append(LoggedJob(name, work, node, clock, [], work))
            touched.add(node)
        for node in touched:
            for job in here[node]:
                beside = sorted(f"job{one.name:02d}" for one in here[node] if one is not job)
                at = clock - job.start
                if job.beside and at - job.beside[-1][0] < 1e-6:
                    job.beside.pop()
                if not job.beside or job.beside[-1][1] != beside:
                    job.beside.append((at, beside))
    return sorted(over, key=lambda job: job.start)[warm : warm + jobs]


def runs_of(over: Sequence[LoggedJob]) -> Runs:
    """What a log tells of jobs that have ended."""
    return Runs.from_columns(
        workload=[f"job{job.name:02d}" for job in over],
        platform=["fast" if job.node % 2 == 0 else "slow" for job in over],
        runtime_seconds=[job.seconds for job in over],
        stretches=[job.beside for job in over],
        measured_at=pa.array([int(1e6 * job.start) for job in over], pa.timestamp("us", tz="UTC")),
        node=[f"n{job.node}" for job in over],
    )
