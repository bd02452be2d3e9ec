"""What changes while serving: observed runs, placements, the model, the fleet's table."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

import jostle
from jostle.data import Dataset
from jostle.errors import UsageError
from jostle.placement import Standard
from jostle.server.state import Archive
from jostle.server.state._state_tables import _without_password
from tests.packages.server.conftest import FLEET, Running, Start

RUN = {"id": "r1", "workload": "w00", "platform": "p0", "corunners": [], "runtime_seconds": 2.5}


def test_a_run_is_stored_once_whatever_is_sent(service: Running) -> None:
    other = {**RUN, "runtime_seconds": 3.0}
    found = service.post("/v1/runs", {"items": [RUN, RUN, {**RUN, "id": "r2"}, other]})["items"]
    assert [one["status"] for one in found] == ["stored", "already_stored", "stored", "conflict"]
    again = service.post("/v1/runs", {"items": [RUN, other]})["items"]
    assert [one["status"] for one in again] == ["already_stored", "conflict"]
    listed = service.http.get("/v1/runs").json()
    assert [one["id"] for one in listed["items"]] == ["r1", "r2"]
    assert listed["items"][0]["runtime_seconds"] == 2.5
    rest = service.http.get("/v1/runs", params={"after": listed["items"][0]["number"]}).json()
    assert [one["id"] for one in rest["items"]] == ["r2"]


BAD_RUNS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"runtime_seconds": 0}, "`runtime_seconds` is 0, not from 1e-09 to 1e+09"),
    ({"runtime_seconds": 9e-10}, "`runtime_seconds` is 9e-10, not from 1e-09 to 1e+09"),
    ({"runtime_seconds": True}, "`runtime_seconds` is not a number"),
    ({"runtime_seconds": "2"}, "`runtime_seconds` is not a number"),
    ({"runtime_seconds": None}, "`runtime_seconds` is missing"),
    ({"id": ""}, "not a name"),
    ({"id": "a\0b"}, "not a name"),
    ({"id": "x" * 300}, "not a name"),
    ({"id": "a\ufffdb"}, "not a name"),
    ({"id": 7}, "`id` is not a text"),
    ({"workload": ""}, "not a name"),
    ({"workload": " "}, "not a name"),
    ({"corunners": "w01"}, "not a list"),
    ({"measured_at": "yesterday"}, "not a time with its zone"),
    ({"measured_at": "2026-01-01T00:00:00"}, "not a time with its zone"),
    ({"seconds": 2}, "unknown key"),
)


def test_a_bad_run_says_why_and_spoils_no_other(service: Running) -> None:
    for number, (changed, sentence) in enumerate(BAD_RUNS):
        good = {**RUN, "id": f"good{number}"}
        found = service.post("/v1/runs", {"items": [{**RUN, **changed}, good]})
        assert [one["status"] for one in found["items"]] == ["error", "stored"]
        assert sentence in found["items"][0]["error"]


@pytest.mark.parametrize("id", ["%E9", "a%ff", "%ed%a0%80"])
def test_ids_in_other_letters_than_utf8_are_refused(service: Running, id: str) -> None:
    """Or all of them would be the same one, and one job would take the place of another."""
    body = {"workload": "w00", "node": "east"}
    assert service.http.put(f"/v1/placements/{id}", json=body).status_code == 422
    assert service.http.delete(f"/v1/placements/{id}").status_code == 422


def test_runs_are_sent_with_all_that_ran_beside_them(service: Running) -> None:
    told = [[{"start_seconds": 0.0, "corunners": ["w01"]}, {"start_seconds": 1.0, "corunners": []}]]
    columns: dict[str, Any] = {name: [RUN[name]] for name in ("workload", "platform")}
    columns |= {"runtime_seconds": [2.5]}
    runs = jostle.Runs.from_columns(**columns, run_id=["s"], stretches=told)
    assert service.client.add_runs(runs) == ["stored"]
    (stored,) = service.http.get("/v1/runs").json()["items"]
    assert stored["stretches"] == told[0]
    unknown = jostle.Runs.from_columns(**columns, run_id=["u"], unknown_corunners=[True])
    with pytest.raises(UsageError, match="nobody knows"):  # it did not run alone
        service.client.add_runs(unknown)


def test_observed_runs_count_towards_coverage(service: Running) -> None:
    asked = jostle.Colocations.from_columns(workload=["w00"], platform=["p0"])
    bound = float(service.client.bound(asked, 0.9).seconds[0])
    runs = [{**RUN, "id": f"in{n}", "runtime_seconds": bound * 0.9} for n in range(3)]
    runs += [{**RUN, "id": "late", "runtime_seconds": bound * 1.1}]
    runs += [{**RUN, "id": "new", "workload": "never-met"}]
    found = service.post("/v1/runs", {"items": runs})["items"]
    assert [one["within_bound"] for one in found] == [True, True, True, False, None]
    (day,) = service.http.get("/v1/coverage").json()["days"]
    assert (day["runs"], day["with_bound"], day["within_bound"]) == (5, 4, 3)
    assert day["day"] == "2027-01-15"
    metrics = service.http.get("/metrics").text
    assert "jostle_observed_coverage_ratio 0.75" in metrics
    assert "jostle_observed_runs_total 5.0" in metrics


def test_observed_runs_reach_a_dataset_once(service: Running, tmp_path: Path) -> None:
    when = {"measured_at": "2026-01-31T13:00:00+01:00", "corunners": ["w02", "w01"]}
    service.post("/v1/runs", {"items": [RUN, {**RUN, "id": "r2", **when}]})
    store, dataset = service.app.state.service.store, tmp_path / "observed"
    archive = Archive(store, dataset, None)
    assert archive.add_to_dataset() == 2
    assert archive.add_to_dataset() == 0
    service.post("/v1/runs", {"items": [{**RUN, "id": "r3"}]})
    remember, store.put_in_dataset = (
        store.put_in_dataset,
        lambda number: None,
    )  # killed before it could
    assert archive.add_to_dataset() == 1
    assert Archive(store, dataset, None).add_to_dataset() == 1
    store.put_in_dataset = remember
    assert Archive(store, dataset, None).add_to_dataset() == 1
    assert Archive(store, dataset, None).add_to_dataset() == 0
    table = Dataset(dataset).read().table
    assert sorted(table.column("run_id").to_pylist()) == ["r1", "r2", "r3"]
    (row,) = [one for one in table.to_pylist() if one["run_id"] == "r2"]
    assert row["measured_at"].isoformat() == "2026-01-31T12:00:00+00:00"
    assert row["corunners"] == ["w01", "w02"]


def test_old_runs_are_forgotten_once_they_are_in_the_dataset(
    service: Running, tmp_path: Path
) -> None:
    store = service.app.state.service.store
    archive = Archive(store, tmp_path / "observed", 3)

    def ids() -> list[str]:
        return [row["id"] for row in store.runs_after(0, 10)]

    for day in range(5):
        service.post("/v1/runs", {"items": [{**RUN, "id": f"d{day}"}]})
        service.clock.now += 86_400
    up_to = store.archived()
    assert store.forget_runs(service.clock.now - 3 * 86_400, up_to) == 0  # none is in the dataset
    archive._try()
    assert ids() == ["d2", "d3", "d4"]
    assert len(Dataset(tmp_path / "observed").read()) == 5
    # What is counted stays counted, and numbers go on.
    assert sum(day["runs"] for day in service.client.coverage()) == 5
    Archive(store, None, 1)._try()
    assert ids() == ["d4"]
    assert store.last_number() == 5


def test_counts_are_running_sums(service: Running) -> None:
    """However many runs there are, nobody looks at them to say how many: not the page, not a monitor."""
    store = service.app.state.service.store
    service.post("/v1/runs", {"items": [{**RUN, "id": f"r{n}"} for n in range(9)]})
    said: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    assert service.http.get("/metrics").status_code == 200
    assert sum(day["runs"] for day in service.client.coverage()) == 9
    assert Archive(store, None, None)._try() is None
    assert any("jostle_days" in one for one in said)
    whole = [one for one in said if "jostle_runs" in one and "number >" not in one]
    assert all("ORDER BY jostle_runs.number DESC" in one for one in whole)  # the last one alone


def test_a_placement_is_a_tenant_until_it_ends(service: Running) -> None:
    client = service.client
    until = client.put_placement("job/1", "w05@9x", "west", ttl_seconds=60)
    assert until == service.clock.now + 60
    tenant = client.fleet().node("west").tenants[0]
    assert (tenant.name, tenant.workload, tenant.slowdown) == ("job/1", "w05", 9.0)
    service.clock.now += 59
    assert len(client.fleet().node("west").tenants) == 1
    client.put_placement("job/1", "w05@9x", "west", ttl_seconds=60)  # renewed
    service.clock.now += 59
    assert len(client.fleet().node("west").tenants) == 1
    client.put_placement("job/1", "w05@9x", "east", ttl_seconds=60)  # moved
    assert not client.fleet().node("west").tenants
    assert len(client.fleet().node("east").tenants) == 2
    service.clock.now += 61
    assert len(client.fleet().node("east").tenants) == 1
    assert not client.delete_placement("job/1")
    client.put_placement("job/2", "w05", "east")
    assert client.delete_placement("job/2")
    assert not client.delete_placement("job/2")
    assert len(client.fleet().node("east").tenants) == 1


def test_tenants_count_in_every_answer(service: Running) -> None:
    before = service.client.safe(jostle.Request("w00", slowdown=9), "west").answers[0]
    service.client.put_placement("a", "w05@9x", "west")
    after = service.client.safe(jostle.Request("w00", slowdown=9), "west").answers[0]
    assert [m.workload for m in before.members] == ["w00"]
    assert [m.workload for m in after.members] == ["w00", "w05"]


def test_a_slot_is_given_once(service: Running) -> None:
    client = service.client
    client.put_placement("a", "w00", "south")
    with pytest.raises(UsageError, match="all slots are taken"):
        client.put_placement("b", "w00", "south")
    assert (
        service.http.put("/v1/placements/b", json={"workload": "w00", "node": "south"}).status_code
        == 409
    )
    client.put_placement("a", "w01", "south")  # its own slot
    client.put_placement("b", "w00", "south", require="nothing")  # a fact is taken as it is
    with pytest.raises(UsageError, match="too little memory"):
        client.put_placement("c", jostle.Request("w00", memory_bytes=3e9), "west")
    with pytest.raises(UsageError, match="would not keep its own limit"):
        client.put_placement("c", "w00@1ns", "west", require="safe")
    client.put_placement("c", "w00@99x", "west", require="safe")


BAD_PLACEMENTS: tuple[tuple[Any, int, str], ...] = (
    ({"workload": "w00"}, 422, "`node` is missing"),
    ({"workload": "w00", "node": "moon"}, 404, "unknown node 'moon'"),
    ({"node": "east"}, 422, "workload is empty"),
    ({"workload": "w00", "node": "east", "ttl_seconds": 0}, 422, "not above 0"),
    ({"workload": "w00", "node": "east", "ttl_seconds": 1e300}, 422, "not above 0 to 3.16"),
    ({"workload": "w00", "node": "east", "ttl": 5}, 422, "unknown key 'ttl'"),
    ({"workload": "w00", "node": "east", "require": "all"}, 422, "one of slot, safe, nothing"),
    ([], 422, "not an object"),
)


def test_a_placement_that_cannot_be_says_why(service: Running) -> None:
    for body, status, sentence in BAD_PLACEMENTS:
        found = service.http.put("/v1/placements/a", json=body)
        assert found.status_code == status
        assert found.headers["content-type"] == "application/problem+json"
        assert sentence in found.json()["detail"]
        assert not service.http.get("/v1/placements").json()["items"]


def test_two_replicas_on_one_state_see_the_same(start: Start) -> None:
    one, other = start(), start()
    one.client.put_placement("a", "w00", "south")
    with pytest.raises(UsageError, match="all slots are taken"):
        other.client.put_placement("b", "w00", "south")
    assert len(other.client.fleet().node("south").tenants) == 1
    assert other.client.delete_placement("a")
    assert not one.client.fleet().node("south").tenants
    one.clock.now += 1000  # long after: everything is read anew
    other.client.put_placement("c", "w00", "south")
    assert one.client.fleet().node("south").tenants[0].name == "c"


def test_a_new_model_is_taken_as_a_whole(
    start: Start, model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    link = tmp_path / "current"
    link.symlink_to(model_folders[0])
    service = start(model=link)
    folder = service.app.state.service.folder
    asked = jostle.Colocations.from_columns(workload=["w00"], platform=["p0"])
    models = [jostle.load(path) for path in model_folders]
    seen = []
    for turn in (0, 1, 0):
        (tmp_path / "next").symlink_to(model_folders[turn])
        (tmp_path / "next").rename(link)
        folder.look()
        np.testing.assert_array_equal(service.client.predict(asked), models[turn].predict(asked))
        seen.append(service.client.model["version"])
    assert seen[0] == seen[2] != seen[1]
    assert "jostle_model_swaps_total 2.0" in service.http.get("/metrics").text


def test_a_bad_new_model_is_not_taken(
    start: Start, model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    shutil.copytree(model_folders[0], tmp_path / "model")
    service = start(model=tmp_path / "model")
    version = service.client.models()[0]["version"]
    (tmp_path / "model" / "model.json").write_text("{")
    assert not service.app.state.service.folder.look()
    assert service.client.is_ready
    found = service.http.get("/v1/models").json()
    assert found["models"][0]["version"] == version
    assert "not a readable model" in found["trouble"]
    metrics = service.http.get("/metrics").text
    assert "jostle_model_load_failures_total 1.0" in metrics
    assert re.search(rf"^jostle_model_info{{.*{version}.*}} 1.0$", metrics, re.MULTILINE)
    jostle.load(model_folders[1]).save(tmp_path / "model")
    service.app.state.service.folder.look()  # or the service itself has looked by now
    assert service.http.get("/v1/models").json()["trouble"] is None


def test_without_a_model_it_is_alive_but_not_ready(start: Start, tmp_path: Path) -> None:
    service = start(model=tmp_path / "nothing")
    assert service.http.get("/healthz").status_code == 200
    assert service.http.get("/readyz").status_code == 503
    assert not service.client.is_ready
    found = service.http.post("/v1/predict", json={"items": []})
    assert found.status_code == 503
    assert "no model is served" in found.json()["detail"]
    assert service.post("/v1/runs", {"items": [RUN]})["items"][0]["status"] == "stored"
    service.http.get("/metrics")


def test_the_table_of_the_fleet_is_read_again(service: Running) -> None:
    path = service.settings.fleet
    assert path is not None
    service.client.put_placement("a", "w00", "west")
    path.write_text(FLEET + "north,p3,5,,,\n")
    assert [node.name for node in service.client.fleet().nodes][-1] == "north"
    assert len(service.client.fleet().node("west").tenants) == 1
    path.write_text("nonsense\n\n\n")
    assert len(service.client.fleet()) == 4
    path.write_text(FLEET.replace("west", "vest"))
    assert {node.name for node in service.client.fleet().nodes} == {"east", "vest", "south"}
    assert service.client.delete_placement("a")  # of a node that is no more
    assert {node.name for node in service.client.fleet().nodes} == {"east", "vest", "south"}


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("postgresql://me:secret@host:5432/jostle", "postgresql://…@host:5432/jostle"),
        ("postgresql://me:s@cret@host/jostle", "postgresql://…@host/jostle"),
        ("postgresql://host/jostle", "postgresql://host/jostle"),
        ("/var/me@home/state.db", "/var/me@home/state.db"),
    ],
)
def test_a_state_is_named_without_its_password(state: str, shown: str) -> None:
    assert _without_password(state) == shown


def test_kinds_of_nodes_are_answered_for_as_they_are_now(service: Running) -> None:
    """Kept between questions, until a node is as none was before; for each confidence by itself."""
    inner = service.app.state.service
    places, fleet = inner.places, inner.fleet
    asked, levels = jostle.Request("w00"), [Standard(c, "each") for c in (0.5, 0.8, 0.9)]

    def by_kind(standard: Standard) -> Any:
        fleet.sync(inner.served.known.platforms)
        return places.by_kind(asked, inner.served, standard)

    first = [by_kind(one) for one in levels]
    assert [len(one) for one in first] == [3, 3, 3]
    assert all(by_kind(one) is was for one, was in zip(levels, first, strict=True))
    service.client.put_placement("a", "w05", "west")
    again = by_kind(levels[0])
    assert len(again) == len(fleet.kinds.examples) == 4
    assert by_kind(levels[0]) is again
    alone = again.assess(asked).bound_seconds
    assert alone[fleet.kinds.of["west"]] >= alone[1]  # as it was before
