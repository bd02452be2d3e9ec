"""What every request passes: the host, the origin, the caller and its role, the rate, and the clock."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jostle.server.http._problems import problem
from jostle.server.http._reading import REQUEST_BYTES
from jostle.server.http._running_service import Serving

_ALIVE = {"/healthz", "/readyz"}  # at any rate, where a connection begins with it
_OPEN = {"/", "/docs", *_ALIVE}  # without a key
_ONCE = {b"host", b"origin", b"authorization"}  # of two, who passes requests on may see the other


@dataclass(frozen=True)
class Gate:
    """Checks before a request is read: host, origin, key, role and rate. paths: of the operations, by which
    metrics are counted. reads: those that change nothing, whatever their method. administers: those that only
    an administrator may call."""

    app: ASGIApp
    service: Serving
    paths: frozenset[str]
    reads: frozenset[str]
    administers: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif scope["method"] == "GET":  # what else is asked costs the bytes of its body
                answer = len(message.get("body", b"")) / REQUEST_BYTES
                self.service.callers.charge(scope["state"]["caller"], answer)
            await send(message)

        refused = self._refused(scope)
        try:
            await (self.app if refused is None else refused)(scope, receive, noted)
        finally:
            operation, metrics = self._operation(scope["path"]), self.service.metrics
            metrics.duration.labels(operation).observe(time.perf_counter() - start)
            metrics.requests.labels(operation, str(status)).inc()

    def _refused(self, scope: Scope) -> Response | None:
        headers, path = dict(scope["headers"]), scope["path"]
        state = scope.setdefault("state", {})
        callers, address = self.service.callers, (scope.get("client") or ("",))[0]
        token = headers.get(b"authorization", b"").removeprefix(b"Bearer ").strip()
        tls = scope.get("extensions", {}).get("tls", {})
        caller = callers.of(token.decode("latin-1"), tls.get("client_cert_name") or "")
        named_by = address if caller is None or callers.path is None else f"key {caller.name}"
        state["caller"], seconds = named_by, callers.waits(named_by)
        if seconds and not (path in _ALIVE and state.get("is_first", True)):
            after = {"Retry-After": str(math.ceil(seconds))}
            return _closing(429, "too many requests of one caller.", "TooManyRequests", **after)
        if why := self._is_elsewhere(scope, headers):
            return _closing(403, why, "Forbidden")
        if path in _OPEN or path.startswith("/page/"):
            return None
        if caller is None:
            why = "the API key is missing or wrong. Send Authorization: Bearer KEY."
            return _closing(401, why, "Unauthorized", **{"WWW-Authenticate": "Bearer"})
        is_read = scope["method"] in ("GET", "HEAD") or path in self.reads
        role = "administer" if path in self.administers else "read" if is_read else "write"
        if caller.may(role):
            return None
        return _closing(403, f"the key may {caller.role}, not {role}.", "Forbidden")

    def _is_elsewhere(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
        """Say why a request was meant for another host, or comes from a page of one; None if it was not."""
        host, origin = headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin")
        hosts = self.service.settings.hosts
        given = [name for name, _ in scope["headers"] if name in _ONCE]
        if len(given) > len(set(given)):
            return "the host, the origin or the key is named twice."
        if hosts and _name_of(host) not in hosts:
            return "this service is not called by that host name."
        try:
            is_other = origin and urlsplit(origin.decode("latin-1")).netloc != host
        except ValueError:
            is_other = True
        return "a page of another origin may not ask." if is_other else None

    def _operation(self, path: str) -> str:
        if path.startswith("/v1/placements/"):
            path = "/v1/placements/{id}"
        return path.removeprefix("/v1/").strip("/") or "page" if path in self.paths else "other"


def _closing(status: int, sentence: str, error: str, **headers: str) -> Response:
    """Make a problem response that ends the connection: a further attempt costs a further connection."""
    return problem(status, sentence, error, {**headers, "Connection": "close"})


def _name_of(host: str) -> str:
    """Strip the port from a host: from `name:80`, `[::1]:80`."""
    return (host.partition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]).lower()
