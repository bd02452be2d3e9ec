"""What the submit plugin of Slurm is answered, without a Slurm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from jostle.placement import Fleet, Node, Placement, Request, SetBounds, Standard
from jostle.server.slurm._slurm_jobs import SeenJob
from jostle.server.slurm._slurm_placement import _sure
from tests.packages.server.conftest import Running, Start


def test_a_job_gets_a_node_a_limit_and_a_place(service: Running) -> None:
    asked = {"workload": "w00", "deadline": "9x", "limit_confidence": "0.8"}
    found = service.post("/v1/slurm/submit", asked)
    assert found["placed"] is True
    assert found["time_limit_minutes"] == 1
    assert found["node"] in found["comment"]
    assert f" (guaranteed), placement={found['placement']}" in found["comment"]
    (placed,) = service.http.get("/v1/placements").json()["items"]
    assert (placed["id"], placed["node"]) == (found["placement"], found["node"])


def test_the_least_of_several_bounds_is_as_sure_as_one(service: Running) -> None:
    """The node that is chosen is the one with the luckiest bound."""
    sets, request = SetBounds(service.app.state.service.served.model, Standard(0.8)), Request("w00")
    nodes = [Node(name, f"p{n}") for n, name in enumerate("abc")]
    assert _sure(sets, request, nodes[:1]) is sets
    one, several = (
        Placement(Fleet((nodes[0],)), by).walltime([request]).rows[0].bound_seconds or 0.0
        for by in (sets, _sure(sets, request, nodes))
    )
    assert 0 < one < several


def test_a_job_that_fits_nowhere_is_told_why(service: Running) -> None:
    found = service.post("/v1/slurm/submit", {"workload": "w00", "deadline": "1ns"})
    assert found["placed"] is False
    assert "the request would not keep its own limit" in found["comment"]
    # It goes where it breaks nobody's promise, and has none itself.
    (there,) = service.http.get("/v1/placements").json()["items"]
    assert (there["id"], there["node"]) == (found["placement"], found["node"])
    assert found["begins_in_minutes"] == 0
    found = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["elsewhere"]})
    assert "neither the node nor its platform" in found["comment"]
    assert found["node"] is None


def test_where_no_bound_is_valid_a_job_is_placed_and_nothing_promised(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "wide.csv").write_text(
        "name,platform,slots,tenants\nheld,p0,3,w03@9x\nfull,p1,1,w01\n"
        f"busy,p1,40,{';'.join(['w01'] * 9)}\nwide,p2,40,{';'.join(['w02'] * 300)}\n"
    )
    service = start(fleet=tmp_path / "wide.csv")
    elsewhere = ["full", "busy", "wide"]  # on `held` somebody was promised something
    known = service.post(
        "/v1/slurm/submit", {"workload": "w00", "deadline": "9x", "nodes": elsewhere}
    )
    assert (known["placed"], known["outcome"]) == (True, "unseen_group")
    assert known["bound_seconds"] is None
    assert known["time_limit_minutes"] is None
    asked = [{"workload": "w00", "platform": "p1", "corunners": ["w01"] * k} for k in range(1, 10)]
    expected = service.post("/v1/predict", {"items": asked})["items"]
    assert known["node"] == "busy"  # beside fewer
    # Nobody is expected to end sooner beside more.
    seconds = [one["runtime_seconds"] for one in expected]
    assert all(more >= fewer * 0.9999 for fewer, more in pairwise(seconds))
    assert known["expected_seconds"] >= seconds[-1] * 0.9999
    assert (
        "are expected and nothing is promised on busy (no run had this number of co-runners"
        in known["comment"]
    )
    new = service.post("/v1/slurm/submit", {"workload": "never-met"})
    assert (new["node"], new["outcome"], new["expected_seconds"]) == (
        "busy",
        "unknown_workload",
        None,
    )
    rows = service.http.get("/v1/placements").json()["items"]
    assert {row["id"] for row in rows} == {known["placement"], new["placement"]}
    assert not any("deadline" in row for row in rows)
    refused = service.post("/v1/slurm/submit", {"workload": "never-met", "nodes": ["held", "full"]})
    assert not refused["placed"]
    # Of hundreds there is an answer, too.
    tenants = {n["name"]: n["tenants"] for n in service.http.get("/v1/fleet").json()["nodes"]}
    assert len(tenants["wide"]) == 300


def test_a_node_of_its_own_is_kept_to(service: Running) -> None:
    found = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["south"]})
    assert found["node"] == "south"
    again = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["south"]})
    assert "all slots are taken" in again["comment"]


def test_who_would_break_a_limit_that_was_handed_out_begins_when_it_has_passed(
    service: Running,
) -> None:
    """A job past its time limit is killed, so nobody comes beside it before."""
    asked = {"workload": "w00", "nodes": ["south"], "limit_confidence": "0.8"}
    first = service.post("/v1/slurm/submit", asked)
    assert first["time_limit_minutes"] == 1
    second = service.post("/v1/slurm/submit", asked)
    assert (second["placed"], second["node"]) == (False, "south")
    assert second["begins_in_minutes"] == 3  # a minute, and Slurm looks at limits once a minute
    assert second["time_limit_minutes"] is None
    assert "it begins on south in 3 min beside nobody with a limit" in second["comment"]
    service.clock.now += 40
    third = service.post("/v1/slurm/submit", asked)
    assert third["begins_in_minutes"] == 2
    # With the first gone nobody is left who has a limit.
    service.http.delete(f"/v1/placements/{first['placement']}")
    assert service.post("/v1/slurm/submit", asked)["begins_in_minutes"] == 0


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


NODES = ["edge1|skylake,avx|4", "edge2|(null)|4"]


def told(
    service: Running, event: str, job: str, *running: str, exit: str = "", after: float = 0.0
) -> int:
    """Of each running job its number, node, start after the clock's first time, name and comment."""
    service.clock.now += after
    lines = []
    for one in running:
        number, node, start, name, *comment = one.split(maxsplit=4)
        begun = 1_800_000_000 + int(start)
        lines.append(f"{number}|ann|{node}|{begun}|{name}|{' '.join(comment)}")
    body = {"event": event, "job": job, "nodes": NODES, "jobs": lines, "exit": exit}
    return service.post("/v1/slurm/jobs", body)["recorded"]


