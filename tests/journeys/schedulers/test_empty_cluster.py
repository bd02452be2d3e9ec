"""From an empty cluster to placements that keep their promises, with a real kube-scheduler:

make test-schedulers        or, where that was: JOSTLE_KUBE_SCHEDULER=build/kube-scheduler pytest -s THIS
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from tests.journeys.schedulers.api_server import ApiServer
from tests.journeys.schedulers.kubelet import Kubelet
from tests.journeys.schedulers.kubernetes_samples import NEEDS_SCHEDULER, node_of, scheduler
from tests.limits import share_limits
from tests.packages.server.process_samples import serving

pytestmark = NEEDS_SCHEDULER
NODES = {f"n{number:02}": ("small", "large")[number % 2] for number in range(20)}
SPEED = {"small": 1.0, "large": 1.6}
PODS, DEADLINE = 200, 1.5  # times alone


def world() -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """(names, seconds alone on `small`, how much each is disturbed, how much it disturbs)."""
    random = np.random.default_rng(0)
    names = [f"w{number:02}" for number in range(14)]
    return names, random.uniform(1, 4, 14), random.uniform(0.1, 0.7, 14), random.uniform(0.1, 1, 14)


@contextmanager
def cluster() -> Iterator[tuple[ApiServer, Kubelet]]:
    names, alone, felt, done = world()
    at = {name: number for number, name in enumerate(names)}

    def slowdown(workload: str, beside: list[str]) -> float:
        return 1 + felt[at[workload]] * sum(done[at[other]] for other in beside)

    api = ApiServer()
    for name, platform in NODES.items():
        api.add_node(name, platform=platform, slots="3")
    kubelet = Kubelet(api, lambda w, node: alone[at[w]] / SPEED[NODES[node]], slowdown)
    try:
        yield api, kubelet
    finally:
        kubelet.close()
        api.close()


def late(api: ApiServer, kubelet: Kubelet, pods: list[str]) -> int:
    """How many took longer than their deadline."""

    def limit(name: str) -> float:
        workload = api.pods[name]["metadata"]["labels"]["jostle/workload"]
        return DEADLINE * kubelet.alone(workload, api.pods[name]["spec"]["nodeName"])

    return sum(kubelet.seconds[name] > limit(name) for name in pods)


def test_from_an_empty_cluster_to_promises_that_are_kept(tmp_path: Path) -> None:
    names, began = world()[0], time.monotonic()

    def send(first: int, n: int, deadline: str | None = None) -> list[str]:
        """Pods, some ten a second, until all have ended."""
        said = {} if deadline is None else {"jostle/deadline": deadline}
        mine = [f"pod-{first + number}" for number in range(n)]
        for number, name in enumerate(mine):
            api.add_pod(name, {"jostle/workload": names[number % len(names)]}, said)
            time.sleep(0.1)
        assert api.wait(lambda: all(name in kubelet.seconds for name in mine), 300)
        return mine

    with cluster() as (api, kubelet), ExitStack() as stack:
        given = (
            "--learn",
            "100",
            "--kubernetes",
            api.address,
            "--scheduler-name",
            "default-scheduler",
        )
        model, state = tmp_path / "model", tmp_path / "state.sqlite"
        address, service = stack.enter_context(serving(model, state, *given))
        client = stack.enter_context(jostle.Client(address))
        stack.enter_context(scheduler(tmp_path, api, address, ignorable=True))
        first = send(0, PODS)  # nothing is known, and all pass
        assert api.wait(lambda: client.is_ready, 900), client._call("GET", "/v1/models", None)
        ready = time.monotonic() - began
        second = send(1000, PODS, f"{DEADLINE}x")
        assert api.wait(lambda: len(client.observed_runs(limit=1000)) == 2 * PODS, 30)
        # Killed, pods are placed as without it; then it is back.
        service.kill()
        away = send(2000, 20, f"{DEADLINE}x")
        port = address.rpartition(":")[2]
        stack.enter_context(serving(model, state, *given, "--port", port))
        # Another model takes over while pods come.
        version = client.models()[0]["version"]
        jostle.load(model).save(tmp_path / "other")
        other = jostle.load(tmp_path / "other")
        other.metadata["fitted_at"] = "another"
        other.save(model)
        third = send(3000, 60, f"{DEADLINE}x")
        assert client.models()[0]["version"] != version
        recorded: list[Any] = client.observed_runs(limit=1000)
        refused = [name for name in second + third if node_of(api, name) is None]
    promised = second + third
    broken = late(api, kubelet, promised)
    unpromised = late(api, kubelet, first), late(api, kubelet, away)
    print(
        f"\n{len(NODES)} nodes; {len(first)} pods until a model was there, {ready / 60:.1f} minutes; then "
        f"{len(promised)} pods promised {DEADLINE}x at 0.9: {broken} broken, where {unpromised[0]} of the "
        f"first {len(first)} and {unpromised[1]} of {len(away)} placed while it was down were later; "
        f"{len(recorded)} runs recorded"
    )
    assert not refused
    assert broken <= share_limits(len(promised), 0.1)[1] * len(promised)
