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

from jostle.errors import JostleError
from jostle.placement import Standard
from jostle.service.http._problems import HttpProblem, answered
from jostle.service.http._reading import json_of
from jostle.service.http._schemas import DOCUMENT, TEXT, list_of, maybe, object_of
from jostle.service.http._service import Serving
from jostle.service.kubernetes import _scores as scoring
from jostle.service.kubernetes._api import ApiServer
from jostle.service.kubernetes._pods import Pod, node_names, pod_of, require_names
from jostle.service.state._placing import LivePlaces, NoPlace, WantedPlacement
from jostle.service.state._served import Served

_LOG = logging.getLogger("jostle.service")


_MAP = maybe({"type": "object", "additionalProperties": TEXT})
_METADATA = object_of(None, True, labels=_MAP, annotations=_MAP)
_POD = object_of(
    ["Pod"],
    True,
    Pod=object_of(["metadata"], True, metadata=_METADATA),
    Nodes={},
    NodeNames=maybe(list_of(TEXT)),
)
_FILTERED = object_of(
    ["NodeNames", "FailedNodes", "Error"],
    NodeNames=maybe(list_of(TEXT)),
    FailedNodes=object_of(None, True),
    Error=TEXT,
    Nodes=maybe(object_of(None, True)),
)
_SCORE = object_of(
    ["Host", "Score"], Host=TEXT, Score={"type": "integer", "minimum": 0, "maximum": 10}
)
_BINDING = object_of(None, True, PodName={}, PodNamespace={}, PodUID={}, Node={})


