"""Models of an installed package: a real distribution on the path of a new process, found by entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.traces import GPUS, tasks_from_rows, write_profiles

# What a package of one's own looks like: models against the public face alone.
PACKAGE = '''
from dataclasses import dataclass


class OneAfterTheOther:
    """Tickets in their order, each `factor` times as long as alone."""

    def __init__(self, factor):
        self.factor, self.queue, self.left = factor, [], 0.0

    def submit(self, ticket):
        self.queue.append(ticket)
        if len(self.queue) == 1:
            self.left = self.factor * ticket.seconds

    def until_change(self):
        return self.left if self.queue else float("inf")

    def advance(self, seconds, tolerance_seconds):
        self.left -= seconds
        if not self.queue or self.left > tolerance_seconds:
            return []
        done = self.queue.pop(0)
        self.left = self.factor * self.queue[0].seconds if self.queue else 0.0
        return [done]


@dataclass(frozen=True)
class Slow:
    factor: float
    name: str

    def facility(self, device, resources):
        return OneAfterTheOther(self.factor)


def kernels():
    return Slow(3.0, "thrice")


def transfers():
    return Slow(2.0, "twice")
'''
ASK = """
import json
from jostle.accelerator import (
    Application, Device, SimulationOptions, Task, Tenant, sharing_model_names, simulate,
)

app = Application.of("a", Task("htod", 1.0), Task("kernel", 1.0, blocks=1))
found = simulate([Tenant(app), Tenant(app)], Device(1), SimulationOptions("thrice", "twice"))
print(json.dumps({
    "kernels": sharing_model_names(),
    "transfers": sharing_model_names("jostle.transfer_models"),
    "engine": found.engine,
    "ends": [ends.tolist() for ends in found.task_ends],
}))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process where the package is installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "jostle_slow").mkdir()
    (site / "jostle_slow" / "__init__.py").write_text(PACKAGE)
    info = site / "jostle_slow-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jostle-slow\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[jostle.kernel_models]\nthrice = jostle_slow:kernels\n"
        "[jostle.transfer_models]\ntwice = jostle_slow:transfers\n"
    )
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


def ask(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )


def test_models_of_an_installed_package(environment: dict[str, str]) -> None:
    done = ask(environment, "-c", ASK)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["kernels"] == ["concurrent", "sequential", "thrice", "time-sliced"]
    assert printed["transfers"] == ["pcie", "twice"]
    # Transfers of 2 s in turn, then kernels of 3 s: the second waits for both.
    assert printed["ends"] == [[2, 5], [4, 8]]
    assert printed["engine"] == "reference"


def test_the_command_takes_them_by_name(environment: dict[str, str], tmp_path: Path) -> None:
    shape = {"blocks": 80, "threads_per_block": 256, "registers_per_thread": 32}
    rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": 0.01, **shape}]
    profiles = [tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"]) for name in ("asr", "md")]
    write_profiles(tmp_path, profiles)
    command = ["-m", "jostle", "safe", str(tmp_path), "--service", "asr", "--batch", "md", "--json"]
    done = ask(environment, *command, "--objective", "4x", "--most", "1", "--sharing", "thrice")
    assert done.returncode == 1, done.stderr
    mixes = json.loads(done.stdout)["mixes"]
    assert [mix["slowdown_ratio"] for mix in mixes] == pytest.approx([3.0, 6.0], rel=0.1)
    done = ask(environment, *command, "--sharing", "nobody")
    assert done.returncode == 4
    assert "thrice" in done.stdout
