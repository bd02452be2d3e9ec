"""Campaigns over machines: workers come, go, hang and die; every window is there once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jostle.collect import (
    FleetOptions,
    MeasureOptions,
    child_environment,
    command_workload,
    measure_fleet,
)
from jostle.collect.campaign._worker import _unpacked, pack
from jostle.data import Dataset
from jostle.errors import NotPermitted
from tests.waiting import HANGS_SECONDS, wait_for

pytest.importorskip("distributed", reason="needs distributed (the extra cluster)")

SETTINGS: dict[str, Any] = {
    "workloads": ["sort-s", "edit-s"],
    "engines": ["speed"],
    "solo_repeats": 2,
    "window_seconds": 0.1,
    "device": "alike",
}


class Cluster:
    """A scheduler and workers as processes, each started by a prefix of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, []
        self.address = ""

    def scheduler(self, host: str) -> None:
        file = self.folder / "scheduler.json"
        words = ["--host", host, "--port", "0", "--no-dashboard", "--no-show"]
        self._start([], "dask_scheduler", [*words, "--scheduler-file", str(file)])
        wait_for(file.exists)
        import json

        wait_for(lambda: file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def worker(self, name: str, prefix: list[str], *words: str) -> subprocess.Popen[bytes]:
        more = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name]
        more += ["--local-directory", str(self.folder / name), "--memory-limit", "0"]
        return self._start(prefix, "dask_worker", [self.address, *more, *words])

    def supervised(self, name: str, prefix: list[str], *words: str) -> subprocess.Popen[bytes]:
        """A worker that is started again whenever it ends, as a service manager does: Dask's workers end
        when they lose their scheduler."""
        again = ["sh", "-c", 'while :; do "$@"; sleep 0.5; done', "supervisor"]
        return self.worker(name, [*prefix, *again], *words)

    def _start(self, prefix: list[str], tool: str, words: list[str]) -> subprocess.Popen[bytes]:
        log = open(self.folder / f"log-{len(self.processes)}", "wb")  # noqa: SIM115
        environment = {
            **child_environment(),
            # What is dead is noticed in seconds instead of minutes.
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
        }
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", f"distributed.cli.{tool}", *words],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    found = Cluster(folder)
    try:
        yield found
    finally:
        found.close()


class Watched:
    """A fleet campaign in a thread, with what it says of its progress. After `hold_after` windows it waits
    until it is let go, however long that takes."""

    def __init__(
        self, cluster: Cluster, dataset: Path, hold_after: float = float("inf"), **options: Any
    ) -> None:
        self.heard: list[Any] = []
        self.hold_after, self.go = hold_after, threading.Event()
        self.summary: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(cluster, dataset, options))
        self._thread.start()

    def _run(self, cluster: Cluster, dataset: Path, options: dict[str, Any]) -> None:
        try:
            self.summary = measure_fleet(
                cluster.address,
                dataset,
                {**SETTINGS, "sets": options.pop("sets")},
                MeasureOptions(attempts=9),
                fleet=FleetOptions(absence_seconds=HANGS_SECONDS, **options),
                progress=self._hear,
            )
        except BaseException as error:
            self.error = error

    def _hear(self, said: Any) -> None:
        self.heard.append(said)
        if len(self.heard) > self.hold_after:
            assert self.go.wait(HANGS_SECONDS)

    def has_begun(self, windows: int) -> Callable[[], bool]:
        return lambda: len(self.heard) >= windows or self.error is not None

    def result(self) -> Any:
        self._thread.join(HANGS_SECONDS)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.summary


def assert_each_window_is_there_once(dataset: Path, planned: int) -> None:
    rows = Dataset(dataset).read().table.to_pylist()
    assert len({row["run_id"] for row in rows}) == len(rows)
    # One that was too short on a busy machine is there as such, too.
    rows = [row for row in rows if row["status"] == "ok"]
    windows = {row["window_id"] for row in rows}
    assert len(windows) == planned
    for window in windows:
        members = [row for row in rows if row["window_id"] == window]
        assert all(len(row["corunners"]) == len(members) - 1 for row in members)
    assert {row["status"] for row in rows} == {"ok"}


