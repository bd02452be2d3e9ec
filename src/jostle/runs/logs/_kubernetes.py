"""What kubectl prints of pods and events, or kube-state-metrics told Prometheus, as a log of jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from jostle._tables import file_bytes
from jostle._tables.prometheus import read_matrix
from jostle.errors import UnreadableFile
from jostle.runs.logs._gauges import Series
from jostle.runs.logs._log import ImportedLog
from jostle.runs.logs._tables import JobsImport
from jostle.runs.logs._windows import KINDS, series_of

_COLUMNS = ("job", "node", "start", "end", "state", "namespace", "pod", "owner", "app", "image")
_PHASES = ("Unknown", "Pending", "Running", "Succeeded", "Failed")
_OF_A_SCHEDULE = re.compile(r"-\d{7,}$")  # what a CronJob adds to the name of each of its jobs
Row = dict[str, str | None]


@dataclass(frozen=True)
class KubernetesImport(JobsImport):
    """Import what kubectl prints of pods and events, or Prometheus answers of kube-state-metrics.

    Of kubectl get pods,events -A -o json each pod is a job, from the start of its first container to the end
    of the last, and each earlier life of a container that was restarted is one. Pods that are gone are told
    by their events, as company. Pods that run on, such as services, are company; who failed, too. Of
    /api/v1/query_range the series kube_pod_info, _start_time, _completion_time and _status_phase are needed;
    _container_state_started is nearer than the first, and _container_status_restarts_total tells restarts.
    """

    name: ClassVar[str] = "kubernetes"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        key: (key,) for key in ("job", "node", "start", "end", "state")
    }

    workload: Annotated[
        str, "What a pod is a run of, of its namespace, owner, app, pod and image, in braces."
    ] = "{namespace}/{owner}"
    campaign: Annotated[str, "A name for the cluster: with a pod's uid it tells runs apart."] = (
        "kubernetes"
    )

    def _cells(self, log: ImportedLog, where: str) -> Iterator[dict[str, Any]]:
        content, where = file_bytes(self.file)
        try:
            document = json.loads(content)
            if isinstance(document, list) or "data" in document:
                rows = _of_series(series_of(read_matrix(document, "", where, KINDS), where))
            else:
                items = document["items"]
                pods = [one for one in items if one.get("kind", "Pod") == "Pod" and "spec" in one]
                events = [one for one in items if "involvedObject" in one]
                rows = [row for pod in pods for row in _lives(pod)]
                rows += _gone(events, {pod["metadata"].get("uid") for pod in pods})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableFile(
                f"no list of pods as kubectl prints it: {type(error).__name__} {error}"[:200],
                where=where,
                fix="kubectl get pods,events -A -o json > pods.json",
            ) from None
        if rows:
            texts = {key: [row.get(key) or "" for row in rows] for key in _COLUMNS}
            yield {key: pa.array(values, pa.string()) for key, values in texts.items()}


def _lives(pod: dict[str, Any]) -> list[Row]:
    """The pod itself, and the earlier lives of its containers."""
    about, status = pod["metadata"], pod.get("status") or {}
    labels = about.get("labels") or {}
    owners = about.get("ownerReferences") or []
    owner = owners[0]["name"] if owners else about["name"]
    owner = _OF_A_SCHEDULE.sub("", owner.removesuffix(f"-{labels.get('pod-template-hash')}"))
    containers = pod["spec"].get("containers") or [{}]
    base: Row = {
        "job": about.get("uid") or f"{about.get('namespace')}/{about['name']}",
        "node": pod["spec"].get("nodeName"),
        "namespace": about.get("namespace") or "default",
        "pod": about["name"],
        "owner": owner,
        "app": labels.get("app.kubernetes.io/name") or labels.get("app") or owner,
        "image": containers[0].get("image"),
    }
    states = [(one, one.get("state") or {}) for one in status.get("containerStatuses") or []]
    stays = [state.get("terminated") or state.get("running") or {} for _, state in states]
    starts = [one["startedAt"] for one in stays if one.get("startedAt")]
    ends = [one["finishedAt"] for one in stays if one.get("finishedAt")]
    phase = str(status.get("phase") or "Unknown")
    is_over = bool(stays) and len(ends) == len(stays)
    rows = [
        base
        | {
            "start": min(starts, default=None),
            "end": max(ends) if is_over else None,
            "state": "Running" if phase == "Running" and not is_over else phase,
        }
    ]
    for one, _ in states:
        last = (one.get("lastState") or {}).get("terminated") or {}
        if last.get("startedAt") and last.get("finishedAt"):
            number = f"{base['job']}#{one.get('name')}-{one.get('restartCount', 0)}"
            life = {"start": last["startedAt"], "end": last["finishedAt"]}
            rows.append(base | life | {"job": number, "state": str(last.get("reason") or "Error")})
    return rows


def _of_series(series: list[Series]) -> list[Row]:
    """Pods by kube-state-metrics. One whose series end before the others is gone, and how is not known."""
    latest = max((pairs[-1][0] for _, pairs in series if pairs), default=0.0)
    rows: dict[str, Row] = {}
    last: dict[tuple[str, str], tuple[float, float]] = {}  # of each pod and series
    for labels, pairs in series:
        key = labels.get("uid") or f"{labels.get('namespace')}/{labels.get('pod')}"
        name = labels.get("__name__", "").removeprefix("kube_pod_")
        if not pairs or "pod" not in labels:
            continue
        if name == "status_phase":
            name = labels.get("phase", "") if pairs[-1][1] > 0 else ""
        elif name == "info":
            rows[key] = _by_info(key, labels)
        at, value = last.get((key, name), pairs[-1])
        first_or_last = min if name.endswith(("started", "start_time")) else max
        last[key, name] = max(at, pairs[-1][0]), first_or_last(value, pairs[-1][1])
    for key, row in rows.items():

        def told(name: str, key: str = key) -> float | None:
            value = last.get((key, name), (0.0, 0.0))[1]
            return value if value > 0 else None

        start = told("container_state_started") or told("start_time")
        end, seen = told("completion_time"), last[key, "info"][0]
        phase = max(_PHASES, key=lambda one: last.get((key, one), (0.0, 0.0))[0])
        is_gone = end is None and seen < latest
        row["start"] = None if start is None else f"{start:.6f}"
        row["end"] = f"{seen:.6f}" if is_gone else None if end is None else f"{end:.6f}"
        restarted = told("container_status_restarts_total") is not None
        row["state"] = "Gone" if is_gone else "Restarted" if restarted and end else phase
    if not rows:
        raise KeyError("kube_pod_info")
    return list(rows.values())


def _by_info(key: str, labels: dict[str, str]) -> Row:
    owner = labels.get("created_by_name") or labels["pod"]
    if labels.get("created_by_kind") == "ReplicaSet":
        owner = re.sub(r"-[a-z0-9]{8,10}$", "", owner)
    owner = labels["pod"] if owner == "<none>" else _OF_A_SCHEDULE.sub("", owner)
    return {
        "job": key,
        "node": labels.get("node"),
        "namespace": labels.get("namespace", "default"),
        "pod": labels["pod"],
        "owner": owner,
        "app": owner,
    }


def _gone(events: list[dict[str, Any]], listed: set[Any]) -> list[Row]:
    """Pods of events alone: from their start until they were killed. How they ended is not known."""
    rows: dict[str, Row] = {}
    for event in events:
        pod = event["involvedObject"]
        uid = pod.get("uid")
        if pod.get("kind") != "Pod" or not uid or uid in listed:
            continue
        row = rows.setdefault(
            uid,
            {
                "job": uid,
                "namespace": pod.get("namespace") or "default",
                "pod": pod.get("name"),
                # Its owner's name is not told: what generated names add is taken off.
                "owner": re.sub(r"(-[a-f0-9]{8,10})?-[a-z0-9]{5}$", "", pod.get("name") or ""),
                "state": "Gone",
            },
        )
        row["app"] = row["owner"]
        host = (event.get("source") or {}).get("host") or event.get("reportingInstance")
        if event.get("reason") == "Started":
            row["start"] = row.get("start") or event.get("firstTimestamp") or event.get("eventTime")
            row["node"] = row.get("node") or host
        if event.get("reason") in ("Killing", "Completed", "Evicted"):
            row["end"] = event.get("lastTimestamp") or event.get("eventTime")
    return [row for row in rows.values() if row.get("start")]
