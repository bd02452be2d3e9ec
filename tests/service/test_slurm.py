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
