"""A small dataset on disk, and a quickly trained model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jostle.data import Dataset, Runs
from jostle.learn.learners.network import FittedFactorization
from jostle.models import Model, fit
from tests.small_world import QUICK_NETWORK, make_world


@pytest.fixture(scope="session")
def world() -> Runs:
    return make_world(1800, 0)


@pytest.fixture(scope="session")
def dataset(world: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    Dataset(folder).write(world)
    return folder


@pytest.fixture(scope="session")
def model(world: Runs) -> Model:
    return fit(world, QUICK_NETWORK, seed=0)


def scrambled(known: FittedFactorization, form: str) -> FittedFactorization:
    """The model in another form with random numbers: two members of two interference types each, laid
    out as `combine` does."""
    random = np.random.default_rng(0)
    w, p = len(known.workload_names), len(known.platform_names)
    slots = 2 if form == "paper" else 4
    embeddings = replace(
        known.embeddings,
        workload_main=random.normal(size=(w, 5)),
        platform_main=0.2 * random.normal(size=(p, 5)),
        platform_corun=(form != "paper") * 0.1 * random.normal(size=(p, 5)),
        target=0.5 * random.normal(size=(w, slots, 3)),
        corunner=0.5 * random.normal(size=(w, slots, 3)),
        susceptibility=random.normal(size=(p, 4, 3)),
        intensity=random.normal(size=(p, 4, 3)),
        type_slot=np.array([0, 0, 1, 1]) if slots == 2 else np.arange(4),
        type_weight=np.full(4, 0.5),
    )
    return replace(known, reading=type(known.reading)(form), embeddings=embeddings)
