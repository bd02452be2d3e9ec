"""Nothing of the test part reaches what is answered: with all its runtimes replaced, every prediction and
every bound of an evaluation is the same to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jostle.data import Runs, sample, split_rows
from jostle.learn.learners.bags import Bag
from jostle.learn.learners.network import Factorization
from jostle.models import Model
from studies.rivals.linear import LinearScaling
from studies.splits import evaluate_method, observed_split

QUICK = Factorization(rank=2, hidden=4, steps=15, members=1)


@cache
def some_runs() -> Runs:
    """Of the shipped sample, two platforms and so many windows that a fit takes a moment."""
    every = sample().ok()
    every = every.take(every.colocations.platform < 2)
    return every.take(split_rows(every, [0.4, 0.6], 0, unit="window")[0])


def corrupted(runs: Runs, rows: np.ndarray) -> Runs:
    """The runs with other runtimes in these rows."""
    seconds = np.array(runs.runtime_seconds)
    seconds[rows] *= np.random.default_rng(1).lognormal(3, 2, len(rows))
    place = runs.table.column_names.index("runtime_seconds")
    field = runs.table.schema.field(place)
    table = runs.table.set_column(place, field, pa.array(seconds))
    return Runs(table, runs.workload_features, runs.platform_features)


class Answers:
    """Every prediction and bound that an evaluation asks for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.found: list[np.ndarray] = []
        real_predict, real_bound = Model.predict, Model.bound

        def predict(model: Model, *asked: Any, **more: Any) -> np.ndarray:
            return self._kept(real_predict(model, *asked, **more))

        def bound(model: Model, *asked: Any, **more: Any) -> Any:
            answer = real_bound(model, *asked, **more)
            self._kept(answer.seconds)
            return answer

        patch.setattr(Model, "predict", predict)
        patch.setattr(Model, "bound", bound)

    def _kept(self, answer: np.ndarray) -> np.ndarray:
        self.found.append(np.array(answer))
        return answer


def method_study(runs: Runs, method: Any) -> np.ndarray:
    """What `python -m studies papers factorization` fits and asks."""
    split = observed_split(runs, 0.6, 0)
    evaluate_method(runs, method, split, seed=0)
    return split.test


STUDIES: dict[str, tuple[Callable[[Runs, Any], np.ndarray], Callable[[], Runs], Any]] = {
    "method, bag": (method_study, some_runs, Bag(learner="tree")),
    "method, linear": (method_study, some_runs, LinearScaling()),
    "factorization": (method_study, some_runs, QUICK),
}


@pytest.mark.parametrize("name", STUDIES)
def test_answers_do_not_depend_on_the_test_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study, data, method = STUDIES[name]
    runs = data().ok()
    answers = Answers(monkeypatch)
    test = study(runs, method)
    before, answers.found = answers.found, []
    other = corrupted(runs, test)
    assert (other.runtime_seconds != runs.runtime_seconds).sum() == len(test) > 9
    assert (study(other, method) == test).all()
    assert before
    assert any(np.isfinite(one).any() for one in before)
    assert len(before) == len(answers.found)
    for one, two in zip(before, answers.found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_watch_sees_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other runtimes in what is learned from, answers differ."""
    runs = some_runs()
    answers = Answers(monkeypatch)
    method_study(runs, LinearScaling())
    before, answers.found = answers.found, []
    train = observed_split(runs, 0.6, 0).train
    method_study(corrupted(runs, train), LinearScaling())
    assert any((one != two).any() for one, two in zip(before, answers.found, strict=True))
