"""What was asked lately is answered from memory, until another model comes or too much is kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jostle.conformal import ADAPTING
from jostle.server.asking import _model_cache
from jostle.server.asking._model_cache import predict_items
from jostle.server.state import Lately, Served, read_served

ITEMS: list[Any] = [
    {"workload": "w01", "platform": "p0", "corunners": ["w02", "w03"]},
    {"workload": "nobody", "platform": "p0"},
    {"workload": "w01", "platform": "p1"},
]


def test_the_same_question_is_computed_once(
    model_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, other = (read_served(path) for path in model_folders)
    asked: list[int] = []
    answer = type(served.model).predict_and_bound

    def counted(model: Any, colocations: Any, confidence: float, **more: Any) -> Any:
        asked.append(len(colocations))
        return answer(model, colocations, confidence, **more)

    monkeypatch.setattr(type(served.model), "predict_and_bound", counted)
    first = predict_items(served, ITEMS, 0.8)
    turned = {**ITEMS[0], "corunners": ["w03", "w02"]}
    assert predict_items(served, [turned, *ITEMS[1:]], 0.8) == first
    assert asked == [2]
    more = [{"workload": "w04", "platform": "p0"}, ITEMS[2]]
    assert predict_items(served, more, 0.8)[1] == first[2]
    assert predict_items(served, ITEMS[:1], 0.7)[0] != first[0]
    assert predict_items(other, ITEMS, 0.8)[0] != first[0]
    assert asked == [2, 1, 1, 2]
    fresh = Served.of(served.model, served.version)
    assert predict_items(fresh, ITEMS, 0.8) == first


def test_what_changes_with_every_run_is_computed_once_between_two(
    model_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, asked = read_served(model_folders[0]), list[int]()

    def counted(_: Any, colocations: Any, *__: Any, **___: Any) -> Any:
        asked.append(len(colocations))
        one = SimpleNamespace(outcome=ADAPTING, bound_seconds=None, times=len(asked))
        return [one] * len(colocations)

    monkeypatch.setattr(_model_cache, "predictions", counted)
    first = predict_items(served, ITEMS, 0.8)
    assert predict_items(served, ITEMS, 0.8) == first
    assert asked == [2]
    assert predict_items(served.following(served.model, 1, 0), ITEMS, 0.8) != first
    assert asked == [2, 2]


def test_the_oldest_is_forgotten() -> None:
    lately = Lately(2)
    for number in range(3):
        lately.put(number, str(number))
        lately.put(number, str(number))
    assert [lately.get(number) for number in range(3)] == [None, "1", "2"]
    assert len(lately) == 2
