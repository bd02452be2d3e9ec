"""Samples and helpers for tests of timelines, and for others that need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from jostle.data import Colocations, Runs
from jostle.models import Rates
from tests.packages.models.over_time_samples import NAMES, times

PLATFORM = ("p",)


@dataclass
class Known:
    """The true law as what was learned."""

    workload_names = tuple(NAMES)
    platform_names = PLATFORM

    def predict(self, asked: Colocations) -> np.ndarray:
        return times(asked)


@dataclass
class Job:
    code: int
    left: float
    start: float
    node: str
    beside: list[tuple[float, list[str]]]
    seconds: float = 0.0


def node_log(n: int, seed: int, slots: int = 3, noise: float = 0.05) -> Runs:
    """n jobs, one after the other onto one of two nodes as slots come free, by the true law."""
    draw, rates = np.random.default_rng(seed), Rates(Known())
    jobs: list[Job] = []
    for node in ("n0", "n1"):
        clock, here, started = 0.0, list[Job](), 0
        while started < n // 2 or here:
            while len(here) < slots and started < n // 2 and (not here or draw.random() < 0.7):
                noisy = float(np.exp(noise * draw.normal()))
                here.append(Job(int(draw.integers(len(NAMES))), noisy, clock, node, []))
                started += 1
            for job in here:
                beside = sorted(NAMES[other.code] for other in here if other is not job)
                if not job.beside or job.beside[-1][1] != beside:
                    job.beside.append((clock - job.start, beside))
            seconds = rates.of(np.zeros(1, int), np.array([[job.code for job in here]]))[0]
            dt = min(job.left * s for job, s in zip(here, seconds.tolist(), strict=True))
            clock += dt
            for job, s in zip(here, seconds.tolist(), strict=True):
                job.left -= dt / s
            over = [job for job in here if job.left <= 1e-9]
            here = [job for job in here if job.left > 1e-9]
            for job in over:
                job.seconds = clock - job.start
            jobs += over
    return Runs.from_columns(
        workload=[NAMES[job.code] for job in jobs],
        platform=["p"] * len(jobs),
        runtime_seconds=[job.seconds for job in jobs],
        stretches=[job.beside for job in jobs],
        measured_at=pa.array([int(1e6 * job.start) for job in jobs], pa.timestamp("us", tz="UTC")),
        node=[job.node for job in jobs],
    )
