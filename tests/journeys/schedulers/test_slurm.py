"""A real Slurm places jobs through the submit plugin; its packages are got by `make test-schedulers`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import jostle
from tests.packages.server.process_samples import serving

HERE = Path(__file__).parent
DEPLOY = HERE.parents[2] / "deploy" / "slurm"
pytestmark = [
    pytest.mark.schedulers,
    pytest.mark.skipif("JOSTLE_SLURM" not in os.environ, reason="make test-schedulers gets it"),
]


@dataclass
class Slurm:
    """environment: of its commands. address: where the plugin asks."""

    folder: Path
    environment: dict[str, str]
    address: str

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            cwd=self.folder,
        )
        return done.stdout + done.stderr

    def submit(self, *options: str, seconds: float = 2) -> tuple[str, str]:
        """(id, all that was printed)."""
        printed = self.run("sbatch", *options, "--wrap", f"sleep {seconds}")
        return re.findall(r"Submitted batch job (\d+)", printed)[0], printed

    def job(self, id: str) -> dict[str, str]:
        text = self.run("scontrol", "show", "job", "-o", id)
        return dict(part.split("=", 1) for part in re.findall(r"(?:^|\s)(\w+=\S*)", text))

    def comment(self, id: str) -> str:
        return self.run("scontrol", "show", "job", id)

    def wait(self, until: Callable[[], bool], seconds: float = 40) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if until():
                return True
            time.sleep(0.3)
        return False


@contextmanager
def slurm(folder: Path, address: str) -> Iterator[Slurm]:
    environment = os.environ | {"JOSTLE_URL": address, "SLURM_CONF": str(folder / "slurm.conf")}
    command = [
        str(HERE / "start-slurm"),
        str(folder),
        str(DEPLOY / "job_submit.lua"),
        str(folder / "jobs.sh"),
    ]
    folder.mkdir()
    shutil.copy(DEPLOY / "jobs.sh", folder)
    told = f"JOSTLE_URL={address}\nexport SLURM_CONF={folder / 'slurm.conf'}\n"
    (folder / "jostle.env").write_text(told)
    try:
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        yield Slurm(folder, environment, address)
    finally:
        subprocess.run([str(HERE / "stop-slurm"), str(folder)], check=False)


def test_jobs_go_where_they_keep_their_limit(
    model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("name,platform,slots\nedge1,p0,2\nedge2,p1,2\nedge3,p2,2\n")
    more = ("--fleet", str(fleet))
    with (
        serving(model_folders[0], tmp_path / "state.sqlite", *more) as (address, service),
        slurm(tmp_path / "slurm", address) as running,
        jostle.Client(address) as client,
    ):
        best = client.rank(jostle.Request("w00", slowdown=9.0))[0].best
        assert best is not None
        id, printed = running.submit(
            "--comment", "jostle workload=w00 deadline=9x limit_confidence=0.8"
        )
        assert "jostle: at most" in printed
        assert running.job(id)["ReqNodeList"] == best.node
        assert running.job(id)["TimeLimit"] == "00:01:00"
        assert "placement=slurm-" in running.comment(id)
        assert sum(len(node.tenants) for node in client.fleet().nodes) == 1
        assert running.wait(lambda: running.job(id)["JobState"] == "COMPLETED")
        assert running.job(id)["NodeList"] == best.node
        # The epilog lets go of its place.
        assert running.wait(lambda: not sum(len(n.tenants) for n in client.fleet().nodes))

        # Six places, six jobs on them, and the seventh is told.
        ids = [running.submit("--comment", "jostle workload=w01 deadline=99x")[0] for _ in range(6)]
        nodes = [running.job(one)["ReqNodeList"] for one in ids]
        assert sorted(nodes) == ["edge1", "edge1", "edge2", "edge2", "edge3", "edge3"]
        id, printed = running.submit("--comment", "jostle workload=w01 deadline=99x")
        assert "no node is sure to keep the limit (all slots are taken)" in printed
        # It begins when the limits of those who are there have passed, and not beside them.
        last = running.job(id)
        assert last["ReqNodeList"] in nodes
        assert last["JobState"] == "PENDING"
        begin = time.mktime(time.strptime(last["EligibleTime"], "%Y-%m-%dT%H:%M:%S"))
        assert begin >= time.time() + 60
        # What is not Jostle's is as it was; a time limit of one's own stays.
        id, printed = running.submit("--comment", "mine")
        assert "jostle" not in printed
        id, _ = running.submit("--comment", "jostle workload=w00", "--time", "90")
        assert running.job(id)["TimeLimit"] == "01:30:00"
        # Nothing that a shell would read otherwise gets there.
        hostile = "jostle workload=w00';touch${IFS}owned;'"
        id, printed = running.submit("--comment", hostile)
        assert "jostle:" not in printed

        # Away, stopped or silent: accepted as it is, in time.
        service.kill()
        start = time.monotonic()
        id, printed = running.submit("--comment", "jostle workload=w00 deadline=9x")
        assert time.monotonic() - start < 4
        assert "no answer, the job is taken as it is" in printed
        assert running.job(id)["Comment"] == "jostle"
    assert not list(tmp_path.rglob("owned"))


WORK = {f"w{number:02}": 0.2 + 0.1 * number for number in range(12)}  # seconds of sleep


def test_300_jobs_from_nothing(tmp_path: Path) -> None:
    """No model, no table of nodes: prolog and epilog record jobs, the model fits itself, later jobs get a
    node and a limit, the service is killed and comes back, and Slurm runs every job all the while."""
    names, ids = [*WORK] * 25, []
    given = (tmp_path / "model", tmp_path / "state.sqlite", "--learn", "100")

    def send(number: int, *more: str) -> str:
        comment = " ".join((f"jostle workload={names[number]}", *more))
        id, printed = running.submit(
            *("--cpus-per-task", "4", "--comment", comment), seconds=WORK[names[number]]
        )
        ids.append(id)
        time.sleep(0.3)  # so that some are alone, and few beside many
        return printed

    def is_calm() -> bool:
        states = set(running.run("squeue", "-h", "-t", "all", "-o", "%T").split())
        return not states & {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING"}

    with ExitStack() as stack:
        address, service = stack.enter_context(serving(*given))
        running = stack.enter_context(slurm(tmp_path / "slurm", address))
        client = stack.enter_context(jostle.Client(address))
        for number in range(120):
            send(number)
        assert running.wait(is_calm, 300)
        first = client.observed_runs(limit=1000)
        assert running.wait(lambda: client.is_ready, 900), client._call("GET", "/v1/models", None)
        assert client.models()[0]["platforms"] == ["small"]
        told = [send(number, "deadline=60s") for number in range(120, 220)]
        kinds = ("jostle: at most", "nothing is promised", "no node is sure")
        outcomes = Counter(re.findall(r" on \S+ \((\w+)\)", " ".join(told)))
        assert running.wait(is_calm, 300)
        second = client.observed_runs(after=first[-1]["number"], limit=1000)
        service.kill()
        away = [send(number) for number in range(220, 260)]
        assert running.wait(is_calm, 300)
        port = address.rpartition(":")[2]
        stack.enter_context(serving(*given, "--port", port))
        for number in range(260, 300):
            send(number, "deadline=60s")
        assert running.wait(is_calm, 300)
        third = client.observed_runs(after=second[-1]["number"], limit=1000)
        ended = running.run("squeue", "-h", "-t", "all", "-o", "%T").split()
    later = second + third
    bounded = [one for one in later if one["bound_seconds"] is not None]
    held = sum(one["runtime_seconds"] <= one["bound_seconds"] for one in bounded)
    broken = sum(one["runtime_seconds"] > 60 for one in later)
    promised, placed, refused = (sum(kind in one for one in told) for kind in kinds)
    print(
        f"\n300 jobs: {len(first)} of 120 recorded before there was a model, {len(later)} of 140 after; "
        f"of 100 {promised} promised, {placed} placed besides, {refused} not ({dict(outcomes)}), "
        f"{broken} later than their deadline, {held} of {len(bounded)} bounds held"
    )
    assert len(ids) == 300
    assert set(ended) == {"COMPLETED"}
    assert all("no answer, the job is taken as it is" in one for one in away)
    assert any(one.get("stretches") for one in first)
    assert (len(first), len(second), len(third)) == (120, 100, 40)
    assert promised + placed + refused == 100
    assert promised + placed > 50
    assert not broken
