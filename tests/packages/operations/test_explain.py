"""`jostle predict --why`: its terms multiply to the prediction, and its evidence is counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import Colocations
from jostle.errors import UnknownName, UsageError
from jostle.learn.learners.network import FittedFactorization
from jostle.models import Model

from .conftest import scrambled


def one(workload: str, platform: str, *beside: str) -> Colocations:
    return Colocations.from_columns(
        workload=[workload], platform=[platform], corunners=[list(beside)]
    )


@pytest.fixture(params=("paper", "product", "saturating"))
def predictor(request: pytest.FixtureRequest, model: Model) -> FittedFactorization:
    return scrambled(model.predictor, request.param)


@pytest.mark.parametrize("beside", [(), ("w03",), ("w03", "w03"), ("w01", "w05", "w09")])
def test_terms_multiply_to_the_prediction(
    predictor: FittedFactorization, beside: tuple[str, ...]
) -> None:
    asked = one("w02", "p1", *beside)
    found = predictor.explained(asked)
    product = found.baseline_seconds * found.pair_factor * found.corun_factor
    product *= np.prod([share.factor for share in found.corunners])
    assert product == pytest.approx(float(predictor.predict(asked)[0]), rel=1e-5)
    assert found.runtime_seconds == float(predictor.predict(asked)[0])
    assert (found.corun_factor == 1) == (not beside or predictor.form == "paper")
    assert [share.name for share in found.corunners] == sorted(beside)
    assert all(len(share.log_slowdown) == len(found.type_names) for share in found.corunners)


def test_neighbours_answer_alike(model: Model) -> None:
    """Distances are those of the answers on all platforms, levels apart, by brute force."""
    predictor = model.predictor
    names, places = predictor.workload_names, predictor.platform_names
    grid = Colocations.from_columns(
        workload=[w for w in names for _ in places], platform=list(places) * len(names)
    )
    log = np.log(predictor.predict(grid)).reshape(len(names), len(places))
    found = predictor.explained(one("w04", "p2"), neighbours=len(names)).workloads
    move = log - log[names.index("w04")]
    expected = (move - move.mean(1, keepdims=True)).std(1)
    assert len(found) == len(names) - 1
    assert [near.distance for near in found] == sorted(near.distance for near in found)
    for near in found:
        # Single precision of the embeddings: distances near 0 are the least exact.
        assert near.distance == pytest.approx(expected[names.index(near.name)], abs=2e-3)


def test_one_known_colocation_at_a_time(model: Model) -> None:
    two = Colocations.from_columns(workload=["w00", "w01"], platform=["p0", "p0"])
    with pytest.raises(UsageError, match="one"):
        model.predictor.explained(two)
    with pytest.raises(UnknownName):
        model.predictor.explained(one("nobody", "p0"))


@pytest.fixture(scope="module")
def saved(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder)
    return folder


def run(*arguments: object) -> int:
    return exit_code([str(argument) for argument in arguments])


def test_command_as_json(
    saved: Path, dataset: Path, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "predict", saved, "--why", "-w", "w00", "-p", "p1", "-b", "w02", "-b", "w01", "-d", dataset,
        "-c", "0.9", "--json",
    )  # fmt: skip
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["schema"] == "explain/v5"
    (item,) = document["items"]
    assert [entry["name"] for entry in item["method"]["corunners"]] == ["w01", "w02"]
    bound = model.bound(one("w00", "p1", "w01", "w02"), 0.9)
    assert item["bound"]["seconds"] == pytest.approx(float(bound.seconds[0]))
    assert item["bound"]["pool"] == "2 co-runners"
    assert item["why"]["evidence"]["workload"] > 0


def test_command_for_people(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("predict", saved, "--why", "-w", "w00", "-p", "p1", "-b", "w02", "-c", "0.9")
    assert run(*asked) == 0
    printed = capsys.readouterr().out
    for phrase in (
        "w00 on p1 beside w02",
        "Alone it would take",
        "Largest doubt",
        "What would help",
    ):
        assert phrase in printed
    assert "through type 1" not in printed
    assert run(*asked, "--full") == 0
    printed = capsys.readouterr().out
    for phrase in (
        "w00 on p1 beside w02",
        "through type 1",
        "nearest",
        "of the kind '1 co-runner'",
    ):
        assert phrase in printed


def test_command_errors(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("predict", saved, "--why", "-w", "w00") == 2
    assert "--platform" in capsys.readouterr().err
    assert run("predict", saved, "--why", "-w", "w0x", "-p", "p1") == 4
    assert "Did you mean" in capsys.readouterr().err


def test_a_disconnected_pair_has_no_baseline(model: Model) -> None:
    """No number is shown where the model has no answer."""
    fitted = scrambled(model.predictor, "paper")
    apart = fitted.embeddings.platform_component.copy()
    apart[fitted.platform_names.index("p5")] = 1
    split = replace(fitted.embeddings, platform_component=apart)
    fitted = replace(fitted, embeddings=split)
    found = fitted.explained(one("w00", "p5"))
    assert np.isnan(found.runtime_seconds)
    assert np.isnan(found.baseline_seconds)
    assert np.isfinite(fitted.explained(one("w00", "p4")).baseline_seconds)
