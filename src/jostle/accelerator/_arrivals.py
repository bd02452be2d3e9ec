"""Queries that arrive by a process (open loop), and what their latency is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.errors import UsageError


def poisson_arrivals(rate_per_second: float, queries: int, seed: int) -> np.ndarray:
    """(queries,) arrival times in seconds of a Poisson process. Raises UsageError."""
    if not (0 < rate_per_second < np.inf) or queries < 1:
        raise UsageError(f"{queries} queries at {rate_per_second} per second are no arrivals")
    gaps = np.random.default_rng(seed).exponential(1 / rate_per_second, queries)
    return np.cumsum(gaps)


@dataclass(frozen=True)
class Latency:
    """Of the queries of one application, in seconds. p95, p99: the order statistic ceil(n * share), so
    that at most 5% and 1% of the queries took longer."""

    queries: int
    mean_seconds: float
    p95_seconds: float
    p99_seconds: float
    max_seconds: float

    @classmethod
    def of(cls, seconds: np.ndarray) -> Latency:
        """Raises UsageError where no query ended."""
        n = len(seconds)
        if not n:
            raise UsageError("no query ended, so there is no latency")
        ordered = np.sort(seconds)
        return cls(
            n,
            float(ordered.mean()),
            float(ordered[-(-n * 95 // 100) - 1]),
            float(ordered[-(-n * 99 // 100) - 1]),
            float(ordered[-1]),
        )