def test_a_killed_worker_costs_its_window_only(cluster: Cluster, tmp_path: Path) -> None:
    cluster.scheduler("127.0.0.1")
    first = cluster.worker("first", [])
    data = tmp_path / "data"
    watched = Watched(cluster, data, hold_after=5, sets=12)
    wait_for(watched.has_begun(5))
    second = cluster.worker("second", [])
    os.kill(first.pid, signal.SIGKILL)
    watched.go.set()
    summary = watched.result()
    assert summary.finished
    assert summary.workers == ("first", "second")
    # Its window, and perhaps one that it was given before its death was noticed.
    assert summary.lost <= 2
    ((campaign,),) = ([*summary.campaigns],)
    assert (campaign.planned, campaign.ok) == (16, 16)
    assert_each_window_is_there_once(data, 16)
    # Asked again, there is nothing to do; asked to keep machines apart, it is another platform.
    again = Watched(cluster, data, sets=12).result()
    assert (again.campaigns[0].already, again.campaigns[0].ok) == (16, 0)
    apart = Watched(cluster, tmp_path / "apart", sets=0, keep_apart=True).result()
    assert apart.campaigns[0].platforms == ("wasmtime-speed:alike-second",)
    second.kill()


def in_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"jt{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.returncode == 0


def remove_what_killed_tests_left() -> None:
    """Namespaces, and bridges, which are called by the number of their test's process, while that is no more:
    two bridges of one address cut off whoever comes later."""
    for kind, name in (("netns", r"^(jostle(\d+)h\d)\b"), ("link", r"^\d+: (jb(\d+)):")):
        shown = subprocess.run(["ip", kind, "list"], capture_output=True, text=True, check=False)
        for found, number in re.findall(name, shown.stdout, re.MULTILINE):
            if not Path(f"/proc/{number}").exists():
                subprocess.run(["ip", kind, "del", found], capture_output=True, check=False)


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Three network namespaces on a bridge, as hosts 10.213.77.2 to 4; this one is 10.213.77.1."""
    if not in_namespaces():
        pytest.skip("network namespaces as hosts need root and ip")
    remove_what_killed_tests_left()
    names = [f"jostle{os.getpid()}h{i}" for i in range(3)]
    bridge = f"jb{os.getpid()}"[:15]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("addr", "add", "10.213.77.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for i, name in enumerate(names):
            near, far = f"jn{os.getpid()}x{i}"[:15], f"jf{os.getpid()}x{i}"[:15]
            ip("netns", "add", name)
            ip("link", "add", near, "type", "veth", "peer", "name", far)
            ip("link", "set", far, "netns", name)
            ip("link", "set", near, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"10.213.77.{i + 2}/24", "dev", far)
            ip("-n", name, "link", "set", far, "name", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode()}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True, check=False)


def test_hosts_are_cut_off_and_die_and_no_run_is_lost(
    cluster: Cluster, hosts: list[str], tmp_path: Path
) -> None:
    cluster.scheduler("10.213.77.1")
    workers = [
        (cluster.supervised if i == 0 else cluster.worker)(
            name, ["ip", "netns", "exec", name], "--host", f"10.213.77.{i + 2}"
        )
        for i, name in enumerate(hosts)
    ]
    data = tmp_path / "data"
    watched = Watched(cluster, data, sets=60, patience_seconds=1.0)
    wait_for(watched.has_begun(6))

    def link(state: str) -> None:
        words = ["ip", "-n", hosts[0], "link", "set", "eth0", state]
        subprocess.run(words, check=True)

    link("down")
    begun = len(watched.heard)
    wait_for(watched.has_begun(begun + 10))
    link("up")
    # Only the host that was cut off is left to do the rest.
    for worker in workers[1:]:
        os.kill(worker.pid, signal.SIGKILL)
    summary = watched.result()
    assert summary.finished
    assert summary.lost >= 1
    assert sum(one.planned for one in summary.campaigns) == 64
    assert_each_window_is_there_once(data, 64)


def test_without_a_scheduler_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotPermitted, match="no Dask scheduler answers"):
        measure_fleet(
            "tcp://127.0.0.1:9", tmp_path, SETTINGS, fleet=FleetOptions(patience_seconds=0.5)
        )


def test_modules_travel_as_bytes_and_commands_as_words(make_workload) -> None:
    mine = make_workload("mine", "")
    packed = pack({"workloads": [mine, "sort-s", command_workload(["true"])], "sets": 1})
    assert packed["sets"] == 1
    command, (sent, content), shipped = sorted(
        packed["workloads"], key=lambda one: isinstance(one, str) or one[0].kind == "kernel"
    )
    assert shipped == "sort-s"
    mine.module.unlink()
    there = _unpacked(sent, content)
    assert there.module_bytes == content
    assert there.module != mine.module
    assert _unpacked(*command).kind == "command"
