"""The extender's operations as a scheduler calls them, without one."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.service.conftest import Running, Start

NODES = ["east", "west", "south"]


def pod(name: str, workload: str = "w00", deadline: str = "9x", **more: str) -> dict[str, Any]:
    labels = {"jostle/workload": workload, "jostle/deadline": deadline}
    about = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
    return {"metadata": about | {"annotations": more}}


def filtered(service: Running, given: dict[str, Any], names: list[str] = NODES) -> Any:
    return service.post("/v1/kubernetes/filter", {"Pod": given, "Nodes": None, "NodeNames": names})


def scores(service: Running, given: dict[str, Any], names: list[str] = NODES) -> dict[str, int]:
    found = service.post("/v1/kubernetes/prioritize", {"Pod": given, "NodeNames": names})
    assert [one["Host"] for one in found] == names
    return {one["Host"]: one["Score"] for one in found}


def test_filter_answers_as_the_go_types_read_it(service: Running) -> None:
    found = filtered(service, pod("a"), [*NODES, "moon"])
    assert set(found) == {"Nodes", "NodeNames", "FailedNodes", "Error"}
    assert found["NodeNames"] == NODES
    assert found["FailedNodes"] == {"moon": "jostle: the node is not in the fleet"}
    assert found["Error"] == ""
    found = filtered(service, pod("a", deadline="1ns"))
    assert found["NodeNames"] == []
    assert set(found["FailedNodes"].values()) == {
        "jostle: the request would not keep its own limit"
    }
    found = filtered(service, pod("a", workload="never-met"))
    assert set(found["FailedNodes"].values()) == {"jostle: the model has never met the workload"}
    found = filtered(service, pod("a", deadline="soon"))
    assert set(found["FailedNodes"].values()) == {
        "jostle: the annotations of the pod cannot be read"
    }


def test_filter_agrees_with_safe(service: Running) -> None:
    service.client.put_placement("x", "w05@3x", "west")
    for number in range(14):
        for deadline in ("1.1x", "2x", "9x"):
            given = pod("a", f"w{number:02d}", deadline)
            asked = {"items": [{"workload": f"w{number:02d}", "deadline": deadline}]}
            answers = service.post("/v1/safe", asked)["items"][0]["answers"]
            safe = [one["node"] for one in answers if one["safe"]]
            assert filtered(service, given)["NodeNames"] == safe


def test_a_scheduler_that_sends_whole_nodes_gets_them_back(service: Running) -> None:
    nodes = {"items": [{"metadata": {"name": name}} for name in (*NODES, "moon")]}
    found = service.post("/v1/kubernetes/filter", {"Pod": pod("a"), "Nodes": nodes})
    assert [one["metadata"]["name"] for one in found["Nodes"]["items"]] == NODES
    assert found["NodeNames"] is None


def test_an_annotation_stands_above_a_label(service: Running) -> None:
    found = filtered(service, pod("a", **{"jostle/deadline": "1ns"}))
    assert not found["NodeNames"]


def test_pods_without_a_workload_pass_with_the_lowest_score(service: Running) -> None:
    plain = {"metadata": {"name": "plain", "namespace": "default", "uid": "u"}}
    assert filtered(service, plain, [*NODES, "moon"])["NodeNames"] == [*NODES, "moon"]
    assert set(scores(service, plain).values()) == {0}


def test_filter_reserves_nothing_and_prioritize_holds_one(service: Running) -> None:
    for _ in range(3):
        filtered(service, pod("a"))
    assert not service.http.get("/v1/placements").json()["items"]
    found = scores(service, pod("a"))
    best = max(found, key=lambda name: found[name])
    assert found[best] == 10
    assert all(0 < score < 10 for name, score in found.items() if name != best)
    (held,) = service.http.get("/v1/placements").json()["items"]
    assert (held["node"], held["held"]) == (best, True)
    assert scores(service, pod("a")) == found  # its own place is not in its way
    service.clock.now += 11
    assert not service.http.get("/v1/placements").json()["items"]


def test_what_is_held_is_taken(service: Running) -> None:
    assert scores(service, pod("a"), ["south"]) == {"south": 10}
    found = filtered(service, pod("b"))
    assert found["FailedNodes"] == {"south": "jostle: all slots are taken"}
    assert scores(service, pod("b"), ["south"]) == {"south": 0}
    assert filtered(service, pod("a"))["NodeNames"] == NODES


def test_why_is_told_under_the_pods_name(service: Running) -> None:
    filtered(service, pod("a", deadline="1ns"))
    found = service.http.get("/v1/kubernetes/pods/default/a").json()
    assert found["nodes_by_reason"] == {"newcomer_late": 3}
    assert all(one["bound_seconds"] > one["limit_seconds"] for one in found["nodes"])
    assert service.http.get("/v1/kubernetes/pods/default/nobody").status_code == 404


class FakeApi:
    """The API server: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.status = 201
        self.pods: dict[str, Any] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.path, body))
        if request.method == "POST":
            return httpx.Response(self.status, json={})
        if request.url.path == "/api/v1/pods":
            return httpx.Response(200, json={"items": list(self.pods.values())})
        found = self.pods.get(request.url.path.rpartition("/")[2])
        return httpx.Response(404 if found is None else 200, json=found or {})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """Whatever the service asks of an API server comes here."""
    fake, real = FakeApi(), httpx.AsyncClient

    def client(**given: Any) -> httpx.AsyncClient:
        given.pop("verify", None)
        return real(transport=httpx.MockTransport(fake), **given)

    monkeypatch.setattr("jostle.service.kubernetes._api.httpx.AsyncClient", client)
    return fake


