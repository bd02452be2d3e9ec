"""Samples and helpers for tests of import kubernetes, and for others that need them."""

from __future__ import annotations

from typing import Any


def pod(name: str, start: str | None, end: str | None, **more: Any) -> dict[str, Any]:
    state = {} if start is None else {"running": {"startedAt": f"2026-03-01T{start}Z"}}
    if start and end:
        times = {"startedAt": f"2026-03-01T{start}Z", "finishedAt": f"2026-03-01T{end}Z"}
        state = {"terminated": {**times, "exitCode": 0}}
    status = {"name": "main", "restartCount": 0, "state": state, "lastState": more.get("last", {})}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "etl",
            "uid": f"uid-{name}",
            "labels": {"pod-template-hash": "77d8f6c5b9"},
            "ownerReferences": [{"kind": "Job", "name": more.get("owner", "sort-29000000")}],
        },
        "spec": {"nodeName": more.get("node", "n1"), "containers": [{"image": "sort:1"}]},
        "status": {
            "phase": more.get("phase", "Succeeded" if end else "Running"),
            "containerStatuses": [status],
        },
    }


def event(name: str, reason: str, at: str) -> dict[str, Any]:
    return {
        "kind": "Event",
        "involvedObject": {"kind": "Pod", "name": name, "namespace": "etl", "uid": f"uid-{name}"},
        "reason": reason,
        "firstTimestamp": f"2026-03-01T{at}Z",
        "lastTimestamp": f"2026-03-01T{at}Z",
        "source": {"host": "n1"},
    }


LAST = {
    "terminated": {
        "startedAt": "2026-03-01T08:00:00Z",
        "finishedAt": "2026-03-01T08:05:00Z",
        "reason": "OOMKilled",
    }
}


ITEMS = [
    pod("sort-a", "08:00:00", "09:00:00"),
    pod("web-1", "07:00:00", None, owner="web-77d8f6c5b9"),
    pod("merge-a", "08:30:00", "08:45:00", owner="merge"),
    pod("broken", "08:10:00", "08:20:00", phase="Failed"),
    pod("again", "08:06:00", "08:50:00", owner="again", last=LAST, node="n2"),
    pod("waits", None, None, phase="Pending"),
    event("gone-77d8f6c5b9-x2x4z", "Started", "08:50:00"),
    event("gone-77d8f6c5b9-x2x4z", "Killing", "08:55:00"),
    event("sort-a", "Started", "08:00:00"),
]
