"""Pods and events, as kubectl prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jostle.data import Dataset, KubernetesImport
from tests.packages.data.runs.import_kubernetes_samples import ITEMS, LAST, event, pod


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
    assert sorted(row["status"] for row in runs.table.to_pylist()) == (
        ["failed"] * 2 + ["ok"] * 3 + ["out_of_memory"]
    )


def told(kind: str, pod: str, value: float, until: str = "10:00", **labels: str) -> dict[str, Any]:
    """A series of kube-state-metrics, each quarter of an hour from seven to `until`."""
    end = 60 * int(until[:2]) + int(until[3:])
    labels = {
        "__name__": f"kube_pod_{kind}",
        "namespace": "etl",
        "pod": pod,
        "uid": f"uid-{pod}",
        **labels,
    }
    times = [at_minute(minute) for minute in range(420, end + 1, 15)]
    return {"metric": labels, "values": [[at, f"{float(value)}"] for at in times]}


def at_minute(minute: float) -> float:
    return 1772323200 + 60 * minute  # 2026-03-01


def pod_series(name: str, start: float, end: float | None, **more: str) -> list[dict[str, Any]]:
    until, phase = more.get("until", "10:00"), more.get("phase", "Succeeded" if end else "Running")
    owner = {"created_by_name": more.get("owner", name), "created_by_kind": more.get("kind", "Job")}
    out = [
        told("info", name, 1, until, node=more.get("node", "n1"), **owner),
        told("start_time", name, at_minute(start - 1), until),
        told("container_state_started", name, at_minute(start), until, container="main"),
        told("container_state_started", name, at_minute(start + 1), until, container="other"),
        told("container_status_restarts_total", name, float(more.get("restarts", 0)), until),
    ]
    out += [
        told("status_phase", name, one == phase, until, phase=one)
        for one in ("Running", "Failed", "Succeeded")
    ]
    return out + ([told("completion_time", name, at_minute(end), until)] if end else [])


def test_what_kube_state_metrics_tells_is_what_kubectl_prints(tmp_path: Path) -> None:
    series = [
        *pod_series("sort-a", 480, 540, owner="sort-29000000"),
        *pod_series("web-1", 420, None, owner="web-77d8f6c5b9", kind="ReplicaSet"),
        *pod_series("merge-a", 510, 525, owner="merge"),
        *pod_series("broken", 490, 500, phase="Failed", owner="sort-29000001"),
        *pod_series("again", 486, 530, restarts="1", node="n2"),
        *pod_series("gone", 530, None, until="09:00"),
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    runs = imported(tmp_path, answer)
    ok = {row["workload"]: row for row in runs.ok().table.to_pylist()}
    assert sorted(ok) == ["etl/merge", "etl/sort"]
    assert ok["etl/sort"]["runtime_seconds"] == 3600
    assert [(one["start_seconds"], one["corunners"]) for one in ok["etl/sort"]["stretches"]] == [
        (0, ["etl/web"]),
        (600, ["etl/sort", "etl/web"]),
        (1200, ["etl/web"]),
        (1800, ["etl/merge", "etl/web"]),
        (2700, ["etl/web"]),
        (3000, ["etl/gone", "etl/web"]),
    ]
    # Who failed, was restarted or is gone is company alone.
    assert sorted(
        row["workload"] for row in runs.table.to_pylist() if row["status"] == "failed"
    ) == ["etl/again", "etl/gone", "etl/sort"]


def test_a_pod_is_a_run_of_what_lasts(tmp_path: Path) -> None:
    """By its label, else by its owner's name without what is drawn or counted for each run."""
    labelled = pod("l", "08:00:00", "08:05:00", owner="x")
    labelled["metadata"]["labels"]["jostle/workload"] = "mine"
    bare = pod("fft-x2x4z", "08:10:00", "08:15:00")
    bare["metadata"] |= {"ownerReferences": [], "generateName": "fft-"}
    owners = ["sort-29000000", "sort-bcdfg", "sort", "sort-alpha", "sort-cron-29000000-x7k2p"]
    items = [
        pod(f"p{n}", f"08:2{n}:00", f"08:2{n}:30", owner=owner) for n, owner in enumerate(owners)
    ]
    runs = imported(tmp_path, {"items": [labelled, bare, *items]}).ok()
    names = ["mine", "etl/fft", "etl/sort", "etl/sort", "etl/sort", "etl/sort-alpha"]
    assert runs.table.column("workload").to_pylist() == [*names, "etl/sort-cron"]


def test_nodes_tell_the_platform_and_daemons_are_part_of_them(tmp_path: Path) -> None:
    machine = {"node.kubernetes.io/instance-type": "m5"}
    nodes = [
        {"kind": "Node", "metadata": {"name": "n1", "labels": machine}},
        {
            "kind": "Node",
            "metadata": {"name": "n2", "labels": machine | {"jostle/platform": "big"}},
        },
    ]
    daemon = pod("proxy-x2x4z", "07:00:00", None, owner="proxy")
    daemon["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    items = [
        pod("a", "08:00:00", "08:05:00"),
        pod("b", "08:00:00", "08:05:00", node="n2"),
        daemon,
        event("proxy-bcdfg", "Started", "08:01:00"),
        event("proxy-bcdfg", "Killing", "08:02:00"),
    ]
    runs = imported(tmp_path, {"items": items + nodes}).ok().table.to_pylist()
    assert [(row["platform"], row["corunners"]) for row in runs] == [("m5", []), ("big", [])]


def test_a_restarted_pod_is_nobody_beside_itself(tmp_path: Path) -> None:
    """One container ran throughout, another was restarted after five minutes, and so is no measured run."""
    both = pod("both", "08:00:00", "08:30:00", owner="both", last=LAST)
    containers = both["status"]["containerStatuses"]
    containers[0]["restartCount"] = 1
    containers.append({"name": "other", "state": containers[0]["state"], "restartCount": 0})
    runs = imported(tmp_path, {"items": [both, pod("a", "08:00:00", "08:30:00", owner="a")]})
    (a,) = runs.ok().table.to_pylist()
    assert (a["workload"], a["corunners"], a.get("stretches")) == ("etl/a", ["etl/both"], None)


def test_who_is_gone_was_there_until_its_job_was_completed(tmp_path: Path) -> None:
    """Events come in any order; one that was killed and started again went on."""
    done = event("sort-29000000", "Completed", "08:40:00")
    done["involvedObject"]["kind"] = "Job"
    evicted = pod("evicted", None, None, phase="Failed")
    items = [
        event("sort-29000000-x2x4z", "Started", "08:30:00"),
        event("sort-29000000-x2x4z", "Killing", "08:15:00"),
        event("sort-29000000-x2x4z", "Started", "08:10:00"),
        done,
        evicted,
        event("evicted", "Started", "08:50:00"),
        event("evicted", "Evicted", "08:55:00"),
        pod("a", "08:00:00", "09:00:00", owner="a"),
    ]
    (a,) = imported(tmp_path, {"items": items}).ok().table.to_pylist()
    assert [(one["start_seconds"], one["corunners"]) for one in a["stretches"]] == [
        (0, []),
        (600, ["etl/sort"]),
        (2400, []),
        (3000, ["etl/evicted"]),
        (3300, []),
    ]
