"""One model of a small world with known interference."""

from __future__ import annotations

import pytest

from jostle.data import Runs
from jostle.learn import learn
from jostle.learn.learners.network import Factorization, FittedFactorization
from tests.small_world import make_world


@pytest.fixture(scope="session")
def world() -> Runs:
    return make_world(2600, 0)


@pytest.fixture(scope="session")
def fitted(world: Runs) -> FittedFactorization:
    method = Factorization(
        form="paper", types=2, rank=16, hidden=32, steps=400, quantiles=(0.5, 0.9)
    )
    return learn(method, world, validation=make_world(400, 1), seed=0)
