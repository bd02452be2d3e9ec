"""The application: operations by path, what every request passes through, and what runs beside them."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jostle._version import VERSION
from jostle.errors import JostleError
from jostle.service._door import doors_of
from jostle.service._settings import ServeSettings
from jostle.service.answers._apart import Apart
from jostle.service.http._metrics import CONTENT_TYPE
from jostle.service.http._problems import HttpProblem, answered, problem, problem_of
from jostle.service.http._schemas import described
from jostle.service.http._service import Serving
from jostle.service.http._state_routes import state_handlers
from jostle.service.http._verbs import fleet_verbs, forecast_verbs, model_verbs
from jostle.service.page._page import page_handlers
from jostle.service.state._archive import archive

_LOG = logging.getLogger("jostle.service")
_OPEN = {"/", "/healthz", "/readyz", "/openapi.json"}  # without the key


def make_app(settings: ServeSettings, clock: Callable[[], float] = time.time) -> FastAPI:
    """The ASGI application of one service, which any ASGI server can run.

    clock: seconds since 1970. Raises UsageError, NotPermitted, and what reading the fleet raises.
    """
    service, apart = Serving(settings, clock), Apart()
    doors = doors_of(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        beside = [asyncio.create_task(one.watch()) for one in (service, *doors.values())]
        if settings.dataset is not None:
            beside.append(asyncio.create_task(archive(service.store, settings.dataset)))
        if settings.learn:
            beside.append(asyncio.create_task(service.learn()))
        yield
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for door in doors.values():
            await door.close()
        apart.close()
        service.close()

    app = FastAPI(
        title="Jostle", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None,
        description="How long a workload takes, and at most how long, beside others.",
    )  # fmt: skip
    app.state.service, app.state.doors = service, doors
    handlers: dict[tuple[str, str], Any] = {
        **{("POST", f"/v1/{verb}"): one for verb, one in model_verbs(service).items()},
        **{("POST", f"/v1/{verb}"): one for verb, one in fleet_verbs(service, apart).items()},
        **{("POST", f"/v1/{verb}"): one for verb, one in forecast_verbs(service).items()},
        **state_handlers(service),
        **_about_itself(service),
    }
    schemas: dict[str, Any] = {}
    for door in doors.values():
        handlers |= door.operations
        schemas |= door.schemas
    for (method, path), handler in handlers.items():
        name = f"{method.lower()}_{path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}"
        about = described(method, path, schemas)
        app.add_api_route(
            path.replace("{id}", "{id:path}"),
            handler,
            methods=[method],
            name=name,
            response_model=None,
            **about,
        )

    for path, handler in page_handlers().items():
        app.add_api_route(path, handler, include_in_schema=False, response_model=None)

    patterns = {
        re.sub("{id}", "(.+)", re.sub(r"{(?!id)\w+}", "([^/]+)", path)): path
        for _, path in handlers
    }

    def _allowed(path: str) -> list[str]:
        fit = {known for pattern, known in patterns.items() if re.fullmatch(pattern, path)}
        return sorted(method for method, known in handlers if known in fit) or ["GET"]

    async def explained(_: Request, error: Exception) -> Response:
        return problem_of(error)

    async def by_http(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        sentence = "there is no such operation; /openapi.json lists all."
        if status == 405:
            sentence = "the operation is not called with this method."
        headers = {"Allow": ", ".join(_allowed(request.url.path))} if status == 405 else None
        return problem(status, sentence, "NoSuchOperation", headers)

    for kind in (JostleError, HttpProblem, RecursionError, Exception):
        app.add_exception_handler(kind, explained)
    app.add_exception_handler(HTTPException, by_http)
    paths = frozenset(path for _, path in handlers)
    app.add_middleware(_Gate, service=service, paths=paths)
    return app


def _about_itself(service: Serving) -> dict[tuple[str, str], Any]:
    async def healthz(_: Request) -> Response:
        return answered({"status": "ok"})

    async def readyz(_: Request) -> Response:
        if why := service.why_not_ready():
            raise HttpProblem(503, why)
        return answered({"status": "ready", "model": service.served.label}, service.headers())

    async def metrics(_: Request) -> Response:
        text = await service.write(lambda: service.metrics.text(service.refresh_metrics))
        return Response(text, media_type=CONTENT_TYPE)

    async def models(_: Request) -> Response:
        served = service.folder.served
        listed = []
        if served is not None:
            predictor = served.model.predictor
            listed.append(
                {
                    **served.label,
                    "path": str(service.settings.model),
                    "method": served.model.metadata.get("method"),
                    "fitted_at": served.model.metadata.get("fitted_at"),
                    "updates": served.model.metadata.get("updates") or [],
                    "jostle_version": served.model.metadata.get("jostle_version"),
                    "calibrated": served.is_calibrated,
                    "workloads": list(predictor.workload_names),
                    "platforms": list(served.known.platforms),
                    "pools": [vars(one) for one in served.model.calibration.summary()],
                }
            )
        trouble = service.folder.trouble or service.learning.trouble
        document = {"schema": "models/v1", "models": listed, "trouble": trouble}
        return answered(
            {**document, "confidence": service.settings.confidence}, service.headers(served)
        )

    return {
        ("GET", "/healthz"): healthz,
        ("GET", "/readyz"): readyz,
        ("GET", "/metrics"): metrics,
        ("GET", "/v1/models"): models,
    }


class _Gate:
    """What every request passes: the key, the origin, and the clock."""

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
