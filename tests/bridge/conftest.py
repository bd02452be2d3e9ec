"""Small made traces, made once."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.traces import Trace, Traces
from studies.bridge.data import drift, phase_program
from studies.traces import plain_trace


@pytest.fixture(scope="session")
def phases() -> Traces:
    return phase_program(60, jitter=0.05, length_seconds=1.0)


@pytest.fixture(scope="session")
def drifting() -> Traces:
    return drift(40, length_seconds=0.6, cores=2)


def a_trace(
    run: int, counters: dict[str, list[float]], seconds: float = 0.1, **changes: Any
) -> Trace:
    return plain_trace(counters, seconds, **{"run_id": f"r{run}"} | changes)
