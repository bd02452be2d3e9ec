"""Pods as requests: the workload from a label, its objective from annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.errors import JostleError, UsageError
from jostle.placement import Request, Requests

PREFIX = "jostle/"
# What an annotation or a label of the pod may say, as a row of a table of requests.
KEYS = ("workload", "deadline", "slowdown", "solo_seconds", "confidence", "apart", "needs")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Pod:
    """row: what it asks, as in a table of requests; empty where it names no workload."""

    namespace: str
    name: str
    uid: str
    row: dict[str, Any]

    @property
    def id(self) -> str:
        """Of its placement."""
        return f"pod:{self.uid or self.namespace + '/' + self.name}"

    @property
    def is_known(self) -> bool:
        """Whether it names a workload, and what it asks can be read."""
        try:
            return self.request() is not None
        except UsageError:
            return False

    def request(self) -> Request | None:
        """None where it names no workload. Raises UsageError where it cannot be read."""
        if not self.row:
            return None
        read = Requests.read([{**self.row, "name": self.id}])
        if read.rows[0] is None:
            raise UsageError(read.status[0], where=f"pod {self.namespace}/{self.name}")
        return read.rows[0]


def pod_of(document: Any) -> Pod:
    """From the pod as the API server has it. Raises UsageError."""
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
    return Pod(**names, row=row if "workload" in row else {})


def require_names(*names: str) -> None:
    """Raises UsageError for what no object of Kubernetes is called."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name[:100]!r} is not a name of Kubernetes")


def node_names(body: Mapping[str, Any]) -> tuple[list[str], list[Any] | None]:
    """(names, the nodes themselves where the scheduler sent those). Raises UsageError."""
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
