"""A real kube-scheduler places pods through the extender; got by `make test-schedulers`."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.placement import Node, Request
from tests.schedulers.api_server import ApiServer
from tests.service.test_process import serving

PROGRAM = os.environ.get("JOSTLE_KUBE_SCHEDULER", "")
pytestmark = [
    pytest.mark.schedulers,
    pytest.mark.skipif(not Path(PROGRAM).is_file(), reason="make test-schedulers gets it"),
]
NODES = {f"n{number}": f"p{number % 6}" for number in range(24)}
SLOTS = 3


@contextmanager
def scheduler(folder: Path, api: ApiServer, service: str, *, ignorable: bool) -> Iterator[None]:
    """kube-scheduler, run until the end."""
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": api.address}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [context],
        "current-context": "c",
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    here = json.loads((Path(__file__).parents[2] / "deploy/kubernetes/extender.json").read_text())
    extender = {**here, "urlPrefix": f"{service}/v1/kubernetes", "ignorable": ignorable}
    json_ = "application/json"
    connection = {
        "kubeconfig": str(folder / "kubeconfig"),
        "contentType": json_,
        "acceptContentTypes": json_,
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {**connection, "qps": 500, "burst": 1000},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "extenders": [extender],
    }
    (folder / "config.json").write_text(json.dumps(config))
    with open(folder / "scheduler.log", "w") as log:
        running = subprocess.Popen(
            [PROGRAM, "--config", str(folder / "config.json"), "--port=0", "--secure-port=0"],
            stderr=log,
            stdout=log,
        )
        try:
            yield
        finally:
            running.kill()
            running.wait()


@dataclass
class Cluster:
    api: ApiServer
    folder: Path
    model: Path
    start: Callable[..., Any]


@pytest.fixture
def cluster(model_folders: tuple[Path, Path], tmp_path: Path) -> Iterator[Cluster]:
    rows = [f"{name},{platform},{SLOTS}" for name, platform in NODES.items()]
    (tmp_path / "fleet.csv").write_text("\n".join(["name,platform,slots", *rows]) + "\n")
    api = ApiServer()
    for name in NODES:
        api.add_node(name)

    def start(port: str = "0") -> Any:
        more = ("--fleet", str(tmp_path / "fleet.csv"), "--kubernetes", api.address, "--port", port)
        return serving(model_folders[0], tmp_path / "state.sqlite", *more)

    yield Cluster(api, tmp_path, model_folders[0], start)
    api.close()


def labels(number: int, deadline: str) -> dict[str, str]:
    return {"jostle/workload": f"w{number % 14:02d}", "jostle/deadline": deadline}


def node_of(api: ApiServer, name: str) -> str | None:
    return api.pods[name]["spec"].get("nodeName")


@pytest.mark.parametrize("ignorable", [True, False])
def test_200_pods_are_bound_within_their_bounds_or_refused_with_a_reason(
    cluster: Cluster, ignorable: bool
) -> None:
    api, model = cluster.api, jostle.load(cluster.model)
    with (
        cluster.start() as (address, _),
        scheduler(cluster.folder, api, address, ignorable=ignorable),
    ):
        for number in range(200):
            api.add_pod(f"pod-{number}", labels(number, ("3x", "9x", "1.2x", "1ns")[number % 4]))

        def settled() -> bool:
            return all(node_of(api, name) or api.messages(name) for name in api.pods)

        assert api.wait(settled, 120), (cluster.folder / "scheduler.log").read_text()[-3000:]
        api.wait(lambda: False, 3)
        with jostle.Client(address) as client:
            fleet = client.fleet()
    placed = dict(api.bound)
    assert len(api.bound) == len(placed) > 20
    # Everybody on every node keeps the limit, by the library itself.
    for node in fleet.nodes:
        there = [name for name, where in placed.items() if where == node.name]
        assert len(there) <= SLOTS
        asked = [
            Request.of_text("@".join(api.pods[name]["metadata"]["labels"].values()), name)
            for name in there
        ]
        empty = Node(node.name, node.platform, SLOTS)
        if asked:
            assert jostle.place(model, [empty]).safe(asked, together=True).is_safe
        assert len(node.tenants) == len(there)
    for name in set(api.pods) - set(placed):
        said = " ".join(api.messages(name))
        assert "jostle: " in said, said
    # A limit that nobody can keep is kept nowhere, and the words say so.
    impossible = [f"pod-{number}" for number in range(3, 200, 4)]
    assert not set(impossible) & set(placed)
    assert "the request would not keep its own limit" in " ".join(api.messages(impossible[0]))


def test_away_and_back(cluster: Cluster) -> None:
    """While the service is away nothing that it decides about is bound; once it is back it is."""
    api = cluster.api
    with cluster.start() as (address, _):
        pass
    port = address.rpartition(":")[2]
    with scheduler(cluster.folder, api, address, ignorable=False):
        api.add_pod("late", labels(0, "9x"))
        assert not api.wait(lambda: node_of(api, "late") is not None, 4)
        with cluster.start(port):
            api.add_pod("next", labels(1, "9x"))
            api.add_node("n-new")  # wakes those that wait
            assert api.wait(lambda: bool(node_of(api, "late") and node_of(api, "next")), 60)


def test_pods_without_a_workload_pass(cluster: Cluster) -> None:
    api = cluster.api
    with cluster.start() as (address, _), scheduler(cluster.folder, api, address, ignorable=True):
        api.add_pod("plain", {})
        assert api.wait(lambda: node_of(api, "plain") is not None, 30)


def test_pods_that_end_leave_their_place(cluster: Cluster) -> None:
    """The service sees from the API server which pods are gone."""
    api = cluster.api
    with cluster.start() as (address, _), scheduler(cluster.folder, api, address, ignorable=False):
        api.add_pod("short", labels(0, "9x"))
        assert api.wait(lambda: node_of(api, "short") is not None, 30)
        with jostle.Client(address) as client:
            assert sum(len(node.tenants) for node in client.fleet().nodes) == 1
            api.remove_pod("short")
            gone = threading.Event()
            for _ in range(60):
                if sum(len(node.tenants) for node in client.fleet().nodes) == 0:
                    gone.set()
                    break
                threading.Event().wait(0.5)
            assert gone.is_set()
