"""Pods as requests: the workload from a label, its objective from annotations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jostle.data import platform_of_node, workload_of
from jostle.errors import JostleError, UsageError
from jostle.placement import Node, Request, Requests
from jostle.server.operations._http_operation import checked_id
from jostle.server.state._observed_stays import ObservedStay

PREFIX = "jostle/"
# What an annotation or a label of the pod may say beside its workload, as a row of a table of requests.
KEYS = ("deadline", "slowdown", "solo_seconds", "confidence", "apart", "needs")


@dataclass(frozen=True)
class Pod:
    """A pod as the scheduler sends it. row: what it asks, as in a table of requests; empty where it names no
    workload. node: empty while it has none. started_at, ended_at: seconds since 1970, None where it has not.
    is_measured: whether its time is that of one run that succeeded."""

    namespace: str
    name: str
    uid: str
    row: dict[str, Any]
    node: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    is_measured: bool = False

    @property
    def id(self) -> str:
        """The id of its placement."""
        return f"pod:{self.uid or self.namespace + '/' + self.name}"

    @property
    def workload(self) -> str:
        return str(self.row.get("workload", ""))

    @property
    def stay(self) -> ObservedStay | None:
        """None before it runs."""
        if not self.node or self.started_at is None:
            return None
        end = math.inf if self.ended_at is None else self.ended_at
        return ObservedStay(self.workload, self.node, self.started_at, end, self.is_measured)

    @property
    def without_limit(self) -> dict[str, Any]:
        """The row of a request for which nothing was promised."""
        return {key: self.row[key] for key in ("workload", "apart") if key in self.row}

    @property
    def is_known(self) -> bool:
        """True if it names a workload, and what it asks can be read."""
        try:
            return self.request() is not None
        except UsageError:
            return False

    def request(self) -> Request | None:
        """Return what the pod asks for, None where it names no workload. Raises UsageError where it cannot be
        read."""
        if not self.row:
            return None
        read = Requests.read([{**self.row, "name": self.id}])
        if read.rows[0] is None:
            raise UsageError(read.status[0], where=f"pod {self.namespace}/{self.name}")
        return read.rows[0]


def pod_of(document: Any) -> Pod:
    """Read a pod as the API server has it. Raises UsageError."""
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    if not isinstance(metadata, Mapping):
        raise UsageError("Pod has no metadata")
    labels: dict[str, Any] = {}
    for place in ("labels", "annotations"):  # an annotation may hold what no label can
        texts = metadata.get(place)
        if texts is None:
            continue
        if not isinstance(texts, Mapping) or not all(isinstance(v, str) for v in texts.values()):
            raise UsageError(f"the {place} of the pod are not an object of texts")
        labels |= texts
    row = {key: labels[PREFIX + key] for key in KEYS if PREFIX + key in labels}
    names = {key: str(metadata.get(key) or "") for key in ("namespace", "name", "uid")}
    try:
        workload, times = workload_of(metadata, labels), _times(document)
    except (AttributeError, TypeError):
        raise UsageError(
            "the owners, spec or status of the pod are not as Kubernetes has them"
        ) from None
    pod = Pod(**names, row=row | {"workload": workload} if workload else {}, **times)
    checked_id(pod.id)
    return pod


def _times(document: Mapping[str, Any]) -> dict[str, Any]:
    """Read where and when a pod ran: from the start of its first container to the end of its last."""
    spec, status = (document.get(key) or {} for key in ("spec", "status"))
    phase, containers = status.get("phase"), status.get("containerStatuses") or []
    ended = [(one.get("state") or {}).get("terminated") or {} for one in containers]
    running = [(one.get("state") or {}).get("running") or {} for one in containers]
    starts = [t for one in (*ended, *running) if (t := _seconds(one.get("startedAt"))) is not None]
    ends = [t for one in ended if (t := _seconds(one.get("finishedAt"))) is not None]
    is_over = phase in ("Succeeded", "Failed")
    return {
        "node": str(spec.get("nodeName") or ""),
        "started_at": min(starts, default=None),
        "ended_at": max(ends, default=None) if is_over else None,
        "is_measured": phase == "Succeeded" and not any(c.get("restartCount") for c in containers),
    }


def _seconds(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return None


def pods_of(documents: list[Any]) -> list[Pod]:
    """Keep the pods that can be read and name a workload."""
    pods: list[Pod] = []
    for document in documents:
        with suppress(UsageError):
            pods.append(pod_of(document))
    return [pod for pod in pods if pod.row]


def node_of(document: Any) -> Node | None:
    """Read a node of the fleet. Its platform and slots are its labels; without such a label its platform is
    the type of machine, or itself. None if it cannot be read."""
    try:
        metadata = document.get("metadata") or {}
        labels, name = metadata.get("labels") or {}, str(metadata.get("name") or "")
        slots = str(labels.get(f"{PREFIX}slots", ""))
        return Node(name, platform_of_node(metadata), int(slots) if slots.isdecimal() else None)
    except (AttributeError, JostleError, TypeError):
        return None


def node_names(body: Mapping[str, Any]) -> tuple[list[str], list[Any] | None]:
    """Read (names, the nodes themselves if the scheduler sent those). Raises UsageError."""
    names = body.get("NodeNames")
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UsageError("NodeNames is not a list of names")
        return names, None
    nodes = body.get("Nodes")
    items = (nodes.get("items") or []) if isinstance(nodes, Mapping) else []
    try:
        return [str(node["metadata"]["name"]) for node in items], list(items)
    except (KeyError, TypeError, JostleError):
        raise UsageError("Nodes is not a list of nodes") from None