def test_jobs_that_ended_are_runs_with_stretches(start: Start, tmp_path: Path) -> None:
    """From an empty model on, by the comment or the name of the job."""
    service = start(model=tmp_path / "none", fleet=None)
    one, other, far = "1 edge1 1 a.sh jostle workload=fft", "2 edge1 3 b.sh", "3 edge2 3 c.sh"
    assert told(service, "began", "1", one, after=1.5) == 0
    assert told(service, "began", "2", one, other, after=2) == 0
    assert told(service, "began", "3", one, other, far) == 0
    assert told(service, "ended", "2", one, other, far, exit="1:0", after=1) == 0  # it failed
    assert told(service, "ended", "1", one, far, exit="0:0", after=2) == 1
    assert told(service, "ended", "1", one, far, exit="0:0") == 0  # once
    (run,) = service.http.get("/v1/runs").json()["items"]
    assert run["id"] == "slurm:1:1800000002"
    assert (run["workload"], run["platform"], run["runtime_seconds"]) == ("fft", "skylake", 5.0)
    assert run["stretches"] == [
        {"start_seconds": 0, "corunners": []},
        {"start_seconds": 2, "corunners": ["ann/b.sh"]},
        {"start_seconds": 3, "corunners": []},
    ]


def test_only_nodes_of_slurm_are_handed_out(start: Start) -> None:
    """Without a table of nodes none is known before a job begins."""
    service = start(fleet=None)
    found = service.post("/v1/slurm/submit", {"workload": "w00"})
    assert (found["placed"], found["node"]) == (False, None)
    told(service, "began", "1", "1 edge1 0 a.sh jostle workload=w00")
    assert service.post("/v1/slurm/submit", {"workload": "w00"})["node"] in ("edge1", "edge2")


