"""Small made traces, made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.data import Trace, Traces
from tests.plain_traces import plain_trace

COUNTERS = ("instructions", "llc-requests", "llc-misses")


def a_trace(
    run: int, counters: dict[str, list[float]], seconds: float = 0.1, **changes: Any
) -> Trace:
    return plain_trace(counters, seconds, **{"run_id": f"r{run}"} | changes)


@pytest.fixture(scope="session")
def phases() -> Traces:
    """60 runs of a second each that go through four phases, each as long as it likes."""
    random, made = np.random.default_rng(0), []
    means = random.gamma(2.0, 0.5, (4, 3)) * [2e9, 5e6, 1e6]
    for run in range(60):
        ends = np.cumsum(0.25 * np.exp(0.05 * random.standard_normal(4)))
        time = 0.01 * np.arange(1, int(100 * ends[-1]) + 2)
        own = means * np.exp(0.2 * random.standard_normal())
        counts = 0.01 * own[np.minimum(np.searchsorted(ends, time), 3)]
        counts = counts * np.exp(0.02 * random.standard_normal(counts.shape))
        counters = {name: counts[:, i].tolist() for i, name in enumerate(COUNTERS)}
        made.append(a_trace(run, counters, 0.01))
    return Traces.from_traces(made)


def nobody(n: int) -> np.ndarray:
    """Return (n,) of which run it is not known how high it came: of none."""
    return np.zeros(n, bool)


def together(lives: list[np.ndarray]) -> float:
    """Add up lives that begin together. Returns the highest total."""
    total = np.zeros(max(map(len, lives)))
    for life in lives:
        total[: len(life)] += life
    return float(total.max())
