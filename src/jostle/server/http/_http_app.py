"""The application: operations by path, what every request passes through, and what runs beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jostle.errors import JostleError
from jostle.server._interface_plugins import doors_of
from jostle.server._serve_settings import ServeSettings
from jostle.server.asking._search_process import Apart
from jostle.server.http._gate import Gate
from jostle.server.http._metrics import CONTENT_TYPE
from jostle.server.http._operation_routes import Handler, fleet_verbs, forecast_verbs, model_verbs
from jostle.server.http._problems import JSON, HttpProblem, answered, problem, problem_of
from jostle.server.http._routes import operation_handlers
from jostle.server.http._running_service import Serving, steady_clock
from jostle.server.http._schemas import openapi
from jostle.server.page._page import page_handlers
from jostle.server.state._archive import Archive


def make_app(settings: ServeSettings, clock: Callable[[], float] | None = None) -> Starlette:
    """Make the ASGI application of one service, which any ASGI server can run.

    clock: seconds since 1970; by default one that no step of the system's clock moves. Raises UsageError,
    NotPermitted, and what reading the fleet raises.
    """
    service, apart = Serving(settings, clock or steady_clock()), Apart()
    doors = doors_of(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.warm()
        loops: dict[str, Callable[[], Any]] = {"models": service.watch}
        loops |= {name: door.watch for name, door in doors.items()}
        if settings.dataset is not None or settings.keep_days is not None:
            archive = Archive(service.store, settings.dataset, settings.keep_days)
            loops["archive"] = archive.go_on
        if settings.learn:
            loops["learning"] = service.learn
        beside = [asyncio.create_task(service.keep(*one)) for one in loops.items()]
        yield
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for door in doors.values():
            await door.close()
        apart.close()
        service.close()

    verbs = model_verbs(service) | fleet_verbs(service, apart) | forecast_verbs(service)
    handlers: dict[tuple[str, str], Handler] = {
        **_about_itself(service),  # found first, whatever is asked beside them
        **{("POST", f"/v1/{verb}"): one for verb, one in verbs.items()},
        **operation_handlers(service),
    }
    schemas: dict[str, Any] = {}
    for door in doors.values():
        handlers |= door.operations
        schemas |= door.schemas
    document = openapi(handlers, schemas)
    described = orjson.dumps(document)

    async def openapi_json(_: Request) -> Response:
        return Response(described, media_type=JSON)

    by_path: dict[str, dict[str, Handler]] = {}
    for (method, path), handler in {**handlers, ("GET", "/openapi.json"): openapi_json}.items():
        by_path.setdefault(path, {})[method] = handler
    routes = [_route(path, of) for path, of in by_path.items()]
    for path, handler in page_handlers(document).items():
        routes.append(Route(path, handler, include_in_schema=False))
    explained = dict.fromkeys((JostleError, HttpProblem, RecursionError, Exception), _explained)
    reads, administers = {f"/v1/{verb}" for verb in verbs}, {"/v1/models/back"}
    roles = {"reads": frozenset(reads), "administers": frozenset(administers)}
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, service=service, paths=frozenset(by_path), **roles)],
        exception_handlers={**explained, HTTPException: _by_http},
        lifespan=lifespan,
    )
    app.state.service, app.state.doors = service, doors
    return app


def _route(path: str, handlers: Mapping[str, Handler]) -> Route:
    async def handle(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return Route(path.replace("{id}", "{id:path}"), handle, methods=list(handlers))


async def _explained(_: Request, error: Exception) -> Response:
    return problem_of(error)


async def _by_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = "there is no such operation; /openapi.json lists all."
    if error.status_code == 405:
        sentence = "the operation is not called with this method."
    headers = {k: ", ".join(sorted(v.split(", "))) for k, v in (error.headers or {}).items()}
    return problem(error.status_code, sentence, "NoSuchOperation", headers)


def _about_itself(service: Serving) -> dict[tuple[str, str], Handler]:
    async def healthz(_: Request) -> Response:
        return answered({"status": "ok"})

    async def readyz(_: Request) -> Response:
        if why := service.why_not_ready():
            raise HttpProblem(503, why)
        await service.probing.ask(service.store.probe, service.settings.most_seconds)
        about = {"status": "ready", "model": service.served.label, "failed": service.failed}
        return answered(about, service.headers())

    async def metrics(_: Request) -> Response:
        text = await service.write(lambda: service.metrics.text(service.refresh_metrics))
        return Response(text, media_type=CONTENT_TYPE)

    asked = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return {("GET", path): handler for path, handler in asked.items()}