def test_what_was_missed_is_told_by_the_next_list(start: Start, tmp_path: Path) -> None:
    service = start(model=tmp_path / "none", fleet=None)
    one, missed, early = "1 edge1 1 a.sh", "2 edge1 3 b.sh", "9 edge1 -50 z.sh"
    told(service, "began", "1", one, early, after=1)
    # Its beginning was not told: its line says when that was; nor its end: it is over by the next time.
    told(service, "began", "4", one, missed, early, "4 edge2 5 d.sh", after=4)
    told(service, "began", "5", one, early, "4 edge2 5 d.sh", "5 edge2 8 e.sh", after=3)
    assert told(service, "ended", "1", one, early, exit="0:0", after=2) == 1
    (run,) = service.http.get("/v1/runs").json()["items"]
    assert run["stretches"] == [
        {"start_seconds": 0, "corunners": ["ann/z.sh"]},
        {"start_seconds": 2, "corunners": ["ann/b.sh", "ann/z.sh"]},
        {"start_seconds": 7, "corunners": ["ann/z.sh"]},
    ]
    # Who began before the service did is company alone, and so is a job of several nodes.
    assert told(service, "ended", "9", early, exit="0:0") == 0
    wide = ("7 edge1 10 w.sh", "7 edge2 10 w.sh")
    told(service, "began", "7", *wide, "8 edge2 10 x.sh")
    told(service, "ended", "8", *wide, "8 edge2 10 x.sh", exit="0:0", after=1)
    assert told(service, "ended", "7", *wide, exit="0:0", after=1) == 0
    last = service.http.get("/v1/runs").json()["items"][-1]
    assert (last["workload"], last["corunners"]) == ("ann/x.sh", ["ann/w.sh"])


def test_a_job_that_ended_frees_its_place(service: Running) -> None:
    found = service.post("/v1/slurm/submit", {"workload": "w00"})
    line = f"1 {found['node']} 0 a.sh jostle workload=w00 | {found['comment']}"
    told(service, "began", "1", line)
    assert service.http.get("/v1/placements").json()["items"]
    assert told(service, "ended", "1", line, exit="0:0", after=3) == 1
    assert not service.http.get("/v1/placements").json()["items"]


def test_one_job_frees_no_place_of_another(service: Running) -> None:
    asked = {"workload": "w00", "nodes": ["east"]}
    victim, own = (service.post("/v1/slurm/submit", asked)["placement"] for _ in range(2))
    elsewhere = service.post("/v1/slurm/submit", {**asked, "nodes": ["west"]})["placement"]

    def kept() -> set[str]:
        there = {row["id"] for row in service.http.get("/v1/placements").json()["items"]}
        return there & {victim, own, elsewhere}

    runs = f"1 east 0 a.sh jostle workload=w00 | at most 1 s, placement={victim}"
    first = f"2 east 0 b.sh jostle workload=w00 placement={victim} | placement={own}"
    told(service, "began", "1", runs)
    told(service, "began", "2", runs, first)
    # What it is once it runs, it stays: by what it says later, of another node or workload, none is freed.
    again = f"2 east 0 b.sh jostle workload=w00 | placement={elsewhere} placement={victim}"
    forged = (
        f"3 east 0 c.sh jostle workload=w00 | placement={victim}",
        f"4 east 0 c.sh jostle workload=w00 | placement={elsewhere}",
        f"5 west 0 c.sh jostle workload=w01 | placement={elsewhere}",
    )
    for line in forged:
        told(service, "began", line[0], runs, again, line)
        told(service, "ended", line[0], runs, again, line, exit="0:0")
    assert kept() == {victim, own, elsewhere}
    told(service, "ended", "2", runs, again, exit="0:0")
    assert kept() == {victim, elsewhere}
    told(service, "ended", "1", runs, exit="0:0")
    assert kept() == {elsewhere}


