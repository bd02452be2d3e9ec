"""The extender's operations as a scheduler calls them, without one."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest

from jostle.errors import JostleError, UsageError
from jostle.server.state import as_runs
from tests.packages.server.conftest import Running, Start

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
    assert found["NodeNames"] == [*NODES, "moon"]
    assert found["FailedNodes"] == {}
    assert found["Error"] == ""
    described = service.http.get("/openapi.json").json()["paths"]["/v1/kubernetes/filter"]["post"]
    answer = described["responses"]["200"]["content"]["application/json"]["schema"]
    assert (
        set(answer["required"])
        <= set(found)
        == set(answer["properties"]) | {"Nodes", "FailedNodes"}
    )
    found = filtered(service, pod("a", deadline="1ns"))
    assert found["NodeNames"] == []
    assert set(found["FailedNodes"].values()) == {
        "jostle: the request would not keep its own limit"
    }
    found = filtered(service, pod("a", deadline="soon"))
    assert set(found["FailedNodes"].values()) == {
        "jostle: the annotations of the pod cannot be read"
    }


def test_filter_agrees_with_rank(service: Running) -> None:
    service.client.put_placement("x", "w05@3x", "west")
    for number in range(14):
        for deadline in ("1.1x", "2x", "9x"):
            given = pod("a", f"w{number:02d}", deadline)
            asked = {"items": [{"workload": f"w{number:02d}", "deadline": deadline}]}
            (ranked,) = service.post("/v1/rank", asked)["items"]
            safe = {one["node"] for one in ranked["nodes"]}
            assert set(filtered(service, given)["NodeNames"]) == safe
            service.client.delete_placement("pod:uid-a")  # held where only one passes


def test_a_scheduler_that_sends_whole_nodes_gets_them_back(service: Running) -> None:
    nodes = {"items": [{"metadata": {"name": name}} for name in (*NODES, "moon")]}
    found = service.post("/v1/kubernetes/filter", {"Pod": pod("a"), "Nodes": nodes})
    assert [one["metadata"]["name"] for one in found["Nodes"]["items"]] == [*NODES, "moon"]
    assert found["NodeNames"] is None


def test_an_annotation_stands_above_a_label(service: Running) -> None:
    found = filtered(service, pod("a", **{"jostle/deadline": "1ns"}))
    assert not found["NodeNames"]


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
    rest = [name for name in NODES if name != best]  # elsewhere it is held elsewhere
    assert 10 in scores(service, pod("a"), rest).values()
    service.clock.now += 9.5
    (held,) = service.http.get("/v1/placements").json()["items"]
    assert held["node"] in rest
    service.clock.now += 1
    assert not service.http.get("/v1/placements").json()["items"]


def test_what_is_held_is_taken(service: Running) -> None:
    assert scores(service, pod("a"), ["south"]) == {"south": 10}
    found = filtered(service, pod("b"))
    assert found["FailedNodes"] == {"south": "jostle: all slots are taken"}
    assert scores(service, pod("b"), ["south"]) == {"south": 0}
    assert filtered(service, pod("a"))["NodeNames"] == NODES


def test_the_only_node_is_held_at_once(service: Running) -> None:
    """The scheduler takes it without asking for scores."""
    assert filtered(service, pod("a"), ["south"])["NodeNames"] == ["south"]
    (held,) = service.http.get("/v1/placements").json()["items"]
    assert (held["node"], held["held"], held["deadline"]) == ("south", True, "9x")
    assert not filtered(service, pod("b"), ["south"])["NodeNames"]


def test_why_is_told_under_the_pods_name(service: Running) -> None:
    filtered(service, pod("a", deadline="1ns"))
    found = service.http.get("/v1/kubernetes/pods/default/a").json()
    assert found["nodes_by_reason"] == {"newcomer_late": 3}
    assert all(one["bound_seconds"] > one["limit_seconds"] for one in found["nodes"])
    filtered(service, pod("a"), [*NODES, *(f"moon-{n}" for n in range(200))])
    found = service.http.get("/v1/kubernetes/pods/default/a").json()  # the last of its decisions
    assert (found["request"]["deadline"], len(found["nodes"])) == ("9x", 200)
    assert found["nodes_by_reason"] == {"ok": 3, "unknown_node": 200}
    assert service.http.get("/v1/kubernetes/pods/default/nobody").status_code == 404


def test_what_was_never_met_passes_where_it_breaks_no_promise(service: Running) -> None:
    """East holds a tenant with a limit, and nothing is known of who would be beside it."""
    found = filtered(service, pod("a", workload="never-met"), [*NODES, "moon"])
    assert found["NodeNames"] == ["west", "south", "moon"]
    assert found["FailedNodes"] == {"east": "jostle: a tenant would not keep its limit"}
    # It is held a place where the fewest are, without a limit.
    assert scores(service, pod("a", workload="never-met")) == {"east": 0, "west": 10, "south": 0}
    (held,) = service.http.get("/v1/placements").json()["items"]
    assert (held["node"], held["held"], "deadline" in held) == ("west", True, False)
    # Slots are those of the fleet, whatever is known of the workload.
    service.client.put_placement("x", "w00", "south")
    assert filtered(service, pod("b", workload="never-met"))["NodeNames"] == ["west"]


class FakeApi:
    """The API server: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.keys: list[str | None] = []
        self.made: list[tuple[Any, httpx.AsyncClient]] = []  # how it is known, the client
        self.there: dict[str, list[Any]] = {"pods": [], "nodes": []}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, request.url.path, dict(request.url.params)))
        self.keys.append(request.headers.get("Authorization"))
        kind = request.url.path.removeprefix("/api/v1/")
        return httpx.Response(200, json={"items": self.there[kind]})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """Whatever the service asks of an API server comes here."""
    fake, real = FakeApi(), httpx.AsyncClient

    def client(**given: Any) -> httpx.AsyncClient:
        known_by = given.pop("verify", None)
        fake.made.append((known_by, real(transport=httpx.MockTransport(fake), **given)))
        return fake.made[-1][1]

    monkeypatch.setattr("jostle.server.kubernetes._kubernetes_api.httpx.AsyncClient", client)
    return fake


