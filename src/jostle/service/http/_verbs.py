"""The operations that are the library's verbs: predict, bound, explain, safe, rank, assign, walltime."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jostle.answers import Verb, question_of, served_options, served_verbs
from jostle.errors import NotPermitted, UsageError
from jostle.progress import Progress
from jostle.service.answers._about_fleet import FleetQuestion
from jostle.service.answers._about_model import bound_items, explain_items, predict_items
from jostle.service.answers._apart import Apart, ApartQuery
from jostle.service.http._gather import Gatherer
from jostle.service.http._problems import answered
from jostle.service.http._reading import (
    confidence_of,
    items_of,
    json_of,
    only,
    rows_of,
    standard_of,
)
from jostle.service.http._service import Serving
from jostle.service.state._served import Served

MOST_EXPLAINED = 64
MOST_GATHERED = 32  # items of one request
FLEET_KEYS = ("items", "fleet", "tenants", "confidence", "joint", "accept")
LATE = "the time limit passed before this item was reached. Ask for fewer at once."
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
    """{path: its handler}: verbs about where requests can go."""
    verbs = served_verbs("placement")
    return {verb.name: _fleet_handler(verb, service, apart) for verb in verbs}


def _fleet_handler(verb: Verb, service: Serving, apart: Apart) -> Handler:
    settings, names = service.settings, served_options(verb.question)

    async def handle(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, *FLEET_KEYS, *names)
        asked = FleetQuestion(
            items_of(body, settings),
            standard_of(body, settings),
            rows_of(body, "fleet", settings),
            rows_of(body, "tenants", settings),
        )
        question = question_of(verb.question, {name: body.get(name) for name in names})
        served = service.served
        if verb.is_long:
            document = await _apart(asked, question, served)
        else:
            document = await service.placing.ask(
                lambda: _here(asked, question, served), settings.most_seconds
            )
        service.metrics.count(verb.name, (one["status"] for one in document["items"]))
        return answered(document, service.headers(served))

    def _here(asked: FleetQuestion, question: Any, served: Served) -> dict[str, Any]:
        placement, requests = asked.placement(service.places, served), asked.requests()
        if hasattr(question, "served"):
            question.served(len(requests), len(placement.bounds_on(question.on)))
        until = _until(time.monotonic() + 0.9 * settings.most_seconds)
        return placement.ask(verb, requests, question, until).to_document()

    async def _apart(asked: FleetQuestion, question: Any, served: Served) -> dict[str, Any]:
        seconds = settings.most_seconds
        requests, fleet = await service.placing.ask(
            lambda: (asked.requests(), asked.placement(service.places, served).fleet), seconds
        )
        if hasattr(question, "limit_seconds"):
            question = replace(question, limit_seconds=min(question.limit_seconds, seconds))
        query = ApartQuery(verb.name, question, requests, fleet, asked.standard)
        return await apart.ask(query, served, seconds)

    return handle


def _until(deadline: float) -> Progress:
    """Ends the items that are reached too late."""

    def progress(done: int, total: int, _: float) -> None:
        if done < total and time.monotonic() > deadline:
            raise NotPermitted(LATE)

    return progress
