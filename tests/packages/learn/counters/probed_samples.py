"""Samples and helpers for tests of probed, and for others that need them."""

from __future__ import annotations

import numpy as np

from jostle.data import Trace
from tests.packages.learn.counters.conftest import a_trace

SAMPLES, STEP, RATE = 80, 0.01, 1e8


HOG = "probe-hog"


def program(name: str, first: float, second: float, **facts: object) -> Trace:
    """Two halves, each so many times slower than alone; all programs count the same."""
    lengths = np.repeat([first * STEP, second * STEP], SAMPLES // 2)
    return a_trace([RATE * STEP] * SAMPLES, interval=lengths, workload=name, **facts)  # type: ignore[arg-type]


def hog(seconds: float, slow: float, **facts: object) -> Trace:
    return a_trace([RATE * STEP / slow] * round(seconds / STEP), workload=HOG, **facts)  # type: ignore[arg-type]


def drawn_probed() -> tuple[np.ndarray, np.ndarray, list[Trace]]:
    """(how much each of seven suffers, how much it presses, alone, beside a stressor and in pairs)."""
    random = np.random.default_rng(2)
    suffers, presses = random.uniform(0.05, 0.6, 7), random.uniform(0.05, 1.0, 7)
    every = [hog(1.0, 1.0, run_id="sh")]
    for i in range(7):
        every.append(program(f"w{i}", 1.0, 1.0, run_id=f"s{i}"))
        facts = {"window_id": f"p{i}"}
        slow = 1 + suffers[i]
        every.append(program(f"w{i}", slow, slow, run_id=f"p{i}", corunners=(HOG,), **facts))
        every.append(
            hog(0.8 * slow, 1 + presses[i], run_id=f"h{i}", corunners=(f"w{i}",), core=1, **facts)
        )
        for j in range(i):
            for core, (a, b) in enumerate(((i, j), (j, i))):
                slow = 1 + suffers[a] * presses[b]
                facts = {"window_id": f"v{i}{j}", "core": core, "corunners": (f"w{b}",)}
                every.append(program(f"w{a}", slow, slow, run_id=f"r{i}{j}{core}", **facts))
    return suffers, presses, every
