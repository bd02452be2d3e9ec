"""The operations that are the library's verbs: predict, bound, explain, safe, rank, assign, walltime."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jostle.errors import UsageError
from jostle.service.answers._about_fleet import (
    FleetQuestion,
    assign_answer,
    rank_answer,
    safe_answer,
    walltime_answer,
)
from jostle.service.answers._about_model import bound_items, explain_items, predict_items
from jostle.service.answers._apart import Apart
from jostle.service.http._gather import Gatherer
from jostle.service.http._problems import answered
from jostle.service.http._reading import (
    confidence_of,
    items_of,
    json_of,
    names_of,
    number_of,
    only,
    rows_of,
    standard_of,
)
from jostle.service.http._service import Serving
from jostle.service.state._served import Served

MOST_EXPLAINED = 64
MOST_GATHERED = 32  # items of one request
FLEET_KEYS = ("items", "fleet", "tenants", "confidence", "joint", "accept")
OPTIONS = {
    "safe": ("on", "together", "explain"),
    "rank": ("by", "top"),
    "walltime": ("on", "step_seconds"),
    "assign": ("goal", "limit_seconds", "seed"),
}
Handler = Callable[[Request], Awaitable[Response]]


def model_verbs(service: Serving) -> dict[str, Handler]:
    """{verb: its handler}: what a model says of co-locations."""
    settings = service.settings
    gathered = {"predict": Gatherer(predict_items), "bound": Gatherer(bound_items)}

    async def answer_items(
        gatherer: Gatherer, act: Any, served: Served, items: list[Any], level: float
    ) -> list[dict[str, Any]]:
        if len(items) <= MOST_GATHERED:
            return await gatherer.ask(served, items, level)
        # Many take a while: in a thread, so that nobody else waits for them.
        return await service.answers.ask(lambda: act(served, items, level), settings.most_seconds)

    async def predict(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, "items")
        items, served = items_of(body, settings), service.served
        found = await answer_items(gathered["predict"], predict_items, served, items, 0.0)
        service.metrics.count("predict", (one["status"] for one in found))
        document = {"schema": "predict/v1", "model": served.label, "items": found}
        return answered(document, service.headers(served))

    async def bound(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, "items", "confidence")
        items, served = items_of(body, settings), service.served
        level = confidence_of(body, settings)
        found = await answer_items(gathered["bound"], bound_items, served, items, level)
        service.metrics.count("bound", (one.get("outcome", "error") for one in found))
        document = {
            "schema": "bound/v1",
            "model": served.label,
            "confidence": level,
            "items": found,
        }
        return answered(document, service.headers(served))

    async def explain(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, "items", "confidence")
        items, served = items_of(body, settings), service.served
        if len(items) > MOST_EXPLAINED:
            raise UsageError(f"{len(items)} items; at most {MOST_EXPLAINED} are explained at once")
        level = confidence_of(body, settings)
        found = await service.answers.ask(
            lambda: explain_items(served, items, level), settings.most_seconds
        )
        service.metrics.count("explain", (one["status"] for one in found))
        document = {"schema": "explain/v1", "model": served.label, "confidence": level}
        return answered({**document, "items": found}, service.headers(served))

    return {"predict": predict, "bound": bound, "explain": explain}


def fleet_verbs(service: Serving, apart: Apart) -> dict[str, Handler]:
    """{verb: its handler}: where requests can go."""
    settings = service.settings
    acts = {"safe": safe_answer, "rank": rank_answer, "walltime": walltime_answer}

    async def question(request: Request, verb: str) -> FleetQuestion:
        body = await json_of(request, settings)
        only(body, *FLEET_KEYS, *OPTIONS[verb])
        return FleetQuestion(
            items_of(body, settings),
            standard_of(body, settings),
            rows_of(body, "fleet", settings),
            rows_of(body, "tenants", settings),
            _options(body, verb),
        )

    def finish(verb: str, asked: FleetQuestion, document: dict[str, Any], served: Any) -> Response:
        kinds = (one["status"] for one in document["items"])
        service.metrics.count(verb, kinds)
        standard = asked.standard
        head = {
            "schema": f"place_{verb}/v1",
            "model": served.label,
            "confidence": standard.confidence,
            "joint": standard.joint,
            "accept": standard.accept,
        }
        return answered({**document, **head}, service.headers(served))

    def handler(verb: str) -> Handler:
        async def handle(request: Request) -> Response:
            asked, served = await question(request, verb), service.served
            deadline = time.monotonic() + 0.9 * settings.most_seconds
            document = await service.placing.ask(
                lambda: acts[verb](asked, asked.placement(service.places, served), deadline),
                settings.most_seconds,
            )
            return finish(verb, asked, document, served)

        return handle

    async def assign(request: Request) -> Response:
        asked, served = await question(request, "assign"), service.served
        read, fleet = await service.placing.ask(
            lambda: (asked.read(), asked.placement(service.places, served).fleet),
            settings.most_seconds,
        )
        document = await apart.ask(assign_answer, (read, fleet), served, settings.most_seconds)
        return finish("assign", asked, document, served)

    return {**{verb: handler(verb) for verb in acts}, "assign": assign}


def _options(body: dict[str, Any], verb: str) -> dict[str, Any]:
    """Raises UsageError."""
    found: dict[str, Any] = {}
    for key in OPTIONS[verb]:
        value = body.get(key)
        if value is None:
            continue
        if key == "on":
            value = names_of(body, key)
        elif key in ("together", "explain"):
            if not isinstance(value, bool):
                raise UsageError(f"`{key}` is neither true nor false")
        elif key in ("by", "goal"):
            if not isinstance(value, str):
                raise UsageError(f"`{key}` is not a text")
        elif key in ("top", "seed"):
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
                raise UsageError(f"`{key}` is not a whole number from 0 on")
        else:
            value = number_of(body, key, 0.0)
            if not 0 < value < 1e9:
                raise UsageError(f"`{key}` is {value:g}, not a number above 0")
        found[key] = value
    return found
