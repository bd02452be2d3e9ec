"""The extender's operations. JSON keys are as the Go types print them, for these have no tags.

`filter` is asked again and again for pods that wait, so it changes nothing. `prioritize` holds the best node
for a short time (`filter` where only one passes, for then that is the last question), and the scheduler binds
the pod itself: what runs, and has run, is seen at the API server.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from jostle.errors import JostleError, UsageError
from jostle.placement import Standard
from jostle.server.http._problems import HttpProblem, answered
from jostle.server.http._reading import json_of
from jostle.server.http._running_service import Serving
from jostle.server.http._schemas import TEXT, list_of, maybe, object_of
from jostle.server.kubernetes import _scores as scoring
from jostle.server.kubernetes._kubernetes_api import ApiServer
from jostle.server.kubernetes._pods import Pod, node_names, node_of, pod_of, pods_of
from jostle.server.operations._observed_runs import AddRuns, add_runs
from jostle.server.state._live_placements import LivePlaces, NoPlace, WantedPlacement
from jostle.server.state._observed_stays import ObservedStays
from jostle.server.state._served_model import Lately, Served

_LOG = logging.getLogger("jostle.server")


_POD = object_of(["Pod"], True, Pod=object_of(["metadata"], True), NodeNames=maybe(list_of(TEXT)))
_FILTERED = object_of(
    ["NodeNames", "FailedNodes", "Error"], True, NodeNames=maybe(list_of(TEXT)), Error=TEXT
)
_POINTS = {"type": "integer", "minimum": 0, "maximum": 10}
_SCORES = list_of(object_of(["Host", "Score"], Host=TEXT, Score=_POINTS))
_PATH = "/v1/kubernetes"
_MOST_DECISIONS = 2000
HOLD_SECONDS = 10.0  # between prioritize and the pod on its node


class KubernetesDoor:
    """Routes for the scheduler of Kubernetes. api: where pods and nodes are seen, None where the settings
    name none."""

    schemas: ClassVar[dict[str, Any]] = {
        f"{_PATH}/filter": (_POD, _FILTERED),
        f"{_PATH}/prioritize": (_POD, _SCORES),
    }

    def __init__(self, service: Serving) -> None:
        address = service.settings.kubernetes
        self.service = service
        self.api = None if address is None else ApiServer(address)
        self.standard = Standard(service.settings.confidence)
        self.observed = ObservedStays(service.clock())
        self.decisions = Lately(_MOST_DECISIONS)  # to be looked up by who asks why
        asked = (self.filter, self.prioritize)
        self.operations: dict[tuple[str, str], Any] = {
            **{("POST", f"{_PATH}/{act.__name__}"): act for act in asked},
            ("GET", f"{_PATH}/pods/{{namespace}}/{{name}}"): self.decided,
        }

    async def close(self) -> None:
        """Let go of the API server."""
        if self.api is not None:
            await self.api.close()

    async def filter(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        pod, (names, nodes) = pod_of(body.get("Pod")), node_names(body)
        failed: dict[str, str] = {}
        try:
            wish = pod.request()
        except UsageError:
            wish, failed = None, dict.fromkeys(names, scoring.UNREADABLE)
        if wish is not None and self.service.folder.served is not None:
            reasons = await self.service.ask_places(lambda p, s: self._reasons(pod, names, p, s))
            failed = {n: scoring.text_of(why) for n, why in reasons.items() if why != "ok"}
        good = [name for name in names if name not in failed]
        if len(good) == 1 and wish is not None and self.service.folder.served is not None:
            # The scheduler takes it without asking `prioritize`.
            await self.service.ask_places(lambda p, s: self._scored(pod, good, p, s))
        document: dict[str, Any] = {"Nodes": None, "NodeNames": good, "FailedNodes": failed}
        if nodes is not None:
            rest = [node for node, name in zip(nodes, names, strict=True) if name not in failed]
            document |= {"Nodes": {"items": rest}, "NodeNames": None}
        return answered({**document, "Error": ""}, self.service.headers())

    async def prioritize(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        pod, (names, _) = pod_of(body.get("Pod")), node_names(body)
        if pod.is_known and self.service.folder.served is not None:
            scores = await self.service.ask_places(lambda p, s: self._scored(pod, names, p, s))
        else:
            scores = [{"Host": name, "Score": 0} for name in names]
        return answered(scores, self.service.headers())

    async def decided(self, request: Request) -> Response:
        names = request.path_params
        decision = self.decisions.get((names["namespace"], names["name"]))
        if decision is None:
            raise HttpProblem(404, "nothing was decided about this pod lately.")
        return answered(decision, self.service.headers())

    def _assessed(
        self, pod: Pod, names: list[str], places: LivePlaces, served: Served
    ) -> scoring.PodAssessment:
        wish = pod.request()
        assert wish is not None
        return scoring.assessed(pod, wish, names, places, served, self.standard)

    def _reasons(
        self, pod: Pod, names: list[str], places: LivePlaces, served: Served
    ) -> dict[str, str]:
        assessment = self._assessed(pod, names, places, served)
        self.decisions.pop((pod.namespace, pod.name), None)
        self.decisions.put((pod.namespace, pod.name), assessment.decision(pod, served))
        return places.passing(assessment.reasons, pod.id)

    def _scored(self, pod: Pod, names: list[str], places: LivePlaces, served: Served) -> Any:
        assessment = self._assessed(pod, names, places, served)
        for _ in range(3):
            own, best = places.fleet.placed.get(pod.id), assessment.best
            if own is not None and not own[0].held:
                return assessment.scores(own[0].node)
            wish, require = pod.row, "safe"
            if best is None:  # nothing is promised to it, and it is observed
                request = pod.request()
                assert request is not None
                asked = request, assessment.reasons, pod.id, served, self.standard
                if (found := places.unpromised(*asked)) is None:
                    break
                best, _ = found
                wish, require = pod.without_limit, "slot"
            wanted = WantedPlacement(pod.id, best, wish, HOLD_SECONDS, require, held=True)
            try:
                places.put(wanted, served, self.standard)
                return assessment.scores(best)
            except NoPlace:  # another replica was faster
                assessment = self._assessed(pod, names, places, served)
        return assessment.scores(None)

    @property
    def _stay(self) -> float:
        return self.service.settings.stay_seconds

    async def watch(self, seconds: float = 2.0) -> None:
        """Take from the API server which pods are there, and what became of them, for ever."""
        while self.api is not None:
            await asyncio.sleep(seconds)
            try:
                await self.compare()
            except (JostleError, HttpProblem) as error:
                _LOG.warning("placements were not compared with the pods: %s", error)

    async def compare(self) -> None:
        """Return placements of pods that are gone go; those of pods that run are made, or live on; those that
        have ended are runs. Without a table of the fleet its nodes are those of the cluster."""
        assert self.api is not None
        service, settings = self.service, self.service.settings
        if settings.fleet is None:
            nodes = [node for one in await self.api.list("nodes") if (node := node_of(one))]
            service.fleet.of_cluster = tuple(nodes)
        by_scheduler = f"spec.schedulerName={settings.scheduler_name}"
        pods = pods_of(await self.api.list("pods", fieldSelector=by_scheduler))
        known = service.fleet.of_cluster or tuple(service.fleet.nodes.values())
        platform_of = {node.name: node.platform for node in known}
        stays = {pod.id: stay for pod in pods if (stay := pod.stay) is not None}
        if runs := self.observed.see(stays, platform_of, service.clock()):
            await add_runs(service, AddRuns(runs))
        if service.folder.served is not None:
            await service.ask_places(lambda places, served: self._follow(pods, places, served))

    def _follow(self, pods: list[Pod], places: LivePlaces, served: Served) -> None:
        there = {
            pod.id: (pod.node if pod.is_known else "", pod.without_limit)
            for pod in pods
            if pod.ended_at is None
        }
        now = self.service.clock()
        places.follow("pod:", there, self._stay, now, served)
