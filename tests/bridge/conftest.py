"""Small made traces, made once."""

from __future__ import annotations

import pytest

from jostle.evaluate import drift, phase_program
from jostle.traces import Traces


@pytest.fixture(scope="session")
def phases() -> Traces:
    return phase_program(60, jitter=0.05, length_seconds=1.0)


@pytest.fixture(scope="session")
def drifting() -> Traces:
    return drift(40, length_seconds=0.6, cores=2)
