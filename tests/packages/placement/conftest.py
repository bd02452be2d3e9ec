"""A quick model of a small world, calibrated alone and beside one and two others."""

from __future__ import annotations

import pytest

from jostle.data import Runs
from jostle.learn.learners.network import Factorization
from jostle.models import Model, fit

WORKLOADS = tuple(f"w{i:02d}" for i in range(14))
PLATFORMS = tuple(f"p{i}" for i in range(6))


@pytest.fixture(scope="session")
def model(world: Runs) -> Model:
    return fit(world, Factorization(rank=8, hidden=16, steps=150, quantiles=()), seed=0)
