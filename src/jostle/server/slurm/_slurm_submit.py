"""Scripts for Slurm: options of a submitted job go in, its node and time limit come out."""

from __future__ import annotations

import logging
from typing import Any

from jostle.placement import Standard
from jostle.server.http._routes import handler_of
from jostle.server.http._running_service import Serving
from jostle.server.http._schemas import object_of
from jostle.server.operations import Operation
from jostle.server.operations._observed_runs import AddRuns, add_runs
from jostle.server.slurm._slurm_jobs import RUNS, JobsAnswer, JobsQuestion, ObservedJobs, nodes_of
from jostle.server.slurm._slurm_placement import JobAnswer, JobQuestion, place_job

_LOG = logging.getLogger("jostle.server")


class SlurmDoor:
    """Routes for Slurm: where a job goes, and which jobs are there."""

    def __init__(self, service: Serving) -> None:
        self.observed = ObservedJobs(service.clock())
        self.standard = Standard(service.settings.confidence)
        self.stay = service.settings.stay_seconds
        self.operations: dict[tuple[str, str], Any] = {}
        self.schemas: dict[str, Any] = {}
        asked = ((JobQuestion, JobAnswer, self.submit), (JobsQuestion, JobsAnswer, self.jobs))
        for question, answer, act in asked:
            path = f"/v1/slurm/{act.__name__}"
            required, fields = question.schema()
            self.schemas[path] = object_of(required, **fields), answer
            one = Operation("POST", path, question, answer, act, list)
            self.operations["POST", path] = handler_of(one, service)

    async def watch(self) -> None:
        """Do nothing: nothing goes on beside the answers."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    async def submit(self, service: Serving, job: JobQuestion) -> JobAnswer:
        """Choose where a job goes, hold that place for it, and set its time limit."""
        if service.settings.fleet is None and not service.fleet.of_cluster:
            # Slurm refuses a job with a node that it does not know.
            return JobAnswer(False, "jostle: no node is known before a job begins")
        given = self.standard, self.stay
        return await service.ask_places(lambda p, s: place_job(job, p, s, *given))

    async def jobs(self, service: Serving, seen: JobsQuestion) -> JobsAnswer:
        """Return jobs that ended are runs, with who was beside them from when on, and their places are free;
        those that run are there, whoever placed them."""
        if service.settings.fleet is None:
            service.fleet.of_cluster = nodes_of(seen.nodes)
        known = service.fleet.of_cluster or tuple(service.fleet.nodes.values())
        platform_of = {node.name: node.platform for node in known}
        placed: dict[str, tuple[str, str]] = {}
        if service.folder.served is not None:
            placed = await service.ask_places(lambda p, s: p.placed(s))
        given = seen, platform_of, placed, service.clock()
        runs, over, there = await service.placing.ask(lambda: self.observed.see(*given), 10.0)
        if runs:
            await add_runs(service, AddRuns(runs))
        for id in over:
            await service.placing.ask(lambda id=id: service.places.let_go(id), 10.0)
        if service.folder.served is not None:
            stays = RUNS, there, self.stay, service.clock()
            await service.ask_places(lambda p, s: p.follow(*stays, s))
        return JobsAnswer(len(runs))
