"""What the verbs answer is what the library answers; a bad item spoils no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.errors import BadRows
from jostle.learn import Ensemble
from jostle.placement import Standard
from tests.packages.learn.ensemble.conftest import DAYS, in_campaigns
from tests.packages.server.conftest import Running, Start

ITEMS = [
    {"workload": "w00", "platform": "p0"},
    {"workload": "w01", "platform": "p1", "corunners": ["w02"]},
    {"workload": "w02", "platform": "p2", "corunners": ["w05", "w04"]},
]
REQUESTS = [
    jostle.Request("w00", slowdown=3.0),
    jostle.Request("w01", "big", deadline_seconds=500.0, memory_bytes=3e9),
    jostle.Request("w02", slowdown=1.5, confidence=0.8),
]


@pytest.fixture(scope="module")
def model(model_folders: tuple[Path, Path]) -> Any:
    return jostle.load(model_folders[0])


@pytest.fixture(scope="module")
def campaign_calibration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """(a model of runs of three days, its folder)."""
    model = jostle.fit(in_campaigns(DAYS), Ensemble(learners=("rules",)))
    folder = tmp_path_factory.mktemp("campaigns") / "model"
    model.save(folder)
    return model, folder


def test_a_question_may_name_its_campaign(
    start: Start, campaign_calibration: tuple[Any, Path]
) -> None:
    """However many items, by the same answer as the library's; what was answered lately is not mixed in."""
    model, folder = campaign_calibration
    service = start(model=folder, fleet=None)
    item = {"workload": "program 0", "platform": "machine 0", "corunners": ["program 1"]}
    usual = service.post("/v1/predict", {"items": [item]})
    assert usual["model"]["unknown_campaign_error_ratio"] == pytest.approx(
        model.campaign_error_ratio
    )
    other = service.post("/v1/predict", {"items": [item], "campaign": "day 1"})
    for count in (1, 40):
        found = service.post("/v1/predict", {"items": [item] * count, "campaign": "day 0"})
        assert found["model"]["campaign"] == "day 0"
        for one in found["items"]:
            ratio = one["runtime_seconds"] / other["items"][0]["runtime_seconds"]
            assert np.log(ratio) == pytest.approx(DAYS[0] - DAYS[1], abs=0.05)
    assert service.post("/v1/predict", {"items": [item]}) == usual
    columns: dict[str, Any] = {name: [value] for name, value in item.items()}
    asked = jostle.Colocations.from_columns(**columns)
    day, client = model.for_campaign("day 0"), service.client
    assert client.predict(asked, campaign="day 0") == pytest.approx(day.predict(asked))
    bound = client.bound(asked, 0.8, campaign="day 0").seconds
    assert bound == pytest.approx(day.bound(asked, 0.8).seconds)
    why: Any = client.explain(asked, 0.8, campaign="day 0").items[0]
    assert why.bound.seconds == pytest.approx(bound[0])
    for verb in ("predict", "bound", "explain"):
        wrong = service.http.post(f"/v1/{verb}", json={"items": [item], "campaign": "day 9"})
        assert wrong.status_code == 404
        assert "day 9" in wrong.text


@pytest.mark.parametrize("verb", ["safe", "rank", "assign", "at", "walltime"])
def test_a_question_about_a_fleet_may_name_its_campaign(
    start: Start, campaign_calibration: tuple[Any, Path], verb: str
) -> None:
    """Asked of a service it is the library's answer by the model of that campaign."""
    model, folder = campaign_calibration
    service = start(model=folder, fleet=None)
    fleet = [
        jostle.placement.Node("east", "machine 0", 2),
        jostle.placement.Node("west", "machine 1"),
    ]
    requests = [jostle.Request(f"program {at}", slowdown=3.0, node="east") for at in range(2)]
    standard = Standard(0.8, campaign="day 0")
    found = getattr(service.client, verb)(requests, fleet=fleet, standard=standard).to_document()
    day = jostle.place(model.for_campaign("day 0"), fleet, confidence=0.8)
    named = jostle.place(model, fleet, confidence=0.8, campaign="day 0")
    usual = getattr(jostle.place(model, fleet, confidence=0.8), verb)(requests)
    for here in (day, named):
        theirs = getattr(here, verb)(requests)
        assert not theirs.notes
        assert found["items"] == theirs.to_document()["items"] != usual.to_document()["items"]
    assert found["model"]["campaign"] == found["standard"]["campaign"] == "day 0"
    assert f"costs {model.campaign_error_ratio:.1%}" in usual.report().notes[-1]
    body = {"items": [{"workload": "program 0"}], "campaign": "day 9"}
    wrong = service.http.post(f"/v1/{verb}", json=body)
    assert wrong.status_code == 404
    assert "day 9" in wrong.text


