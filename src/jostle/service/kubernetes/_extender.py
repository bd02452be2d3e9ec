"""The extender's operations. JSON keys are as the Go types print them, for these have no tags.

`filter` is asked again and again for pods that wait, so it changes nothing. `prioritize` holds the best node
for a short time; `bind` confirms it, or takes the node that the scheduler chose instead, if everybody keeps
the limit there, too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

from jostle.errors import JostleError, UsageError
from jostle.placement import Standard
from jostle.service.http._problems import HttpProblem, answered
from jostle.service.http._reading import json_of
from jostle.service.http._schemas import TEXT, list_of, maybe, object_of
from jostle.service.http._service import Serving
from jostle.service.kubernetes import _scores as scoring
from jostle.service.kubernetes._api import ApiServer
from jostle.service.kubernetes._pods import Pod, node_names, pod_of, require_names
from jostle.service.state._placing import LivePlaces, NoPlace, WantedPlacement
from jostle.service.state._served import Lately, Served
from jostle.service.state._store import PlacementRow

_LOG = logging.getLogger("jostle.service")


_POD = object_of(["Pod"], True, Pod=object_of(["metadata"], True), NodeNames=maybe(list_of(TEXT)))
_FILTERED = object_of(
    ["NodeNames", "FailedNodes", "Error"], True, NodeNames=maybe(list_of(TEXT)), Error=TEXT
)
_POINTS = {"type": "integer", "minimum": 0, "maximum": 10}
_SCORES = list_of(object_of(["Host", "Score"], Host=TEXT, Score=_POINTS))
_PATH = "/v1/kubernetes"
_MOST_DECISIONS = 2000


class KubernetesDoor:
    """api: through which pods are bound, None where the settings name none."""

    schemas: ClassVar[dict[str, Any]] = {
        f"{_PATH}/filter": (_POD, _FILTERED),
        f"{_PATH}/prioritize": (_POD, _SCORES),
        f"{_PATH}/bind": (object_of(None, True), object_of(["Error"], Error=TEXT)),
    }

    def __init__(self, service: Serving) -> None:
        address = service.settings.kubernetes
        self.service = service
        self.api = None if address is None else ApiServer(address)
        self.standard = Standard(service.settings.confidence)
        self.decisions = Lately(_MOST_DECISIONS)  # to be looked up by who asks why
        asked = (self.filter, self.prioritize, self.bind)
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
        if wish is not None:
            reasons = await self.service.ask_places(lambda p, s: self._reasons(pod, names, p, s))
            failed = {n: scoring.text_of(why) for n, why in reasons.items() if why != "ok"}
        good = [name for name in names if name not in failed]
        document: dict[str, Any] = {"Nodes": None, "NodeNames": good, "FailedNodes": failed}
        if nodes is not None:
            rest = [node for node, name in zip(nodes, names, strict=True) if name not in failed]
            document |= {"Nodes": {"items": rest}, "NodeNames": None}
        return answered({**document, "Error": ""}, self.service.headers())

    async def prioritize(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        pod, (names, _) = pod_of(body.get("Pod")), node_names(body)
        if pod.is_known:
            scores = await self.service.ask_places(lambda p, s: self._scored(pod, names, p, s))
        else:
            scores = [{"Host": name, "Score": 0} for name in names]
        return answered(scores, self.service.headers())

    async def bind(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        keys, error = ("PodNamespace", "PodName", "PodUID", "Node"), ""
        try:
            namespace, name, uid, node = (str(body.get(key) or "") for key in keys)
            require_names(namespace, name, uid.lower() or "-", node)
            await self._bind(Pod(namespace, name, uid, {}), node)
        except (JostleError, HttpProblem) as problem:
            error = f"jostle: {problem}"
        return answered({"Error": error}, self.service.headers())

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
        return dict(zip(names, assessment.reason, strict=True))

    def _scored(self, pod: Pod, names: list[str], places: LivePlaces, served: Served) -> Any:
        assessment = self._assessed(pod, names, places, served)
        for _ in range(3):
            own, best = places.fleet.placed.get(pod.id), assessment.best
            if own is not None and not own[0].held:
                return assessment.scores(own[0].node)
            if best is None:
                break
            seconds = self.service.settings.hold_seconds
            wanted = WantedPlacement(pod.id, best, pod.row, seconds, "safe", held=True)
            try:
                places.put(wanted, served, self.standard)
                return assessment.scores(best)
            except NoPlace:  # another replica was faster
                assessment = self._assessed(pod, names, places, served)
        return assessment.scores(None)

    async def _bind(self, pod: Pod, node: str) -> None:
        """Raises JostleError, HttpProblem where it is not bound."""
        if self.api is None:
            raise HttpProblem(503, "no API server is named: start with --kubernetes.")
        row = (await self._known()).get(pod.id)
        wish = (
            pod_of(await self.api.pod(pod.namespace, pod.name)).row if row is None else row.request
        )
        try:
            if wish:
                await self._put([WantedPlacement(pod.id, node, wish, self._stay, "safe")])
            await self.api.bind(pod.namespace, pod.name, pod.uid, node)
        except JostleError as error:
            await self.service.ask_places(lambda places, _: places.let_go(pod.id))
            if not isinstance(error, NoPlace):
                raise
            # Constant words: the event of the pod is grouped by them.
            why = scoring.text_of(error.reason).removeprefix("jostle: ")
            raise HttpProblem(409, why) from None

    @property
    def _stay(self) -> float:
        return self.service.settings.stay_seconds

    async def _known(self) -> dict[str, PlacementRow]:
        """Placements of pods by their ids."""

        def known(places: LivePlaces, served: Served) -> dict[str, PlacementRow]:
            places.fleet.sync(served.known.platforms)
            rows = places.fleet.placed.items()
            return {id: row for id, (row, _) in rows if id.startswith("pod:")}

        return await self.service.ask_places(known)

    async def _put(self, wanted: list[WantedPlacement]) -> None:
        def put(places: LivePlaces, served: Served) -> None:
            for one in wanted:
                if one.require == "safe" or one.node in places.fleet.nodes:
                    places.put(one, served, self.standard)

        await self.service.ask_places(put)

    async def watch(self, seconds: float = 10.0) -> None:
        """Take from the API server which pods are there, for ever."""
        while self.api is not None:
            await asyncio.sleep(seconds)
            try:
                await self.compare()
            except (JostleError, HttpProblem) as error:
                _LOG.warning("placements were not compared with the pods: %s", error)

    async def compare(self) -> None:
        """Placements of pods that are gone go; those of pods that run are made, or live on."""
        assert self.api is not None
        before, there = await self._known(), {}
        for document in await self.api.pods():
            if (document.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                pod = pod_of(document)
                there[pod.id] = pod, str((document.get("spec") or {}).get("nodeName") or "")
        gone = [id for id, row in before.items() if id not in there and not row.held]
        await self.service.ask_places(lambda places, _: [places.let_go(id) for id in gone])
        renewed, soon = [], self.service.clock() + self._stay / 2
        for id, (pod, node) in there.items():
            row = before.get(id)
            lives = row is not None and row.node == node and not row.held and row.expires_at > soon
            if node and pod.is_known and not lives:
                renewed.append(WantedPlacement(id, node, pod.row, self._stay, "nothing"))
        await self._put(renewed)
