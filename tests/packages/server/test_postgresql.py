"""Several replicas over one PostgreSQL; skipped where its packages are not installed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jostle.errors import NotPermitted, UsageError
from tests.packages.server.conftest import Start
from tests.packages.server.postgresql import Server, postgresql, programs

pytestmark = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
RUN = {"id": "r1", "workload": "w00", "platform": "p0", "corunners": [], "runtime_seconds": 2.5}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg")
    with postgresql() as running:
        yield running


def test_replicas_share_what_they_keep(start: Start, server: Server) -> None:
    one, other = start(state=server.address), start(state=server.address)
    assert one.post("/v1/runs", {"items": [RUN]})["items"][0]["status"] == "stored"
    assert other.post("/v1/runs", {"items": [RUN]})["items"][0]["status"] == "already_stored"
    one.client.put_placement("a", "w00", "south")
    with pytest.raises(UsageError, match="all slots are taken"):
        other.client.put_placement("b", "w00", "south")
    assert other.client.delete_placement("a")
    assert not one.client.fleet().node("south").tenants
    assert one.http.get("/v1/coverage").json()["days"][0]["runs"] == 1


def test_the_last_slot_is_given_once(start: Start, server: Server, tmp_path: Path) -> None:
    turns = 60
    fleet = tmp_path / "race.csv"
    rows = [f"n{n},p0,1" for n in range(turns)]
    fleet.write_text("\n".join(["name,platform,slots", *rows]) + "\n")
    replicas = [start(state=server.address, fleet=fleet) for _ in range(2)]
    placed: list[list[bool]] = [[], []]

    def race(who: int) -> None:
        for turn in range(turns):
            body = {"workload": "w00", "node": f"n{turn}"}
            found = replicas[who].http.put(f"/v1/placements/race-{who}-{turn}", json=body)
            assert found.status_code in (200, 409)
            placed[who].append(found.status_code == 200)

    both = [threading.Thread(target=race, args=(who,)) for who in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [a + b for a, b in zip(*placed, strict=True)] == [1] * turns


def test_a_database_that_was_killed_is_found_again(start: Start, server: Server) -> None:
    service = start(state=server.address)
    for number in range(20):
        service.client.put_placement(f"kept-{number}", "w00", "east", require="nothing")
        service.post("/v1/runs", {"items": [{**RUN, "id": f"kept-{number}"}]})
    server.kill()
    with pytest.raises(NotPermitted, match="does not answer"):
        service.client.put_placement("never", "w00", "east", require="nothing")
    assert service.post("/v1/predict", {"items": [{"workload": "w00", "platform": "p0"}]})
    assert service.http.get("/metrics").status_code == 200
    server.start()
    names = {tenant.name for tenant in service.client.fleet().node("east").tenants}
    assert {f"kept-{number}" for number in range(20)} <= names
    kept = {one["id"] for one in service.http.get("/v1/runs?limit=1000").json()["items"]}
    assert {f"kept-{number}" for number in range(20)} <= kept
