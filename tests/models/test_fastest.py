"""Where a workload runs fastest: the same as by asking about every platform."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.errors import UnknownName, UsageError
from jostle.methods import AnswersEverywhere
from tests.command_line import jostle as command
from tests.factorization.conftest import make_world
from tests.models.levels import Levels, campaign


@pytest.fixture(scope="module")
def model() -> jostle.Model:
    method = jostle.Factorization(form="saturating", rank=4, hidden=8, steps=60, quantiles=())
    return jostle.fit(make_world(300, 0), method)


@pytest.mark.parametrize("beside", [(), ("w01",), ("w01", "w02")])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_it_is_what_asking_about_all_gives(
    model: jostle.Model, beside: tuple[str, ...], most: int
) -> None:
    names = model.predictor.platform_names
    asked = jostle.Colocations.from_columns(
        workload=["w03"] * len(names), platform=list(names), corunners=[list(beside)] * len(names)
    )
    seconds = model.predict(asked)
    order = [i for i in np.argsort(seconds, kind="stable") if np.isfinite(seconds[i])][:most]
    found = model.fastest("w03", beside, most=most, confidence=0.8)
    assert found.platforms == tuple(names[i] for i in order)
    np.testing.assert_allclose(found.seconds, seconds[order])
    bounds = model.bound(asked, 0.8)
    np.testing.assert_allclose(found.bounds.seconds, bounds.seconds[order])
    assert found.known == len(names)


def test_after_names_joined_and_runs_were_learned(model: jostle.Model) -> None:
    runs = jostle.Runs.from_columns(
        workload=["w03"] * 3 + ["late"] * 3,
        platform=["p0", "p1", "new-box", "p0", "p1", "p2"],
        runtime_seconds=[1.0, 2.0, 0.001, 3.0, 4.0, 5.0],
    )
    newer = model.update(runs)
    assert isinstance(newer.answering, AnswersEverywhere)
    names = newer.predictor.platform_names
    for code, workload in enumerate(newer.predictor.workload_names):
        asked = jostle.Colocations.from_columns(
            workload=[workload] * len(names), platform=list(names)
        )
        everywhere = newer.answering.log_alone_everywhere(code)
        np.testing.assert_allclose(everywhere, np.log(newer.predict(asked)), rtol=1e-5, atol=1e-5)
    assert "new-box" in newer.fastest("w03").platforms


def test_methods_without_a_product_predict_all() -> None:
    found = jostle.fit(campaign(12, 6), Levels()).fastest("w03", most=2)
    assert len(found) == 2
    assert found.seconds[0] <= found.seconds[1]


def test_what_is_no_question(model: jostle.Model) -> None:
    for beside in ((), ("w01",)):
        with pytest.raises(UnknownName):
            model.fastest("nobody", beside)
    with pytest.raises(UnknownName):
        model.fastest("w01", ("nobody",))
    wrong: list[Any] = [0, "w01", None]
    for nothing in wrong:
        with pytest.raises(UsageError, match="no list of names"):
            model.fastest("w01", nothing)
    anything: Any = model
    with pytest.raises(UsageError, match="no name of a workload"):
        model.fastest(anything, wrong[0])


def test_the_command(model: jostle.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")

    def run(*words: str) -> Any:
        return command("predict", tmp_path / "model", *words)

    done = run("-w", "w03", "--fastest", "3", "-c", "0.8", "--json")
    answers = json.loads(done.stdout)["items"]
    assert [one["platform"] for one in answers] == list(model.fastest("w03", most=3).platforms)
    shown = run("-w", "w03", "--fastest", "3", "-c", "0.8").stdout
    assert "predicted" in shown
    assert all(one["platform"] in shown for one in answers)
    both = run("-w", "w03", "--fastest", "3", "--platform", "p0")
    assert both.exit_code == UsageError.exit_code
