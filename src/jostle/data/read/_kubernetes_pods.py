"""What kubectl prints of pods and events, or kube-state-metrics told Prometheus, as a log of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from jostle.data.read._dcgm_gauges import Series
from jostle.data.read._job_log import ImportedLog
from jostle.data.read._job_presets import PRESETS
from jostle.data.read._log_shapes import documents
from jostle.data.read._pod_owners import (
    DAEMONS,
    lasting_name,
    maker_of,
    owner_by_name,
    owner_of,
    platform_of_node,
    workload_of,
)
from jostle.data.read._scheduler_log import JobsImport
from jostle.data.read._service_windows import KINDS, series_of
from jostle.data.tables._read_table import file_bytes, text_of
from jostle.data.tables.prometheus_json import read_matrix
from jostle.data.tables.quantities import size_of
from jostle.errors import UnreadableFile

_COLUMNS = (
    *("job", "node", "start", "end", "state", "workload", "namespace", "pod", "owner", "app"),
    *("image", "first", "last", "requested"),
)
_PHASES = ("Unknown", "Pending", "Running", "Succeeded", "Failed")
_PRINT = f"Print it so: {PRESETS['kubernetes'].printed_by}"
_NO_TIME = "0001-01-01T00:00:00Z"
_MAIN = ("kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container")
# Containers that stand beside what a pod is for, and may outlive it.
_SIDECARS = frozenset(
    """istio-proxy istio-init linkerd-proxy envoy envoy-proxy cloud-sql-proxy cloudsql-proxy vault-agent
    fluent-bit fluentd filebeat promtail wait sidecar proxy gcsfuse-sidecar gke-gcsfuse-sidecar otel-collector
    oauth-proxy kube-rbac-proxy queue-proxy daprd consul-dataplane datadog-agent git-sync""".split()  # noqa: SIM905
)
Row = dict[str, str | None]


@dataclass(frozen=True)
class KubernetesImport(JobsImport):
    """Import what kubectl prints of pods and events, or Prometheus answers of kube-state-metrics.

    Of kubectl get pods,events,nodes -A -o json each pod is a job, from the start of its first container to
    the end of the last (the main one beside sidecars), and so is each earlier life of one. Pods that are gone
    are told by their events, as company. Pods that run on, such as services, are company; who failed, too;
    those of DaemonSets are part of the node. What is drawn or counted for each run is taken off the owner's
    name. Nodes tell the platform: the label jostle/platform, else the type of machine. Of
    /api/v1/query_range the series kube_pod_info, _start_time, _completion_time and _status_phase are needed;
    _container_state_started is nearer than the first, and _container_status_restarts_total tells restarts.
    """

    name: ClassVar[str] = "kubernetes"
    usual: ClassVar[str | None] = "kubernetes"

    workload: Annotated[
        str | None,
        "What a pod is a run of: its label jostle/workload, else {namespace}/{owner}; or of namespace, "
        "owner, app, pod and image, in braces.",
    ] = None
    container: Annotated[
        tuple[str, ...],
        "The container that counts beside sidecars; may be repeated.  [default: as pods say by "
        "kubectl.kubernetes.io/default-container, or the one called like the pod's owner]",
    ] = ()
    campaign: Annotated[str, "A name for the cluster: with a pod's uid it tells runs apart."] = (
        "kubernetes"
    )

    def _cells(self, log: ImportedLog, where: str) -> Iterator[dict[str, Any]]:
        content, where = file_bytes(self.file)
        text = text_of(content, where)
        found = documents(text, where) if text.lstrip()[:1] in ("{", "[") else None
        if not found:
            raise UnreadableFile("it is no JSON", where=where, fix=_PRINT)
        try:
            every: list[Row] = []
            parts = [one for part in found for one in (part if isinstance(part, list) else [part])]
            if any("data" in one for one in parts):
                every = _of_series(series_of(read_matrix(found, "", where, KINDS), where))
            else:
                items = [item for one in parts for item in one.get("items", [one])]
                pods = [one for one in items if one.get("kind", "Pod") == "Pod" and "spec" in one]
                nodes = [one["metadata"] for one in items if one.get("kind") == "Node"]
                if nodes and log.platform_of is None:
                    log.platform_of = {one["name"]: platform_of_node(one) for one in nodes}
                every = [row for pod in pods for row in _lives(pod, self.container)]
                every += _gone([one for one in items if "involvedObject" in one], every)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableFile(
                f"no list of pods as kubectl prints it: {type(error).__name__} {error}"[:200],
                where=where,
                fix=_PRINT,
            ) from None
        if not every:
            raise UnreadableFile("it holds no pod", where=where, fix=_PRINT)
        rows = [row for row in every if row["kind"] not in DAEMONS]
        daemons = len(every) - len(rows)
        log.jobs += daemons
        log.left_aside["they are part of each node (DaemonSets, static pods)"] += daemons
        if rows:
            texts = {key: [row.get(key) or "" for row in rows] for key in _COLUMNS}
            yield {key: pa.array(values, pa.string()) for key, values in texts.items()}


def _lives(pod: dict[str, Any], counted: Sequence[str]) -> list[Row]:
    """Return the pod itself, and when earlier lives of its containers were there without it. counted:
    containers that count, by name."""
    about, status = pod["metadata"], pod.get("status") or {}
    labels = about.get("labels") or {}
    texts = labels | (about.get("annotations") or {})
    owner = owner_of(about, texts) or about["name"]
    namespace = about.get("namespace") or "default"
    containers = pod["spec"].get("containers") or [{}]
    app = labels.get("app.kubernetes.io/name") or labels.get("app") or owner
    main = _main([one.get("name") or "" for one in containers], counted, texts, (owner, app))
    job = about.get("uid") or f"{about.get('namespace')}/{about['name']}"
    base = _row(job, namespace, about["name"], owner, maker_of(about)[0]) | {
        "node": pod["spec"].get("nodeName"),
        "workload": workload_of(about, texts) or f"{namespace}/{owner}",
        "app": app,
        "image": containers[0].get("image"),
        "requested": _requested([one for one in containers if one.get("name", "") in main]),
    }
    listed = status.get("containerStatuses") or []
    every = [(one, one.get("state") or {}) for one in listed]
    states = [pair for pair in every if not main or (pair[0].get("name") or "") in main] or every
    stays = [state.get("terminated") or state.get("running") or {} for _, state in states]
    starts = [time for one in stays if (time := _told(one.get("startedAt")))]
    ends = [time for one in stays if (time := _told(one.get("finishedAt")))]
    start, is_over = min(starts, default=None), bool(stays) and len(ends) == len(stays)
    state = _state(status, states, len(states) < len(every))
    lives: list[tuple[str, str, str, str]] = []
    for one, _ in states:
        last = (one.get("lastState") or {}).get("terminated") or {}
        if _told(last.get("startedAt")) and _told(last.get("finishedAt")):
            number = f"{base['job']}#{one.get('name')}-{one.get('restartCount', 0)}"
            reason = str(last.get("reason") or "Error")
            lives.append((last["startedAt"], last["finishedAt"], number, reason))
    row = base | {"start": start, "end": max(ends) if is_over else None, "state": state}
    if listed and any("terminated" in state for _, state in states) and not (start and is_over):
        row["first"] = (
            start or _told(status.get("startTime")) or _told(about.get("creationTimestamp"))
        )
        row["last"] = _last_told(about, status)
    rows = [row]
    until = ""  # a pod is nobody beside itself
    for begin, end, number, reason in sorted(lives):
        begin, end = max(begin, until), min(end, start or end)
        if begin < end:
            rows.append(base | {"start": begin, "end": end, "state": reason, "job": number})
            until = end
    return rows


def _main(
    names: Sequence[str], counted: Sequence[str], texts: Mapping[str, str], called: Sequence[str]
) -> frozenset[str]:
    """Return the containers that tell a pod's time: those that are named, the default one, the one that is
    called like owner or app, and else all that are no sidecars."""
    told = [*(name for name in names if name in counted)]
    told = told or [texts[key] for key in _MAIN if texts.get(key) in names][:1]
    told = told or [name for name in names if name in called][:1]
    return frozenset(told or [name for name in names if name not in _SIDECARS] or names)


def _told(time: str | None) -> str | None:
    return None if not time or time == _NO_TIME else time


def _state(
    status: dict[str, Any], states: Sequence[tuple[Any, dict[str, Any]]], is_part: bool
) -> str:
    """Return the state of a pod, by its main containers if others are left out."""
    over = [state["terminated"] for _, state in states if state.get("terminated")]
    phase = str(status.get("phase") or "Unknown")
    if any(one.get("reason") == "OOMKilled" for one in over):
        return "OOMKilled"
    if is_part and over and len(over) == len(states):
        codes = [one.get("exitCode") for one in over]
        phase = "Succeeded" if all(code == 0 for code in codes) else "Failed"
    is_again = any(one.get("restartCount") for one, _ in states) and len(states) > 1
    # Of one restarted the time is that of no one run.
    return "Restarted" if phase == "Succeeded" and is_again else phase


def _last_told(about: dict[str, Any], status: dict[str, Any]) -> str | None:
    """Until when a pod may have run of which that is not told."""
    turned = [
        _told(one.get("lastTransitionTime"))
        for one in status.get("conditions") or []
        if one.get("status") == "False" and "Ready" in str(one.get("type"))
    ]
    return max(filter(None, [*turned, _told(about.get("deletionTimestamp"))]), default=None)


def _requested(containers: Sequence[Mapping[str, Any]]) -> str | None:
    """Return bytes of memory that these containers may have together; None where one does not say."""
    total = 0.0
    for one in containers:
        resources = one.get("resources") or {}
        limits = [(resources.get(key) or {}).get("memory") for key in ("limits", "requests")]
        if not (told := limits[0] or limits[1]):
            return None
        try:
            total += float(told) if str(told)[-1].isdigit() else size_of(f"{told}B")
        except ValueError:
            return None
    return str(total) if total else None


def _of_series(series: list[Series]) -> list[Row]:
    """Return pods by kube-state-metrics. One whose series end before the others is gone, and how is not
    known."""
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
    kind, maker = labels.get("created_by_kind", ""), labels.get("created_by_name", "<none>")
    owner = labels["pod"] if maker == "<none>" else lasting_name(kind, maker)
    namespace = labels.get("namespace", "default")
    return _row(key, namespace, labels["pod"], owner, kind) | {"node": labels.get("node")}


def _row(job: str, namespace: str, pod: str, owner: str, kind: str) -> Row:
    known = {"job": job, "namespace": namespace, "pod": pod, "owner": owner, "app": owner}
    return {**known, "workload": f"{namespace}/{owner}", "kind": kind}


def _gone(events: list[dict[str, Any]], listed: list[Row]) -> list[Row]:
    """Return pods of whose times events alone tell: from their start until they were killed, or their job was
    completed. How they ended is not known."""
    daemons = {row["workload"] for row in listed if row["kind"] in DAEMONS}
    known = {row["job"] for row in listed if row["start"]}
    rows: dict[str, Row] = {}
    completed: dict[str, str] = {}
    for event in events:
        about, reason = event["involvedObject"], event.get("reason")
        namespace, name = about.get("namespace") or "default", about.get("name") or ""
        first, last = (
            event.get(f"{one}Timestamp") or event.get("eventTime") for one in ("first", "last")
        )
        if about.get("kind") == "Job" and reason == "Completed" and last:
            completed[f"{namespace}/{name}"] = last
        uid = about.get("uid")
        if about.get("kind") != "Pod" or not uid or uid in known:
            continue
        owner = owner_by_name(name)
        workload = f"{namespace}/{owner}"
        kind = "DaemonSet" if workload in daemons else ""
        new = _row(uid, namespace, name, owner, kind) | {"state": "Gone"}
        row = rows.setdefault(uid, new)
        host = (event.get("source") or {}).get("host") or event.get("reportingInstance")
        if reason == "Started" and first and last:
            row["start"] = min(row.get("start") or first, first)
            row["again"] = max(row.get("again") or last, last)
            row["node"] = row.get("node") or host
        if reason in ("Killing", "Evicted") and last:
            row["end"] = max(row.get("end") or last, last)
    for row in rows.values():
        end, again = row.get("end"), row.get("again") or ""
        job = f"{row['namespace']}/{row['pod']}".rpartition("-")[0]
        # Killed before it last started, it was restarted.
        row["end"] = end if end and end >= again else completed.get(job)
    return [row for row in rows.values() if row.get("start")]