def compare(service: Running) -> None:
    service.http.portal.call(service.app.state.doors["kubernetes"].compare)


def ran(
    service: Running, given: dict[str, Any], node: str, start: float, end: float | None = None
) -> Any:
    """The pod on that node, from so many seconds after the clock's time on."""

    def time_of(seconds: float) -> str:
        return datetime.fromtimestamp(service.clock.now + seconds, UTC).isoformat()

    state: dict[str, Any] = {"running": {"startedAt": time_of(start)}}
    if end is not None:
        state = {"terminated": {"startedAt": time_of(start), "finishedAt": time_of(end)}}
    phase = "Running" if end is None else "Succeeded"
    status = {"phase": phase, "containerStatuses": [{"state": state, "restartCount": 0}]}
    return given | {"spec": {"nodeName": node}, "status": status}


def test_nothing_is_bound_and_nothing_changed_at_the_api_server(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    asked = {"PodName": "a", "PodNamespace": "default", "PodUID": "u", "Node": "east"}
    assert service.http.post("/v1/kubernetes/bind", json=asked).status_code == 404
    compare(service)
    assert {method for method, _, _ in api.asked} == {"GET"}
    query = next(query for _, path, query in api.asked if path == "/api/v1/pods")
    assert query == {"fieldSelector": "spec.schedulerName=jostle"}


def test_in_a_cluster_the_pods_account_asks(
    start: Start, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its token as it is at that moment, of a server that the cluster's certificate vouches for."""
    monkeypatch.setattr("jostle.server.kubernetes._kubernetes_api._ACCOUNT", tmp_path)
    with pytest.raises(UsageError, match="no service account"):
        start(kubernetes="in-cluster")
    shutil.copy(certifi.where(), tmp_path / "ca.crt")
    (tmp_path / "token").write_text("first\n")
    service = start(kubernetes="in-cluster")
    compare(service)
    (tmp_path / "token").write_text("second\n")
    compare(service)
    assert {*api.keys} == {"Bearer first", "Bearer second"}
    ((known_by, client),) = api.made
    assert known_by.get_ca_certs()
    assert str(client.base_url).startswith("https://kubernetes.default.svc")
    service.http.portal.call(service.app.state.doors["kubernetes"].close)
    assert client.is_closed
    compare(start(kubernetes="http://api"))
    assert (api.made[-1][0], api.keys[-1]) == (True, None)


def test_placements_follow_the_pods(start: Start, api: FakeApi) -> None:
    """A limit is kept for who was held a place; who came in another way has none."""
    service = start(kubernetes="http://api")
    scores(service, pod("a"), ["south"])
    api.there["pods"] = [
        ran(service, pod("a"), "south", 0),
        ran(service, pod("seen"), "west", 0),
        ran(service, pod("done"), "west", -9, -1),
    ]
    compare(service)
    listed = {one["id"]: one for one in service.http.get("/v1/placements").json()["items"]}
    where = {id: one["node"] for id, one in listed.items()}
    assert where == {"pod:uid-a": "south", "pod:uid-seen": "west"}
    assert listed["pod:uid-a"]["deadline"] == "9x"
    assert not listed["pod:uid-a"]["held"]
    assert "deadline" not in listed["pod:uid-seen"]
    again = scores(service, pod("a"), ["south", "moon"])  # where it runs is where it is best
    assert again["south"] == 10 > again["moon"]
    api.there["pods"] = []
    compare(service)
    assert not service.http.get("/v1/placements").json()["items"]


@pytest.mark.parametrize("answer", [{"items": None}, {"items": 3}, {}, [], 3])
def test_what_the_api_server_answers_is_a_list_or_told(
    start: Start, api: FakeApi, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start(kubernetes="http://api")
    monkeypatch.setattr(FakeApi, "__call__", lambda *_: httpx.Response(200, json=answer))
    if answer == {"items": None}:  # as Go writes an empty list
        compare(service)
        return
    with pytest.raises(JostleError, match="no list of"):
        compare(service)


def test_pods_without_a_uid_are_told_apart_by_their_names(service: Running) -> None:
    for name in ("a", "b"):
        given = pod(name)
        del given["metadata"]["uid"]
        scores(service, given, ["west"])
    held = [one["id"] for one in service.http.get("/v1/placements").json()["items"]]
    assert sorted(held) == ["pod:default/a", "pod:default/b"]


def test_a_pod_that_cannot_be_read_hides_no_other(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api")
    odd = ({"metadata": {"ownerReferences": 3}}, {"metadata": {"labels": 3}}, 3)
    api.there["pods"] = [*odd, ran(service, pod("a"), "south", 0)]
    compare(service)
    assert [one["id"] for one in service.http.get("/v1/placements").json()["items"]] == [
        "pod:uid-a"
    ]


def test_nodes_of_the_cluster_are_the_fleet(start: Start, api: FakeApi) -> None:
    service = start(kubernetes="http://api", fleet=None)
    labels = {"jostle/platform": "p1", "jostle/slots": "2"}
    kind = {"node.kubernetes.io/instance-type": "p0"}
    api.there["nodes"] = [
        {"metadata": {"name": "one", "labels": labels}},
        {"metadata": {"name": "two", "labels": kind}},
        {"metadata": {"name": "three"}},
        {"metadata": 3},
        3,
    ]
    compare(service)
    nodes = {node.name: (node.platform, node.slots) for node in service.client.fleet().nodes}
    assert nodes == {"one": ("p1", 2), "two": ("p0", None), "three": ("three", None)}
    assert filtered(service, pod("a"), ["one", "three"])["NodeNames"] == ["one", "three"]


def test_pods_that_ended_are_runs_with_stretches(
    start: Start, api: FakeApi, tmp_path: Path
) -> None:
    """Told once, from an empty model on, by the label or the name of the owner."""
    service = start(kubernetes="http://api", model=tmp_path / "none", fleet=None)
    owner = {"kind": "ReplicaSet", "name": "web-7d4b9c", "controller": True}
    web = pod("web-7d4b9c-x")
    web["metadata"] |= {"labels": {"pod-template-hash": "7d4b9c"}, "ownerReferences": [owner]}
    plain = {"metadata": {"name": "plain", "namespace": "default", "uid": "u"}}
    failed = ran(service, pod("failed"), "east", 2, 6)
    failed["status"]["phase"] = "Failed"
    again = ran(service, pod("again", "fft"), "west", 4, 6)
    again["status"]["containerStatuses"][0]["restartCount"] = 1
    api.there["nodes"] = [{"metadata": {"name": name}} for name in NODES]
    api.there["pods"] = [
        again,
        ran(service, pod("a", "fft"), "east", 0, 10),
        ran(service, web, "east", 4),
        failed,
        ran(service, plain, "east", 1),
        ran(service, pod("old", "fft"), "west", -5, 3),
        ran(service, pod("alone", "fft"), "south", 1, 3),
    ]
    service.clock.now += 20
    compare(service)
    compare(service)
    runs = {one["id"]: one for one in service.http.get("/v1/runs").json()["items"]}
    assert sorted(runs) == ["pod:uid-a", "pod:uid-alone"]
    run = runs["pod:uid-a"]
    assert (run["workload"], run["platform"], run["runtime_seconds"]) == ("fft", "east", 10)
    assert run["stretches"] == [
        {"start_seconds": 0, "corunners": []},
        {"start_seconds": 2, "corunners": ["w00"]},
        {"start_seconds": 4, "corunners": ["default/web", "w00"]},
        {"start_seconds": 6, "corunners": ["default/web"]},
    ]
    assert run["corunners"] == ["default/web"]
    assert "stretches" not in runs["pod:uid-alone"]
    # As runs of a dataset they have their stretches, too.
    kept = as_runs(service.app.state.service.store.runs_after(0, 10))
    assert kept.stretches.counts.tolist() == [4, 1]


def test_a_pod_of_several_containers_runs_from_the_first_to_the_last(
    start: Start, api: FakeApi
) -> None:
    service = start(kubernetes="http://api")
    one, other = ran(service, pod("a"), "east", 3, 5), ran(service, pod("a"), "east", 1, 12)
    both = one["status"]["containerStatuses"] + other["status"]["containerStatuses"]
    one["status"] |= {"phase": "Running", "containerStatuses": both}
    api.there["pods"] = [one]
    service.clock.now += 20
    compare(service)
    (there,) = service.http.get("/v1/placements").json()["items"]  # it may start another one
    assert there["id"] == "pod:uid-a"
    one["status"]["phase"] = "Succeeded"
    compare(service)
    (run,) = service.http.get("/v1/runs").json()["items"]
    assert run["runtime_seconds"] == 11


def test_what_is_not_known_gets_no_points(start: Start, service: Running, tmp_path: Path) -> None:
    """Neither a pod that names no workload or what cannot be read, nor any pod where there is no model."""
    none, plain = dict.fromkeys(NODES, 0), {"metadata": {"name": "a", "namespace": "b"}}
    assert scores(service, plain) == none
    assert filtered(service, plain, [*NODES, "moon"])["NodeNames"] == [*NODES, "moon"]
    assert scores(service, pod("a", deadline="soon")) == none
    empty = start(model=tmp_path / "empty", learn=10)
    assert scores(empty, pod("a")) == none
    assert filtered(empty, pod("a"))["NodeNames"] == NODES
    assert max(scores(service, pod("a")).values()) == 10


ODD: tuple[Any, ...] = ([], 3, [1], [{"start_seconds": 1, "corunners": []}], [{"corunners": [""]}])


@pytest.mark.parametrize("odd", ODD)
def test_odd_stretches_are_told(service: Running, odd: Any) -> None:
    run = {"id": "r", "workload": "w00", "platform": "p0", "runtime_seconds": 2.0, "stretches": odd}
    (found,) = service.post("/v1/runs", {"items": [run]})["items"]
    assert "stretches cannot be read" in found["error"]


def test_bodies_that_are_no_calls_of_a_scheduler_are_problems(service: Running) -> None:
    for path in ("filter", "prioritize"):
        for body in (
            {},
            {"Pod": {"metadata": {}}, "NodeNames": ["a", 3]},
            {"Pod": 1},
            {"Pod": {"metadata": {}}, "NodeNames": "a"},
            {"Pod": {"metadata": {}}, "Nodes": {"items": ["a"]}},
            {"Pod": {"metadata": {"labels": 3}}},
            {"Pod": {"metadata": {"uid": "a\0b"}}, "NodeNames": NODES},
            {"Pod": {"metadata": {"uid": "a" * 1000}}, "NodeNames": NODES},
            {"Pod": {"metadata": {"ownerReferences": 3}}},
            {"Pod": {"metadata": {}, "status": {"containerStatuses": [3]}}},
        ):
            assert service.http.post(f"/v1/kubernetes/{path}", json=body).status_code == 422
