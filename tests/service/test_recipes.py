"""The recipe for Dask as it stands in docs/service.md: a task runs on the node that Jostle ranks first."""

from __future__ import annotations

import jostle
from tests.service.conftest import Running


def test_dask_runs_a_task_on_the_node_that_is_ranked_first(service: Running) -> None:
    from dask.distributed import Client, Scheduler, SpecCluster, Worker, get_worker

    def work() -> str:
        return str(get_worker().name)

    ranked = service.client.rank(jostle.Request("w00", slowdown=9.0))[0]
    nodes = [one.node for one in ranked.rows()]
    assert len(nodes) >= 2
    plain = {"nthreads": 1, "dashboard": False}
    workers = {
        node: {"cls": Worker, "options": {"name": node, "resources": {node: 3}, **plain}}
        for node in nodes
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard": False}}
    with (
        SpecCluster(workers=workers, scheduler=scheduler) as cluster,
        Client(cluster) as dask_client,
    ):
        for node in (nodes[0], nodes[-1]):
            ran = dask_client.submit(work, resources={node: 1}, pure=False)
            assert ran.result(timeout=120) == node