FAKES = {
    "squeue": r"""
import sys
if "-j" in sys.argv:
    print(0)
else:
    word = sys.argv[-1].partition("%A")[0]
    name = "x\n3|root|east|0|in a name|c\n4|root|east|0|y|jostle workload=w00|z"
    comment = "a\n5|root|east|0|b|jostle workload=w00\r6|root|east|0|b|c"
    print(f"{word}1|ann|east|0|{name}{word}{comment}" if word else f"1|ann|east|0|{name}|{comment}")
    print(f"{word}2|bob|east|0|plain{word}" if word else "2|bob|east|0|plain|")
""",
    "sinfo": "print('east|(null)|4')",
    "curl": "import sys; open(sys.argv[0] + '.out', 'w').write(sys.stdin.read())",
}


def test_what_users_write_makes_no_job(tmp_path: Path) -> None:
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f"#!{sys.executable}\n{text}")
        (tmp_path / name).chmod(0o755)
    script = Path(__file__).parents[3] / "deploy" / "slurm" / "jobs.sh"
    shutil.copy(script, tmp_path / "jobs.sh")
    (tmp_path / "jostle.env").write_text(f"PATH={tmp_path}:$PATH\n")
    given = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_USER": "eve",
        "SLURM_JOB_NODELIST": "east",
        "SLURM_JOB_NAME": "n\n8|root|east|0|x|y|z",
        "SLURM_JOB_COMMENT": "jostle workload=fft\\n9|root|east|0|x|y\n9|root|east|0|x|y",
    }
    subprocess.run(["sh", str(tmp_path / "jobs.sh")], env=given, check=True)
    seen = json.loads((tmp_path / "curl.out").read_text())
    jobs = [SeenJob.read(line) for line in seen["jobs"]]
    assert [one.number for one in jobs] == ["1", "2", "7"]
    assert jobs[0].workload.startswith("ann/x")
    assert jobs[1].workload == "bob/plain"
    assert jobs[2].workload.startswith("fft")


def test_jobs_that_nobody_placed_are_there_while_they_run(service: Running) -> None:
    """What a node is asked about holds beside them."""
    asked = {"workload": "w00", "nodes": ["west"]}
    alone = service.post("/v1/slurm/submit", asked)
    service.http.delete(f"/v1/placements/{alone['placement']}")
    other, wide = "1 west 0 a.sh jostle workload=w01", "2 west 0 b.sh jostle workload=w02"
    own = service.post("/v1/slurm/submit", {"workload": "w00", "nodes": ["east"]})
    placed = f"3 east 0 c.sh jostle workload=w00 | {own['comment']}"  # by Jostle: not once more

    def places() -> dict[str, str]:
        rows = service.http.get("/v1/placements").json()["items"]
        return {row["id"]: row["node"] for row in rows if row["id"] != own["placement"]}

    told(service, "began", "1", other, wide, "2 east 0 b.sh jostle workload=w02", placed)
    assert places() == {
        "slurm-job:1:west": "west",
        "slurm-job:2:west": "west",
        "slurm-job:2:east": "east",
    }
    beside = service.post("/v1/slurm/submit", asked)
    assert not beside["placed"] or beside["bound_seconds"] >= alone["bound_seconds"]
    told(service, "ended", "2", other, wide, exit="0:0", after=3)
    assert [id for id in places() if id.startswith("slurm-job:")] == ["slurm-job:1:west"]


def test_lines_that_are_no_jobs_are_problems(service: Running) -> None:
    body = {"event": "ended", "job": "1", "nodes": [], "exit": "0:0"}
    bad = (["1|ann|east"], ["1|ann|east|soon|a|"], ["1|ann|east|inf|a|"], ["a|ann|east|1|a|"])
    for lines in (*bad, [f"1|ann|{'n' * 300}|1|a|"], [7], "x"):
        found = service.http.post("/v1/slurm/jobs", json={**body, "jobs": lines})
        assert found.status_code == 422


def test_a_time_limit_of_its_own_is_checked(service: Running) -> None:
    asked = {"workload": "w00", "limit_confidence": "0.8", "nodes": ["west"]}
    minutes = service.post("/v1/slurm/submit", asked)["time_limit_minutes"]
    asked["nodes"] = ["east"]
    enough = service.post("/v1/slurm/submit", {**asked, "time_limit_minutes": minutes + 5})
    assert "is short" not in enough["comment"]
