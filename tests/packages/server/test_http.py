"""HTTP as callers of every kind meet it: problems, limits, keys, metrics."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jostle.errors import UsageError
from jostle.server.http._gather import Gatherer
from tests.packages.server.conftest import Running, Start
from tests.waiting import HANGS_SECONDS

GOOD = {"items": [{"workload": "w00", "platform": "p0"}]}
VERBS = ("predict", "bound", "explain", "safe", "rank", "assign", "walltime", "runs")


def problem_of(found: Any) -> dict[str, Any]:
    assert found.headers["content-type"] == "application/problem+json"
    document = found.json()
    assert document["status"] == found.status_code
    assert document["title"]
    assert len(document["detail"]) <= 300
    return document


BODIES: tuple[tuple[bytes, tuple[int, ...]], ...] = (
    (b"", (400,)),
    (b"{", (400,)),
    (b'{"items": [NaN]}', (400,)),
    (b'{"items": [Infinity]}', (400,)),
    (b"[" * 100_000, (400,)),
    (b'{"items":' * 5000, (400,)),
    (b'{"items": [' + b"[" * 900 + b"]" * 900 + b"]}", (200,)),
    (b'{"items": [{"workload": ' + b"[" * 900 + b"]" * 900 + b"}]}", (200, 400)),
    (b"\xff\xfe", (400,)),
    (b'"items"', (422,)),
    (b"[]", (422,)),
    (b"{}", (422,)),
    (b'{"items": {}}', (422,)),
    (b'{"items": [], "confidense": 0.9}', (422,)),
    (b'{"items": [' + b"null," * 10_000 + b"null]}", (413,)),
    (b" " * (1 << 21), (413,)),
)


@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_read_is_a_problem(start: Start, verb: str) -> None:
    service = start(most_body_bytes=1 << 20)
    for body, allowed in BODIES:
        found = service.http.post(f"/v1/{verb}", content=body)
        assert found.status_code in allowed, body[:40]
        if found.status_code != 200:
            problem_of(found)
        else:
            assert found.json()["items"][0]["status"] == "error"


def test_a_confidence_that_is_none_is_a_problem(service: Running) -> None:
    for value in (0, 1, -1, 2, True, "0.9", [], {}, 1e300):
        found = service.http.post("/v1/bound", json={**GOOD, "confidence": value})
        assert found.status_code == 422
        assert "onfidence" in problem_of(found)["detail"]


def test_another_kind_of_body_is_refused(service: Running) -> None:
    kinds = {"content-type": "text/plain"}
    found = service.http.post("/v1/predict", content=json.dumps(GOOD), headers=kinds)
    assert found.status_code == 415
    problem_of(found)


def test_unknown_paths_and_methods_are_problems(service: Running) -> None:
    found = [problem_of(service.http.get(f"/v1/{name}")) for name in ("nothing", "predict")]
    assert [one["status"] for one in found] == [404, 405]
    told = "there is no such operation", "the operation is not called with this method"
    assert all(one["detail"].startswith(text) for one, text in zip(found, told, strict=True))
    assert problem_of(service.http.put("/v1/placements/a%0Ab", json={}))["status"] == 404


def test_the_key_is_asked_for(start: Start, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("all administer secret\n")
    service = start(keys=tmp_path / "key")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret2"}):
        for path in ("/v1/models", "/metrics", "/v1/nothing"):
            found = service.http.get(path, headers=headers)
            assert found.status_code == 401
            problem_of(found)
    right = {"Authorization": "Bearer secret"}
    assert service.http.get("/v1/models", headers=right).status_code == 200
    assert service.http.post("/v1/predict", json=GOOD, headers=right).status_code == 200
    for path in ("/healthz", "/readyz", "/", "/page/page.js"):
        assert service.http.get(path).status_code == 200


def test_pages_of_another_origin_may_not_ask(service: Running) -> None:
    found = service.http.post("/v1/predict", json=GOOD, headers={"Origin": "http://evil.example"})
    assert found.status_code == 403
    own = {"Origin": "http://testserver"}
    assert service.http.post("/v1/predict", json=GOOD, headers=own).status_code == 200


def test_metrics_have_names_as_monitors_expect_them(service: Running) -> None:
    service.post("/v1/bound", GOOD)
    service.http.get("/v1/nothing")
    text = service.http.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helped = set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE))
    mine = {name: kind for name, kind in kinds.items() if name.startswith("jostle_")}
    assert len(mine) >= 10
    for name, kind in mine.items():
        assert name in helped
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert not re.search(r"_(ms|milliseconds|percent|kb|count|sum|bucket)$", name)
        if name.endswith("_created"):
            continue
        assert (kind == "counter") == name.endswith("_total")
        assert kind != "histogram" or name.endswith(("_seconds", "_bytes"))
    assert 'jostle_request_duration_seconds_count{operation="bound"} 1.0' in text
    assert 'jostle_requests_total{operation="other",status="404"} 1.0' in text
    assert 'jostle_items_total{operation="bound",outcome="guaranteed' in text


def _references(document: Any) -> list[str]:
    parts = document.values() if isinstance(document, dict) else document
    inner = [one for part in parts if isinstance(part, (dict, list)) for one in _references(part)]
    return [*inner, *([document["$ref"]] if "$ref" in document else [])]


def test_records_are_described_once_and_referred_to(service: Running) -> None:
    document = service.http.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert {name.rpartition("/")[2] for name in _references(document)} == set(schemas)
    assert all(name.startswith("#/components/schemas/") for name in _references(document))
    for path, verb in (("/v1/bound", "Predictions"), ("/v1/slurm/submit", "JobAnswer")):
        answer = document["paths"][path]["post"]["responses"]["200"]["content"]
        assert answer["application/json"]["schema"] == {"$ref": f"#/components/schemas/{verb}"}
    for name in ("/v1/bound", "/v1/rank"):
        body = document["paths"][name]["post"]["requestBody"]["content"]["application/json"]
        found = service.post(name, body["example"])
        answer = document["paths"][name]["post"]["responses"]["200"]["content"]
        kind = answer["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert set(found) == set(schemas[kind]["required"])


def test_every_example_is_a_question_that_the_service_takes(service: Running) -> None:
    document, told = service.http.get("/openapi.json").json(), 0
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
            if method == "delete" or path.startswith(("/v1/kubernetes", "/v1/slurm")):
                continue
            if not content:
                continue
            url, told = path.replace("{id}", "job-1"), told + 1
            found = service.http.request(method, url, json=content["example"])
            # Other names are known here than in the examples, and another model answers.
            stands = found.status_code in (200, 404, 409)
            assert stands or "model '1' does not answer" in found.text, (path, found.text)
    assert told == 12


def test_docs_are_one_page_of_the_description(start: Start) -> None:
    """Every operation and schema, its links lead to places in it, and nothing comes from elsewhere."""
    service = start()
    document, found = service.http.get("/openapi.json").json(), service.http.get("/docs")
    ids, links = (re.findall(f' {key}="([^"]+)"', found.text) for key in ("id", "href"))
    operations = [one["operationId"] for of in document["paths"].values() for one in of.values()]
    assert sorted(ids) == sorted([*operations, *document["components"]["schemas"]])
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert {link for link in links if not link.startswith("#")} == {"data:,", "page/page.css", "/"}
    assert "<script" not in found.text
    assert "default-src 'none'" in found.headers["Content-Security-Policy"]


def test_the_description_names_no_option_of_the_command(service: Running) -> None:
    found = service.http.get("/openapi.json").text
    assert re.findall(r".{,80}--[a-z].{,40}|exit code", found) == []


def test_a_typo_in_a_request_or_a_node_is_told_with_what_it_is_like(service: Running) -> None:
    body = {
        "items": [{"workload": "w00"}, {"workload": "wo01"}],
        "fleet": [{"name": "n", "platform": "pp0"}, {"name": "m", "platform": "p0"}],
    }
    for verb in ("rank", "safe", "assign", "walltime"):
        workload, platform = service.post(f"/v1/{verb}", body)["unknown_names"]
        assert workload.startswith("unknown workload 'wo01'. Did you mean w01")
        assert platform.startswith("unknown platform 'pp0'. Did you mean p0")
        fine = {"items": body["items"][:1], "fleet": body["fleet"][1:]}
        assert service.post(f"/v1/{verb}", fine)["unknown_names"] == []


def test_values_of_any_kind_are_never_an_internal_error(service: Running) -> None:
    """What fuzzing by the schema has found stays found."""
    odd: tuple[Any, ...] = ({}, [{}], [None], 1e308, "", "\u0000", True, [[1]], -1, {"a": [1]})
    for key in ("needs", "allowed", "apart", "memory", "worth", "name", "pin", "confidence"):
        items = [{"workload": "w00", key: value} for value in odd]
        for verb in ("safe", "rank", "walltime"):
            assert len(service.post(f"/v1/{verb}", {"items": items})["items"]) == len(odd)
        for value in odd:
            body = {"workload": "w00", "node": "east", key: value}
            assert service.http.put("/v1/placements/a", json=body).status_code in (200, 409, 422)
            asked = {"workload": "w00", key: value}
            assert service.http.post("/v1/slurm/submit", json=asked).status_code in (200, 422)
    for value in odd:
        for key in ("fleet", "tenants", "on", "least", "top", "goal", "promise"):
            for verb in ("safe", "rank", "walltime", "assign"):
                body = {"items": [], key: value}
                assert service.http.post(f"/v1/{verb}", json=body).status_code in (200, 404, 422)


def test_co_runners_that_are_no_list_are_not_taken_for_none(service: Running) -> None:
    item = {"workload": "w00", "platform": "p0"}
    alone, *odd = service.post(
        "/v1/predict", {"items": [item | {"corunners": one} for one in (None, 0, "", False, {})]}
    )["items"]
    stretches = [{"start_seconds": 0, "corunners": 0}]
    odd += service.post("/v1/predict", {"items": [item | {"stretches": stretches}]})["items"]
    assert alone["corunners"] == []
    assert ["not a list" in one.get("error", "") for one in odd] == [True] * 5


def test_the_allowed_methods_are_all_named(service: Running) -> None:
    assert service.http.patch("/v1/placements/a").headers["Allow"] == "DELETE, PUT"
    assert service.http.delete("/v1/runs").headers["Allow"] == "GET, HEAD, POST"


def test_questions_of_one_moment_are_answered_or_refused_together() -> None:
    """An error is told to each who asked; one who has gone away hinders nobody."""

    def answer(_: Any, items: list[Any], __: float) -> list[Any]:
        if "bad" in items:
            raise UsageError("it makes no sense")
        return [item * 2 for item in items]

    async def ask(*items: Any) -> list[Any]:
        gatherer, served = Gatherer(answer), SimpleNamespace()
        asked = [asyncio.ensure_future(gatherer.ask(served, [one], 0.9)) for one in items]  # type: ignore[arg-type]
        await asyncio.sleep(0)
        asked[0].cancel()
        return await asyncio.gather(*asked, return_exceptions=True)

    gone, *answers = asyncio.run(asyncio.wait_for(ask("a", "b", "c"), HANGS_SECONDS))
    assert isinstance(gone, asyncio.CancelledError)
    assert answers == [["bb"], ["cc"]]
    _, *errors = asyncio.run(asyncio.wait_for(ask("a", "bad", "c"), HANGS_SECONDS))
    assert [type(one) for one in errors] == [UsageError] * 2


def test_the_rate_is_that_of_each_address(start: Start) -> None:
    app, statuses = start(most_per_second=0.5).app, []

    async def ask(host: str) -> None:
        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {"type": "http", "method": "GET", "path": "/v1/placements", "query_string": b""}
        scope |= {"headers": [(b"host", b"testserver")], "client": (host, 1), "app": app}
        await app(scope | {"state": {"is_first": True}}, receive, send)

    for host in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        asyncio.run(ask(host))
    assert statuses == [200, 429, 200]
