"""A real kube-scheduler places pods through the extender; got by `make test-schedulers`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.placement import Node, Request
from tests.journeys.schedulers.api_server import ApiServer
from tests.journeys.schedulers.kubernetes_samples import NEEDS_SCHEDULER, node_of, scheduler
from tests.packages.server.process_samples import serving

NODES = {f"n{number}": f"p{number % 6}" for number in range(24)}
SLOTS = 3

pytestmark = NEEDS_SCHEDULER


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

    def start(port: str = "0", model: Path = model_folders[0], more: tuple[str, ...] = ()) -> Any:
        given = (
            "--fleet",
            str(tmp_path / "fleet.csv"),
            "--kubernetes",
            api.address,
            "--port",
            port,
            "--scheduler-name",
            "default-scheduler",
        )
        return serving(model, tmp_path / "state.sqlite", *given, *more)

    yield Cluster(api, tmp_path, model_folders[0], start)
    api.close()


def labels(number: int, deadline: str) -> dict[str, str]:
    return {"jostle/workload": f"w{number % 14:02d}", "jostle/deadline": deadline}


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
    """While the service is away pods are placed as without it; once it is back it is asked again."""
    api = cluster.api
    with cluster.start() as (address, _):
        pass
    port = address.rpartition(":")[2]
    with scheduler(cluster.folder, api, address, ignorable=True):
        api.add_pod("early", labels(0, "1ns"))
        assert api.wait(lambda: node_of(api, "early") is not None, 30)
        with cluster.start(port):
            api.add_pod("next", labels(1, "1ns"))
            api.add_pod("good", labels(1, "9x"))
            assert api.wait(lambda: node_of(api, "good") is not None, 60)
            assert api.wait(lambda: bool(api.messages("next")), 60)
            assert node_of(api, "next") is None


def test_from_an_empty_model_pods_are_placed_and_become_runs(cluster: Cluster) -> None:
    """All pass, what they were beside is recorded, and of that a model is fitted that answers."""
    api, model = cluster.api, cluster.folder / "model"
    more = ("--dataset", str(cluster.folder / "observed"))
    with (
        cluster.start(model=model, more=more) as (address, process),
        scheduler(cluster.folder, api, address, ignorable=True),
        jostle.Client(address) as client,
    ):
        assert not client.is_ready
        for number in range(60):
            api.add_pod(f"pod-{number}", labels(number % 3, "9x"))
        assert api.wait(lambda: all(node_of(api, name) for name in api.pods), 120)
        api.wait(lambda: False, 3)
        for number in range(60):
            api.end_pod(f"pod-{number}")
            api.wait(lambda: False, 0.02)
        assert api.wait(lambda: len(client.observed_runs(limit=100)) == 60, 60)
        runs = client.observed_runs(limit=100)
        assert any(one.get("stretches") or one["corunners"] for one in runs)
        process.terminate()
        process.wait(30)
    method = jostle.Bag("tree")
    jostle.fit(cluster.folder / "observed", method).save(model)
    with cluster.start(model=model) as (address, _), jostle.Client(address) as client:
        assert client.is_ready


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