BAD_ITEMS: tuple[tuple[Any, str], ...] = (
    ({"workload": "w0", "platform": "p0"}, "unknown workload 'w0'. Did you mean"),
    ({"workload": "w00", "platform": "moon"}, "unknown platform 'moon'"),
    ({"workload": "w00", "platform": "p0", "corunners": ["x"]}, "unknown co-runner 'x'"),
    ({"workload": "w00", "platform": "p0", "corunners": "w01"}, "not a list"),
    ({"workload": "w00", "platform": "p0", "corunner": ["w01"]}, "unknown key 'corunner'"),
    ({"workload": "w00", "platform": "p0", "corunners": ["w01"] * 65}, "65 co-runners"),
    ({"workload": ["w00"], "platform": "p0"}, "not a name"),
    ({"platform": "p0"}, "has no workload"),
    ({"workload": "w00"}, "has no platform"),
    (None, "not an object"),
    (17, "not an object"),
)


@pytest.mark.parametrize("verb", ["predict", "bound", "explain"])
def test_a_bad_item_says_why_and_spoils_no_other(service: Running, verb: str) -> None:
    good = service.post(f"/v1/{verb}", {"items": [ITEMS[0]]})["items"][0]
    for item, sentence in BAD_ITEMS:
        found = service.post(f"/v1/{verb}", {"items": [ITEMS[0], item, ITEMS[1]]})["items"]
        assert [one["status"] == "error" for one in found] == [False, True, False]
        assert sentence in found[1]["error"]
        assert found[0] == good


def test_the_client_raises_what_has_no_answer(service: Running) -> None:
    asked = jostle.Colocations.from_columns(workload=["w00", "nobody"], platform=["p0", "p0"])
    with pytest.raises(BadRows, match="first row 1: unknown workload 'nobody'"):
        service.client.predict(asked)


def test_every_answer_names_model_and_data(service: Running, model: Any) -> None:
    found = service.http.post("/v1/predict", json={"items": []})
    label = found.json()["model"]
    assert label["data_version"] == model.metadata["data_version"]
    assert len(label["version"]) == 16
    for verb in ("predict", "bound", "explain", "safe", "rank", "walltime"):
        found = service.http.post(f"/v1/{verb}", json={"items": []})
        assert found.json()["model"] == label
        assert found.headers["Jostle-Model-Version"] == label["version"]
        assert found.headers["Jostle-Data-Version"] == label["data_version"]


def test_unknown_keys_of_a_fleet_and_its_tenants_are_refused(service: Running) -> None:
    node = {"name": "a", "platform": "p3", "slots": 2}
    tenant = {"workload": "w07", "deadlin": "9x"}
    for odd, body in (
        ("slot", {"fleet": [node, node | {"slot": 2}]}),
        ("deadlin", {"fleet": [node | {"tenants": ["w06", tenant]}]}),
        ("deadlin", {"fleet": [node], "tenants": [tenant | {"node": "a"}]}),
    ):
        refused = service.http.post("/v1/rank", json={"items": [], **body})
        assert refused.status_code == 422
        assert f"unknown key '{odd}'. Known: " in refused.text
    assert service.post("/v1/rank", {"items": [{"workload": "w00"}], "fleet": [node]})["items"]


@pytest.mark.parametrize("verb", ["safe", "rank", "walltime", "assign"])
def test_a_bad_request_says_why_and_spoils_no_other(service: Running, verb: str) -> None:
    good = {"workload": "w00", "deadline": "9x"}
    bad: list[Any] = [
        {"workload": "w00", "deadline": "soon"},
        {"workload": "w00", "deadlin": "9x"},
        {"workload": ""},
        {"workload": "w00", "slowdown": -1},
        {"workload": "w00", "confidence": 2},
        [],
    ]
    found = service.post(f"/v1/{verb}", {"items": [good, *bad, good]})["items"]
    assert [one["status"] for one in found] == ["ok", *["error"] * len(bad), "ok"]
    assert all(one["error"] for one in found[1:-1])


def test_without_a_fleet_every_platform_is_a_node(start: Start) -> None:
    service = start(fleet=None)
    assert [node.name for node in service.client.fleet().nodes] == [f"p{n}" for n in range(6)]
    assert len(service.client.rank(REQUESTS[:1])) == 1


def test_many_items_at_once(service: Running, model: Any) -> None:
    random = np.random.default_rng(0)
    asked = jostle.Colocations.from_columns(
        workload=[f"w{n:02d}" for n in random.integers(0, 14, 3000)],
        platform=[f"p{n}" for n in random.integers(0, 6, 3000)],
        corunners=[[f"w{n:02d}" for n in random.integers(0, 14, k % 3)] for k in range(3000)],
    )
    np.testing.assert_array_equal(service.client.predict(asked), model.predict(asked))
