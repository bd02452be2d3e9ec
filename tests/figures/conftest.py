"""A small dataset on disk, a quick study over it, and a quickly trained model."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.data import Dataset, Runs
from jostle.models import Model, fit
from studies.factorization.comparisons import Comparison, NamedMethod
from studies.rivals.linear import LinearScaling
from tests.small_world import QUICK_NETWORK, make_world


@pytest.fixture(scope="session")
def world() -> Runs:
    return make_world(1800, 0)


@pytest.fixture(scope="session")
def dataset(world: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    Dataset(folder).write(world)
    return folder


@pytest.fixture
def linear() -> Comparison:
    """Quick: one method that needs no training."""
    return Comparison("small", "Small", (NamedMethod("linear", LinearScaling()),), "linear")


@pytest.fixture(scope="session")
def model(world: Runs) -> Model:
    return fit(world, QUICK_NETWORK, seed=0)


@pytest.fixture
def sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures as one SVG each: that they are kept as three files is tested with all drawing."""
    monkeypatch.setattr("jostle._base.figure_files.ENDINGS", (".svg",))
