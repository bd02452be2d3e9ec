"""Pods and events, as kubectl prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jostle.errors import UnreadableFile
from jostle.runs import Dataset, KubernetesImport


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


def imported(tmp_path: Path, document: Any) -> Any:
    file = tmp_path / "pods.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    log = KubernetesImport(file, since="2026-03-01T07:00:00", until="2026-03-01T10:00:00").read()
    log.write(tmp_path / "cluster")
    return Dataset(tmp_path / "cluster").read()


def test_pods_are_runs_beside_whoever_was_on_their_node(tmp_path: Path) -> None:
    runs = imported(tmp_path, {"kind": "List", "items": ITEMS})
    ok = {row["workload"]: row for row in runs.ok().table.to_pylist()}
    assert sorted(ok) == ["etl/again", "etl/merge", "etl/sort"]
    sort = ok["etl/sort"]
    assert sort["runtime_seconds"] == 3600
    assert [(one["start_seconds"], one["corunners"]) for one in sort["stretches"]] == [
        (0, ["etl/web"]),
        (600, ["etl/sort", "etl/web"]),
        (1200, ["etl/web"]),
        (1800, ["etl/merge", "etl/web"]),
        (2700, ["etl/web"]),
        (3000, ["etl/gone", "etl/web"]),
        (3300, ["etl/web"]),
    ]
    assert ok["etl/again"]["platform"] == "n2"
    assert ok["etl/again"]["runtime_seconds"] == 44 * 60
    # An earlier life that ended badly, a pod that failed, and one that was killed are no measured runs.
    assert sorted(row["status"] for row in runs.table.to_pylist()) == ["failed"] * 3 + ["ok"] * 3


@pytest.mark.parametrize(
    "document", ["", "{", "[]", '{"items": 3}', '{"items": [3]}', '{"items": [{"spec": {}}]}']
)
def test_what_is_no_list_of_pods_is_told(tmp_path: Path, document: str) -> None:
    with pytest.raises(UnreadableFile, match="no list of pods"):
        imported(tmp_path, document)
