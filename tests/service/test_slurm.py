"""What the submit plugin of Slurm is answered, without a Slurm."""

from __future__ import annotations

from tests.service.conftest import Running


def test_a_job_gets_a_node_a_limit_and_a_place(service: Running) -> None:
    asked = {"workload": "w00", "deadline": "9x", "limit_confidence": "0.8"}
    found = service.post("/v1/slurm/submit", asked)
    assert found["placed"] is True
    assert found["time_limit_minutes"] == 1
    assert found["node"] in found["comment"]
    assert found["placement"] in found["comment"]
    (placed,) = service.http.get("/v1/placements").json()["items"]
    assert (placed["id"], placed["node"]) == (found["placement"], found["node"])


def test_a_job_that_fits_nowhere_is_told_why(service: Running) -> None:
    found = service.post("/v1/slurm/submit", {"workload": "w00", "deadline": "1ns"})
    assert found["placed"] is False
    assert "the request would not keep its own limit" in found["comment"]
    found = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["elsewhere"]})
    assert "neither the node nor its platform" in found["comment"]
    assert not service.http.get("/v1/placements").json()["items"]


def test_a_node_of_its_own_is_kept_to(service: Running) -> None:
    found = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["south"]})
    assert found["node"] == "south"
    again = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["south"]})
    assert "all slots are taken" in again["comment"]


def test_what_is_no_job_is_a_problem(service: Running) -> None:
    odd = {"workload": "w00", "limit_confidence": "x"}
    for body in ({}, {"workload": ""}, {"workload": 0}, odd):
        assert service.http.post("/v1/slurm/submit", json=body).status_code == 422


def test_a_time_limit_that_is_handed_out_is_kept_from_then_on(service: Running) -> None:
    asked = {"workload": "w00", "limit_confidence": "0.8", "nodes": ["south"]}
    found = service.post("/v1/slurm/submit", asked)
    assert "only if nobody else comes" not in found["comment"]
    nodes = service.http.get("/v1/fleet").json()["nodes"]
    (tenant,) = [
        one
        for node in nodes
        for one in node["tenants"]
        if node["name"] == found["node"] and one["name"] == found["placement"]
    ]
    assert tenant["deadline_seconds"] == 60 * found["time_limit_minutes"]
    assert tenant["confidence"] == 0.8
    tight = {"workload": "w00", "deadline": "9x", "limit_confidence": "0.8"}
    second = service.post("/v1/slurm/submit", tight)
    rows = [
        one
        for node in service.http.get("/v1/fleet").json()["nodes"]
        for one in node["tenants"]
        if one["name"] == second["placement"]
    ]
    # Its own deadline is the sooner of the two.
    assert 0 < rows[0]["deadline_seconds"] <= 60 * second["time_limit_minutes"]