def bind(service: Running, name: str, node: str) -> str:
    given = {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}", "Node": node}
    return service.post("/v1/kubernetes/bind", given)["Error"]


def test_bind_confirms_what_is_held_or_takes_what_was_chosen(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    scores(service, pod("a"))
    assert bind(service, "a", "west") == ""
    method, path, body = api.asked[-1]
    assert (method, path) == ("POST", "/api/v1/namespaces/default/pods/a/binding")
    assert body["target"]["name"] == "west"
    (placed,) = service.http.get("/v1/placements").json()["items"]
    assert (placed["node"], placed["held"]) == ("west", False)


def test_bind_refuses_a_slot_that_is_taken_and_lets_go(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    scores(service, pod("a"), ["east"])
    service.client.put_placement("other", "w01", "south")
    assert bind(service, "a", "south") == "jostle: all slots are taken"
    assert not api.asked
    assert [one["id"] for one in service.http.get("/v1/placements").json()["items"]] == ["other"]


def test_bind_lets_go_where_the_api_server_refuses(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    scores(service, pod("a"))
    api.status = 409
    assert "the API server refuses the binding" in bind(service, "a", "east")
    assert not service.http.get("/v1/placements").json()["items"]


def test_bind_asks_for_a_pod_whose_hold_has_ended(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    api.pods["a"] = pod("a")
    assert bind(service, "a", "east") == ""
    assert "pod:uid-a" in [one.name for one in service.client.fleet().node("east").tenants]
    assert "not a name of Kubernetes" in bind(service, "../x", "east")


def test_bind_without_an_api_server_says_so(service: Running) -> None:
    assert "no API server is named" in bind(service, "a", "east")


def test_placements_follow_the_pods(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    extender = service.app.state.doors["kubernetes"]
    api.pods["a"] = pod("a")
    assert bind(service, "a", "east") == ""
    seen = pod("seen") | {"spec": {"nodeName": "west"}, "status": {"phase": "Running"}}
    done = pod("done") | {"spec": {"nodeName": "west"}, "status": {"phase": "Succeeded"}}
    api.pods = {"seen": seen, "done": done}
    service.http.portal.call(extender.compare)
    listed = service.http.get("/v1/placements").json()["items"]
    assert [(one["id"], one["node"]) for one in listed] == [("pod:uid-seen", "west")]


def test_bodies_that_are_no_calls_of_a_scheduler_are_problems(service: Running) -> None:
    for path in ("filter", "prioritize"):
        for body in (
            {},
            {"Pod": 1},
            {"Pod": {"metadata": {}}, "NodeNames": "a"},
            {"Pod": {"metadata": {"labels": 3}}},
        ):
            assert service.http.post(f"/v1/kubernetes/{path}", json=body).status_code == 422