class KubernetesDoor:
    """api: through which pods are bound, None where the settings name none."""

    schemas: ClassVar[dict[str, Any]] = {
        "/v1/kubernetes/filter": (_POD, _FILTERED),
        "/v1/kubernetes/prioritize": (_POD, list_of(_SCORE)),
        "/v1/kubernetes/bind": (_BINDING, object_of(["Error"], Error=TEXT)),
        "/v1/kubernetes/pods/{namespace}/{name}": (None, DOCUMENT),
    }

    def __init__(self, service: Serving) -> None:
        address = service.settings.kubernetes
        self.service = service
        self.api = None if address is None else ApiServer(address)
        self.standard = Standard(service.settings.confidence)
        self.decisions = scoring.Decisions()
        self.operations = {
            ("POST", "/v1/kubernetes/filter"): self.filter,
            ("POST", "/v1/kubernetes/prioritize"): self.prioritize,
            ("POST", "/v1/kubernetes/bind"): self.bind,
            ("GET", "/v1/kubernetes/pods/{namespace}/{name}"): self.decided,
        }

    async def close(self) -> None:
        """Let go of the API server."""
        if self.api is not None:
            await self.api.close()

    async def filter(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        pod, (names, nodes) = pod_of(body.get("Pod")), node_names(body)
        wish, is_readable = scoring.request_of(pod)
        failed: dict[str, str] = {}
        if not is_readable:
            failed = dict.fromkeys(names, scoring.UNREADABLE)
        elif wish is not None:
            assessment = await self.service.ask_places(
                lambda p, s: self._assessed(pod, wish, names, p, s)
            )
            failed = {
                name: scoring.text_of(reason)
                for name, reason in zip(names, assessment.reason, strict=True)
                if reason != "ok"
            }
        good = [name for name in names if name not in failed]
        document: dict[str, Any] = {"Nodes": None, "NodeNames": good, "FailedNodes": failed}
        if nodes is not None:
            rest = [node for node, name in zip(nodes, names, strict=True) if name not in failed]
            document |= {"Nodes": {"items": rest}, "NodeNames": None}
        return answered({**document, "Error": ""}, self.service.headers())

    async def prioritize(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        pod, (names, _) = pod_of(body.get("Pod")), node_names(body)
        wish, _ = scoring.request_of(pod)
        if wish is None:
            scores: Any = [{"Host": name, "Score": 0} for name in names]
        else:
            scores = await self.service.ask_places(lambda p, s: self._scored(pod, names, p, s))
        return answered(scores, self.service.headers())

    async def bind(self, request: Request) -> Response:
        body = await json_of(request, self.service.settings)
        error = ""
        try:
            keys = ("PodNamespace", "PodName", "PodUID", "Node")
            namespace, name, uid, node = (str(body.get(key) or "") for key in keys)
            require_names(namespace, name, uid.lower() or "-", node)
            await self._bind(Pod(namespace, name, uid, {}), node)
        except (JostleError, HttpProblem) as problem:
            error = f"jostle: {problem}"
        return answered({"Error": error}, self.service.headers())

    async def decided(self, request: Request) -> Response:
        names = request.path_params
        decision = self.decisions.of(names["namespace"], names["name"])
        if decision is None:
            raise HttpProblem(404, "nothing was decided about this pod lately.")
        return answered(decision, self.service.headers())

    def _assessed(
        self, pod: Pod, wish: Any, names: list[str], places: LivePlaces, served: Served
    ) -> scoring.PodAssessment:
        assessment = scoring.assessed(pod, wish, names, places, served, self.standard)
        self.decisions.keep(pod, scoring.decision(pod, assessment, served))
        return assessment

    def _scored(self, pod: Pod, names: list[str], places: LivePlaces, served: Served) -> Any:
        wish = pod.request()
        assert wish is not None
        held = None
        assessment = scoring.assessed(pod, wish, names, places, served, self.standard)
        for _ in range(3):
            own = places.fleet.placed.get(pod.id)
            if own is not None and not own[0].held:
                held = own[0].node
                break
            best = scoring.best_of(assessment)
            if best is None:
                break
            seconds = self.service.settings.hold_seconds
            wanted = WantedPlacement(pod.id, best, pod.row, seconds, "safe", held=True)
            try:
                places.put(wanted, served, self.standard)
                held = best
                break
            except NoPlace:  # another replica was faster
                assessment = scoring.assessed(pod, wish, names, places, served, self.standard)
        return scoring.scores(assessment, held)

    async def _bind(self, pod: Pod, node: str) -> None:
        """Raises JostleError, HttpProblem where it is not bound."""
        if self.api is None:
            raise HttpProblem(503, "no API server is named: start with --kubernetes.")
        row = await self._row_of(pod)
        if row:
            seconds = self.service.settings.stay_seconds
            wanted = WantedPlacement(pod.id, node, row, seconds, "safe")
            try:
                await self.service.ask_places(lambda p, s: p.put(wanted, s, self.standard))
            except NoPlace as error:
                await self._let_go(pod)
                # Constant words: the event of the pod is grouped by them.
                raise HttpProblem(
                    409, scoring.text_of(error.reason).removeprefix("jostle: ")
                ) from None
        try:
            await self.api.bind(pod.namespace, pod.name, pod.uid, node)
        except JostleError:
            await self._let_go(pod)
            raise

    async def _row_of(self, pod: Pod) -> dict[str, Any]:
        def held(places: LivePlaces, served: Served) -> dict[str, Any] | None:
            places.fleet.sync(served.known.platforms)
            known = places.fleet.placed.get(pod.id)
            return None if known is None else known[0].request

        row = await self.service.ask_places(held)
        if row is None:
            assert self.api is not None
            row = pod_of(await self.api.pod(pod.namespace, pod.name)).row
        return row

    async def _let_go(self, pod: Pod) -> None:
        await self.service.ask_places(lambda places, _: places.let_go(pod.id))

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

        def known(places: LivePlaces, served: Served) -> dict[str, Any]:
            places.fleet.sync(served.known.platforms)
            return {
                id: row for id, (row, _) in places.fleet.placed.items() if id.startswith("pod:")
            }

        before = await self.service.ask_places(known)
        there: dict[str, tuple[Pod, str]] = {}
        for document in await self.api.pods():
            phase = (document.get("status") or {}).get("phase")
            if phase not in ("Succeeded", "Failed"):
                pod = pod_of(document)
                there[pod.id] = pod, str((document.get("spec") or {}).get("nodeName") or "")
        stay, now = self.service.settings.stay_seconds, self.service.clock()

        def change(places: LivePlaces, served: Served) -> None:
            for id, row in before.items():
                if id not in there and not row.held:
                    places.let_go(id)
            for id, (pod, node) in there.items():
                row = before.get(id)
                lives = row is not None and row.node == node and not row.held
                if lives and row is not None and row.expires_at > now + stay / 2:
                    continue
                if not node or not pod.row:
                    continue
                if node in places.fleet.nodes and scoring.request_of(pod)[0] is not None:
                    places.put(
                        WantedPlacement(id, node, pod.row, stay, "nothing"), served, self.standard
                    )

        await self.service.ask_places(change)
