"""What every request passes: the key, the origin, and the clock."""

from __future__ import annotations

import hmac
import time
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jostle.service.http._problems import problem
from jostle.service.http._service import Serving

_OPEN = {"/", "/healthz", "/readyz", "/openapi.json"}  # without the key


class Gate:
    """paths: of the operations, by which metrics are counted."""

    def __init__(self, app: ASGIApp, service: Serving, paths: frozenset[str]) -> None:
        self.app, self.service, self.paths = app, service, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        refused = self._refused(scope)
        try:
            await (self.app if refused is None else refused)(scope, receive, noted)
        finally:
            operation, metrics = self._operation(scope["path"]), self.service.metrics
            metrics.duration.labels(operation).observe(time.perf_counter() - start)
            metrics.requests.labels(operation, str(status)).inc()

    def _refused(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        if origin and urlsplit(origin).netloc != headers.get(b"host"):
            return problem(403, "a page of another origin may not ask.", "Forbidden")
        key = self.service.key
        if key is None or scope["path"] in _OPEN or scope["path"].startswith("/page/"):
            return None
        token = headers.get(b"authorization", b"").removeprefix(b"Bearer ").strip()
        if hmac.compare_digest(token, key.encode()):
            return None
        return problem(
            401, "the API key is missing or wrong. Send Authorization: Bearer KEY.", "Unauthorized",
            {"WWW-Authenticate": "Bearer"},
        )  # fmt: skip

    def _operation(self, path: str) -> str:
        if path.startswith("/v1/placements/"):
            path = "/v1/placements/{id}"
        return path.removeprefix("/v1/").strip("/") or "page" if path in self.paths else "other"
