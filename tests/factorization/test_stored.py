"""Learning from runs on disk gives what learning from them in memory gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.errors import UsageError
from jostle.factorization import Factorization
from jostle.factorization.training import _members, _train
from jostle.methods import learn
from jostle.runs import Dataset, Runs, StoredRuns
from tests.limits import assert_covers

from .conftest import make_world

METHOD = Factorization(types=2, rank=16, hidden=32, steps=200)


@pytest.fixture(scope="module")
def folder(world: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    Dataset(folder).write(world)
    return folder


def error_of(model: jostle.Model, test: Runs) -> float:
    found = model.predict(test.colocations)
    return float(np.abs(found / test.runtime_seconds - 1).mean())


def test_as_good_as_in_memory(folder: Path, world: Runs) -> None:
    test = make_world(1500, 5)
    with StoredRuns(folder) as stored:
        from_disk = jostle.fit(stored, METHOD)
        again = jostle.fit(stored, METHOD)
    in_memory = jostle.fit(world, METHOD)
    log = np.log(test.runtime_seconds)
    typical = float(np.abs(np.expm1(np.median(log) - log)).mean())
    assert max(error_of(from_disk, test), error_of(in_memory, test)) < 0.2 * typical
    asked = test.colocations
    assert np.array_equal(from_disk.predict(asked), again.predict(asked))
    assert_covers(from_disk.bound(asked, 0.9), test.runtime_seconds)


def test_a_step_over_the_batch_alone_is_the_same_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the grid, embeddings of only the workloads in the batch must change nothing."""
    monkeypatch.setattr(_members, "GRID_LIMIT", 0)
    small = Factorization(types=2, rank=8, hidden=16, steps=40, batch=3)
    world, validation = make_world(200, 0, degrees=(0, 1)), make_world(60, 1, degrees=(0, 1))
    near = learn(small, world, validation=validation, seed=0)
    compiled: list[Any] = []
    program: Any = _train.run_steps

    def all_of_it(parameters: Any, features: Any, batch: Any, shape: Any) -> Any:
        compiled.append(shape)
        return parameters, features, batch

    monkeypatch.setattr(_train, "concerned", all_of_it)
    program.clear_cache()
    whole = learn(small, world, validation=validation, seed=0)
    assert compiled
    monkeypatch.undo()
    program.clear_cache()  # nobody else shall meet it
    # The network alone: what counts beside it is chosen, and a choice may turn on the last digit.
    for one, other in zip(
        vars(near.embeddings).values(), vars(whole.embeddings).values(), strict=True
    ):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-4)


def test_methods_that_need_tables_say_so(folder: Path) -> None:
    with StoredRuns(folder) as stored:
        with pytest.raises(UsageError, match="does not learn from runs on disk"):
            jostle.fit(stored, jostle.Slowdown())
        with pytest.raises(UsageError, match="by window"):
            jostle.fit(stored, METHOD, calibrate_by="together")
