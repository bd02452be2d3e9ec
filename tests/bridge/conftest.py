"""Small made traces, made once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.traces import Trace, Traces
from studies.bridge.data import drift, phase_program


@pytest.fixture(scope="session")
def phases() -> Traces:
    return phase_program(60, jitter=0.05, length_seconds=1.0)


@pytest.fixture(scope="session")
def drifting() -> Traces:
    return drift(40, length_seconds=0.6, cores=2)


def a_trace(
    run: int, counters: dict[str, list[float]], seconds: float = 0.1, **changes: Any
) -> Trace:
    n = len(next(iter(counters.values())))
    made = Trace(
        run_id=f"r{run}",
        core=0,
        workload="w",
        platform="p",
        corunners=(),
        window_id=None,
        runtime_seconds=n * seconds,
        time_seconds=seconds * np.arange(1, n + 1),
        interval_seconds=np.full(n, seconds),
        counters={name: np.array(values, float) for name, values in counters.items()},
    )
    return replace(made, **changes)
