"""As much of a Kubernetes API server as a scheduler needs: lists, watches, bindings, events."""

from __future__ import annotations

import json
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KINDS = {
    "pods": ("PodList", "v1"),
    "nodes": ("NodeList", "v1"),
    "services": ("ServiceList", "v1"),
    "persistentvolumes": ("PersistentVolumeList", "v1"),
    "persistentvolumeclaims": ("PersistentVolumeClaimList", "v1"),
    "replicationcontrollers": ("ReplicationControllerList", "v1"),
    "storageclasses": ("StorageClassList", "storage.k8s.io/v1"),
    "csinodes": ("CSINodeList", "storage.k8s.io/v1"),
    "replicasets": ("ReplicaSetList", "apps/v1"),
    "statefulsets": ("StatefulSetList", "apps/v1"),
    "poddisruptionbudgets": ("PodDisruptionBudgetList", "policy/v1beta1"),
}
_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/binding|/status)?")


class ApiServer:
    """pods, nodes: by name, as they are there. events: what schedulers reported. bound: in their order."""

    def __init__(self) -> None:
        self.pods: dict[str, Any] = {}
        self.nodes: dict[str, Any] = {}
        self.events: list[Any] = []
        self.bound: list[tuple[str, str]] = []
        self.when_bound: Callable[[str, str], float] = lambda name, node: time.time()
        self._version = 1
        self._lock = threading.RLock()
        self._watching: dict[str, list[queue.Queue[Any]]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add_node(self, name: str, **more: str) -> None:
        """more: labels, under their names with `jostle/` before it."""
        room = {"cpu": "64", "memory": "64Gi", "pods": "500"}
        ready = {"type": "Ready", "status": "True"}
        labels = {"kubernetes.io/hostname": name} | {f"jostle/{k}": v for k, v in more.items()}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self._put(
            "nodes",
            self.nodes,
            name,
            {"metadata": {"name": name, "labels": labels}, "status": status},
        )

    def add_pod(
        self, name: str, labels: dict[str, str], annotations: dict[str, str] | None = None
    ) -> None:
        about = {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": annotations or {},
        }
        box = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
        spec = {"containers": [box], "schedulerName": "default-scheduler"}
        self._put(
            "pods",
            self.pods,
            name,
            {"metadata": about, "spec": spec, "status": {"phase": "Pending"}},
        )

    def remove_pod(self, name: str) -> None:
        with self._lock:
            pod = self.pods.pop(name)
            self._tell("pods", "DELETED", pod)

    def _began(self, pod: Any, now: float, ended: bool = False) -> None:
        (one,) = pod["status"].setdefault("containerStatuses", [{"restartCount": 0, "state": {}}])
        text = datetime.fromtimestamp(now, UTC).isoformat()
        start = one["state"].get("running", {}).get("startedAt", text)
        times = {"startedAt": start, "finishedAt": text}
        one["state"] = {"terminated": times} if ended else {"running": {"startedAt": start}}

    def end_pod(self, name: str, now: float | None = None) -> None:
        with self._lock:
            pod = self.pods[name]
            self._began(pod, time.time() if now is None else now, ended=True)
            pod["status"]["phase"] = "Succeeded"
            self._tell("pods", "MODIFIED", pod)

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Whether it came to pass in that time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._lock:
                if until():
                    return True
            time.sleep(0.05)
        return False

    def messages(self, name: str) -> list[str]:
        """What was reported about a pod."""
        with self._lock:
            mine = [
                e
                for e in self.events
                if e.get("involvedObject", e.get("regarding", {})).get("name") == name
            ]
            return [str(e.get("message") or e.get("note")) for e in mine]

    def _put(self, kind: str, there: dict[str, Any], name: str, found: dict[str, Any]) -> None:
        with self._lock:
            found |= {"apiVersion": "v1", "kind": kind[:-1].capitalize()}
            found["metadata"].setdefault("uid", str(uuid.uuid4()))
            found["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            verb = "MODIFIED" if name in there else "ADDED"
            there[name] = found
            self._tell(kind, verb, found)

    def _tell(self, kind: str, verb: str, found: Any) -> None:
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)
        for waiting in self._watching.get(kind, []):
            waiting.put({"type": verb, "object": json.loads(json.dumps(found))})

    def listed(self, kind: str, selector: str = "") -> dict[str, Any]:
        name, version = KINDS[kind]
        with self._lock:
            items = list({"pods": self.pods, "nodes": self.nodes}.get(kind, {}).values())
            if selector:
                items = [one for one in items if selector in one["metadata"].get("labels", {})]
            about = {"resourceVersion": str(self._version)}
            return {"kind": name, "apiVersion": version, "metadata": about, "items": items}

    def watch(self, kind: str, since: int) -> queue.Queue[Any]:
        """What changes from that version on: also what came between the list and this."""
        waiting: queue.Queue[Any] = queue.Queue()
        with self._lock:
            for found in {"pods": self.pods, "nodes": self.nodes}.get(kind, {}).values():
                if int(found["metadata"]["resourceVersion"]) > since:
                    waiting.put({"type": "ADDED", "object": json.loads(json.dumps(found))})
            self._watching.setdefault(kind, []).append(waiting)
        return waiting

    def bind(self, name: str, node: str) -> int:
        """The status of the answer."""
        with self._lock:
            pod = self.pods.get(name)
            if pod is None:
                return 404
            if pod["spec"].get("nodeName"):
                return 409
            pod["spec"]["nodeName"] = node
            pod["status"]["phase"] = "Running"
            self._began(pod, self.when_bound(name, node))
            self.bound.append((name, node))
            self._tell("pods", "MODIFIED", pod)
            return 201


def _handler(api: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = parse_qs(parts.query)
            kind = parts.path.rstrip("/").rpartition("/")[2]
            if kind in KINDS:
                if asked.get("watch", ["false"])[0] in ("true", "1"):
                    since = int(asked.get("resourceVersion", ["0"])[0] or 0)
                    return self._watch(kind, since)
                return self._answer(200, api.listed(kind, asked.get("labelSelector", [""])[0]))
            if (match := _POD.fullmatch(parts.path)) and match[2] in api.pods:
                return self._answer(200, api.pods[match[2]])
            return self._answer(404, {"kind": "Status", "status": "Failure", "code": 404})

        def do_POST(self) -> None:
            body = self._body()
            if (match := _POD.fullmatch(self.path)) and match[3] == "/binding":
                code = api.bind(match[2], body["target"]["name"])
                return self._answer(code, {"kind": "Status", "apiVersion": "v1", "code": code})
            if self.path.endswith("/events"):
                with api._lock:
                    api.events.append(body)
            return self._answer(201, body)

        def do_PATCH(self) -> None:
            body, match = self._body(), _POD.fullmatch(urlsplit(self.path).path)
            if match and match[2] in api.pods:
                return self._answer(200, api.pods[match[2]])
            if "/events/" in self.path:
                with api._lock:
                    api.events.append(body)
            return self._answer(200, body)

        do_PUT = do_PATCH

        def _body(self) -> Any:
            return json.loads(
                self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}"
            )

        def _answer(self, code: int, document: Any) -> None:
            content = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _watch(self, kind: str, since: int) -> None:
            waiting = api.watch(kind, since)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with suppress(OSError):
                while True:
                    line = json.dumps(waiting.get()).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.flush()

    return Handler
